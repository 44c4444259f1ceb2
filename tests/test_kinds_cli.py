"""The command line on answers of every kind: in an order, several at once, and pairs."""

import json
from pathlib import Path

import pytest
from crowd_files import write
from running import Sle

from slencodings.datasets import alttest

TABLE = [
    *("prompt,left,right,winner,judge", "p,x,y,x,ann", "p,y,x,right,bob", "p,x,z,tie,ann"),
    *("q,z,y,left,bob", "q,x,y,A,cyd", "q,y,z,b,cyd"),
]


pytestmark = pytest.mark.usefixtures("here")


def test_pairs_become_preferences_and_scores(sle: Sle):
    name = write("pairs.csv", *TABLE)
    run = sle(
        "encode", name, "--pairwise", "left,right,winner", "-o", "p.jsonl", "--scores", "s.csv"
    )
    assert run.code == 0, run.err
    assert "item = prompt" in run.err
    assert "annotator = judge" in run.err
    rows = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert len(rows) == 4  # both placings of x and y under p are one
    first = next(row for row in rows if {row["chosen"], row["rejected"]} == {"x", "y"})
    assert first["chosen"] == "x"
    assert 0.5 < first["probability"] < 1
    assert first["margin"] > 0
    assert first["judgments"] == 2
    assert abs(first["belief"] + first["disbelief"] + first["uncertainty"] - 1) < 1e-9
    lines = Path("s.csv").read_text().splitlines()
    assert lines[0] == "option,score,low,high,judgments"
    assert lines[1].startswith("x,")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pairwise", "left,right"], "must name three columns"),
        (["--pairwise", "left,right,won"], "there is no column 'won'"),
        (["--pairwise", "left,right,winner", "--into", "s.parquet"], "not for `--pairwise`"),
        (["--pairwise", "left,right,winner", "--ordered", "a,b"], "value for --ordered: it is not"),
        (["--pairwise", "left,right,winner", "--labels", "a,b"], "value for --labels: it is not"),
        (["--scores", "s.csv"], "it is for `--pairwise"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(sle: Sle, options: list[str], words: str):
    run = sle("encode", write("pairs.csv", *TABLE), "-o", "out.csv", *options)
    assert run.code != 0
    assert words in run.err.replace("\n", " ")


def test_several_labels_are_asked_one_by_one(sle: Sle):
    lines = ["item,annotator,label", "1,ann,a / b", "1,bob,a", "2,ann,b", "2,bob,b / c"]
    run = sle("encode", write("m.csv", *lines), "--multi", "/", "-o", "out.csv")
    assert run.code == 0, run.err
    items = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert items == ["1 / a", "1 / b", "1 / c", "2 / a", "2 / b", "2 / c"]


def test_several_labels_of_a_tool_need_no_separator(sle: Sle):
    run = sle(
        "encode", write("m.csv", *TABLE), "--multi", ";", "--format", "prodigy", "-o", "o.csv"
    )
    assert run.code == 1
    assert "Leave one of them out" in run.err


def test_an_order_reaches_the_crowd(sle: Sle):
    lines = ["item,annotator,stars", *(f"{i},{who},{1 + (i + len(who)) % 3}" for i in range(9)
             for who in ("ann", "bo"))]  # fmt: skip
    run = sle("compare", write("o.csv", *lines), "--label", "stars", "--ordered", "1,2,3",
              "--method", "averaged numbers", "-o", "rows.json")  # fmt: skip
    assert run.code == 0, run.err
    first = json.loads(Path("rows.json").read_text())["rows"][0]
    assert first["steps"] is not None
    assert first["wasserstein"] is not None
    assert "without an order" not in run.err  # it was given
    run = sle("compare", "o.csv", "--label", "stars", "--ordered", "1,2,3", "--labels", "1,2,3")
    assert run.code != 0
    assert "Leave those out" in run.err


@pytest.mark.parametrize(
    ("answers", "order"),
    [(("10", "9", "2"), ["2", "9", "10"]), (("High", "low", "medium"), ["low", "medium", "High"])],
)
def test_the_order_of_numbers_and_of_usual_words_is_found_if_asked(
    sle: Sle, answers: tuple[str, ...], order: list[str]
):
    lines = ["item,annotator,label", *(f"{i},{who},{answers[(i + n) % 3]}" for i in range(6)
             for n, who in enumerate(("ann", "bo")))]  # fmt: skip
    asked = ("encode", write("o.csv", *lines), "--weigh", "stated", "-o", "out.csv", "--ordered")
    run = sle(*asked, "found")
    assert run.code == 0, run.err
    assert f"the order of labels: {', '.join(map(repr, order))}" in run.err
    assert "without an order" not in run.err
    found = Path("out.csv").read_text()
    assert [x for x in found.splitlines()[0].split(",") if "belief" in x] == [
        f"belief_{label}" for label in order
    ]
    assert sle(*asked, ",".join(order)).code == 0
    assert Path("out.csv").read_text() == found


def test_an_order_that_names_do_not_tell_is_not_found(sle: Sle):
    name = write("o.csv", "item,annotator,label", "1,ann,cat", "1,bob,dog", "2,ann,cat")
    run = sle("encode", name, "--ordered", "found", "-o", "out.csv")
    assert run.code == 1
    assert "'cat', 'dog' came. Name all labels from lowest to highest: --ordered LOW" in run.err


STARS = ["item,annotator,stars", *(f"{i},{who},{1 + (i + (who == 'cy')) % 3}" for i in range(12)
         for who in ("ann", "bo", "cy"))]  # fmt: skip


def test_reliability_in_an_order_tells_severity_weighted_kappa_and_ordinal_alpha(sle: Sle):
    name = write("o.csv", *STARS)
    asked = ("reliability", name, "--label", "stars", "--ordered", "1,2,3", "--groups", "2", "-q")
    run = sle(*asked, "-o", "rows.json")
    assert run.code == 0, run.err
    written = json.loads(Path("rows.json").read_text())
    rows = {row["annotator"]: row for row in written["rows"]}
    assert rows["cy"]["severity"] == pytest.approx(0.0, abs=1e-9)  # one up twice, two down once
    assert rows["cy"]["severity_low"] < 0 < rows["cy"]["severity_high"]
    assert rows["ann"]["kappa"] > rows["cy"]["kappa"]
    assert "ordinal alpha of the crowd is" in written["about"]["notes"][-1]
    run = sle("reliability", name, "--label", "stars", "--groups", "0", "-q", "-o", "names.json")
    names = json.loads(Path("names.json").read_text())
    assert "severity" not in names["rows"][0]
    assert not any("alpha" in note for note in names["about"]["notes"])


def test_triage_takes_labels_in_an_order_and_each_of_several_labels(sle: Sle):
    run = sle("triage", write("o.csv", *STARS), "--label", "stars", "--ordered", "1,2,3",
              "--budget", "3", "-q")  # fmt: skip
    assert run.code == 0, run.err
    assert run.out.startswith("12 items: ")
    lines = ["item,annotator,label", *(f"{i},{who},{'a;b' if i % 2 else 'b'}" for i in range(8)
             for who in ("ann", "bo"))]  # fmt: skip
    run = sle("triage", write("m.csv", *lines), "--multi", ";", "--budget", "3", "-q")
    assert run.code == 0, run.err
    assert run.out.startswith("16 items: ")  # a question for each item and label


def test_published_comparisons_become_scores(sle: Sle):
    """MT-bench: a prompt, two models and a turn name each item; strong models come first."""
    try:
        crowd = alttest("mtbench").annotations
    except FileNotFoundError as error:
        pytest.skip(str(error))
    lines = ["prompt,model_1,model_2,turn,judge,winner"]
    for i, m, k in zip(crowd.item, crowd.annotator, crowd.y, strict=True):
        lines.append(
            ",".join(
                map(str, [*str(crowd.items[i]).split("__"), crowd.annotators[m], crowd.labels[k]])
            )
        )
    run = sle("encode", write("mt.csv", *lines), "--pairwise", "model_1,model_2,winner",
              "--item", "prompt", "-o", "p.jsonl", "--scores", "s.csv")  # fmt: skip
    assert run.code == 0, run.err
    rows = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert sum(row["judgments"] for row in rows) == len(crowd.item)
    order = [line.split(",")[0] for line in Path("s.csv").read_text().splitlines()[1:]]
    assert order[0] == "gpt-4"
    assert order.index("llama-13b") > order.index("gpt-3.5-turbo")


def test_comparing_several_labels_scores_whole_sets(sle: Sle):
    lines = ["item,annotator,label", *(f"{i},{who},{'a;b' if (i + len(who)) % 3 else 'b'}"
             for i in range(8) for who in ("ann", "bo", "cy"))]  # fmt: skip
    run = sle("compare", write("m.csv", *lines), "--multi", ";", "--method", "soft votes",
              "-o", "rows.json", "-q")  # fmt: skip
    assert run.code == 0, run.err
    (row,) = json.loads(Path("rows.json").read_text())["rows"]
    assert 0 < row["masi"] <= row["jaccard"] <= 1
    assert 0 < row["exact_match"] <= 1


@pytest.mark.parametrize(
    ("verb", "options", "words"),
    [
        (
            "reliability",
            ["--ordered", "1,2"],
            "must hold one of --ordered 1,2; 12 of 36 rows do not",
        ),
        ("reliability", ["--ordered", "1,1,2,3"], "--ordered must differ; '1' came more than once"),
        ("compare", ["--ordered", "1"], "at least two labels are needed; only '1' came"),
        ("triage", ["--multi", ";", "--ordered", "1,2,3"], "came too. Leave --ordered out"),
        ("groups", ["--multi", ";", "--labels", "1,2,3", "--group", "who"], "Leave --labels out"),
        ("panel", ["--ordered", "1,2,3", "--models", "cy", "--sources", "x"], "no column 'x' for"),
    ],
)
def test_kinds_that_do_not_fit_are_refused_by_the_word_that_was_typed(
    sle: Sle, verb: str, options: list[str], words: str
):
    run = sle(verb, write("o.csv", *STARS), "--label", "stars", *options, "-q")
    assert run.code == 1
    assert words in " ".join(run.err.split())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("p,x,y,,ann", "scores need at least one comparison; none came"),
        ("p,x,y,1,ann", "must say who won, by name or as left, right or tie; 1 of 1 rows do not"),
        ("p,x,x,x,ann", "1 of 1 rows compare one with itself, first 'x' in row 1 of the data"),
        ("p,x,,x,ann", "column 'right' must say what was compared in each row; 1 of 1 do not"),
        (",x,y,x,ann", "column 'prompt' must say what was compared in each row"),
    ],
)
def test_hostile_comparisons_are_refused(sle: Sle, row: str, words: str):
    name = write("pairs.csv", TABLE[0], row)
    run = sle("encode", name, "--pairwise", "left,right,winner", "-o", "out.csv", "-q")
    assert run.code == 1
    assert words in " ".join(run.err.split())
    assert not Path("out.csv").exists()


def test_hostile_sets_are_refused_or_read_as_they_are(sle: Sle):
    """Empty cells say nothing, [] says none; commas, quotes and slashes are parts of labels."""
    name = write("m.csv", "item,annotator,label", "1,ann,", "1,bob,")
    run = sle("encode", name, "--multi", ";", "-o", "out.csv")
    assert run.code == 1
    assert "no annotations (2 answers without a label left out)" in run.err
    lines = ["item,annotator,label", "1,ann,[]", '1,bob,"a,b;say ""hi"""', "2,ann,x / y", "2,bob,"]
    run = sle("encode", write("m.csv", *lines), "--multi", ";", "--weigh", "stated",
              "-o", "out.jsonl", "-q")  # fmt: skip
    assert run.code == 0, run.err
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    chance = {row["item"]: row["probability_yes"] for row in rows}
    assert chance['1 / say "hi"'] == chance["1 / a,b"] == pytest.approx(0.5)
    assert chance["1 / x / y"] < 0.01
    assert chance["2 / x / y"] > 0.99


def test_other_columns_stay_beside_several_labels(sle: Sle):
    """Groups, times and what is shown of items, as with one label."""
    lines = ["post,worker,label,item,region,when"]
    for i in range(9):
        for n, who in enumerate(("ann", "bo", "cy")):
            chose, region = "a;b" if (i + n) % 3 else "b", "north" if n else "south"
            lines.append(f"{i},{who},{chose},x{i},{region},2024-01-{i + 1:02}T0{n}:00:00")
    asked = (write("m.csv", *lines), "--multi", ";", "--item", "post")
    run = sle("groups", *asked, "--group", "region", "-o", "rows.json")
    assert run.code == 0, run.err
    assert {"north", "south"} <= set(
        json.dumps(json.loads(Path("rows.json").read_text())).split('"')
    )
    run = sle("reliability", *asked, "--time", "when", "-q")
    assert run.code == 0, run.err
    assert "Whose answers got worse over time" in run.out
    run = sle("encode", *asked, "-o", "out.csv", "--weigh", "stated", "-q")
    assert run.code == 0, run.err
    assert Path("out.csv").read_text().splitlines()[1].startswith("0 / a,")


@pytest.mark.slow
def test_a_model_of_several_labels_sees_items_and_which_label_is_asked(sle: Sle):
    pytest.importorskip("torch")
    rows, features = ["item,annotator,label"], ["item,one,two,four"]
    for i in range(40):
        chosen = [name for n, name in enumerate("abc") if i >> n & 1]
        rows += [f"{i},{who},{';'.join(chosen) or '[]'}" for who in ("ann", "bo")]
        features.append(f"{i},{i & 1},{i >> 1 & 1},{i >> 2 & 1}")
    name, X = write("m.csv", *rows), write("X.csv", *features)
    asked = ("--multi", ";", "--features", X, "--model", "m.safetensors", "-q")
    run = sle("train", name, *asked, "--epochs", "100", "--predictions", "p.csv")
    assert run.code == 0, run.err
    scores = dict(line.split()[:2] for line in run.out.splitlines())
    assert int(scores["items"]) == 24  # three questions of 8 of the 40 items, held out together
    assert float(scores["set_exact_match_crowd"]) > 0.9
    split = [line.split(",") for line in Path("p.csv").read_text().splitlines()[1:]]
    held = {row[0].split(" / ")[0] for row in split if row[-1] == "test"}
    assert len(held) == 8
    assert not held & {row[0].split(" / ")[0] for row in split if row[-1] == "train"}
    run = sle("evaluate", write("b.csv", rows[0], "1,ann,a", "4,ann,c", "5,bo,a;c"), *asked)
    assert run.code == 0, run.err  # two of the three labels are asked
    assert float(dict(line.split()[:2] for line in run.out.splitlines())["set_jaccard_crowd"]) == 1
    run = sle("evaluate", write("z.csv", rows[0], "1,ann,z", "2,ann,b"), *asked)
    assert run.code == 1
    assert "labels the model was trained on, a, b, c; 1 other came, first 'z'" in run.err


@pytest.mark.slow
def test_a_model_of_several_labels_is_scored_by_whole_sets(sle: Sle):
    pytest.importorskip("torch")
    rows, features = ["item,annotator,label"], ["item,a,b,yes"]
    for i in range(40):
        chosen = [name for name in "ab" if (i // (1 + (name == "b"))) % 2]
        rows += [f"{i},{who},{';'.join(chosen) or '[]'}" for who in ("ann", "bo")]
        features += [f"{i} / {x},{int(x == 'a')},{int(x == 'b')},{int(x in chosen)}" for x in "ab"]
    name, X = write("m.csv", *rows), write("X.csv", *features)
    asked = (name, "--multi", ";", "--features", X, "--model", "m.safetensors", "-q")
    run = sle("train", *asked, "--test", "0", "--epochs", "60")
    assert run.code == 0, run.err
    run = sle("evaluate", *asked)
    assert run.code == 0, run.err
    scores = dict(line.split()[:2] for line in run.out.splitlines())
    assert float(scores["set_exact_match_crowd"]) > 0.9
    assert float(scores["set_macro_f1_crowd"]) > 0.9
    assert float(scores["set_hamming_crowd"]) < 0.1
    assert "set_jaccard_gold" not in scores

"""Which answers a file has, the items that they are of, and what goes with them."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from crowd_files import write
from running import Sle

from slencodings.files.exports import read_export

pytestmark = pytest.mark.usefixtures("here")


def rows(name: str) -> list[dict[str, str]]:
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def encode(sle: Sle, *args: str) -> tuple[list[dict[str, str]], str]:
    run = sle("encode", *args, "-o", "out.csv", "--weigh", "stated")
    assert run.code == 0, run.err
    return rows("out.csv"), run.err


def refused(sle: Sle, *args: str) -> str:
    run = sle("encode", *args, "-o", "out.csv")
    assert run.code == 1, run.err
    assert not Path("out.csv").exists()
    return run.err


def table(head: str, values: list[str], items: int | None = None) -> list[str]:
    """Two annotators an item; or many of few items, as the output has numbers for each label."""
    each = 2 if items is None else -(-len(values) // items)
    rows = (f"{n // each},a{n % each},{v}" for n, v in enumerate(values))
    return [f"item,annotator,{head}", *rows]


@pytest.mark.parametrize(
    ("head", "values", "note"),
    [
        (
            "label",
            [f"{n % 30}" for n in range(60)],
            r"'label' holds 30 different numbers from 0 to 29, .*--label COLUMN",
        ),
        ("label", ["0.5", "1.5", "2"], r"'label' holds 3 different numbers from 0.5 to 2, each"),
        ("code", ["0", "3", "5"], r""),
        ("rating", ["0", "3", "5"], r"'rating' looks like a rating from 0 to 5; each is taken for"),
        ("label", ["1", "2", "5"], r"'label' looks like a rating from 1 to 5.* --ordered 1,2,5\."),
        ("label", ["10", "9", "1"], r"--ordered 1,9,10\."),
        ("label", ["High", "low", "medium"], r"from low to High; .* --ordered low,medium,High$"),
        ("label", ["agree", "strongly agree", "neutral"], r"'neutral,agree,strongly agree'$"),
        ("label", ["high", "low"], r""),
        ("label", ["high", "low", "cat"], r""),
        ("label", ["0", "1", "2"], r""),
        ("label", ["1", "2"], r""),
        ("label", ["a;b", "b;c", "a", "a;b;c"], r"such as 'a;b', .*--multi ';' .* a, b, c"),
        ("label", ['"a, b"', '"a, c"', '"b, c"', '"a, b, c"'], r"a yes or no to each of a, b, c"),
        ("label", ['"[""a"", ""b""]"', '"[""b""]"', '"[""a""]"'], r"to each of a, b"),
        ("label", ['"yes, but"', '"no, but"'], r""),
        ("label", [f"word{n} another" for n in range(300)], r"free text \(300 different values\)"),
        ("label", ["it was " + "very " * 30 + x for x in "abcd"], r"free text \(4 different"),
        ("label", [f"word{n % 1100}" for n in range(4400)], r"'label' has 1,100 different values"),
        ("label", [f"w{n % 6000}" for n in range(24000)], r"has 5,000 or more different values"),
        ("label", ["[not json", "{nor this"], r""),
        ("label", ["yes", "no"], r""),
    ],
)
def test_answers_that_are_not_one_of_a_few_names_get_a_note(
    sle: Sle, head: str, values: list[str], note: str
):
    lines = table(head, values, items=4 if len(values) > 400 else None)
    how = ("--label", head, "--weigh", "stated")
    run = sle("encode", write("a.csv", *lines), "-o", "out.csv", *how)
    assert run.code == 0, run.err
    notes = [line for line in run.err.splitlines() if line.startswith(f"note     '{head}'")]
    assert len(notes) == bool(note), run.err
    assert re.search(note, "".join(notes))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"{n % 30}.5" for n in range(90)], "'label' holds 30 different numbers from 0.5 to 29.5"),
        ([f"{n * 7}" for n in range(130)], "without steps cannot be fused. Round them to a few"),
        ([f"{n}.5" for n in range(30)], "name those in their order: --ordered low,...,high; ask"),
        (['"[{""start"": 1, ""end"": 3}]"', '"{""x"": 1}"'], "'label' holds spans (start and end"),
    ],
)
@pytest.mark.parametrize("verb", ["encode", "report"])
def test_spans_and_numbers_without_steps_are_refused(
    sle: Sle, verb: str, values: list[str], words: str
):
    out = {"encode": "out.csv", "report": "out.html"}[verb]
    run = sle(verb, write("a.csv", *table("label", values)), "-o", out)
    assert run.code == 1, run.err
    assert words in run.err
    assert not Path(out).exists()


def test_numbers_that_are_named_one_by_one_are_names(sle: Sle):
    values = [f"{n % 30}.5" for n in range(60)]
    name = write("a.csv", *table("label", values))
    for option in ("--labels", "--ordered"):
        assert encode(sle, name, option, ",".join(dict.fromkeys(values)))[0]


def test_spellings_of_a_label_are_offered_to_be_merged_and_merged_if_asked(sle: Sle):
    name = write("a.csv", *table("label", ["yes", " Yes", "YES ", "yes", "no", "n o", "maybe"]))
    _, told = encode(sle, name)
    assert "in case and spaces alone ('yes', ' Yes', 'YES '); --merge-case makes them one" in told
    merged, told = encode(sle, name, "--merge-case")
    assert "7 rows, 4 labels: maybe, n o, no, yes" in told
    assert "--merge-case" not in told
    assert float(merged[1]["probability_yes"]) > 0.99
    _, told = encode(sle, name, "--merge-case", "--labels", "yes,no,n o,maybe")
    assert "4 labels: yes, no, n o, maybe" in told
    _, told = encode(sle, write("b.csv", *table("label", ["1", "0"])), "--merge-case")
    assert "2 labels: 0, 1" in told
    several = write("c.csv", *table("label", [x + str(n) for n in range(5) for x in "aA"]))
    assert "'A2', 'a2' and 2 more)" in encode(sle, several, "--form", "long")[1]


def test_an_id_that_numbers_rows_is_told_where_nobody_asked_for_it(sle: Sle):
    name = write("a.csv", "id,text,label", "1,hi,a", "2,hi,b", "3,ho,a")
    assert "every row has its own 'id'; if that numbers rows and not items" in encode(sle, name)[1]
    assert "--item text" in encode(sle, name)[1]
    assert "its own" not in encode(sle, name, "--item", "id")[1]
    assert "its own" not in encode(sle, write("b.csv", "id,label", "1,a", "1,b"))[1]


def test_lists_of_one_label_are_labels_and_lists_of_several_say_what_to_type(sle: Sle):
    one = write("a.jsonl", *(json.dumps({"item": 1, "label": [x]}) for x in "ab"))
    assert "2 rows, 2 labels: a, b" in encode(sle, one)[1]
    Path("out.csv").unlink()
    many = write(
        "b.jsonl",
        '{"item": 1, "annotator": "x", "label": ["a", "b"]}',
        '{"item": 1, "annotator": "y", "label": ["b"]}',
        '{"item": 2, "annotator": "y", "label": []}',
        '{"item": 3, "annotator": "y", "label": null}',
    )
    told = refused(sle, many)
    assert 'lists of several came, such as ["a", "b"]' in told
    assert "ask for a yes or no to each label: --multi ';'" in told
    found, told = encode(sle, many, "--format", "several")
    assert [row["item"] for row in found] == ["1 / a", "1 / b", "2 / a", "2 / b"]
    assert [row["probability_yes"] > "0.9" for row in found] == [False, True, False, False]
    assert "1 answer without a label left out" in told
    found, _ = encode(sle, many, "--format", "several", "--question", "label=a")
    assert [row["item"] for row in found] == ["1", "2"]
    soft = write("c.jsonl", *(json.dumps({"item": n, "label": [0.5, 0.5]}) for n in range(2)))
    assert "2 rows, 2 labels: 0, 1" in encode(sle, soft)[1]


def test_several_labels_in_a_cell_are_split_and_keep_their_confidence():
    told = {"id": [1, 2], "rater": ["ann", "bob"], "labels": ["a;b", "b"], "sure": [3, 5]}
    export = read_export(told, format="several")
    assert export.columns["item"] == ["1 / a", "1 / b", "2 / a", "2 / b"]
    assert export.columns["label"] == ["yes", "yes", "no", "yes"]
    assert export.columns["confidence"] == [3, 3, 5, 5]
    export = read_export(told, format="several", item="rater", label="labels", annotator="id")
    assert export.columns["item"][0] == "ann / a"
    with pytest.raises(ValueError, match=r"must have a column for the item and one for the labels"):
        read_export({"x": [1], "y": ["a;b"]}, format="several")
    with pytest.raises(ValueError, match=r"no column 'lables' for `label`.*mean label='labels'"):
        read_export(told, format="several", label="lables")


def test_items_that_several_columns_name_are_joined_and_their_columns_kept(sle: Sle):
    name = write("a.csv", "doc,sentence,label", "d1,1,a", "d1,1,b", "d1,2,a", "d2,1,b")
    found, told = encode(sle, name, "--item", "doc,sentence")
    assert "'item' is made of 'doc', 'sentence', joined with ' / '" in told
    assert [(row["item"], row["doc"], row["sentence"]) for row in found] == [
        ("d1 / 1", "d1", "1"),
        ("d1 / 2", "d1", "2"),
        ("d2 / 1", "d2", "1"),
    ]
    run = sle("triage", name, "--item", "doc,sentence")
    assert "4 annotations of 3 items" in run.err
    taken = write("b.csv", "item,part,label", "d1,1,a", "d1,2,b")
    assert "item_part" in encode(sle, taken, "--item", "item,part")[0][0]
    twice = write("c.csv", "item,item_part,part,label", "d1,0,1,a", "d1,0,2,b")
    assert "item_part_" in encode(sle, twice, "--item", "item,part")[0][0]
    Path("out.csv").unlink()
    assert "no column 'x' for --item" in refused(sle, name, "--item", "doc,x")
    alike = write("d.csv", "doc,part,label", "a / b,c,x", "a,b / c,y")
    told = refused(sle, alike, "--item", "doc,part")
    assert "must differ when these are joined with ' / '; several are 'a / b / c' then" in told


def test_columns_are_carried_through_from_the_first_row_of_an_item(sle: Sle):
    name = write("a.csv", "item,text,url,label", "2,two,,a", "1,one,u,a", "1,uno,u,b", "2,two,v,b")
    for form in ("wide", "long"):
        found, told = encode(sle, name, "--keep", "text,url", "--form", form)
        assert {(row["item"], row["text"], row["url"]) for row in found} == {
            ("1", "one", "u"),
            ("2", "two", "v"),
        }
        assert "1 item with several 'text'; the first of each is kept" in told
        assert "not used" not in told
    assert list(found[0])[:4] == ["item", "label", "text", "url"]
    nested = write(
        "a.jsonl",
        *(json.dumps({"item": n, "label": x, "m": [{"a": 1}]}) for n, x in enumerate("ab")),
    )
    assert encode(sle, nested, "--keep", "m")[0][0]["m"] == '[{"a":1}]'
    Path("out.csv").unlink()
    assert "no column 'txt' for --keep" in refused(sle, name, "--keep", "txt")
    clash = write("b.csv", "item,label,Uncertainty,p", "1,a,0,x", "1,b,0,y")
    told = refused(sle, clash, "--keep", "Uncertainty", "--uncertainty", "0")
    assert "must not be called like one of opinions; --keep Uncertainty came" in told
    run = sle("encode", name, "--into", "store.parquet", "--keep", "text")
    assert "a store holds items and sums alone; --keep text came" in run.err


GRID = "Timestamp,Email Address,Rude? [p1],Rude? [p2],How sure are you? [p1],How sure are you? [p2]"


def test_a_form_with_a_column_for_each_item_is_read_by_its_grid(sle: Sle):
    name = write("a.csv", GRID, "t,x@y.z,yes,no,5,3", "t,w@y.z,yes,,1,")
    found, told = encode(sle, name, "--confidence-scale", "1-5")
    assert "a.csv is of google-forms, a grid" in told
    assert "confidence is the answer to 'How sure are you?'" in told
    assert "2 empty cells left out" in told
    assert [row["item"] for row in found] == ["p1", "p2"]
    crowd = read_export(name)
    assert crowd.columns["annotator"] == ["x@y.z", "x@y.z", "w@y.z"]
    assert crowd.columns["confidence"] == [5, 3, 1]
    with pytest.raises(ValueError, match=r"items of a form are its columns; item='x' came"):
        read_export(name, item="x")


def test_a_form_without_a_grid_is_read_if_it_is_named(sle: Sle):
    name = write("a.csv", "Timestamp,Score,Is p1 rude?,Is p2 rude?", "t,1,yes,no", "t,2,no,no")
    found, _ = encode(sle, name, "--format", "google-forms")
    assert [row["item"] for row in found] == ["Is p1 rude?", "Is p2 rude?"]
    assert set(read_export(name, format="google-forms").columns["annotator"]) == {
        "respondent 1",
        "respondent 2",
    }
    long = write("b.csv", "Timestamp,Email Address,Item,Answer,How sure are you?", "t,a@b,1,x,.5")
    _, told = encode(sle, long, "--labels", "x,y")
    assert "item = Item, annotator = Email Address, label = Answer, confidence = How sure" in told


def test_columns_and_questions_of_exports_are_named_from_the_command_line(sle: Sle):
    tasks = [
        {
            "Timestamp": "t",
            "Rude? [a]": "yes",
            "Rude? [b]": "no",
            "Zeal? [a]": "3",
            "Zeal? [b]": "4",
        }
    ]
    write("a.json", json.dumps(tasks))
    _, told = encode(sle, "a.json", "--confidence", "Zeal?", "--confidence-scale", "1-5")
    assert "confidence is the answer to 'Zeal?'" in told
    _, told = encode(sle, "a.json", "--confidence", "0.5", "--question", "Rude?")
    assert "confidence = 0.5" in told
    Path("out.csv").unlink()
    told = refused(sle, "a.json", "--annotator", "who", "--question", "Rude?")
    assert "an export says itself what its annotator is; --annotator who came" in told
    people = [f"p{n:02}" for n in range(25)]
    wide = write("b.csv", ",".join(["item", "note", *people]), ",".join(["1", "x"] + ["a"] * 25))
    _, told = encode(
        sle, wide, "--format", "wide", "--annotator", ",".join(people), "--labels", "a,b"
    )
    assert "'p19' and 5 more" in told
    counts = write("c.csv", "item,yes,no,total", "1,2,1,3")
    _, told = encode(sle, counts, "--format", "counts", "--label", "yes,no")
    assert "3 rows, 2 labels: no, yes" in told


def test_a_table_with_a_column_for_each_annotator_says_what_to_type(sle: Sle):
    name = write("wide.csv", "item,ann,bob", "1,cat,dog", "2,dog,dog")
    assert refused(sle, name).endswith("If each annotator has a column: --format wide.\n")
    assert encode(sle, name, "--format", "wide")[0][1]["item"] == "2"


def test_a_line_for_excel_alone_is_told_to_be_deleted(sle: Sle):
    name = write("excel.csv", "sep=;", "item;annotator;label", "1;ann;cat", "2;ann;dog")
    assert "Or delete the first line, which only tells Excel" in refused(sle, name)


def test_a_form_with_a_column_for_each_item_says_what_to_type(sle: Sle):
    name = write("form.csv", "Timestamp,Email Address,Post 1,Post 2", "1,a@b.org,cat,dog")
    assert refused(sle, name).endswith("If each column is an item: --format google-forms.\n")
    table = write("table.csv", "Email Address,Post 1,Post 2", "a@b.org,cat,dog")
    assert refused(sle, table).endswith("Name them: --item COLUMN and --label COLUMN.\n")


def test_answers_that_name_two_columns_may_be_judgments_of_pairs(sle: Sle):
    rows = [f"q{n % 3},one,two,{'model a' if n % 2 else 'model_b'}" for n in range(12)]
    name = write("pairs.csv", "question,model a,model_b,winner", *rows)
    how = ("--item", "question", "--label", "winner")
    _, told = encode(sle, name, *how)
    (typed,) = re.findall(r"stands in them: sle (.*)$", told, re.M)
    verb, *words = shlex.split(typed)
    run = sle(verb, name, *words, "-o", "out.csv")
    assert "left = model a, right = model_b, winner = winner" in run.err
    assert run.code == 0


def test_long_labels_that_come_again_and_again_are_no_free_text(sle: Sle):
    long = [
        f"{'a long label with many words that says what is meant' * 2} {n % 2}" for n in range(20)
    ]
    _, said = encode(sle, write("long.csv", *table("label", long)))
    assert "free text" not in said
    _, said = encode(
        sle, write("text.csv", *table("label", [f"{x} {n}" for n, x in enumerate(long)]))
    )
    assert "looks like free text (20 different values)" in said


def test_what_counts_for_nothing_is_told(sle: Sle):
    lines = ["item,annotator,label,sure", "p,a,x,1", "p,b,x,5", "q,a,y,1", "q,b,x,", "q,,x,3"]
    name = write("sure.csv", *lines)
    how = ["--confidence-scale", "1-5", "--missing", "drop"]
    _, said = encode(sle, name, *how)
    assert "2 rows without sure or annotator left out (--missing drop)" in said
    assert "2 annotations at 'sure' 1, the low end of 1-5, which counts for nothing" in said
    assert "1 item with next to no evidence: uncertainty above 0.9" in said
    _, said = encode(sle, name, "--confidence-scale", "0-5", "--missing", "drop", "--form", "long")
    assert "counts for nothing" not in said
    assert "next to no evidence" not in said
    _, said = encode(sle, name, "--confidence-scale", "1-5", "--missing", "trust")
    assert "left out" not in said
    certain = write("unsure.csv", "item,annotator,label,doubt", "p,a,x,1", "p,b,y,0.5")
    assert "1 annotation at 'doubt' 1, which counts for nothing" in encode(sle, certain)[1]
    learned = sle("encode", name, "-o", "out.csv", *how)
    assert "2 rows without sure or annotator left out" in learned.err
    assert "counts for nothing" not in learned.err, "what levels are worth is learned"


def test_a_file_that_is_not_there_is_told_from_those_whose_endings_are_alike(sle: Sle):
    write("crowd.csv", "item,label", "p,x", "p,y")
    assert refused(sle, "crwd.csv").endswith("Did you mean 'crowd.csv'?\n")
    assert refused(sle, "nofile.csv").endswith("there is no file 'nofile.csv'.\n")

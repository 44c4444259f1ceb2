"""VoteBench: what is hidden from methods, how they are scored, and how one is added."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from documents import PYTHON
from matplotlib import pyplot as plt
from real_crowds import SHARED

from benchmarks import intervals, small_crowds
from benchmarks.votes import page, peers
from benchmarks.votes.__main__ import _write, main
from benchmarks.votes.crowds import Crowd, prepared, published
from benchmarks.votes.methods import Method, Prediction, ours, predict
from benchmarks.votes.rows import PATH, all_rows, keep, read
from benchmarks.votes.score import BLOCKS, SCORES, score
from experiments import figures, tables
from slencodings import from_table
from slencodings.annotations import Annotations
from slencodings.datasets import alttest
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.methods import METHODS

DOCUMENT = tables.DOCS / "votebench.md"


def crowd(N=60, M=8, per_item=4, K=3, seed=0) -> Annotations:
    """People who are right four times in five, the first of them never."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(N), per_item)
    annotator = np.concatenate([rng.permutation(M)[:per_item] for _ in range(N)])
    truth = rng.integers(0, K, N)
    right = (rng.random(len(item)) < 0.8) & (annotator > 0)
    y = np.where(right, truth[item], (truth[item] + rng.integers(1, K, len(item))) % K)
    names = np.arange(max(N, M))
    return Annotations(item, annotator, y, np.zeros(len(item)), names[:N], names[:M], np.arange(K))


def method(run) -> Method:
    return Method(run, "1")


def even(a: Annotations) -> Prediction:
    shape = len(a.items), len(a.labels)
    return Prediction(np.full(shape, 1 / shape[1]), of_votes=True)


# What is hidden, and how it is scored


def test_every_vote_that_has_company_is_predicted_once_and_never_seen_by_who_predicts_it():
    a = crowd().rows(slice(-3))  # one vote on the last item
    given = []

    def watch(train):
        given.append({*zip(train.item.tolist(), train.annotator.tolist(), strict=True)})
        return even(train)._replace(own=lambda item, who: np.full((len(item), 3), 1 / 3))

    found = score(method(watch), a, None)
    votes = {*zip(a.item.tolist(), a.annotator.tolist(), strict=True)}
    hidden = [votes - train for train in given]
    assert len(hidden) == 4
    assert sum(map(len, hidden)) == len(set.union(*hidden)) == len(votes) - 1
    assert not any((59, m) in part for part in hidden for m in range(8))
    assert found.counts[:3].sum(axis=1).tolist() == [len(votes) - 1] * 3


def test_who_knows_nothing_loses_the_logarithm_of_the_number_of_labels():
    a = crowd()
    truth = np.eye(3)[np.zeros(60, dtype=int)]
    truth[30:] = np.nan
    found = score(method(even), a, truth)
    mean = found.sums.sum(axis=1) / found.counts.sum(axis=1)
    assert mean[[0, 2, 4]] == pytest.approx(np.log(3))
    assert mean[3] == pytest.approx(2 / 3)
    assert found.counts.sum(axis=1).tolist() == [240, 240, 240, 30, 30]
    assert found.sums.shape == (len(SCORES), BLOCKS)


def test_a_truth_is_translated_into_what_people_say_and_the_first_of_them_is_known():
    a = crowd()
    shares = method(lambda train: train.sums() / train.sums().sum(axis=1, keepdims=True))
    found = score(shares, a, None)
    votes, own, joint = found.sums[:3].sum(axis=1) / found.counts[:3].sum(axis=1)
    assert np.isfinite([votes, own, joint]).all()
    assert own < votes < np.log(3)


@pytest.mark.parametrize("name", ["soft votes", "SLE, kappa", "Dawid-Skene", "learned crowd"])
def test_methods_of_this_package_say_what_their_readers_say_of_one_question_at_a_time(name):
    a = crowd(N=20)
    said = predict(ours()[name], a)
    fit = next(row.fit for row in METHODS if row.name == name)(Learner(a))
    item, who = np.asarray([3, 3, 7]), np.asarray([0, 5, 2])
    assert said.own is not None
    for i, m, p in zip(item, who, said.own(item, who), strict=True):
        columns = {"item": i, "annotator": m, "y": 1, "uncertainty": 0.0}
        asked = replace(a, **{k: np.append(getattr(a, k), v) for k, v in columns.items()})
        assert fit.reader.predict_own(a, asked)[-1] == pytest.approx(p, abs=1e-9)
        if not fit.infers_truth:
            assert fit.reader.predict(asked)[-1] == pytest.approx(said.probability[i], abs=1e-9)
            assert said.spread is not None
            assert fit.reader.spread(asked)[-1] == pytest.approx(said.spread[i], abs=1e-9)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            np.full((60, 2), 0.5),
            r"`probability` must be \(60, 3\), items and labels; shape \(60, 2",
        ),
        (
            np.full((60, 3), 0.5),
            "must sum to 1 for every item; 60 of 60 do not, first .* of item 0",
        ),
        (np.tile([2.0, -1, 0], (60, 1)), "`probability` must not be negative"),
        (even(crowd())._replace(truth=np.zeros((60, 3))), "`truth` must not be negative and must"),
    ],
)
def test_predictions_of_another_shape_or_no_probabilities_are_refused(said, words):
    with pytest.raises(ValueError, match=words):
        predict(method(lambda a: said), crowd())


def test_of_many_items_those_with_a_truth_come_first_and_soft_labels_become_one_label():
    a = crowd()
    truth = np.full((60, 3), np.nan)
    truth[50:] = 1 / 3
    fewer = prepared(replace(a, y=a.vectors * 0.8 + 0.2 / 3), truth, 12)
    assert len(fewer.annotations.items) == 12
    assert {*range(50, 60)} <= {*fewer.annotations.items.tolist()}
    assert fewer.truth is not None
    assert np.isnan(fewer.truth).any(axis=1).sum() == 2
    told = {*zip(a.item.tolist(), a.annotator.tolist(), a.y.tolist(), strict=True)}
    b = fewer.annotations
    names = b.items[b.item].tolist(), b.annotators[b.annotator].tolist(), b.y.tolist()
    assert {*zip(*names, strict=True)} < told
    assert b.stated == pytest.approx(0.8 + 0.2 / 3)


@pytest.mark.skipif(not (SHARED / "alttest").exists(), reason="the panels are not on this machine")
def test_of_a_panel_people_are_taken_and_no_models():
    panel, taken = alttest("mtbench"), published("mtbench, people", 50)
    a = panel.annotations
    people = {*a.annotators[panel.people].tolist()}
    models = {*a.annotators[~panel.people].tolist()}
    assert people
    assert models
    assert {*taken.annotations.annotators.tolist()} == people
    assert taken.truth is None
    assert len(taken.annotations.items) == 50
    votes = {*zip(a.items[a.item].tolist(), a.annotators[a.annotator].tolist(), strict=True)}
    b = taken.annotations
    assert {*zip(b.items[b.item].tolist(), b.annotators[b.annotator].tolist(), strict=True)} < votes


# Rows and the page


def test_what_fails_or_takes_too_long_is_told_and_the_others_go_on(tmp_path):
    def forever(a):
        while True:
            pass

    def wrong(a):
        raise KeyError("no such label")

    methods = {"wrong": method(wrong), "forever": method(forever), "even": method(even)}
    crowds = {"a": lambda: Crowd(crowd(), None)}
    rows = keep(tmp_path / "rows.parquet", crowds, methods, seconds=1)
    assert page.failed(rows) == (
        "- forever on a: TimeoutError: more than 1 s\n- wrong on a: KeyError: 'no such label'"
    )
    assert {r.method for r in page.results(rows)} == {"even"}
    assert page.failed(rows.filter(method="even")) == "Nothing failed."


def test_a_crowd_that_is_not_there_is_left_out(tmp_path, capsys):
    def gone():
        raise FileNotFoundError("no data")

    assert len(keep(tmp_path / "rows.parquet", {"b": gone}, {}, seconds=1)) == 0
    assert capsys.readouterr().err == "without b: no data\n"


def rows_of(losses):
    """Rows as if each method lost so much on every one of two votes in each block."""
    base = np.random.default_rng(0).random(BLOCKS)
    lines = [
        {"crowd": "a", "method": name, "score": "votes", "version": "1", "data": "d"}
        | {"sums": (2 * (base + loss)).tolist(), "counts": [2.0] * BLOCKS}
        | dict.fromkeys(("items", "annotators", "labels", "annotations"), 100)
        for name, loss in losses.items()
    ]
    return pl.concat([read(Path("none")), pl.DataFrame(lines)], how="diagonal_relaxed")


def test_methods_are_compared_in_pairs_so_that_a_small_steady_difference_shows():
    found = {r.method: r for r in page.results(rows_of({"x": 0.0, "same": 0.0, "worse": 0.01}))}
    assert found["worse"].apart
    assert found["worse"].behind == pytest.approx(0.01, abs=1e-6)
    assert not found["x"].apart
    assert not found["same"].apart
    heads, cells = page.in_all([*found.values()])
    assert heads[:4] == ["method", "crowds", "anybody's vote", "behind"]
    assert cells[-1] == ["worse", "1", "0 of 1", "0.010"]
    shown = page.by_crowd([*found.values()], "votes")[1]
    assert [cell.startswith("**") for _, cell in shown] == [True, True, False]
    lowest = found["x"].mean
    assert shown[0] == ["x", f"**{lowest:.3f}**"]
    assert shown[-1] == ["worse", f"{lowest + 0.01:.3f} (+.010 to +.010)"]


def test_an_interval_that_is_not_finite_is_told_as_such():
    result = page.Result("a", "truth", "x", np.inf, np.inf, np.inf, np.inf)
    assert page._shown(result) == "inf (+inf to +inf)"
    assert page._shown(result._replace(low=None)) == "**inf**"
    assert page._shown(result._replace(mean=0.5, behind=0.1, low=-0.02, high=0.31)) == (
        "**0.500** (-.020 to +.310)"
    )


def test_the_document_is_made_from_the_rows_that_are_kept():
    rows = read(PATH)
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in page.parts(rows, f"benchmarks/rows/{PATH.name}").items():
        assert f"<!-- {name} -->\n{part}\n<!-- end of {name} -->" in text
    plt.close(page.figure(rows))


def test_writing_drops_no_rows_of_methods_and_crowds_that_were_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    text = DOCUMENT.read_text(encoding="utf-8")
    (tmp_path / DOCUMENT.name).write_text(text, encoding="utf-8")
    asked = read(PATH).filter(crowd="RTE", method="soft votes")
    _write(PATH, all_rows(PATH, asked))
    assert (tmp_path / DOCUMENT.name).read_text(encoding="utf-8") == text
    assert (tmp_path / "figures" / "votebench.png").exists()


def test_rows_of_other_items_of_a_crowd_that_was_measured_are_left_out(tmp_path, capsys):
    old, other = rows_of({"x": 0.0, "y": 0.1}), rows_of({"x": 0.0})
    new = old.filter(method="x").with_columns(data=pl.lit("new"))
    rows = [old.filter(method="y"), new, other.with_columns(crowd=pl.lit("b"))]
    pl.concat(rows).write_parquet(tmp_path / "rows.parquet")
    found = all_rows(tmp_path / "rows.parquet", new)
    assert found.select("crowd", "method").rows() == [("a", "x"), ("b", "x")]
    assert capsys.readouterr().err == "without 1 rows of other items of these crowds\n"


def test_the_paper_says_what_the_rows_say():
    text = " ".join((tables.DOCS.parent / "paper" / "paper.md").read_text(encoding="utf-8").split())
    found = {(r.score, r.crowd, r.method): r for r in page.results(read(PATH))}
    crowds = {crowd for _, crowd, _ in found}

    def level(score: str) -> int:
        return sum(not found[score, crowd, "learned crowd"].apart for crowd in crowds)

    def worse(method: str) -> tuple[int, int]:
        both = [
            found["votes", c, method].mean > found["votes", c, "soft votes"].mean
            for c in crowds
            if ("votes", c, method) in found
        ]
        return sum(both), len(both)

    assert (len(crowds), level("joint"), level("votes"), level("own")) == (16, 16, 14, 13)
    assert (
        "best or level with the best on all sixteen, a single vote on fourteen, and the vote of an "
        "annotator who is known on thirteen" in text
    )
    assert worse("SLE, full trust") == (16, 16)
    assert "with full trust, predicts votes worse than their plain shares on all sixteen" in text
    assert worse("SLE, stated confidence") == (2, 2)
    assert "confidence as stated does so on both crowds that have it" in text
    wrong = {
        method: [r.mean for (score, _, m), r in found.items() if (score, m) == ("wrong", method)]
        for method in ("MACE", "Dawid-Skene, shrunk to the crowd", "learned crowd")
    }
    assert {len(some) for some in wrong.values()} == {9}
    shares = [f"{100 * np.mean(some):.1f}" for some in wrong.values()]
    assert shares == sorted(shares)
    assert f"({shares[0]} and {shares[1]} %) than the learned crowd ({shares[2]} %)" in text


def test_the_readme_and_the_paper_name_the_crowds_and_the_version_of_the_rows():
    rows = read(PATH)
    votes = [r for r in page.results(rows) if (r.method, r.score) == ("learned crowd", "votes")]
    ahead = [r.crowd for r in votes if r.apart]
    assert (len(votes), ahead) == (16, ["ConvAbuse", "mtbench, people"])
    readme, paper = (
        " ".join((tables.DOCS.parent / name).read_text(encoding="utf-8").split())
        for name in ("README.md", "paper/paper.md")
    )
    assert "on 14 crowds of 16: on ConvAbuse and MT-Bench others are ahead ([VoteBench]" in readme
    ours_alone = rows.filter(pl.col("method").is_in([*ours()]))
    (version,) = ours_alone["version"].unique().str.split(" ").list.last()
    assert f"version {version} of all methods of `slencodings`" in paper
    ran = f"Of the {len(METHODS)} methods of slencodings 24 were measured, with version {version}"
    assert ran in DOCUMENT.read_text(encoding="utf-8")
    assert ours_alone["method"].n_unique() == 24


def test_the_document_says_how_much_is_taken_by_default(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "Of large crowds 400 items" in DOCUMENT.read_text()
    assert "A method gets 60 seconds" in DOCUMENT.read_text()
    from benchmarks.votes.__main__ import _parser

    given = _parser().parse_args([])
    assert (given.items, given.seconds) == (400, 60)


# A method and a crowd of one's own


@pytest.fixture
def folder(tmp_path):
    a = crowd(N=30)
    lines = [f"i{i},w{m},l{k},l{i % 3}" for i, m, k in zip(a.item, a.annotator, a.y, strict=True)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "small.csv").write_text(
        "\n".join(["item,annotator,label,gold", *lines]) + "\n"
    )
    return tmp_path / "mine"


def test_the_method_of_the_document_is_added_in_ten_lines_and_measured_once(folder, capsys):
    code = next(c for c, _ in PYTHON.findall(DOCUMENT.read_text(encoding="utf-8")) if "def " in c)
    assert len(code.strip().splitlines()) <= 10
    file = folder.parent / "mine.py"
    file.write_text(code)
    words = [str(folder), "--add", f"{file}:louder", "--method", "soft votes"]
    main(words)
    said = capsys.readouterr()
    assert said.err == "small: soft votes\nsmall: louder\n"
    assert re.search(r"^\| louder +\| .* of 1", said.out, re.MULTILINE)
    assert "share of wrong labels" in said.out
    main(words)
    assert capsys.readouterr() == (said.out, "")
    file.write_text(code + "\n")
    main(words)
    assert capsys.readouterr().err == "small: louder\n"
    main([*words, "--again"])
    assert capsys.readouterr().err == said.err


def test_the_page_of_a_folder_is_written_beside_it_with_all_rows(folder, capsys):
    before = DOCUMENT.read_bytes(), {p: p.stat().st_mtime_ns for p in figures.FOLDER.iterdir()}
    for name in ("soft votes", "majority vote"):
        main([str(folder), "--method", name, "--write"])
    assert before == (
        DOCUMENT.read_bytes(),
        {p: p.stat().st_mtime_ns for p in figures.FOLDER.iterdir()},
    )
    text = (folder / "votebench.md").read_text(encoding="utf-8")
    assert text.startswith("# VoteBench\n\n`votes.parquet`: 1 crowd, slencodings ")
    assert "\n## anybody's vote\n\n| method | small |\n" in text
    assert "| soft votes | " in text
    assert "| majority vote | " in text
    assert "soft votes" not in capsys.readouterr().out.rpartition("about\n")[2]  # the last asked
    assert (folder / "votebench.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--crowd", "RTA"], "crowds are RTE, .*; RTA came"),
        (["--method", "Dawid"], "methods are majority vote, .*; Dawid came"),
        (["--add", "none.py:f"], "a method is FILE.py:FUNCTION, and the file must be there; 'none"),
        (["--add", f"{__file__}:nobody"], "must have a function 'nobody'; it has none"),
        (["docs"], "a folder of crowds needs CSV files with columns item, annotator, label"),
    ],
)
def test_what_is_not_known_is_named(words, message):
    with pytest.raises(SystemExit, match=message):
        main(words)


# Other packages


def test_codes_by_first_appearance_lead_back():
    codes = np.asarray([4, 2, 4, 9, 2])
    new, old = peers._as_they_come(codes)
    assert new.tolist() == [0, 1, 0, 2, 1]
    assert old[new].tolist() == codes.tolist()


# Not of peerannot WDS, which passes an argument twice, and DawidSkeneClust, which needs NumPy 1.23.
QUICK = [f"crowd-kit {name}" for name in peers.CROWD_KIT] + ["cleanlab CROWDLAB"]
QUICK += [f"peerannot {x}" for x in peers.PEERANNOT if x not in ("WDS", "DawidSkeneClust")]


@pytest.mark.parametrize("name", [name for name in QUICK if name in peers.peers()])
def test_peers_find_the_truth_of_an_easy_crowd(name):
    a = crowd(N=40, per_item=6, K=2, seed=1)
    p = predict(peers.peers()[name], a).probability
    votes = a.sums()
    clear = np.abs(votes[:, 0] - votes[:, 1]) > 3
    assert np.mean(p.argmax(axis=1)[clear] == votes.argmax(axis=1)[clear]) > 0.9


def test_two_labels_are_needed_for_kos_and_several_people_for_all():
    assert peers._two_labels(crowd(K=2))
    assert not peers._two_labels(crowd())
    alone = replace(crowd(), annotator=np.zeros(240, dtype=int), annotators=np.arange(1))
    assert not peers._any(alone)


def test_a_small_crowd_is_of_items_whose_truth_is_known(monkeypatch):
    said = {"item": [0, 0, 0, 1, 1, 2, 3, 3], "who": [0, 1, 2, 0, 1, 0, 1, 2]}
    said |= {"label": list("abbaabba")}
    said = from_table(said, item="item", annotator="who", label="label")
    truth = np.asarray([[0.0, 1], [1, 0], [np.nan, np.nan], [0.5, 0.5]])
    found, known = small_crowds.small(Crowd(said, truth), items=2, votes=2, seed=0)
    assert len(found.items) == len(known) == 2
    assert 2 not in found.items
    assert np.all(np.bincount(found.item) == 2)
    for name, row in zip(found.items, known, strict=True):
        np.testing.assert_array_equal(row, truth[name])
    # Where votes and truth are shared by two labels, any answer is right for a half.
    monkeypatch.setattr(small_crowds, "published", lambda name, most: Crowd(said, truth))
    monkeypatch.setattr(small_crowds, "SIZES", ((3, 3),))
    rows = {row["method"]: row["right"] for row in small_crowds.rows("any", 0)}
    assert rows["majority"] == pytest.approx((1 + 1 + 0.5) / 3, abs=1e-6)
    assert list(rows) == list(small_crowds.METHODS)


def test_the_document_shows_how_small_crowds_fare():
    kept = json.loads(small_crowds.KEPT.read_text(encoding="utf-8"))
    assert len(kept) == len(small_crowds.GOLD) * len(small_crowds.SIZES) * small_crowds.SEEDS * 3
    table = tables.markdown(small_crowds.table(kept))
    text = (tables.DOCS / "comparison.md").read_text(encoding="utf-8")
    assert f"<!-- small crowds -->\n{table}\n<!-- end of small crowds -->" in text


def test_made_crowds_are_right_as_often_as_they_are_made():
    annotations, accuracy = intervals.made(3, 10, seed=0)
    assert np.all(np.bincount(annotations.item) == 10)
    pairs = annotations.item * 20 + annotations.annotator
    assert len(np.unique(pairs)) == 3000
    # The best of them agree with most others most often.
    most = annotations.sums().argmax(axis=1)[annotations.item] == annotations.y
    agreed = np.bincount(annotations.annotator, most) / np.bincount(annotations.annotator)
    assert np.corrcoef(agreed, accuracy)[0, 1] > 0.9


def test_who_has_few_known_answers_is_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.eye(2)[rng.integers(0, 2, 60)]
    truth[40:] = np.nan
    said = {"item": [*range(60), *range(35), *range(35, 60)], "who": [0] * 60 + [1] * 35 + [2] * 25}
    label = np.nan_to_num(truth).argmax(axis=1)[said["item"]]
    label[:10] = 1 - label[:10]
    said = from_table(said | {"label": label}, item="item", annotator="who", label="label")
    monkeypatch.setattr(intervals, "published", lambda name, most: Crowd(said, truth))
    _, accuracy = intervals.with_gold("any")
    np.testing.assert_allclose(accuracy, [0.75, 1, np.nan])
    row = intervals.row({}, said, np.asarray([-1, 2, np.nan]))
    assert (row["annotators"], row["above"], row["below"]) == (2, 1, 1)


def test_the_document_shows_how_many_annotators_intervals_hold():
    kept = json.loads(intervals.KEPT.read_text(encoding="utf-8"))
    assert len(kept) > len(intervals.MADE) * intervals.SEEDS
    table = tables.markdown(intervals.table(kept))
    text = (tables.DOCS / "trust.md").read_text(encoding="utf-8")
    assert f"<!-- intervals -->\n{table}\n<!-- end of intervals -->" in text

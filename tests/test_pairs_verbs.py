"""Pairs through every verb: methods compared, judges described, what to ask next, the shell."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Sle
from scipy.stats import multivariate_normal, norm
from strategies import one_in, seeds
from test_pairs import games, of, swapped

from slencodings import compare_pairs, describe_judges, pairs_from_table
from slencodings.aggregate import bradley_terry
from slencodings.triage import pairs as triage_of_pairs
from slencodings.triage import triage_pairs

# Placings


@given(seeds, st.booleans())
def test_judgments_without_their_places_are_the_same_when_sides_are_changed(rng, asked):
    pairs, _ = games(rng, R=30, tie=-0.5)
    if asked:
        prompts = np.asarray(["p", "q"], dtype=object)[rng.integers(0, 2, len(pairs.left))]
        pairs = pairs._replace(prompts=prompts)
    one, other = pairs.unplaced, swapped(pairs).unplaced
    assert one.annotations.items.tolist() == other.annotations.items.tolist()
    np.testing.assert_array_equal(one.annotations.y, other.annotations.y)
    np.testing.assert_array_equal(one.annotations.item, other.annotations.item)
    assert (one.left < one.right).all()
    assert one.annotations.ordered
    assert len(set(one.annotations.items.tolist())) == len(one.annotations.items)


def test_soft_judgments_are_turned_as_votes_are():
    pairs, _ = games(np.random.default_rng(0), R=30, tie=-0.5)
    a = pairs.annotations
    soft = pairs._replace(annotations=type(a)(**{**vars(a), "y": np.eye(3)[a.y]}))
    np.testing.assert_array_equal(
        soft.unplaced.annotations.y, np.eye(3)[pairs.unplaced.annotations.y]
    )


def test_without_sides_nobody_favours_one():
    pairs, _ = games(np.random.default_rng(0), R=200, side=1.0)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.5, sides=False)
    np.testing.assert_array_equal(found.side, 0)
    assert np.ptp(found.discrimination) > 0


# Methods compared


def test_methods_of_pairs_are_in_one_comparison_with_both_ways_to_hold_out():
    pairs, _ = games(np.random.default_rng(0), P=6, R=200, side=1.5, tie=-0.5)
    names = ["how common", "shares of wins", "Bradley-Terry, ties as half wins",
             "Bradley-Terry", "Bradley-Terry, sides"]  # fmt: skip
    found = compare_pairs(pairs, methods=names, folds=2, bootstrap=50)
    loss = {row["method"]: row["votes"] for row in found.rows}
    rows: list[Any] = found.rows
    new = {row["method"]: row["new_pairs"] for row in rows}
    assert min(loss, key=lambda name: loss[name]) == "Bradley-Terry, sides"
    assert loss["Bradley-Terry, sides"] < loss["how common"] - 0.05
    assert new["Bradley-Terry, sides"] < new["how common"]
    for row in rows:
        assert row["votes_low"] <= row["votes"] <= row["votes_high"]
        assert row["new_pairs_low"] <= row["new_pairs"] <= row["new_pairs_high"]
        assert row["direct"] is row["own"] is row["joint"] is row["steps"] is None
        assert 0 < row["agreement"] < 1
    text = str(found)
    assert text.startswith("200 judgments of 30 pairs of 6 options by 3 judges; mean log-loss of")
    assert "new pairs" in text
    assert "direct" not in text


def test_where_options_never_change_places_with_others_no_pair_is_new():
    """Two options meet in one way only, so they cannot be held out and predicted."""
    left = np.zeros(20, int)
    pairs = of(left, left + 1, left, np.arange(20) % 3, P=2, M=1)
    found = compare_pairs(pairs, methods=["how common"], folds=2, bootstrap=10)
    assert "new_pairs" not in found.rows[0]
    assert "new pairs" not in str(found)


def test_wins_are_counted_by_hand():
    """a beats b twice and ties c: w = 3/4 of 3 with half a win and half a loss beside them."""
    table = {"left": list("aba"), "right": list("bac"), "won": ["a", "a", "tie"]}
    pairs = pairs_from_table(table, left="left", right="right", winner="won")
    from slencodings.evaluation.pairs import METHODS

    said = METHODS["shares of wins"](pairs).predict(pairs)
    a, b, c, tie = 3 / 4, 0.5 / 3, 1 / 2, (1 + 1 / 3) / 4
    np.testing.assert_allclose(said[:, 1], tie)
    np.testing.assert_allclose(
        said[:, 0], (1 - tie) * np.asarray([a / (a + b), b / (a + b), a / (a + c)])
    )


def test_half_wins_are_bradley_terry_where_nobody_ties():
    from slencodings.evaluation.pairs import METHODS

    pairs, _ = games(np.random.default_rng(1), R=80)
    half, plain = (METHODS[name](pairs).predict(pairs)
                   for name in ("Bradley-Terry, ties as half wins", "Bradley-Terry"))  # fmt: skip
    np.testing.assert_allclose(half[:, 0] / (half[:, 0] + half[:, 2]), plain[:, 0], atol=1e-9)


@pytest.mark.parametrize("wanted", [["Elo"], []])
def test_unknown_methods_of_pairs_are_refused(wanted):
    pairs, _ = games(np.random.default_rng(0), R=10)
    with pytest.raises(ValueError, match="`methods` of pairs must be some of 'how common'"):
        compare_pairs(pairs, methods=wanted)


# Judges


def test_judges_are_told_apart_by_those_who_do_not_look_and_those_against_all():
    rng = np.random.default_rng(3)
    pairs, _ = games(rng, R=1200, judges=[1.0, 1.0, 1.0, 1.0, 0.0, -1.0], side=0.7, tie=-1.0)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.5)
    rows = {row["annotator"]: row for row in describe_judges(pairs, found=found).to_rows()}
    assert rows[5]["verdict"] == "against the crowd"
    assert rows[4]["verdict"] == "at chance"
    assert {rows[m]["verdict"] for m in range(4)} <= {"fine", "look at"}
    for row in rows.values():
        assert row["side_low"] < row["side"] < row["side_high"]
        assert row["left_wins"] == pytest.approx(1 / (1 + math.exp(-row["side"])))
        assert row["agreement_low"] <= row["agreement"] <= row["agreement_high"]
        assert 0 < row["ties"] < 1
    assert rows[5]["agreement"] < min(rows[m]["agreement"] for m in range(4))


def test_intervals_of_judges_hold_the_truth_about_as_often_as_they_say():
    """8 crowds of four who look and two who do not: 48 judges, each favours the left by 0.8."""
    truth, of_d, of_b = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0], [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        pairs, _ = games(rng, P=6, R=400, judges=truth, side=0.8, tie=-0.5)
        found = bradley_terry(pairs, spread=1.5, judge_spread=0.5)
        for row in describe_judges(pairs, found=found).to_rows():
            d = truth[row["annotator"]]
            of_d.append(row["discrimination_low"] < d < row["discrimination_high"])
            of_b.append(row["side_low"] < 0.8 < row["side_high"])
    assert np.mean(of_d) > 0.85
    assert np.mean(of_b) > 0.85
    assert 1 not in (np.mean(of_d), np.mean(of_b))


def test_agreement_of_judges_does_not_hang_on_where_things_stood():
    """x is preferred to y by all, wherever it stands: by places nobody would agree."""
    table = {"left": ["x", "y"] * 6, "right": ["y", "x"] * 6, "won": ["x"] * 12,
             "who": ["ann", "bob", "bob", "ann"] * 3}  # fmt: skip
    pairs = pairs_from_table(table, left="left", right="right", winner="won", annotator="who")
    found = describe_judges(pairs)
    assert [row["agreement"] for row in found.to_rows()] == [1.0, 1.0]
    text = str(found)
    assert text.startswith("Which judges to trust (2 in all")
    assert "tells apart" in text
    assert "ordinal alpha of judgments is 1.00" in text


def test_judges_of_nothing_in_common_or_with_few_judgments_are_not_told():
    pairs = of(np.asarray([0, 2]), np.asarray([1, 3]), np.arange(2), np.zeros(2, int), P=4, M=3)
    found = describe_judges(pairs)
    rows = found.to_rows()
    assert {row["verdict"] for row in rows} == {"too few to tell"}
    assert {row["reason"] for row in rows} == {"1 judgment", "no judgments"}
    none = next(row for row in rows if row["annotations"] == 0)
    assert none["discrimination"] is none["side"] is none["ties"] is None
    assert "No two judges judged the same pair" in found.notes[0]


@pytest.mark.parametrize(("who", "came"), [(None, "none that is named"), ("who", "one")])
def test_one_judge_has_nobody_to_be_held_against(who, came):
    table = {"left": ["x", "y"], "right": ["y", "x"], "won": ["x", "x"], "who": ["ann"] * 2}
    pairs = pairs_from_table(table, left="left", right="right", winner="won", annotator=who)
    with pytest.raises(ValueError, match=f"two or more are needed; {came} came"):
        describe_judges(pairs)


# What to compare next


@given(st.floats(-3, 3), st.floats(0.1, 4), st.floats(0.01, 0.99))
def test_the_chance_of_an_error_after_judgments_is_that_of_two_normals(gap, before, share):
    """By the bivariate normal of the true gap and of what will be thought of it."""
    after = before * share
    less = before - after
    wanted = 0.0
    for sign in (1, -1):  # the truth above 0 and what is thought below, and the other way round
        covariance = [[before, -less], [-less, less]]
        wanted += float(
            multivariate_normal([-sign * gap, sign * gap], covariance, allow_singular=True).cdf(
                [0.0, 0.0]
            )
        )
    found = triage_of_pairs._wrong(np.asarray([gap]), np.asarray([before]), np.asarray([after]))
    assert found[0] == pytest.approx(wanted, abs=2e-4)


@given(st.floats(-4, 4), st.floats(0.1, 4))
def test_before_any_judgment_the_chance_of_an_error_is_the_tail(gap, before):
    g, v = np.asarray([gap]), np.asarray([before])
    tail = norm.sf(abs(gap) / math.sqrt(before))
    for after in (None, v):
        assert triage_of_pairs._wrong(g, v, after)[0] == pytest.approx(tail, rel=1e-9)
    assert triage_of_pairs._wrong(g, v, 0 * v)[0] == 0


@one_in(5)
@given(seeds)
def test_a_plan_spends_its_budget_and_mends_what_it_says(rng):
    pairs, _ = games(rng, P=5, R=40)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.0)
    todo = triage_pairs(pairs, found=found, budget=12)
    assert todo.planned.sum() == 12 == todo.spent
    assert (todo.planned <= 8).all()
    assert (todo.mends >= -1e-12).all()
    assert (todo.mends[todo.planned == 0] == 0).all()
    assert todo.errors - todo.errors_after == pytest.approx(todo.mends.sum())
    assert (todo.probability >= 0.5 - 1e-12).all()
    assert todo.errors == pytest.approx(np.sum(1 - todo.probability))
    nothing = triage_pairs(pairs, found=found, budget=0)
    assert nothing.planned.sum() == 0
    assert nothing.errors_after == nothing.errors == pytest.approx(todo.errors)


@one_in(5)
@given(seeds)
def test_what_a_judgment_gains_is_what_inverting_all_of_it_anew_gives(rng):
    pairs, _ = games(rng, P=5, R=40)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.0)
    (s,) = triage_of_pairs._sets(pairs, found)
    told, v = found.information(s.gap), s.variance
    density = np.exp(-(s.gap**2) / (2 * v)) / np.sqrt(2 * np.pi * v)
    gains = s.gains(s.laplacian, told)
    for q in range(len(s.gap)):
        d = np.zeros(5)
        d[s.here[q]], d[s.there[q]] = 1, -1
        C = np.linalg.inv(np.linalg.inv(s.covariance) + told[q] * np.outer(d, d))
        np.testing.assert_allclose(s.after(q, told[q]).covariance, C, atol=1e-10)
        less = v - (C[s.here, s.here] + C[s.there, s.there] - 2 * C[s.here, s.there])
        assert gains[q] == pytest.approx(np.sum(density * less) / 2)


def test_planned_judgments_order_options_better_than_any_do():
    """6 crowds of 10 options and 60 judgments, four times 40 more: as planned, or of any two."""
    i, j = np.triu_indices(10, 1)

    def lost(planned, seed):
        rng = np.random.default_rng(seed)
        score, data = rng.normal(0, 1.5, 10), None
        pairs: Any = None
        found: Any = None
        for _ in range(5):
            if data is None or not planned:
                one = rng.integers(0, 10, 60 if data is None else 40)
                ask = np.stack([one, (one + rng.integers(1, 10, len(one))) % 10])
            else:
                todo = triage_pairs(pairs, found=found, budget=40)
                twos = np.asarray([str(name).split(" | ") for name in todo.items], dtype=int)
                ask = np.repeat(twos, todo.planned, axis=0).T
            left, right = np.where(rng.random(ask.shape[1]) < 0.5, ask, ask[::-1])
            p = 1 / (1 + np.exp(score[right] - score[left]))
            y = np.where(rng.random(len(left)) < p, 0, 2)
            new = left, right, 0 * left, y
            data = new if data is None else [np.r_[a, b] for a, b in zip(data, new, strict=True)]
            pairs = of(*data, P=10, M=1)
            found = bradley_terry(pairs, spread=1.5, judge_spread=0.0)
        wrong = (found.score[i] - found.score[j]) * (score[i] - score[j]) < 0
        return np.sum(wrong * np.abs(score[i] - score[j]))

    by_plan, by_lot = (sum(lost(planned, seed) for seed in range(6)) for planned in (True, False))
    assert by_plan < 0.8 * by_lot


def test_costs_buy_the_judges_that_tell_most_for_the_money():
    pairs, _ = games(np.random.default_rng(0), R=300, judges=[1.0, 1.0, 0.0])
    pairs = pairs._replace(prompts=np.asarray(["p"] * len(pairs.left), dtype=object))
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.5)
    todo = triage_pairs(pairs, found=found, budget=6, costs={0: 1, 1: 3, 2: 1})
    assert todo.spent <= 6
    assert 0 in todo.assignment.annotator
    assert todo.assignment.unassigned.sum() == 0
    with pytest.raises(ValueError, match="`costs` must know every annotator; 2 of 3 are missing"):
        triage_pairs(pairs, found=found, costs={0: 1})
    with pytest.raises(ValueError, match="`budget` must be a number of at least 0; -1 came"):
        triage_pairs(pairs, found=found, budget=-1)
    with pytest.raises(ValueError, match="`least_probability` must lie above 0"):
        triage_pairs(pairs, found=found, least_probability=0)


def test_nobody_judges_two_again_unless_something_else_is_asked():
    table = {"left": list("xyxy"), "right": list("yxyx"), "won": list("xxxx"),
             "who": ["ann", "bob"] * 2}  # fmt: skip
    columns = {"left": "left", "right": "right", "winner": "won", "annotator": "who"}
    alone = triage_pairs(pairs_from_table(table, **columns), budget=2)
    assert alone.assignment.unassigned.sum() == 2
    assert "2 of them need somebody new" in alone.summary()
    nobody = triage_pairs(pairs_from_table(table, **columns), budget=2, newcomers=False)
    assert nobody.planned.sum() == 0
    asked = pairs_from_table({**table, "ask": list("ppqq")}, **columns, item="ask")
    assert triage_pairs(asked, budget=2).assignment.unassigned.sum() == 0


def test_of_many_linked_options_those_that_met_may_be_asked_about():
    many = np.arange(triage_of_pairs.MOST_ANY + 1)
    chain = of(many, many + 1, 0 * many, 0 * many, P=len(many) + 1, M=1)
    found = bradley_terry(chain, spread=1.0, judge_spread=0.0)
    assert len(triage_pairs(chain, found=found, budget=3).items) == len(many)


def test_why_two_are_open_is_said():
    table = {"left": list("xyxyxyw"), "right": list("yxyxyxx"), "won": [*"xyxy", "tie", "tie", "x"]}
    todo = triage_pairs(pairs_from_table(table, left="left", right="right", winner="won"), budget=1)
    rows = {row["item"]: row for row in todo.to_rows()}
    assert rows["x | y"]["status"] == "conflict"
    assert rows["x | y"]["reason"].startswith("2 for x, 2 for y, 2 for a tie; ")
    assert rows["w | x"]["reason"] == "one of them has 1 judgment, and 2 are asked for"
    assert rows["w | y"]["status"] == "few"


# From a shell

COLUMNS = ("--pairwise", "left,right,winner", "-q")


@pytest.fixture
def judged(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    rows = ["left,right,winner,judge"]
    for m in range(60):
        x, y = rng.permutation(4)[:2]
        side = "left" if rng.random() < 1 / (1 + math.exp(float(y - x))) else "right"
        rows.append(f"o{x},o{y},{side},{'abc'[m % 3]}")
    path = tmp_path / "judged.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_pairs_are_compared_from_a_shell(sle: Sle, judged: str):
    typed = ("--method", "Bradley-Terry", "--method", "how common", "--folds", "2")
    run = sle("compare", judged, *COLUMNS, *typed, "--bootstrap", "20")
    assert run.code == 0, run.err
    assert run.out.startswith("60 judgments of ")
    assert "predicts held-out votes best" in run.out or "Not told apart" in run.out
    run = sle("compare", judged, *COLUMNS, *typed, "--bootstrap", "20", "-o", "rows.json")
    assert run.code == 0, run.err
    written = json.loads(Path("rows.json").read_text())
    assert {row["method"] for row in written["rows"]} == {"Bradley-Terry", "how common"}
    assert written["about"]["options"] == 4


def test_judges_are_described_from_a_shell(sle: Sle, judged: str):
    run = sle("reliability", judged, *COLUMNS)
    assert run.code == 0, run.err
    assert run.out.startswith("Which judges to trust (3 in all")
    run = sle("reliability", judged, *COLUMNS, "-o", "judges.csv")
    assert run.code == 0, run.err
    head = Path("judges.csv").read_text().splitlines()[0].split(",")
    assert {"annotator", "discrimination_low", "side_high", "left_wins", "agreement"} <= {*head}


def test_what_to_compare_next_is_told_from_a_shell(sle: Sle, judged: str):
    run = sle("triage", judged, *COLUMNS, "--budget", "5")
    assert run.code == 0, run.err
    assert run.out.startswith("6 items: ")
    assert "5 annotations of" in run.out
    run = sle("triage", judged, *COLUMNS, "--budget", "4", "--costs", "a=1,b=1,c=2",
              "-o", "next.json")  # fmt: skip
    assert run.code == 0, run.err
    assert json.loads(Path("next.json").read_text())["about"]["spent"] <= 4


@pytest.mark.parametrize(
    ("verb", "options", "code", "words"),
    [
        ("compare", ["--gold", "truth"], 2, "it is not for `--pairwise`. Leave one of them out"),
        ("compare", ["--method", "Elo"], 1, "of pairs must be some of 'how common'"),
        ("compare", ["--multi", ";"], 1, "--multi is of answers that are labels, and rows of"),
        ("compare", ["--ordered", "1,2"], 1, "--ordered is of answers that are labels"),
        ("triage", ["--labels", "a,b"], 1, "--labels is of answers that are labels"),
        ("triage", ["--scored", "a"], 2, "it is not for `--pairwise`"),
        ("reliability", ["--all"], 2, "it is not for `--pairwise`"),
        ("reliability", ["--sort", "kappa"], 2, "it is not for `--pairwise`"),
        ("reliability", ["--label", "left"], 1, "--label is of answers that are labels"),
        ("reliability", ["--pairwise", "left,right"], 1, "must name three columns"),
    ],
)
def test_what_is_not_of_pairs_is_refused(sle: Sle, judged: str, verb, options, code, words):
    run = sle(verb, judged, *COLUMNS, *options)
    assert run.code == code
    assert words in " ".join(run.err.split()).replace("│ ", "")

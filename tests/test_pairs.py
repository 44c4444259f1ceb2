"""Which of two is better: tables of comparisons, Bradley-Terry, and opinions on pairs."""

import math

import choix
import numpy as np
import pytest
from crowds import make
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_is_opinion, one_in, seeds

from slencodings import compare_pairs, credible_interval, pairs_from_table, preference_rows
from slencodings.aggregate import bradley_terry
from slencodings.aggregate.bradley_terry import MOST_LINKED
from slencodings.kinds.pairs import LABELS, Pairs

TABLE = {"left": ["x", "y", "x"], "right": ["y", "z", "z"], "won": ["x", "tie", "z"]}
COLUMNS = {"left": "left", "right": "right", "winner": "won"}


def games(rng, *, P=5, M=3, R=120, side=0.0, tie=-math.inf, judges=None):
    """Comparisons drawn from the model itself, and the scores behind them."""
    score, d = rng.normal(0, 1.5, P), np.ones(M) if judges is None else np.asarray(judges)
    left = rng.integers(0, P, R)
    right = (left + rng.integers(1, P, R)) % P
    who = rng.integers(0, len(d), R)
    x = d[who] * (score[left] - score[right]) + side
    odds = np.stack([np.exp(x / 2), np.full(R, np.exp(tie)), np.exp(-x / 2)], axis=1)
    y = (rng.random(R)[:, None] > np.cumsum(odds / odds.sum(1, keepdims=True), axis=1)).sum(1)
    return of(left, right, who, np.minimum(y, 2), P=P, M=len(d)), score


def of(left, right, who, y, *, P, M):
    keys, item = np.unique(np.stack([left, right], 1), axis=0, return_inverse=True)
    a = make(item.ravel(), who, y, N=len(keys), M=M, K=3)
    a = type(a)(**{**vars(a), "labels": np.asarray(LABELS, dtype=object)})
    return Pairs(a, keys[:, 0], keys[:, 1], np.arange(P))


def swapped(pairs):
    """The same comparisons with the sides changed over."""
    a = pairs.annotations
    return pairs._replace(
        annotations=type(a)(**{**vars(a), "y": 2 - a.y}), left=pairs.right, right=pairs.left
    )


# Bradley and Terry


@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_choix(seed):
    pairs, _ = games(np.random.default_rng(seed), R=60)
    a = pairs.annotations
    left, right = pairs.left[a.item], pairs.right[a.item]
    won = [(i, j) if k == 0 else (j, i) for i, j, k in zip(left, right, a.y, strict=True)]
    # choix knows no sides, so both placings of every game are shown.
    both = of(
        np.r_[left, right], np.r_[right, left], np.r_[a.annotator, a.annotator],
        np.r_[a.y, 2 - a.y], P=5, M=3,
    )  # fmt: skip
    # It holds back alpha times the squares, which are over 2 in a normal.
    expected = choix.opt_pairwise(5, won + won, alpha=1 / 2.0**2 / 2, method="BFGS")
    found = bradley_terry(both, spread=2.0, judge_spread=0.0)
    np.testing.assert_allclose(found.score, expected - expected.mean(), atol=1e-3)
    np.testing.assert_allclose(found.side, 0, atol=1e-3)


@one_in(5)
@given(seeds, st.booleans())
def test_changing_sides_changes_the_side_alone(rng, ties):
    pairs, _ = games(rng, R=60, side=1.0, tie=-0.5 if ties else -math.inf)
    one, other = (bradley_terry(x, spread=1.5, judge_spread=0.5) for x in (pairs, swapped(pairs)))
    np.testing.assert_allclose(other.score, one.score, atol=5e-3)
    np.testing.assert_allclose(other.side, -one.side, atol=5e-3)
    np.testing.assert_allclose(
        other.opinion.probability, one.opinion.probability[:, ::-1], atol=5e-3
    )


@one_in(5)
@given(seeds, st.booleans())
def test_opinions_on_pairs_are_opinions_and_chances_sum_to_one(rng, ties):
    pairs, _ = games(rng, R=30, tie=0.0 if ties else -math.inf)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.5)
    assert_is_opinion(found.opinion)
    np.testing.assert_allclose(found.predict(pairs).sum(1), 1)
    better = found.score[pairs.left] > found.score[pairs.right]
    np.testing.assert_array_equal(found.opinion.probability[:, 0] > 0.5, better)


def test_a_side_that_is_favoured_is_taken_out_of_scores():
    rng = np.random.default_rng(0)
    pairs, score = games(rng, R=1500, side=1.2)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.5)
    assert found.side.mean() == pytest.approx(1.2, abs=0.3)
    np.testing.assert_allclose(found.score, score - score.mean(), atol=0.5)


def test_who_does_not_look_is_found_and_all_alike_are_not_told_apart():
    rng = np.random.default_rng(1)
    found = bradley_terry(games(rng, R=900, judges=[2.0, 2.0, 0.0])[0])
    assert found.judge_spread > 0
    assert found.discrimination.argmin() == 2
    assert found.discrimination[2] < 0.6 < found.discrimination[0]


@pytest.mark.parametrize("how", [{}, {"side": 0.8, "tie": -0.5}])
def test_intervals_of_scores_and_of_pairs_hold_the_truth_as_often_as_they_say(how):
    """100 crowds of 6 options with scores drawn from the prior: 600 scores, 3,000 pairs."""
    of_scores, of_pairs = [], []
    for seed in range(100):
        pairs, score = games(np.random.default_rng(seed), P=6, R=150, **how)
        found = bradley_terry(pairs, spread=1.5, judge_spread=0.0)
        off = np.abs(found.score - (score - score.mean()))
        of_scores.append(np.mean(off < 1.96 * found.deviation))
        x = score[pairs.left] - score[pairs.right]
        left, tie, right = np.exp(x / 2), np.exp(how.get("tie", -math.inf)), np.exp(-x / 2)
        true = (left + tie / 2) / (left + tie + right)
        low, high = credible_interval(found.opinion)
        of_pairs.append(np.mean((low[:, 0] < true) & (true < high[:, 0])))
    assert 0.92 < np.mean(of_scores) < 0.98
    assert 0.91 < np.mean(of_pairs) < 0.985


@one_in(10)
@given(seeds, st.booleans())
def test_a_deviation_is_that_of_a_score_less_the_mean_of_all(rng, ties):
    """By the inverse of all options together, written out, and centred by a matrix."""
    P = 5
    pairs, _ = games(rng, P=P, R=30, tie=-0.5 if ties else -math.inf)
    found = bradley_terry(pairs, spread=1.5, judge_spread=0.0)
    a = pairs.annotations
    H = np.eye(P) / 1.5**2
    for i, q in zip(a.item, found.predict(pairs), strict=True):
        e = np.eye(P)[pairs.left[i]] - np.eye(P)[pairs.right[i]]
        H += np.outer(e, e) * (q[0] + q[2] - (q[0] - q[2]) ** 2) / 4
    centre = np.eye(P) - 1 / P
    wanted = np.sqrt(np.diag(centre @ np.linalg.inv(H) @ centre))
    np.testing.assert_allclose(found.deviation, wanted, rtol=1e-9)


def test_a_side_is_found_where_options_have_favourite_places_and_none_where_there_is_none():
    """The best stand left three times in four: what wins by its side is not what is better."""
    sides = []
    for seed, side in enumerate([0.0, 0.0, 1.2, 1.2, -1.2]):
        rng = np.random.default_rng(seed)
        score, R = np.asarray([1.2, 0.4, -0.4, -1.2]), 2500
        one = rng.integers(0, 4, R)
        two = (one + rng.integers(1, 4, R)) % 4
        best = np.minimum(one, two), np.maximum(one, two)
        turned = rng.random(R) < 0.25
        left, right = np.where(turned, best[1], best[0]), np.where(turned, best[0], best[1])
        p = 1 / (1 + np.exp(-(score[left] - score[right] + side)))
        y = np.where(rng.random(R) < p, 0, 2)
        found = bradley_terry(of(left, right, np.zeros(R, int), y, P=4, M=1))
        sides.append(float(found.side[0]) - side)
        np.testing.assert_allclose(found.score, score, atol=0.35)
    assert np.max(np.abs(sides)) < 0.3


def test_a_side_that_options_never_change_cannot_be_told_and_is_not_made_up():
    """x always stands left and wins 60 %: that may be x or its place, and both stay near 0."""
    y = np.r_[np.zeros(60, int), np.full(40, 2)]
    found = bradley_terry(
        of(np.zeros(100, int), np.ones(100, int), np.zeros(100, int), y, P=2, M=1)
    )
    gap = found.score[0] - found.score[1]
    assert 0 <= gap <= math.log(60 / 40) + 0.05
    assert 0 <= found.side[0] <= math.log(60 / 40) + 0.05
    assert gap + found.side[0] == pytest.approx(math.log(60 / 40), abs=0.1)


def test_more_comparisons_make_surer_opinions():
    rng = np.random.default_rng(2)
    pairs, _ = games(rng, R=100)
    a = pairs.annotations
    more = pairs.rows(np.tile(np.arange(len(a.item)), 4))
    few, many = (bradley_terry(x, spread=1.5, judge_spread=0.0) for x in (pairs, more))
    assert (many.deviation < few.deviation).all()
    assert many.opinion.uncertainty.mean() < 0.6 * few.opinion.uncertainty.mean()


def test_options_that_nobody_judged_are_unknown():
    pairs, _ = games(np.random.default_rng(0), R=40)
    lonely = pairs._replace(
        options=np.arange(7), left=np.r_[pairs.left, 5], right=np.r_[pairs.right, 6]
    )
    items = np.arange(len(lonely.left))
    a = pairs.annotations
    lonely = lonely._replace(annotations=type(a)(**{**vars(a), "items": items}))
    found = bradley_terry(lonely, spread=1.5, judge_spread=0.0)
    assert found.deviation[5] == pytest.approx(1.5 * math.sqrt(1 - 1 / 7))
    assert found.opinion.probability[-1, 0] == pytest.approx(0.5)
    assert found.opinion.uncertainty[-1] > found.opinion.uncertainty[:-1].max()


def test_always_the_same_answer_has_an_end():
    left = np.zeros(30, int)
    found = bradley_terry(of(left, left + 1, left, left, P=2, M=1))
    assert np.isfinite(found.score).all()
    assert found.opinion.probability[0, 0] > 0.5


def test_bad_input_is_refused():
    pairs, _ = games(np.random.default_rng(0), R=10)
    a = pairs.annotations
    with pytest.raises(ValueError, match="labels of pairs must be left, tie, right"):
        bradley_terry(pairs._replace(annotations=make(a.item, a.annotator, a.y)))
    with pytest.raises(ValueError, match="at least one comparison; none came"):
        bradley_terry(pairs.rows(np.zeros(10, dtype=bool)))
    with pytest.raises(ValueError, match="`spread` must be a finite standard deviation, above"):
        bradley_terry(pairs, spread=0.0)
    with pytest.raises(ValueError, match=r"`judge_spread` must be .* at least"):
        bradley_terry(pairs, judge_spread=-1.0)
    many = np.arange(MOST_LINKED + 1)
    chain = of(many, many + 1, 0 * many, 0 * many, P=len(many) + 1, M=1)
    with pytest.raises(ValueError, match=r"at most 3,000 options .* 3,002 came"):
        bradley_terry(chain, spread=1.0, judge_spread=0.0)


# Tables


def test_a_table_of_comparisons_is_read_with_winners_by_name_and_by_side():
    table = TABLE | {"who": ["ann", "bob", "ann"], "ask": ["p", "p", "q"]}
    pairs = pairs_from_table(table, **COLUMNS, annotator="who", item="ask")
    a = pairs.annotations
    assert a.items.tolist() == ["p | x | y", "p | y | z", "q | x | z"]
    assert a.labels[a.y].tolist() == ["left", "tie", "right"]
    assert a.annotators.tolist() == ["ann", "bob"]
    assert pairs.options.tolist() == ["x", "y", "z"]
    assert pairs.prompts is not None
    assert pairs.prompts.tolist() == ["p", "p", "q"]


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("Left", "left"),
        ("model_a", "left"),
        ("B", "right"),
        ("tie (bothbad)", "tie"),
        (" y", "right"),
    ],
)
def test_words_for_who_won(word, label):
    pairs = pairs_from_table({"left": ["x"], "right": ["y"], "won": [word]}, **COLUMNS)
    assert pairs.annotations.labels[pairs.annotations.y].tolist() == [label]


def test_a_comparison_without_a_winner_is_no_vote_and_its_pair_stays():
    pairs = pairs_from_table(TABLE | {"won": ["x", None, float("nan")]}, **COLUMNS)
    assert len(pairs.annotations.item) == 1
    assert len(pairs.annotations.items) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"won": ["x", "1", "2"]},
            r"must say who won, .*; 2 of 3 rows do not, first '1' in row 2",
        ),
        (
            {"left": ["x", None, "x"]},
            r"'left' must say what was compared .*; 1 of 3 do not, first in row 2 of",
        ),
        ({"right": ["y", "y", "z"]}, r"1 of 3 rows compare one with itself, first 'y' in row 2 of"),
    ],
)
def test_bad_tables_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        pairs_from_table(TABLE | change, **COLUMNS)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="there is no column 'winner'"):
        pairs_from_table(TABLE, left="left", right="right", winner="winner")


# Held-out judgments


def test_scores_predict_judgments_that_votes_on_the_pair_cannot():
    pairs, _ = games(np.random.default_rng(0), P=8, R=150, side=0.8)
    methods = ["how common", "votes on the pair", "Bradley-Terry, sides"]
    rows = compare_pairs(pairs, methods=methods, folds=2, bootstrap=50).rows
    names = [row["method"] for row in rows]
    assert names[0].startswith("Bradley-Terry, sides")
    assert names[-1] in ("how common", "votes on the pair")
    assert rows[0]["behind"] == rows[0]["behind_low"] == rows[0]["behind_high"] == 0
    assert (rows[-1]["behind_low"] or 0) > 0


def test_folds_must_fit():
    with pytest.raises(ValueError, match="`folds` must be at least 2 and at most the judgments, 3"):
        compare_pairs(pairs_from_table(TABLE, **COLUMNS), folds=1)


# Preference trainers


def test_preferences_are_in_the_form_that_trl_reads():
    """Explicit prompts are text beside chosen and rejected; without any there is no such column."""
    table = {"left": ["x", "y", "x"], "right": ["y", "x", "z"], "won": ["x", "x", "tie"]}
    plain = pairs_from_table(table, **COLUMNS)
    asked = pairs_from_table(table | {"q": ["p", "p", "p"]}, **COLUMNS, item="q")
    for pairs, first in ((plain, "chosen"), (asked, "prompt")):
        rows = preference_rows(pairs, bradley_terry(pairs, spread=1.0, judge_spread=0.0))
        for row in rows:
            assert next(iter(row)) == first
            assert isinstance(row["chosen"], str)
            assert isinstance(row["rejected"], str)
            assert isinstance(row.get("prompt", ""), str)
            assert row["chosen"] != row["rejected"]
            assert row["margin"] >= 0
            assert 0.5 <= row["probability"] <= 1
        assert [row["judgments"] for row in rows] == [2, 1]


def test_a_reward_trainer_reads_the_file_as_its_source_says(tmp_path, monkeypatch):
    """TRL 1.16.0: text prompts are put before both answers, margins become floats; no soft label.

    `RewardTrainer` looks at prompt, chosen, rejected and margin, and leaves out all other columns.
    """
    import json

    from slencodings.files.pairs import encode_pairs
    from slencodings.tables.roles import Reading

    monkeypatch.chdir(tmp_path)
    rows = [
        "ask,left,right,won",
        "Why? ,because,no,left",
        "Why? ,no,because,right",
        "Who? ,I,you,I",
    ]
    (tmp_path / "judged.csv").write_text("\n".join(rows) + "\n")
    encode_pairs("judged.csv", "out.jsonl", ["left", "right", "won"], Reading(item="ask"))
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        example = json.loads(line)
        both = [example["prompt"] + example[answer] for answer in ("chosen", "rejected")]
        assert both in (["Why?because", "Why?no"], ["Who?I", "Who?you"])
        assert float(example["margin"]) >= 0
        # The margin is the log-odds of the probability but for ties, of which there are none.
        odds = example["probability"] / (1 - example["probability"])
        assert math.log(odds) == pytest.approx(example["margin"], abs=1e-6)

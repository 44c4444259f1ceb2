"""Which items to annotate next, by whom, and what that is expected to mend."""

import itertools
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from crowds import make
from hypothesis import given
from hypothesis import strategies as st
from strategies import one_in, seeds

from slencodings import from_table
from slencodings.annotators import judge
from slencodings.datasets import digits_crowd
from slencodings.triage import status, triage
from slencodings.triage.outlook import (
    DRAWS,
    MOST_EACH,
    Outlook,
    concave,
    information,
    look_ahead,
    plan,
)
from slencodings.trust import weigh


def skilled(rng, accuracy, *, N=120, per_item=3, K=2):
    """Annotators who are right as often as their accuracy says, else anything; and the truth."""
    M, truth = len(accuracy), rng.integers(0, K, N)
    who = np.argsort(rng.random((N, M)), axis=1)[:, :per_item].ravel()
    item = np.repeat(np.arange(N), per_item)
    wrong = (truth[item] + rng.integers(1, K, len(item))) % K
    y = np.where(rng.random(len(item)) < accuracy[who], truth[item], wrong)
    return make(item, who, y, N=N, M=M, K=K), truth


def outlook(rng, *, N=4, M=2, K=2, model=True, correlation=0.1):
    """Beliefs and annotators by chance, better than guessing."""
    said = rng.dirichlet(np.ones(K), (M + 1, K)) + 2 * np.eye(K)
    said = said / said.sum(axis=2, keepdims=True) if model else None
    told = rng.integers(0, 4, N).astype(float) + (not model)
    weight = np.ones(M + 1) if model else rng.uniform(0.2, 1, M + 1)
    belief = rng.dirichlet(np.ones(K), N)
    return Outlook(belief, said, told, weight, correlation if model else 0.0, np.ones(M))


# What further annotations would tell


def mended_by_letter(o, i, annotators):
    """All that may be said, one after the other: E[max b] - max b."""
    K = o.belief.shape[1]
    after = 0.0
    for labels in itertools.product(range(K), repeat=len(annotators)):
        b, chance, told = o.belief[i].copy(), 1.0, o.evidence[i]
        for m, label in zip(annotators, labels, strict=True):
            if o.confusion is None:
                p, share = b[label], o.weight[m] / (told + o.weight[m])
                new = (1 - share) * b + share * np.eye(K)[label]
            else:
                said = o.confusion[m] ** (1 / (1 + o.correlation * told))
                said = said / said.sum(axis=1, keepdims=True)
                p = b @ said[:, label]
                new = b * said[:, label] / p
            b, chance, told = new, chance * p, told + o.weight[m]
        after += chance * b.max()
    return after - o.belief[i].max()


@one_in(5)
@given(seeds, st.integers(2, 3), st.booleans())
def test_what_is_mended_is_the_expectation_over_all_that_may_be_said(rng, K, model):
    o = outlook(rng, K=K, model=model)
    annotators = rng.integers(0, 3, (4, 3))
    got = o.mended(np.arange(4), annotators, 4000)
    for i, j in itertools.product(range(4), range(3)):
        expected = mended_by_letter(o, i, annotators[i, : j + 1].tolist())
        assert got[i, j] == pytest.approx(expected, abs=0.015)
    assert np.all(got >= 0)


def test_nobody_mends_nothing_and_an_annotation_that_cannot_change_the_label_neither():
    o = outlook(np.random.default_rng(0))
    assert np.all(o.mended(np.arange(4), np.full((4, 2), -1), 16) == 0)
    sure = replace(o, belief=np.asarray([[0.999, 0.001]] * 4))
    assert np.all(sure.mended(np.arange(4), np.zeros((4, 1), dtype=int), 64) == 0)


def test_work_in_parts_is_the_same_as_at_once(monkeypatch):
    o = outlook(np.random.default_rng(0), N=30, K=3)
    who = np.zeros((30, 2), dtype=int)
    whole = o.mended(np.arange(30), who, 32)
    monkeypatch.setattr("slencodings.triage.outlook._AT_ONCE", 500)
    np.testing.assert_array_equal(o.mended(np.arange(30), who, 32), whole)


def test_information_is_none_of_who_guesses_and_all_of_who_knows():
    guess, knows = np.full((2, 2), 0.5), np.eye(2)
    found = information(np.stack([guess, knows, 1 - knows]), np.asarray([0.5, 0.5]))
    np.testing.assert_allclose(found, [0, np.log(2), np.log(2)])


# Where to put them


@given(seeds)
def test_the_majorant_is_concave_above_and_nowhere_higher_than_needed(rng):
    total = np.sort(rng.random((5, 6)), axis=1)
    got = concave(total)
    steps = np.diff(got, axis=1, prepend=0)
    assert np.all(np.diff(steps, axis=1) <= 1e-12)
    assert np.all(got >= total - 1e-12)
    np.testing.assert_allclose(got[:, -1], total[:, -1])
    # At each corner it touches.
    corner = np.diff(steps, axis=1) < -1e-9
    np.testing.assert_allclose(got[:, :-1][corner], total[:, :-1][corner])


def brute(o, budget, most):
    """The most that any use of the budget mends, by the typical annotator."""
    N = len(o.belief)
    mended = o.mended(np.arange(N), np.full((N, MOST_EACH), o.typical), 64)
    total = np.hstack([np.zeros((N, 1)), mended])
    uses = itertools.product(*(range(min(m, budget) + 1) for m in most))
    return max(sum(total[i, n] for i, n in enumerate(use)) for use in uses if sum(use) <= budget)


def test_no_other_use_of_a_budget_is_much_better():
    rng = np.random.default_rng(0)
    for _ in range(10):
        o, most = outlook(rng, N=4, K=3), np.asarray([3, 8, 0, 5])
        for budget in (0, 1, 4, 9):
            found = plan(o, budget, most)
            assert found.planned.sum() <= budget
            assert np.all(found.planned <= most)
            # A majorant promises at least what can be had, and an item may be cut between corners.
            assert found.gain.sum() >= brute(o, budget, most) - 1e-9


def test_nothing_is_planned_where_nothing_is_gained():
    o = outlook(np.random.default_rng(0))
    certain = replace(o, belief=np.asarray([[1.0, 0.0]] * 4))
    found = plan(certain, 10, np.full(4, 8))
    assert (found.planned.sum(), found.next_gain, found.looked_at) == (0, 0, 0)


def test_items_that_cannot_gain_are_not_looked_at():
    rng = np.random.default_rng(0)
    o = outlook(rng, N=20_000, K=2)
    risk = np.where(np.arange(20_000) < 500, 0.5, 1e-4)
    o = replace(o, belief=np.stack([1 - risk, risk], axis=1), evidence=np.zeros(20_000))
    found = plan(o, 100, np.full(20_000, 8))
    assert found.planned[:500].sum() == 100
    assert found.looked_at <= 2_000


def test_many_labels_do_not_hang():
    N, K, rng = 400, 4_000, np.random.default_rng(0)
    item = np.repeat(np.arange(N), 3)
    a = make(item, np.tile([0, 1, 2], N), rng.integers(0, K, 3 * N), N=N, M=3, K=K)
    weighed = weigh(a)
    begun = process_time()
    assert triage(a, weighed=weighed, budget=20).planned.sum() == 20
    # Half a second; it took 13 when each answer was looked at for every label.
    assert process_time() - begun < 5


@pytest.mark.parametrize("model", [True, False])
def test_what_a_plan_mends_is_told_by_other_draws_than_chose_it(model):
    one = outlook(np.random.default_rng(3), N=1, model=model)
    N = 1_500
    alike = replace(one, belief=np.tile([0.55, 0.45], (N, 1)), evidence=np.full(N, 2.0))
    chosen = plan(alike, 150, np.full(N, MOST_EACH))
    items = np.flatnonzero(chosen.planned)
    expected, told = 0.0, 0.0
    for n in np.unique(chosen.planned[items]).tolist():
        some = items[chosen.planned[items] == n]
        who = np.full((len(some), n), alike.typical)
        told += alike.mended(some, who, DRAWS, fresh=True)[:, -1].sum()
        expected += len(some) * mended_by_letter(alike, 0, [alike.typical] * n)
    assert told == pytest.approx(expected, rel=0.02)
    assert chosen.gain.sum() > 1.02 * expected, "those that look best by chance were chosen"


# All of it


def test_status_and_reasons_are_those_of_the_report_and_errors_are_what_is_unlikely():
    a, _ = skilled(np.random.default_rng(0), np.linspace(0.6, 0.95, 8))
    weighed = weigh(a)
    found = triage(a, weighed=weighed, least_votes=3, least_probability=0.8, conflict=0.3)
    expected = status(weighed, least_votes=3, least_probability=0.8, conflict=0.3)
    np.testing.assert_array_equal(found.status, expected)
    P = weighed.truth.probability
    assert found.errors == pytest.approx(np.sum(1 - P.max(axis=1)))
    np.testing.assert_array_equal(found.label, a.labels[P.argmax(axis=1)])
    assert found.errors_after == pytest.approx(found.errors - found.mends.sum())
    rows = found.to_rows()
    assert len(rows) == 120
    assert [row["mends"] for row in rows] == sorted(found.mends.tolist(), reverse=True)
    assert sum(row["planned"] for row in rows) == found.planned.sum() == found.spent
    for row in rows:
        assert len(row["annotators"]) + row["unassigned"] == row["planned"]
    assert found.to_rows(3) == rows[:3]


def test_nobody_at_chance_or_against_the_crowd_is_asked_and_nobody_twice():
    rng = np.random.default_rng(1)
    a, _ = skilled(rng, np.asarray([0.9, 0.5, 0.9, 0.15, 0.85, 0.9]), N=300)
    weighed = weigh(a)
    verdicts = [judged.verdict for judged in judge(a, weighed.crowd)]
    assert (verdicts[1], verdicts[3]) == ("at chance", "against the crowd")
    found = triage(a, weighed=weighed, budget=200, newcomers=False)
    assert found.planned.sum() > 20
    assert not np.isin(found.assignment.annotator, [1, 3]).any()
    met = set(zip(a.item.tolist(), a.annotator.tolist(), strict=True))
    asked = zip(found.assignment.item.tolist(), found.assignment.annotator.tolist(), strict=True)
    assert not met & set(asked)


def test_capacity_is_kept_and_those_who_tell_most_are_asked_first():
    a, _ = skilled(np.random.default_rng(1), np.asarray([0.95, 0.7, 0.9, 0.75, 0.8, 0.9]))
    weighed = weigh(a)
    value = look_ahead(a, weighed).value
    found = triage(a, weighed=weighed, budget=30, capacity=12)
    n = np.bincount(found.assignment.annotator, minlength=6)
    assert n.max() <= 12
    best = np.argsort(-value)
    assert n[best[0]] >= n[best[-1]]
    assert triage(a, weighed=weighed, budget=30, capacity=0, newcomers=False).planned.sum() == 0


def test_gain_for_the_money_decides_and_the_budget_is_kept():
    a, _ = skilled(np.random.default_rng(1), np.full(6, 0.85), N=200)
    weighed = weigh(a)
    even = dict.fromkeys(range(6), 1.0)
    dear = even | {0: 50.0, 1: 50.0}
    found = triage(a, weighed=weighed, budget=30, costs=dear)
    assert not np.isin(found.assignment.annotator, [0, 1]).any()
    assert found.spent == found.planned.sum() <= 30
    cents = {m: 0.1 * (m + 1) for m in range(6)}
    found = triage(a, weighed=weighed, budget=3, costs=cents, capacity=4)
    spent = sum(cents[m] for m in found.assignment.annotator.tolist())
    assert found.spent == pytest.approx(spent)
    assert 2 < spent <= 3 + 1e-9
    assert f"annotations that cost {found.spent:g} of" in found.summary()
    assert found.assignment.unassigned.sum() == 0


def test_words_say_what_is_mended_and_when_to_stop():
    a, _ = skilled(np.random.default_rng(0), np.linspace(0.6, 0.95, 8))
    found = triage(a, budget=40)
    lines = found.summary().splitlines()
    assert lines[0].startswith("120 items: ")
    assert (
        lines[1] == f"If each has its likeliest label, {found.errors:.1f} are expected to be wrong."
    )
    n = int(np.sum(found.planned > 0))
    assert lines[2] == (
        f"40 annotations of {n} items: expected errors {found.errors:.1f} -> "
        f"{found.errors_after:.1f}."
    )
    assert lines[-1] == f"The next 100 are expected to mend {found.next_mends:.1f} labels."
    one = make(np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), np.zeros(120, int), K=2)
    done = triage(one)
    assert "No annotation that could be asked for is expected to change a label." in done.summary()
    assert "nan" not in done.summary()
    heads, cells = replace(done, mends=done.mends - 1e-17).table(2)  # as rounding leaves it
    assert len(heads) == len(cells[0])
    assert cells[0][heads.index("mends")] == "0.000"


def test_a_name_with_a_comma_is_one_name_in_what_is_shown():
    rows = [
        (i, who, i % 2) for i in range(20) for who in ("ann", "Bob, Jr.", "cy") if i or who == "cy"
    ]
    table = dict(zip(("item", "who", "y"), map(list, zip(*rows, strict=True)), strict=True))
    crowd = from_table(table, item="item", annotator="who", label="y")
    heads, cells = triage(crowd, newcomers=False).table(1)
    assert cells[0][heads.index("by whom")] == "'Bob, Jr.'"


@pytest.mark.parametrize(
    "rows",
    [
        {"item": list("pqr"), "who": list("aaa"), "y": [0, 1, 0]},
        {"item": list("pqr"), "who": list("abc"), "y": [0, 1, 0]},
        {"item": list("ppq"), "who": list("aba"), "y": [0, 0, 1]},
        {"item": list("ppq"), "who": list("aaa"), "y": [0, 1, 1]},
    ],
)
def test_one_annotator_or_one_annotation_an_item_gets_a_sensible_answer(rows):
    found = triage(from_table(rows, item="item", annotator="who", label="y"), budget=4)
    assert len(found.to_rows()) == len(set(rows["item"]))
    assert 0 <= found.errors_after <= found.errors
    assert np.isfinite(found.mends).all()
    assert "nan" not in found.summary()


def test_without_names_somebody_new_is_asked_and_nobody_by_name():
    rows = {"item": list("ppqq"), "y": [0, 1, 0, 0]}
    found = triage(from_table(rows, item="item", label="y"), budget=2)
    assert found.planned.sum() == found.assignment.unassigned.sum()
    assert all(row["annotators"] == [] for row in found.to_rows())


@one_in(5)
@given(seeds)
def test_the_order_of_rows_does_not_matter(rng):
    a, _ = skilled(rng, np.linspace(0.6, 0.9, 5), N=20)
    one, two = (triage(x, budget=10).to_rows() for x in (a, a.rows(rng.permutation(60))))
    for row, other in zip(one, two, strict=True):
        assert row["item"] == other["item"]
        assert row["annotators"] == other["annotators"]
        assert row["mends"] == pytest.approx(other["mends"], abs=1e-9)


# Against chance


def spend(rng, a, weighed, found, truth):
    """The crowd with what those who were asked say, as the model has it."""
    o = look_ahead(a, weighed)
    item, who = found.assignment.item, found.assignment.annotator
    n = np.bincount(a.item, minlength=len(a.items))
    place = np.arange(len(item)) - np.searchsorted(item, item)
    power = 1 / (1 + o.correlation * (n[item] + place))
    assert o.confusion is not None
    said = o.confusion[who] ** power[:, None, None]
    said = (said / said.sum(axis=2, keepdims=True))[np.arange(len(item)), truth[item]]
    y = (np.cumsum(said, axis=1) < rng.random(len(item))[:, None]).sum(axis=1)
    return replace(
        a,
        item=np.r_[a.item, item],
        annotator=np.r_[a.annotator, who],
        y=np.r_[a.y, y],
        uncertainty=np.zeros(len(a.item) + len(item)),
    )


def test_as_many_labels_are_mended_as_expected_where_the_crowd_is_as_the_model_has_it():
    rng = np.random.default_rng(0)
    a, _ = skilled(rng, rng.uniform(0.6, 0.9, 20), N=400, K=3)
    weighed = weigh(a)
    found = triage(a, weighed=weighed, budget=300, newcomers=False)
    assert found.mends.sum() > 10
    P = weighed.truth.probability
    wrong = []
    for _ in range(40):
        truth = (np.cumsum(P, axis=1) < rng.random(len(P))[:, None]).sum(axis=1)
        larger = spend(rng, a, weighed, found, truth)
        wrong.append(np.sum(weighed.crowd.truth(larger).probability.argmax(axis=1) != truth))
    # The reading weighs old and new votes alike, which the plan does not look at: hence 10 %.
    error = np.std(wrong) / np.sqrt(len(wrong))
    assert abs(np.mean(wrong) - found.errors_after) < 3 * error + 0.1 * found.mends.sum()


def test_a_plan_mends_more_than_the_same_number_at_random_and_relearning_agrees():
    rng = np.random.default_rng(3)
    accuracy = rng.uniform(0.55, 0.9, 20)
    a, truth = skilled(rng, accuracy, N=400)
    weighed = weigh(a)
    found = triage(a, weighed=weighed, budget=300, newcomers=False)

    def wrong(item, who):
        y = np.where(rng.random(len(item)) < accuracy[who], truth[item], 1 - truth[item])
        larger = make(np.r_[a.item, item], np.r_[a.annotator, who], np.r_[a.y, y], N=400, M=20, K=2)
        return int(np.sum(weigh(larger).truth.probability.argmax(axis=1) != truth))

    n = len(found.assignment.item)
    before = np.sum(weighed.truth.probability.argmax(axis=1) != truth)
    planned = wrong(found.assignment.item, found.assignment.annotator)
    random = wrong(rng.integers(0, 400, n), rng.integers(0, 20, n))
    assert planned < random <= before + 5
    # Expected and come true, within what chance does to so many.
    assert abs((before - planned) - found.mends.sum()) < 3 * np.sqrt(found.errors)


def test_votes_kept_back_mend_labels_within_a_factor_of_two_of_what_is_expected():
    crowd = digits_crowd(rng=0)
    a = crowd.annotations.rows(crowd.annotations.item < 600)
    a, gold = replace(a, items=a.items[:600]), crowd.gold[:600]
    place = np.arange(len(a.item)) - np.searchsorted(a.item, a.item)
    assert np.all(np.diff(a.item) >= 0)
    weighed = weigh(a.rows(place < 2))
    later = a.rows(place == 2)
    who = np.full((600, 1), -1)
    who[later.item, 0] = later.annotator
    outlook = look_ahead(a.rows(place < 2), weighed)
    expected = outlook.mended(np.arange(600), who, 64).sum()
    before, after = (
        np.sum(weighed.crowd.truth(a.rows(place < n)).probability.argmax(axis=1) != gold)
        for n in (2, 3)
    )
    assert expected / 2 < before - after < 2 * expected


# What is refused

CROWD = make([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0], K=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": -1}, r"`budget` must be a number of at least 0; -1 came"),
        ({"budget": np.nan}, r"`budget` must be a number of at least 0; nan came"),
        ({"capacity": 0.5}, r"`capacity` must be whole numbers"),
        ({"costs": {0: 1}}, r"`costs` must know every annotator; 1 of 2 are missing, first '1'"),
        ({"costs": {0: 1, 1: 0}}, r"`costs` must be above 0; 1 of 2 are not, first 0 of '1'"),
        ({"least_votes": 0}, r"`least_votes` must be 1 or more"),
        ({"conflict": 2}, r"`conflict` must lie in \[0, 1\]; 2 came"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        triage(CROWD, **options)

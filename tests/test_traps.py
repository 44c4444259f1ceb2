"""What went wrong in other packages and must not here: the numbered traps of `algorithms.md`.

Each test would fail if we had the trap. Where that is cheap the trap itself is built beside, and
seen to go wrong on the same crowd; elsewhere a comment says what the test would meet.

What has nothing to go wrong here:

| trap | because |
|---|---|
| 5, scikit-learn tags | methods are functions, not estimators |
| 5, pandas warnings | pytest makes any warning an error, those of pandas below too |
| 9, `aggregators_` shared by instances | there are no instances (results are tested below) |
| 12, `get_answers` | results are values; there is no second call that could fail |
| 13, `sparse=True` of IWMV | there is one way to hold a crowd |
| 18, `duration` | nothing here looks at when annotations were made |
| cleanlab, `pred_probs` | no method takes predictions |
| mace.py, command line and wide files | tables are long; `readers` makes them so |
"""

import inspect
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import crowds
import numpy as np
import pandas as pd
import pytest
from crowd_files import Roles
from crowds import crowd, make, one_item, shuffled
from engines import Engine, every_engine
from strategies import present

from slencodings import aggregate, from_table
from slencodings.aggregate import crowdtruth, dawid_skene, krippendorff_alpha, mace, majority_vote
from slencodings.aggregate.em import ballots_of
from slencodings.aggregate.wawa import _weighted_votes

TARGETS = [
    majority_vote, aggregate.soft_vote, aggregate.sle, crowdtruth, dawid_skene, aggregate.one_coin,
    mace, aggregate.glad, aggregate.wawa, aggregate.zero_based_skill,
]  # fmt: skip
every_target = pytest.mark.parametrize("method", TARGETS, ids=lambda f: f.__name__)
LEARNERS = [dawid_skene, aggregate.one_coin, mace, aggregate.glad]
ROLES: Roles = {"item": "i", "annotator": "w", "label": "y"}
read = cache(crowds.read)


def assert_targets(probability, n_items):
    assert len(probability) == n_items
    assert (probability >= 0).all()
    np.testing.assert_allclose(probability.sum(-1), 1, rtol=0, atol=1e-12)


# crowd-kit


def test_mace_does_not_confuse_annotators_when_rows_move():
    """Trap 1: parameters by order of appearance, refilled in sorted order."""
    rng = np.random.default_rng(0)
    a = crowd(rng, N=100, M=8, K=4, R=600)
    moved = shuffled(a, rng)

    def trapped(a):
        """EM where annotator number n of those that appear gets what number n in order learned."""
        seen = a.annotator[np.sort(np.unique(a.annotator, return_index=True)[1])]
        state = np.full((8, 2), 0.5), np.full((8, 4), 0.25)
        got = mace(a, method="em", n_iter=1, initial=state)
        for _ in range(9):
            learned = np.stack([got.details["spamming"], present(got.reliability)], -1)
            state = learned[np.argsort(seen)], got.details["strategy"][np.argsort(seen)]
            got = mace(a, method="em", n_iter=1, initial=state)
        return got.probability

    assert np.abs(trapped(a) - trapped(moved)).max() > 0.1
    for method in ("vb", "em"):
        plain, other = (mace(x, method=method, n_restarts=2) for x in (a, moved))
        np.testing.assert_array_equal(other.probability, plain.probability)


def test_restarts_of_mace_are_not_all_the_same_start():
    """Trap 2: each restart seeded alike, so that ten are one."""
    a = crowd(np.random.default_rng(0), N=40, R=200)

    def scores(n, seed):
        rng = np.random.default_rng(seed)
        return mace(a, n_restarts=n, n_iter=2, rng=rng).details["log_likelihood"].tolist()

    trapped = {scores(1, seed=0)[0] for _ in range(6)}
    assert (len(trapped), len(set(scores(6, seed=0)))) == (1, 6)
    assert max(scores(6, seed=0)) > scores(1, seed=0)[0]


# For each option a value that must change something; a generator is named by its seed.
EM = {"n_iter": 1, "tol": 1.0, "gold": {0: 1}, "use_confidence": False}
OPTIONS = {
    "majority_vote": {"ties": "soft", "rng": 1},
    "sle": {"reliability": 0.5, "smoothing": 0.5, "base_rate": [0.5, 0.25, 0.25]},
    "certainty": {"reliability": 0.5, "smoothing": 0.5},
    "crowdtruth": {"open_ended": True, "tol": 0.5, "max_iter": 1, "max_pairs": 1},
    "sentence_relation_score": {"normalize": True},
    "dawid_skene": EM | {"prior_strength": 0.5},
    "one_coin": EM | {"prior_strength": 0.5, "prior": "uniform"},
    "bcc": EM | {"prior_strength": 0.5, "types": 3, "rng": 1},
    "shrunk_dawid_skene": EM | {
        "prior_strength": 0.5, "along_order": True,
        "log_source": np.log(np.random.default_rng(0).dirichlet(np.ones(3), 20)),
    },
    "mace": EM | {
        "method": "em", "n_restarts": 1, "theta_prior": (1.0, 2.0), "rng": 1,
        "initial": (np.full((5, 2), 0.5), np.full((5, 3), 1 / 3)),
    },
    "glad": EM,
    "wawa": {"ties": "first", "use_confidence": False},
    "zero_based_skill": {"n_iter": 1, "tol": 1.0, "ties": "first", "use_confidence": False},
    "pairwise_kappa": {"max_pairs": 1, "weights": "quadratic"},
    "severity": {"coverage": 0.5},
    "krippendorff_alpha": {"level": "ordinal", "bootstrap": 20, "coverage": 0.5, "rng": 1},
    "reliability_opinion": {"chance": True, "base_rate": 0.25, "prior_weight": 7.0},
    "filter_by_reliability": {"reliability": np.ones(5), "threshold": 0.1, "quantile": 0.8},
}  # fmt: skip
# What must be said beside, for them to count.
SCORES = {"reliability": np.linspace(0, 1, 5)}
BESIDE: dict[tuple[str, str | None], dict[str, Any]] = {
    ("majority_vote", "rng"): {"ties": "random", "rng": 0},
    ("bcc", "rng"): {"types": 3, "rng": 0},
    ("krippendorff_alpha", "bootstrap"): {"rng": 0},
    ("krippendorff_alpha", "coverage"): {"bootstrap": 20, "rng": 0},
    ("krippendorff_alpha", "rng"): {"bootstrap": 20, "rng": 0},
    ("filter_by_reliability", "reliability"): SCORES | {"quantile": 0.4},
    ("filter_by_reliability", "threshold"): SCORES | {"threshold": 0.6},
    ("filter_by_reliability", "quantile"): SCORES | {"quantile": 0.4},
}


def outcome(name, options):
    """All that comes of a small crowd, to the last digit."""
    rng = np.random.default_rng(0)
    item, who, y = (rng.integers(0, n, 60) for n in (20, 5, 3))
    a = make(item, who, y, uncertainty=rng.choice([0, 0.5], 60))
    a = replace(a, ordered=name == "severity")
    if "rng" in options:
        options = options | {"rng": np.random.default_rng(options["rng"])}
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return str(getattr(aggregate, name)(a, **options))


@cache
def usual_outcome(name, option=None):
    return outcome(name, BESIDE.get((name, option), {}))


@pytest.mark.parametrize(("name", "option"), [(f, x) for f in OPTIONS for x in OPTIONS[f]])
def test_no_option_is_ignored(name, option):
    """Trap 2: `smoothing=` that nothing reads. An option without effect fails here."""
    other = BESIDE.get((name, option), {}) | {option: OPTIONS[name][option]}
    if option == "max_pairs":
        with pytest.raises(ValueError, match="max_pairs=1 came"):
            outcome(name, other)
    else:
        usual = usual_outcome(name, option if (name, option) in BESIDE else None)
        assert outcome(name, other) != usual


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_options_give_the_same_to_the_last_digit(name):
    option = next((option for n, option in BESIDE if n == name), None)
    assert outcome(name, BESIDE.get((name, option), {})) == usual_outcome(name, option)


def test_no_option_is_missing_from_the_test_of_options():
    for function in filter(inspect.isfunction, vars(aggregate).values()):
        told = {*inspect.signature(function).parameters}
        if "annotations" in told:
            # Telling how far it is must change nothing; test_scale_methods.py has that.
            assert told - {"progress"} == {"annotations", *OPTIONS.get(function.__name__, ())}


@pytest.mark.parametrize("R", [3000, 10**5])
@pytest.mark.parametrize("method", LEARNERS)
def test_probabilities_are_not_multiplied_until_nothing_is_left(method, R):
    """Trap 3: thousands of annotations of one item make 0 / 0."""
    a = one_item(R, M=300)
    assert not np.prod(np.where(a.y[:, None] == np.arange(3), 0.6, 0.2), axis=0).any()  # theirs
    got = method(a, n_iter=5)
    assert_targets(got.probability, 1)
    assert got.probability.argmax() == 1
    assert np.isfinite(got.reliability).all()


TABLES = {
    "3, 9: missing labels": ((1, 1, 2, 3, 3), "xyxxy", ("a", "b", None, "a", None)),
    "13: a gap": ((1, 1, 7, 7), "xyxy", ("a", "b", "a", "a")),
    "15: each item has one judgment": ((1, 2, 3), "xxy", ("a", "b", "b")),
    "cleanlab: one annotator": ((1, 2), "xx", ("a", "b")),
    "cleanlab: one who said nothing": ((1, 2, 1), "xxy", ("a", "b", None)),
    "snorkel: two annotators": ((1, 1, 2, 2), "xyxy", ("a", "a", "b", "a")),
}


@every_target
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_table_is_too_small_or_too_empty(table, method):
    """Traps 3, 9, 13, 15, cleanlab, snorkel: errors, NaN, or items that vanish."""
    a = read(*table)
    assert a.items.tolist() == sorted(set(table[0]))
    assert_targets(method(a).probability, len(a.items))


@every_engine
def test_the_order_of_labels_depends_on_nothing_but_the_labels(engine: Engine):
    """Trap 4: columns in order of appearance, so that ties go to whom chance puts first."""
    rng = np.random.default_rng(0)
    item, y = rng.integers(0, 30, 60), rng.choice(["no", "yes", "maybe"], 60)
    labels = ["maybe", "no", "yes"]
    for p in (np.arange(60), np.arange(60)[::-1]):
        rows = {"i": item[p].tolist(), "w": p.tolist(), "y": y[p].tolist()}
        a = from_table(engine(rows), **ROLES)
        assert a.labels.tolist() == labels
        got = majority_vote(a)
        assert got.details["ties"] > 3
        for n, i in enumerate(a.items):
            winner = max(labels, key=y[item == i].tolist().count)  # the first of the best
            assert a.labels[got.probability[n].argmax()] == winner
    assert pd.unique(y).tolist() != pd.unique(y[::-1]).tolist()  # the order they take


@pytest.fixture(scope="module")
def with_categories():
    """A crowd, and the same from a table with categories that nobody used."""
    rng = np.random.default_rng(0)
    said = {"i": rng.integers(0, 9, 40), "w": rng.choice(list("abc"), 40)}
    frame = pd.DataFrame(said | {"y": rng.choice(list("ny"), 40)})
    kinds = {"i": range(12), "w": list("abcz"), "y": list("nqy")}
    coded = frame.astype({name: pd.CategoricalDtype(kinds[name]) for name in kinds})
    sizes = [len(x.groupby(["i", "w", "y"], observed=False).size()) for x in (frame, coded)]
    assert sizes[1] == 12 * 4 * 3 > sizes[0]  # what they count
    return [from_table(x, **ROLES) for x in (frame, coded)]


@every_target
def test_categories_that_nobody_used_add_no_rows(method, with_categories):
    """Trap 6: grouping by category makes a row of all that could have been said."""
    plain, other = with_categories
    assert other.labels.tolist() == ["n", "y"]
    assert other.annotators.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(method(other).probability, method(plain).probability, atol=1e-12)


def test_the_bound_counts_the_prior_once_and_adds_up_logarithms():
    """Trap 7: the prior once for each annotation. Trap 10: the log of a sum, not a sum of logs."""
    a = crowd(np.random.default_rng(1))
    before, after = (dawid_skene(a, n_iter=n, tol=0, prior_strength=0) for n in (6, 7))
    p, E = before.details["prior"], before.details["confusion"]
    joint = np.tile(p, (len(a.items), 1))
    for i, m, y in zip(a.item, a.annotator, a.y, strict=True):
        joint[i] *= E[m][:, y]
    right = np.sum(np.log(joint.sum(-1)))
    assert after.details["elbo"][-1] == pytest.approx(right, abs=1e-6)
    # What they watch instead is another quantity.
    again = np.bincount(a.item, minlength=len(a.items)) - 1
    assert abs(np.sum(again[:, None] * after.probability * np.log(p))) > 1  # trap 7 adds this
    assert abs(np.log(joint.sum()) - right) > 1  # trap 10


@pytest.mark.parametrize("method", LEARNERS)
def test_gold_adds_no_label_in_silence(method):
    """Trap 7: a gold label that nobody gave becomes a column. mace.py: its likelihood is 0."""
    rows = (1, 1, 2, 2), "abab", "nyyy"
    with pytest.raises(ValueError, match="names 1 label that the annotations do not have"):
        method(read(*rows), gold={1: "maybe"})
    got = method(read(*rows, labels=("maybe", "n", "y")), gold={1: "maybe"})
    np.testing.assert_array_equal(got.probability[0], [1, 0, 0])
    assert all(np.isfinite(x).all() for x in got.details.values())


def test_votes_that_all_weigh_nothing_are_not_divided_by_it():
    """Trap 8: all who voted on an item have skill 0, and 0 / 0 is its target."""
    a = make([0, 0, 0, 1, 1], [0, 1, 1, 1, 2], [0, 1, 1, 2, 0], N=3)
    skill = np.asarray([0, 0, 0.5])
    votes = a.sums(skill[a.annotator])
    with np.errstate(invalid="ignore"):
        assert np.isnan(votes[0] / votes[0].sum()).all()  # what they get
    # Wawa's own skills leave somebody on every item, so they are put in here.
    votes, unlabelled = _weighted_votes(ballots_of(a, use_confidence=True), skill)
    np.testing.assert_array_equal(votes, [[1, 2, 0], [0.5, 0, 0], [1, 1, 1]])
    assert unlabelled == 1
    opinion = aggregate.sle(a, reliability=skill)
    np.testing.assert_array_equal(opinion.uncertainty == 1, [True, False, True])
    np.testing.assert_allclose(opinion.probability[0], 1 / 3)


def test_who_labels_an_item_twice_is_told_of_or_counts_once():
    """Traps 9 and 16: two votes without a word, or the last one wins. cleanlab: a pivot error.

    Votes count every row unless `duplicates` says otherwise; those who compare annotators do not.
    """
    rows = (1, 1, 1, 1, 2, 2, 2), "aabcabc", "nyynyyy"
    with pytest.raises(ValueError, match=r"1 row repeats an earlier pair, such as item 1 by .*'a'"):
        read(*rows, duplicates="error")
    first, last = (read(*rows, duplicates=keep) for keep in ("first", "last"))
    assert [a.sums()[0].tolist() for a in (first, last)] == [[2, 1], [1, 2]]
    # Judgments are one for each annotator and item: half a vote for each answer, in any order.
    turned = read(*rows[:2], "ynynyyy")
    halves = np.asarray([[0.5, 0.5], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
    mean = make([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, halves)
    quality = lambda a: present(crowdtruth(a).reliability)  # noqa: E731
    for method in (quality, aggregate.share_of_agreement, aggregate.pairwise_kappa):
        got = method(read(*rows))
        np.testing.assert_allclose(got, method(mean), rtol=0, atol=1e-12)
        np.testing.assert_allclose(got, method(turned), rtol=0, atol=1e-12)
        assert np.abs(got - method(last)).max() > 0.01  # what they get


@every_target
def test_results_share_nothing_with_each_other_or_with_the_crowd(method):
    """Trap 9: one dictionary for all instances."""
    a = crowd(np.random.default_rng(0))
    one, two = method(a), method(a)
    for x, y in zip(one, two, strict=True):
        if isinstance(x, dict):
            assert x is not y
            x.clear()
        elif x is not None:
            x[:] = -1
    np.testing.assert_array_equal(method(a).probability, two.probability)


@every_target
def test_an_empty_crowd_is_no_division_by_zero(method):
    """Trap 9: GLAD and MACE divide by the number of annotations."""
    a = read((1, 2), "ab", (None, None), labels=("n", "y"))
    assert len(a.item) == 0
    np.testing.assert_array_equal(method(a).probability, np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="the table has no rows; at least one annotation"):
        read((), (), ())


# peerannot


def test_fifteen_hundred_annotators_of_an_item_leave_no_row_of_zeros():
    """Trap 11: products of 1,500 factors, and empty denominators divided by -1e9."""
    rng = np.random.default_rng(0)
    truth, at = np.asarray([0, 1, 2, 1]), np.arange(6000)
    item, who = at // 1500, at % 1500
    y = np.where(rng.random(6000) < 0.5, truth[item], rng.integers(0, 3, 6000))
    assert not np.prod(np.where(y[:1500, None] == np.arange(3), 0.66, 0.17), axis=0).any()  # theirs
    for s in (0, 1.0):
        # A label nobody gives and an annotator who says nothing leave denominators empty.
        got = dawid_skene(make(item, who, y, M=1501, K=4), prior_strength=s)
        assert_targets(got.probability, 4)
        np.testing.assert_array_equal(got.probability.argmax(-1), truth)
        np.testing.assert_allclose(got.details["confusion"].sum(-1), 1, rtol=0, atol=1e-12)
        assert not np.signbit(got.details["confusion"]).any()


def test_soft_votes_are_soft_and_no_method_draws_from_the_global_generator():
    """Trap 12: probabilities that are hard labels, and ties that differ from run to run."""
    a = make([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 1, 1, 0, 1])
    for method in (aggregate.soft_vote, aggregate.wawa):
        assert ((method(a).probability > 0) & (method(a).probability < 1)).all()
    with pytest.raises(ValueError, match="needs a generator"):
        majority_vote(a, ties="random")
    before = str(np.random.get_state())  # noqa: NPY002
    draws = [majority_vote(a, ties="random", rng=np.random.default_rng(5)) for _ in range(5)]
    assert len({str(x.probability) for x in draws}) == 1
    for method in TARGETS:
        assert str(method(a)) == str(method(a))
    krippendorff_alpha(a, bootstrap=5, rng=np.random.default_rng(0))
    assert str(np.random.get_state()) == before  # noqa: NPY002


@every_target
def test_names_need_not_be_numbers_from_zero(method):
    """Trap 13: text crashes, a gap in the numbers is an IndexError. cleanlab: labels from 0."""
    codes = (0, 0, 1, 1, 2, 2), (0, 1, 0, 1, 0, 1), (0, 1, 1, 1, 0, 0)
    names = (-7, 3, 10**12), ("x", "y"), ("no", "yes")
    named = (tuple(name[k] for k in x) for name, x in zip(names, codes, strict=True))
    plain, other = method(read(*codes)), method(read(*named))
    np.testing.assert_array_equal(other.probability, plain.probability)


def test_alpha_does_not_compare_all_items_with_all():
    """Trap 13: quadratic in the items. It would run for hours, and the answer is in closed form."""
    N = 10**5
    y = np.repeat(np.arange(N) % 2, 2)
    y[: N // 10 : 2] ^= 1  # the first annotator of the first N / 20 items changes sides
    n = np.bincount(y)
    expected = 1 - 2 * (N // 20) / (2 * n[0] * n[1] / (2 * N - 1))
    a = make(np.repeat(np.arange(N), 2), np.tile([0, 1], N), y)
    assert krippendorff_alpha(a).alpha == pytest.approx(expected, abs=1e-12)


# CrowdTruth-core


def test_total_disagreement_is_no_target_of_zeros():
    """Trap 14: nobody has any quality left, so that nothing is left of the votes."""
    got = crowdtruth(make([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 2]))
    assert not got.details["label_score"].any()  # what they train on
    np.testing.assert_array_equal(got.probability, [[0.5, 0.5, 0], [0, 0.5, 0.5]])
    assert got.details["unweighted"] == 2


def test_items_with_one_judgment_stay_and_so_do_their_annotators():
    """Trap 15: they are dropped; if all are such, an error from deep below."""
    got = crowdtruth(make([0, 0, 0, 1], [0, 1, 2, 3], [1, 1, 0, 1]))
    np.testing.assert_array_equal(got.probability[1], [0, 1])
    reliability = present(got.reliability)
    assert reliability[3] == pytest.approx(reliability[:3].mean())
    alone = crowdtruth(make([0, 1, 2], [0, 0, 1], [0, 1, 1]))
    np.testing.assert_array_equal(alone.probability, [[1, 0], [0, 1], [0, 1]])


def test_no_vote_is_lost_because_its_label_was_not_expected():
    """Trap 17: it counts in the number of votes and nowhere else."""
    rows = (1, 1, 1), "abc", ("no", "yes", "maybe")
    with pytest.raises(ValueError, match=r"one of labels=.*1 of 3 rows do not, first 'maybe'"):
        read(*rows, labels=("no", "yes"))
    np.testing.assert_allclose(crowdtruth(read(*rows)).probability, 1 / 3, rtol=0, atol=1e-12)


def test_the_tolerance_is_where_it_stops():
    """Trap 18: the argument is overwritten, and 0.001 it is."""
    a = crowd(np.random.default_rng(0), N=30, R=120)
    taken = []
    for tol in (0.1, 1e-3, 1e-6, 1e-9):
        n = crowdtruth(a, tol=tol).details["iterations"]
        steps = [crowdtruth(a, tol=1e-300, max_iter=k).details for k in (n - 1, n)]
        for x in ("item_quality", "annotator_quality", "label_quality"):
            assert np.nanmax(np.abs(steps[1][x] - steps[0][x])) < tol
        taken.append(n)
    assert taken == sorted(set(taken))


# The others


def test_ties_do_not_go_to_the_rare_label_nor_to_chance():
    """cleanlab: to the minority class, then by annotator quality, then at random."""
    for common in (0, 1):  # label 0 wins the tie on item 0 however common it is elsewhere
        a = make([0, 0, 1, 1, 2, 2], [0, 1] * 3, [0, 1, *[common] * 4], K=2)
        np.testing.assert_array_equal(majority_vote(a).probability[0], [1, 0])
        np.testing.assert_array_equal(majority_vote(a, ties="soft").probability[0], [0.5, 0.5])


@every_target
def test_minus_one_is_a_label_and_none_is_not(method):
    """snorkel: -1 abstains, or is class 0. Trap 13: an item without labels is NaN, or is not."""
    a = read((1, 1, 2, 2, 3), "ababa", (-1, -1, 0, 0, None))
    assert a.labels.tolist() == [-1, 0]
    p = method(a).probability
    np.testing.assert_array_equal(a.labels[p.argmax(-1)][:2], [-1, 0])
    np.testing.assert_allclose(p[2], [0.5, 0.5], rtol=0, atol=1e-9)


def test_alpha_is_nominal_and_has_a_value_wherever_two_said_something():
    """krippendorff: intervals by default; one label, or None, is an error."""
    a = read((1, 1, 2, 2, 3, 3), "ababab", (1, 2, 1, 1, 5, 5))
    nominal, interval = (krippendorff_alpha(a, level=x).alpha for x in ("nominal", "interval"))
    assert interval - nominal > 0.2
    assert krippendorff_alpha(a).alpha == nominal
    one = read((1, 1, 2, 2, 2), "ababc", (7, 7, 7, 7, None), labels=(7, 8))
    assert krippendorff_alpha(one).alpha == 1
    with pytest.raises(ValueError, match="some item needs two; of 2 annotations each is alone"):
        krippendorff_alpha(read((1, 2), "aa", (0, 1)))  # one annotator: nothing to compare


def test_perfect_agreement_is_one_and_items_may_have_any_number_of_annotations():
    """statsmodels: NaN if all agree, and the same number of raters for all."""
    for y in ([0] * 6, [0, 0, 0, 1, 1, 1]):
        a = make([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 2], y, K=2)
        assert krippendorff_alpha(a).alpha == 1
        np.testing.assert_array_equal(aggregate.pairwise_kappa(a), [1, 1, 1])
        np.testing.assert_array_equal(aggregate.share_of_agreement(a), [1, 1, 1])

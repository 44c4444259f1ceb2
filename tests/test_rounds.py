"""A network is one more annotator: sources from outside, and rounds of learning from them."""

import math
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from fitting import assert_same_weights, crowd_of, one_thread, quick, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from slencodings import Opinion, aggregate, check, datasets, from_table
from slencodings.annotations import Annotations
from slencodings.torch import SLEClassifier, learn_in_rounds
from slencodings.torch.rounds import _mean_loss as loss_of_single_networks
from slencodings.torch.rounds import cross_fitted
from slencodings.trust import learn_crowd, truth_with_source
from slencodings.trust import source as from_outside
from slencodings.trust.source import as_sure_as_votes

__all__ = ["one_thread"]


@contextmanager
def fewer_choices():
    """Less to try, for what holds whatever is chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slencodings.trust.source._OTHER_WORTHS", ())
        patch.setattr("slencodings.trust.source.STRENGTHS", (10.0,))
        yield


@pytest.fixture
def few_trials():
    with fewer_choices():
        yield


@pytest.fixture
def believed(monkeypatch):
    """A first network is believed, whatever it says."""
    monkeypatch.setattr("slencodings.trust.source.surely_lower", lambda *_, **__: True)
    monkeypatch.setattr("slencodings.torch.rounds._borne_out", lambda *_: True)


def one_vote_each(N=300, K=3, M=6, right=0.6, seed=0):
    """A crowd of one annotation an item, and what is true."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, N)
    said = np.where(rng.random(N) < right, truth, rng.integers(0, K, N))
    who = rng.integers(0, M, N)
    crowd = Annotations(
        np.arange(N), who, said, np.zeros(N), np.arange(N), np.arange(M), np.arange(K)
    )
    return crowd, truth


def seen(truth, K=3, right=0.9, seed=1):
    """A calibrated source: as sure as it is often right."""
    rng = np.random.default_rng(seed)
    guess = np.where(
        rng.random(len(truth)) < right,
        truth,
        (truth + 1 + rng.integers(K - 1, size=len(truth))) % K,
    )
    return np.where(guess[:, None] == np.arange(K), right, (1 - right) / (K - 1))


# A source


def test_a_good_source_makes_single_votes_right():
    crowd, truth = one_vote_each()
    found = truth_with_source(crowd, seen(truth))
    votes = np.mean(crowd.y == truth)
    assert votes < 0.75
    assert np.mean(found.truth.probability.argmax(axis=1) == truth) > votes + 0.15
    assert found.worth >= 0.5


def test_a_source_that_knows_nothing_is_not_believed_and_changes_no_label():
    crowd = crowd_of(np.random.default_rng(0).integers(0, 3, 200), per_item=5)
    noise = np.random.default_rng(2).dirichlet(np.ones(3), 200)
    found = truth_with_source(crowd, noise)
    assert found.worth == 0
    assert not found.fused
    alone = learn_crowd(crowd).truth(crowd)
    np.testing.assert_array_equal(
        found.truth.probability.argmax(axis=1), alone.probability.argmax(axis=1)
    )


def test_pairs_of_votes_beside_a_source_that_knows_nothing_are_read_as_the_crowd_reads_them():
    # Two annotations an item leave it open how often each label is right, which EM then makes up.
    truth = np.random.default_rng(0).integers(0, 2, 300)
    crowd = crowd_of(truth, per_item=2, K=2)
    found = truth_with_source(crowd, np.random.default_rng(2).dirichlet(np.ones(2), 300))
    alone = learn_crowd(crowd).truth(crowd).probability
    np.testing.assert_allclose(found.truth.probability, alone, atol=0.05)


def test_people_are_taken_at_their_word_where_nobody_else_says_that_they_err():
    # Right nearly always, beside a source that predicts what they say and is right less often.
    crowd, truth = one_vote_each(right=0.95)
    source = seen(truth, right=0.7)
    some = crowd.rows(crowd.item >= 100)
    found = truth_with_source(some, source)
    assert (found.worth, found.fused) == (1, False)
    labels = found.truth.probability.argmax(axis=1)
    np.testing.assert_array_equal(labels[some.item], some.y)
    # Of others it speaks alone.
    np.testing.assert_array_equal(labels[:100], source.argmax(axis=1)[:100])
    check(found.truth)
    # Votes are then predicted by what it says, whoever gives them.
    p = found.truth.probability[:100]
    asked = crowd.rows(crowd.item < 100)
    np.testing.assert_allclose(found.vote_losses(asked), -np.log(p[asked.item, asked.y]), rtol=1e-9)


def test_what_is_wrong_with_a_source_that_is_too_sure_is_not_held_against_people():
    crowd, truth = one_vote_each(N=800, K=10, M=50, right=0.85)
    rng = np.random.default_rng(3)
    guess = np.where(rng.random(800) < 0.35, truth, rng.integers(0, 10, 800))
    source = np.where(guess[:, None] == np.arange(10), 0.9, 0.1 / 9)
    # That they err explains its mistakes as well as that it does.
    fooled = truth_with_source(crowd, source)
    votes = np.mean(crowd.y == truth)
    assert np.mean(fooled.truth.probability.argmax(axis=1) == truth) < votes - 0.2
    found = truth_with_source(crowd, as_sure_as_votes(crowd, source))
    assert not found.fused
    assert np.mean(found.truth.probability.argmax(axis=1) == truth) == votes > 0.8


def test_a_source_is_flattened_to_be_as_sure_as_votes_are_and_left_alone_if_it_is():
    crowd, truth = one_vote_each(right=1.0)
    source = seen(truth, right=0.7)
    assert as_sure_as_votes(crowd, source) is source
    sharper = source**4 / np.sum(source**4, axis=1, keepdims=True)
    np.testing.assert_allclose(as_sure_as_votes(crowd, sharper), source)
    soft = replace(crowd, y=np.eye(3)[crowd.y])
    np.testing.assert_allclose(as_sure_as_votes(soft, sharper), source)


def test_votes_are_predicted_from_another_source_as_it_is():
    crowd, truth = one_vote_each()
    source, other = seen(truth), seen(truth, right=0.6)
    found = truth_with_source(crowd, source)
    mean, prior = other.mean(axis=0), found.model.prior
    expected = []
    for q, i in enumerate(crowd.item):
        chances = [prior[c] * other[i, c] / mean[c] for c in range(len(prior))]
        said = found.model.confusion[crowd.annotator[q], :, crowd.y[q]]
        expected.append(-math.log(np.dot(chances, said) / sum(chances)))
    np.testing.assert_allclose(found.vote_losses(crowd, other), expected, rtol=1e-9)


def test_single_votes_stay_as_they_are_beside_a_source_that_knows_nothing():
    # Many annotators of few items each: what they say can be explained by any labels at all.
    crowd, _ = one_vote_each(K=2, M=60)
    found = truth_with_source(crowd, np.random.default_rng(2).dirichlet(np.ones(2), 300))
    assert found.worth == 0
    assert np.all(found.log_source == 0)
    said = np.empty(300, dtype=int)
    said[crowd.item] = crowd.y
    np.testing.assert_array_equal(found.truth.probability.argmax(axis=1), said)
    # Nobody is known, so that each vote is one count beside the prior of two.
    np.testing.assert_allclose(found.truth.uncertainty, 2 / 3)


def test_soft_labels_are_taken_at_their_word_too():
    crowd, truth = one_vote_each(right=0.95)
    soft = replace(crowd, y=0.9 * np.eye(3)[crowd.y] + 0.1 / 3)
    found = truth_with_source(soft, seen(truth, right=0.7))
    assert not found.fused
    np.testing.assert_array_equal(found.truth.probability.argmax(axis=1), crowd.y)
    assert np.all(np.isfinite(found.vote_losses(soft)))


def test_a_source_without_an_opinion_is_no_source():
    crowd = crowd_of(np.random.default_rng(0).integers(0, 3, 60), per_item=3)
    alike = truth_with_source(crowd, np.full((60, 3), 1 / 3))
    told = aggregate.shrunk_dawid_skene(crowd, log_source=np.zeros((60, 3)), tol=1e-9, n_iter=900)
    plain = aggregate.shrunk_dawid_skene(crowd, tol=1e-9, n_iter=900)
    np.testing.assert_allclose(told.probability, plain.probability, atol=1e-4)
    assert np.all(alike.log_source == 0)


@settings(max_examples=4)
@given(st.integers(0, 99), st.integers(2, 4))
def test_the_truth_is_opinions_and_the_same_for_any_scale_of_the_source(seed, K):
    crowd, _ = one_vote_each(N=40, K=K, seed=seed)
    source = np.random.default_rng(seed).dirichlet(np.ones(K), 40)
    opinion = Opinion(source, np.zeros(40), np.full((40, K), 1 / K))
    with fewer_choices():
        found, *others = (truth_with_source(crowd, x) for x in (source, 3 * source, opinion))
    check(found.truth)
    for again in others:
        np.testing.assert_allclose(again.truth.probability, found.truth.probability, atol=1e-9)


def test_items_that_nobody_annotated_are_as_the_source_says():
    crowd, truth = one_vote_each()
    some = crowd.rows(crowd.item >= 100)
    found = truth_with_source(some, seen(truth))
    assert np.mean(found.truth.probability[:100].argmax(axis=1) == truth[:100]) > 0.8


def test_a_source_of_another_shape_or_of_no_probabilities_is_refused():
    crowd, truth = one_vote_each(N=40)
    with pytest.raises(ValueError, match=r"`also` must be .*, \(40, 3\); \(39, 3\) came\."):
        truth_with_source(crowd, seen(truth)[1:])
    with pytest.raises(ValueError, match=r"\(40, 3\) came, some negative or not numbers"):
        truth_with_source(crowd, -seen(truth))


# Rounds


def digit_like(N=240, seed=0):
    """Three kinds of items that features tell apart, each annotated once."""
    crowd, truth = one_vote_each(N=N, right=0.5, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return 4 * np.eye(3, 4)[truth] + rng.normal(size=(N, 4)), crowd, truth


def small(**how):
    return quick(max_epochs=20, learning_rate=0.05, hidden=(), **how)


def test_rounds_make_labels_right_that_single_votes_have_wrong():
    digits = datasets.digits_crowd(rng=0)
    X, truth = digits.X[:600].astype(np.float32), digits.gold[:600]
    all_of_them = digits.annotations.of_items(np.arange(600))
    first = np.unique(all_of_them.item, return_index=True)[1]
    crowd = all_of_them.rows(np.isin(np.arange(len(all_of_them.item)), first))
    model = quick(max_epochs=15, learning_rate=0.01, hidden=(32,))
    found = learn_in_rounds(model, X, crowd, rounds=2)
    votes = np.mean(crowd.y == truth[crowd.item])
    assert votes < 0.75
    assert np.mean(found.truth.probability.argmax(axis=1) == truth) > votes + 0.15
    assert 1 <= found.chosen <= len(found.losses) <= 2
    assert (found.target is None) == (found.chosen == 1)


def tell_losses(monkeypatch, losses, *, believed=None, given=None):
    """Let rounds have these losses of votes, by networks as they are and as they are believed."""
    both = iter([each for pair in zip(losses, believed or losses, strict=True) for each in pair])
    monkeypatch.setattr("slencodings.trust.source.Sourced.vote_losses", lambda *_: next(both))
    said = iter(given or map(np.mean, losses))
    monkeypatch.setattr("slencodings.torch.rounds._mean_loss", lambda *_: next(said))


@pytest.mark.usefixtures("few_trials", "believed")
def test_one_round_chosen_is_learning_from_the_annotations_as_they_are(monkeypatch):
    X, y = rows(80)
    crowd = crowd_of(y, per_item=3)
    alone = quick(validation=0.0)
    several = quick(validation=0.0, rounds=2)
    tell_losses(monkeypatch, [np.ones(4), np.full(4, 2.0)])
    assert_same_weights(several.fit(X, crowd), alone.fit(X, crowd))
    assert several.rounds_.chosen == 1
    assert several.rounds_.target is None
    np.testing.assert_array_equal(several.rounds_.said, np.eye(3))  # it says what people would


@pytest.mark.usefixtures("few_trials", "believed")
def test_a_round_that_is_better_by_chance_is_not_taken(monkeypatch):
    X, y = rows(80)
    # A mean of 2 and then 1.8, but every vote moves by about 1.
    each = [np.asarray([1.0, 3.0, 2.0, 2.0]), np.asarray([2.0, 2.0, 1.0, 2.2])]
    tell_losses(monkeypatch, each)
    found = learn_in_rounds(quick(max_epochs=1), X, crowd_of(y, per_item=3), rounds=3)
    assert found.losses == pytest.approx([2.0, 1.8])
    assert found.chosen == 1
    assert found.target is None


@pytest.mark.usefixtures("few_trials", "believed")
@pytest.mark.parametrize(("sharpened", "chosen"), [([0.5, 0.5], 1), ([0.5, 1.5], 2)])
def test_a_round_that_dares_more_must_not_know_less(monkeypatch, sharpened, chosen):
    X, y = rows(80)
    before = np.tile(sharpened, 2)  # all lower than 1, or as high on the average
    tell_losses(monkeypatch, [np.full(4, 2.0), np.ones(4)], believed=[before, np.ones(4)])
    found = learn_in_rounds(quick(max_epochs=1), X, crowd_of(y, per_item=3), rounds=2)
    assert found.losses == [2.0, 1.0]
    assert found.chosen == chosen


@pytest.mark.usefixtures("few_trials", "believed")
@pytest.mark.parametrize(("given", "chosen"), [(1.01, 1), (0.99, 2)])
def test_a_round_that_says_worse_what_people_say_is_not_taken(monkeypatch, given, chosen):
    X, y = rows(80)
    tell_losses(monkeypatch, [np.full(4, 2.0), np.ones(4)], given=[1.0, given])
    found = learn_in_rounds(quick(max_epochs=1), X, crowd_of(y, per_item=3), rounds=2)
    assert found.chosen == chosen


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("told", [True, False])
def test_networks_that_are_believed_by_chance_need_held_out_votes_too(monkeypatch, told):
    y = np.random.default_rng(0).integers(0, 3, 120)
    X = 4 * np.eye(3, 4)[y] if told else np.random.default_rng(1).normal(size=(120, 4))
    crowd, surely_lower = crowd_of(y, per_item=2), from_outside.surely_lower

    def by_chance(annotations, also, *, rng):
        """Whatever says anything is believed."""
        says = bool(np.ptp(also) > 0)
        monkeypatch.setattr(from_outside, "surely_lower", lambda *_, **__: says)
        found = truth_with_source(annotations, also, rng=rng)
        monkeypatch.setattr(from_outside, "surely_lower", surely_lower)
        return found

    monkeypatch.setattr("slencodings.torch.rounds.truth_with_source", by_chance)
    found = learn_in_rounds(small(), X, crowd, rounds=1)
    assert (found.worth > 0) == told
    if not told:
        np.testing.assert_array_equal(found.predicted, np.full((120, 3), 1 / 3))
        alone = learn_crowd(crowd).truth(crowd).probability
        np.testing.assert_allclose(found.truth.probability, alone, atol=0.1)


@pytest.mark.usefixtures("few_trials", "believed")
def test_rounds_are_compared_by_what_people_are_then_told(monkeypatch):
    X, y = rows(80)
    crowd, told, unseen = crowd_of(y, per_item=3), list[np.ndarray](), list[np.ndarray]()

    def mean_loss(hidden, heard, part):
        told.append(heard)
        # What people get is one network, not the mean of all that are there to choose by.
        items = np.flatnonzero(part < 0).tolist()
        log_p = [
            np.log(p[items.index(i), k])
            for p in heard
            for i, k in zip(hidden.item, hidden.y, strict=True)
        ]
        assert loss_of_single_networks(hidden, heard, part) == pytest.approx(-np.mean(log_p))
        return 9.0 - len(told)

    def fitted(*job, **how):
        found = cross_fitted(*job, **how)
        unseen.append(found[1])
        np.testing.assert_allclose(found[0][job[-1] < 0], found[1].mean(axis=0))
        return found

    monkeypatch.setattr("slencodings.torch.rounds._mean_loss", mean_loss)
    monkeypatch.setattr("slencodings.torch.rounds.cross_fitted", fitted)
    monkeypatch.setattr(
        "slencodings.torch.rounds.surely_lower", lambda *_, **how: how["standard_errors"] == 1
    )
    found = learn_in_rounds(quick(max_epochs=2), X, crowd, rounds=2)
    assert found.chosen == 2
    np.testing.assert_array_equal(told[0], unseen[0])
    # `found.said` has learned from all annotations, this from those that were shown.
    np.testing.assert_allclose(told[1], unseen[1] @ found.said, atol=0.05)
    assert np.max(np.abs(told[1] - unseen[1])) > 0.1


@pytest.mark.usefixtures("few_trials")
def test_single_votes_beside_networks_that_tell_nothing_stay_as_they_are_after_one_round(
    monkeypatch,
):
    def without_opinion(annotations, predicted, *, rng):
        return truth_with_source(annotations, np.ones(predicted.shape), rng=rng)

    monkeypatch.setattr("slencodings.torch.rounds.truth_with_source", without_opinion)
    crowd, _ = one_vote_each(N=60, K=2)
    found = learn_in_rounds(quick(max_epochs=1), np.zeros((60, 2)), crowd, rounds=3)
    assert (found.chosen, len(found.losses), found.worth) == (1, 1, 0)
    assert found.target is None
    np.testing.assert_array_equal(found.truth.probability.argmax(axis=1), crowd.y)


@pytest.mark.usefixtures("believed")
def test_a_better_round_is_learned_from(monkeypatch):
    X, y = rows(80)
    crowd = crowd_of(y, per_item=3)
    tell_losses(monkeypatch, [np.full(4, 2.0), np.ones(4), np.full(4, 1.5)])
    model = quick(rounds=4, reliability=[0.9, 0.8, 0.7]).fit(X, crowd)
    assert model.rounds_.losses == [2.0, 1.0, 1.5]
    assert model.rounds_.chosen == 2
    assert model.rounds_.worth == 1  # networks after the first are believed as they are
    labels = crowd.labels.tolist()
    assert_same_weights(model, quick(labels=labels).fit(X, model.rounds_.target))
    # Who is said to be right sometimes errs: of each truth, everything that people say.
    q = model.rounds_.truth.probability
    assert_said_where_true(model.rounds_.said, crowd, q)


def assert_said_where_true(said, crowd, q):
    """What everybody says, by what is likely to be true of the items that they say it of."""
    K = len(crowd.labels)
    expected = [np.bincount(crowd.y, q[crowd.item, c], K) for c in range(K)]
    np.testing.assert_allclose(said, expected / np.sum(expected, axis=1, keepdims=True), atol=0.05)


@pytest.mark.usefixtures("few_trials")
def test_rows_of_x_find_their_annotations_by_name_in_rounds_too():
    X, y = rows(80)
    crowd = crowd_of(y, per_item=3)
    part = np.random.default_rng(1).permutation(80)[:60]
    by_name = quick(rounds=2).fit(X[part], crowd, items=crowd.items[part])
    assert_same_weights(by_name, quick(rounds=2).fit(X[part], crowd.of_items(part)))


@pytest.mark.usefixtures("few_trials")
def test_networks_of_rounds_are_counted():
    X, crowd, _ = digit_like(N=60)
    seen: list[tuple[int, int]] = []
    learn_in_rounds(quick(max_epochs=1), X, crowd, rounds=1, progress=lambda *now: seen.append(now))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.usefixtures("believed")
def test_networks_grow_with_rounds_as_a_line(monkeypatch):
    X, y = rows(80)
    monkeypatch.setattr("slencodings.torch.rounds._better", lambda *_: True)  # none ends it
    fit, fitted = SLEClassifier.fit, []

    def counted(self, X, y, **how):
        fitted.append(len(X))
        return fit(self, X, y, **how)

    monkeypatch.setattr(SLEClassifier, "fit", counted)
    seen: list[tuple[int, int]] = []
    crowd, model = crowd_of(y, per_item=3), quick(max_epochs=1)
    found = learn_in_rounds(model, X, crowd, rounds=3, progress=lambda *now: seen.append(now))
    assert seen == [(n, 12) for n in range(1, 13)]
    assert len(found.losses) == 3
    # Four of a round, each on three quarters of the items that are not held out.
    assert len(fitted) == 12
    assert all(abs(n - 0.75 * 0.8 * 80) <= 2 for n in fitted)


def test_rounds_that_cannot_be_are_told():
    X, y = rows(80)
    crowd = crowd_of(y, per_item=3)
    with pytest.raises(ValueError, match="`rounds` fuse networks with annotations; ndarray came"):
        quick(rounds=2).fit(X, y)
    with pytest.raises(ValueError, match="opinions or shares, and objective='votes' does not"):
        quick(rounds=2, objective="votes").fit(X, crowd)
    with pytest.raises(ValueError, match=r"`rounds` must be at least 1 .*; 0 and 4 came"):
        quick(rounds=0).fit(X, crowd)
    with pytest.raises(ValueError, match="each of 80 items needs its row of X; 79 rows came"):
        learn_in_rounds(SLEClassifier(), X[1:], crowd)
    with pytest.raises(ValueError, match=r"help need 40 annotated items.*; 20 came.*rounds=1"):
        learn_in_rounds(SLEClassifier(), X[:20], crowd.of_items(np.arange(20)))


def test_the_annotations_of_some_items_come_in_the_order_asked_for():
    table = {"item": ["p", "p", "q", "r"], "label": [1, 0, 0, 1]}
    crowd = from_table(table, item="item", label="label")
    some = crowd.of_items(np.asarray([2, 0]))
    assert some.items.tolist() == ["r", "p"]
    np.testing.assert_array_equal(some.sums(), crowd.sums()[[2, 0]])

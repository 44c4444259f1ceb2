"""Methods that learn from the whole crowd, on large ones: blocks, memory, and how far they are."""

import io
import itertools
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from crowds import assert_same_aggregate, crowd, make
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import seeds

from slencodings.aggregate import crowdtruth, dawid_skene, glad, mace, one_coin
from slencodings.aggregate.agreement import judgments
from slencodings.aggregate.em import ballots_of, posterior
from slencodings.annotations import Annotations
from slencodings.progress import bar
from slencodings.tables.roles import Reading
from slencodings.trust import Ridge, learn_crowd
from slencodings.trust.learn_from_table import learn_from_table

ct = sys.modules["slencodings.aggregate.crowdtruth"]
METHODS = [dawid_skene, one_coin, glad, crowdtruth, mace]


def large(R: int, *, per_item: int = 5, M: int = 100, K: int = 3) -> Annotations:
    rng = np.random.default_rng(R)
    N = R // per_item
    start, step = rng.integers(0, M, (N, 1)), rng.integers(1, M // per_item, (N, 1))
    who = (start + step * np.arange(per_item)) % M  # who differ on an item
    truth, skill = rng.integers(0, K, (N, 1)), rng.uniform(0.4, 1, M)
    y = np.where(rng.random(who.shape) < skill[who], truth, rng.integers(0, K, who.shape))
    return make(np.repeat(np.arange(N), per_item), who.ravel(), y.ravel(), N=N, M=M, K=K)


# Blocks


@pytest.mark.parametrize("size", [1, 3, 8])
@given(rng=seeds, kind=st.sampled_from(["hard", "soft", "unsure"]), open_ended=st.booleans())
def test_crowdtruth_is_the_same_in_blocks_of_any_size(size, rng, kind, open_ended):
    a = crowd(rng, soft=kind == "soft", unsure=kind == "unsure", M=8, R=40)
    whole = crowdtruth(a, open_ended=open_ended, max_iter=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ct, "_BLOCK", size)
        parts = crowdtruth(a, open_ended=open_ended, max_iter=4)
    assert_same_aggregate(parts, whole, 1e-12)


def ordered_pairs(a):
    """Rows i and j of an item by two annotators, counted one item after the other."""
    rows = [a.annotator[a.item == i] for i in range(len(a.items))]
    return sum(i != j for who in rows for i, j in itertools.product(who, who))


def test_a_pair_of_judgments_is_listed_both_ways_at_six_bytes(monkeypatch):
    monkeypatch.setattr(ct, "_BLOCK", 50)
    a = large(1000, M=20)
    blocks = list(ct.pairs_in_blocks(judgments(a), 3, 10**6))
    assert len(blocks) > 5
    assert sum(len(b.vote) for b in blocks) == ordered_pairs(a)
    assert sum(x.nbytes for b in blocks for x in (b.vote, b.first, b.same)) == 6 * ordered_pairs(a)


# Memory


# Bytes for each annotation beside the crowd itself, at five per item and three labels; that of
# CrowdTruth has 6 for each of the 4 peers.
MOST_BYTES = {"dawid_skene": 60, "one_coin": 65, "mace": 60, "glad": 125, "crowdtruth": 230}


@pytest.mark.parametrize("method", METHODS)
def test_memory_grows_with_annotations_and_no_faster(method, monkeypatch):
    monkeypatch.setattr(ct, "_BLOCK", 1000)
    options = {"max_iter": 2} if method is crowdtruth else {"n_iter": 2}
    peaks = []
    for R in (10_000, 40_000):
        a = large(R)
        method(a, **options)  # what is imported on the way does not count
        tracemalloc.start()
        try:
            method(a, **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    growth = (peaks[1] - peaks[0]) / 30_000
    assert growth < MOST_BYTES[method.__name__]
    assert peaks[1] / peaks[0] < 4.2


def test_codes_that_do_not_fit_into_32_bits_take_64():
    # Names that take no memory, and items beyond what 32 bits can count for five labels each.
    items = np.broadcast_to(np.zeros(1, dtype=np.int8), (2**30,))
    item = np.asarray([2**30 - 1, 0, 2**30 - 1])
    names = items, np.arange(2), np.arange(5)
    a = Annotations(item, np.asarray([1, 0, 0]), np.asarray([4, 2, 3]), np.zeros(3), *names)
    votes = ballots_of(a, use_confidence=True)
    assert votes.choice.tolist() == [2, (2**30 - 1) * 5 + 3, (2**30 - 1) * 5 + 4]
    assert votes.cell.tolist() == [2, 3, 9]
    few = ballots_of(replace(a, items=np.arange(9), item=item % 9), use_confidence=True)
    assert (votes.choice.dtype, few.choice.dtype) == (np.int64, np.int32)


@given(seeds, st.sampled_from([1, 2, 5, 32, 33, 60]))
@example(np.random.default_rng(1739917), 2)
def test_short_rows_and_long_ones_are_normalised_alike(rng, K):
    from scipy.special import logsumexp

    log_joint = rng.normal(scale=50, size=(7, K))
    gold = np.asarray([-1] * 6 + [K - 1])
    p, evidence = posterior(log_joint, gold)
    total = logsumexp(log_joint, axis=1)
    # A sum of rows that are large may be as small as it likes: they are rounded, not it.
    room = 1e-15 * (1 + abs(log_joint).max())
    np.testing.assert_allclose(evidence[:6], total[:6], rtol=0, atol=room)
    np.testing.assert_allclose(p[:6], np.exp(log_joint - total[:, None])[:6], rtol=0, atol=room)
    assert evidence[6] == log_joint[6, -1]
    np.testing.assert_array_equal(p[6], np.eye(K)[-1])


# How far it is


@pytest.mark.parametrize("method", [dawid_skene, one_coin, glad, crowdtruth])
@pytest.mark.parametrize("most", [2, 400])
def test_every_iteration_is_told_and_telling_changes_nothing(method, most):
    a = crowd(np.random.default_rng(0))
    options = {"max_iter": most} if method is crowdtruth else {"n_iter": most}
    told = []
    got = method(a, **options, progress=lambda *x: told.append(x))
    assert told == [(i, most) for i in range(1, got.details["iterations"] + 1)]
    assert got.details["converged"] is (most == 400)
    assert_same_aggregate(got, method(a, **options))


@pytest.mark.parametrize("tol", [0, 1e-2])
def test_mace_tells_the_iterations_of_all_starts(tol):
    a = crowd(np.random.default_rng(0))
    told = []
    got = mace(a, n_restarts=3, n_iter=20, tol=tol, progress=lambda *x: told.append(x))
    done, total = zip(*told, strict=True)
    assert set(total) == {60}
    assert list(done) == sorted(set(done))
    assert {20, 40, 60} <= set(done)
    # A start that converged counts as if it had made all its iterations.
    assert (list(done) == list(range(1, 61))) is (tol == 0)
    assert_same_aggregate(got, mace(a, n_restarts=3, n_iter=20, tol=tol))


@pytest.mark.parametrize("ridge", [None, Ridge()])
def test_learning_a_crowd_tells_how_far_it_went_and_ends_at_the_end(ridge):
    a, told = crowd(np.random.default_rng(0)), []
    got = learn_crowd(a, ridge=ridge, progress=lambda *x: told.append(x))
    done, total = zip(*told, strict=True)
    assert len(set(total)) == 1
    assert list(done) == sorted(done)
    assert done[-1] == total[-1]
    assert done[0] <= 60  # one pass over the annotations at most
    np.testing.assert_array_equal(got.worth, learn_crowd(a, ridge=ridge).worth)


def test_learning_from_a_table_tells_how_far_it_went():
    rng = np.random.default_rng(0)
    table = {"item": np.arange(60) // 3, "who": np.arange(60) % 3, "said": rng.integers(0, 2, 60)}
    told = []
    reading = Reading(item="item", annotator="who", label="said")
    say = lambda what, text: None  # noqa: E731
    learn_from_table(table, reading, say=say, progress=lambda *x: told.append(x))
    assert told[-1][0] == told[-1][1] > 0


# The bar


def test_a_terminal_shows_a_bar_with_the_most_time_that_is_left(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", screen)
    with bar("Dawid-Skene") as progress:
        progress(1, 4)
    assert "Dawid-Skene" in screen.getvalue()
    assert "25 %" in screen.getvalue()
    assert "at most" in screen.getvalue()


def test_a_pipe_shows_no_bar(monkeypatch, capfd):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with bar() as progress:
        got = dawid_skene(crowd(np.random.default_rng(0)), progress=progress)
    assert got.details["iterations"] > 0
    assert capfd.readouterr() == ("", "")

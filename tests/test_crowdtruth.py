import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from crowds import make
from hypothesis import given
from hypothesis import strategies as st
from strategies import present, seeds

from slencodings.aggregate.crowdtruth import crowdtruth, sentence_relation_score
from slencodings.aggregate.sle import sle
from slencodings.aggregate.votes import soft_vote
from slencodings.tables.arrays import from_table

ORACLE = json.loads((Path(__file__).parent / "data" / "crowdtruth.json").read_text())["cases"]
EPS = 1e-8


def judged(rng, kind="hard", *, N=5, M=5, K=3, R=20):
    """Some items have one judgment or none, some annotators repeat themselves."""
    if kind == "hard":
        y = rng.integers(0, K, R)
    elif kind == "soft":
        y = rng.dirichlet(np.ones(K), R) * (rng.random((R, K)) < 0.8)
        y[np.sum(y, axis=-1) == 0, 0] = 1
        y /= np.sum(y, axis=-1, keepdims=True)
    else:
        y = (rng.random((R, K)) < 0.5).astype(float)
    return make(rng.integers(0, N, R), rng.integers(0, M, R), y, N=N, M=M, K=K)


# The package


SINGLE = [
    name for name, case in ORACLE.items() if all(sorted(v)[-2:] == [0, 1] for v in case["vectors"])
]


@pytest.mark.parametrize(
    ("name", "codes"), [(name, False) for name in ORACLE] + [(name, True) for name in SINGLE]
)
def test_it_equals_the_package(name, codes):
    case = ORACLE[name]
    a = make(case["item"], case["annotator"], case["vectors"])
    if codes:
        a = replace(a, y=np.argmax(a.y, axis=-1))
    got = crowdtruth(a, open_ended=case["open_ended"])
    assert got.details["converged"] is True
    for key, expected in case["expected"].items():
        np.testing.assert_allclose(got.details[key], expected, rtol=0, atol=1e-12, err_msg=key)
    np.testing.assert_allclose(
        present(got.reliability), case["expected"]["annotator_quality"], atol=1e-12
    )


# The definition, letter by letter


def by_loops(a, *, open_ended=False, tol=1e-3, max_iter=1000):
    """Section 1 of the definition with dictionaries; repeated judgments are averaged first."""
    N, K = len(a.items), len(a.labels)
    V = {}
    for u in range(N):
        on = a.item == u
        said = {i: a.vectors[on & (a.annotator == i)].mean(0) for i in set(a.annotator[on])}
        if len(said) > 1:
            V[u] = said
    people = sorted({i for said in V.values() for i in said})
    uqs, wqs, aqs = dict.fromkeys(V, 1.0), dict.fromkeys(people, 1.0), np.ones(K)

    def cosine(x, y):
        root = np.sqrt(np.sum(aqs * x * x) * np.sum(aqs * y * y))
        return np.sum(aqs * x * y) / root if root > 0 else 0.0

    for _ in range(max_iter if V else 0):
        label = aqs.copy()
        for k in range(0 if open_ended else K):
            top = bottom = 0.0
            for i in people:
                for j in people:
                    both = [u for u in V if i in V[u] and j in V[u]]
                    given = sum(uqs[u] * V[u][j][k] for u in both)
                    if i != j and given > 0:
                        same = sum(uqs[u] * V[u][i][k] * V[u][j][k] for u in both)
                        top += wqs[i] * wqs[j] * same / given
                        bottom += wqs[i] * wqs[j]
            label[k] = max(top / bottom, EPS) if bottom > EPS else EPS
        unit, worker = {}, {}
        for u, said in V.items():
            two = [(i, j) for i in said for j in said if i < j]
            top = sum(cosine(said[i], said[j]) * wqs[i] * wqs[j] for i, j in two)
            unit[u] = top / max(sum(wqs[i] * wqs[j] for i, j in two), EPS)
        for i in people:
            mine = [u for u in V if i in V[u]]
            two = [(u, j) for u in mine for j in V[u] if j != i]
            top = sum(cosine(V[u][i], V[u][j]) * wqs[j] * uqs[u] for u, j in two)
            wwa = top / max(sum(wqs[j] * uqs[u] for u, j in two), EPS)
            top = 0.0
            for u in mine:
                x = wqs[i] * V[u][i]
                rest = sum(wqs[j] * V[u][j] for j in V[u] if j != i)
                root = np.sqrt(np.sum(aqs * x * x) * np.sum(aqs * rest * rest))
                top += uqs[u] * (EPS if root < EPS else np.sum(aqs * x * rest) / root)
            worker[i] = wwa * top / max(sum(uqs[u] for u in mine), EPS)
        change = max(
            *(abs(unit[u] - uqs[u]) for u in V),
            *(abs(worker[i] - wqs[i]) for i in people),
            *np.abs(label - aqs),
        )
        uqs, wqs, aqs = unit, worker, label
        if change < tol:
            break
    return uqs, wqs, aqs


@pytest.mark.parametrize("kind", ["hard", "soft", "several"])
@given(rng=seeds, open_ended=st.booleans(), M=st.integers(2, 12))
def test_it_equals_the_definition(kind, rng, open_ended, M):
    # Few iterations: the thresholds of the definition may turn rounding into a difference.
    a = judged(rng, kind, M=M)
    uqs, wqs, aqs = by_loops(a, open_ended=open_ended, max_iter=4)
    got = crowdtruth(a, open_ended=open_ended, max_iter=4).details
    expected = {"item_quality": (5, uqs), "annotator_quality": (M, wqs)}
    for key, (n, values) in expected.items():
        full = np.asarray([values.get(i, np.nan) for i in range(n)])
        np.testing.assert_allclose(got[key], full, rtol=0, atol=1e-9, err_msg=key)
    np.testing.assert_allclose(got["label_quality"], aqs, rtol=0, atol=1e-9)


# Laws


def assert_same_quality(
    got, expected, *, items=slice(None), people=slice(None), labels=slice(None)
):
    close = {"rtol": 0, "atol": 1e-9}
    p = expected.probability[items][:, labels]
    np.testing.assert_allclose(got.probability, p, **close)
    np.testing.assert_allclose(got.reliability, expected.reliability[people], **close)
    q = expected.details["label_quality"][labels]
    np.testing.assert_allclose(got.details["label_quality"], q, **close)


@pytest.mark.parametrize("kind", ["hard", "soft", "several"])
@given(rng=seeds)
def test_order_and_names_do_not_matter(kind, rng):
    a = judged(rng, kind, R=30)
    expected = crowdtruth(a, max_iter=5)
    p = rng.permutation(30)
    rows = replace(a, item=a.item[p], annotator=a.annotator[p], y=a.y[p])
    assert_same_quality(crowdtruth(rows, max_iter=5), expected)
    items, people, labels = (rng.permutation(n) for n in (5, 5, 3))
    y = a.y[:, labels] if a.soft else np.argsort(labels)[a.y]
    renamed = replace(a, item=np.argsort(items)[a.item], annotator=np.argsort(people)[a.annotator])
    renamed = replace(renamed, y=y)
    got = crowdtruth(renamed, max_iter=5)
    assert_same_quality(got, expected, items=items, people=people, labels=labels)


@pytest.mark.parametrize("kind", ["hard", "soft", "several"])
@given(
    rng=seeds, N=st.integers(1, 4), M=st.integers(1, 4), K=st.integers(1, 3), R=st.integers(1, 9)
)
def test_whatever_the_crowd_targets_sum_to_one_and_trust_is_usable(kind, rng, N, M, K, R):
    a = judged(rng, kind, N=N, M=M, K=K, R=R)
    got = crowdtruth(a)
    np.testing.assert_allclose(got.probability.sum(-1), 1, rtol=0, atol=1e-12)
    assert (got.probability >= 0).all()
    sle(a, reliability=got.reliability)


# Traps


def test_total_disagreement_leaves_votes_that_count_the_same():
    a = make([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 2])
    got = crowdtruth(a)
    np.testing.assert_array_equal(got.details["label_score"], np.zeros((2, 3)))  # as the package
    np.testing.assert_array_equal(got.probability, [[0.5, 0.5, 0], [0, 0.5, 0.5]])
    np.testing.assert_array_equal(got.reliability, [0, 0])
    assert got.details["unweighted"] == 2


def test_an_item_with_one_judgment_keeps_it():
    a = make([0, 0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2, 3], [1, 1, 0, 0, 0, 0, 1], N=4)
    got = crowdtruth(a)
    np.testing.assert_array_equal(got.probability[2:], [[0, 1], [0.5, 0.5]])
    np.testing.assert_array_equal(got.details["label_score"][2], [0, 1])
    assert np.isnan(got.details["label_score"][3]).all()
    assert np.isnan(got.details["item_quality"][2:]).all()
    assert np.isnan(got.details["annotator_quality"][3])
    reliability = present(got.reliability)
    assert reliability[3] == pytest.approx(reliability[:3].mean())
    assert (got.details["alone"], got.details["unlabelled"]) == (1, 1)
    without = crowdtruth(make(a.item[:6], a.annotator[:6], a.y[:6]))
    np.testing.assert_allclose(got.probability[:2], without.probability, rtol=0, atol=1e-14)


def test_an_item_that_nobody_labelled_is_not_one_whose_judges_have_no_weight():
    a = make([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 2, 3], [1, 1, 0, 0, 0, 1], N=4)
    got = crowdtruth(a).details
    assert (got["unweighted"], got["unlabelled"]) == (1, 1)


def test_strangers_who_agree_with_nobody_change_no_label_quality():
    """Items of quality 0: whoever is seen only there has no weight, so no pair of them counts."""
    agreed = make([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 1, 1], K=3)
    more = [*agreed.item, 2, 2, 2], [*agreed.annotator, 0, 3, 4], [*agreed.y, 0, 1, 2]
    got, expected = crowdtruth(make(*more)), by_loops(make(*more))
    assert got.details["item_quality"][2] == expected[0][2] == 0
    np.testing.assert_array_equal(present(got.reliability)[3:], [0, 0])
    np.testing.assert_allclose(got.details["label_quality"], expected[2], rtol=0, atol=1e-12)


def test_when_every_item_has_one_judgment_it_is_the_vote():
    got = crowdtruth(make([0, 1, 2], [0, 0, 1], [0, 1, 1]))
    np.testing.assert_array_equal(got.probability, [[1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(got.reliability, [1, 1])
    assert got.details["iterations"] == 0
    assert got.details["converged"]


def test_without_annotator_names_it_is_the_soft_vote():
    said = {"item": [1, 1, 1, 2, 2], "label": ["a", "b", "b", "a", "a"]}
    a = from_table(said, item="item", label="label")
    np.testing.assert_allclose(crowdtruth(a).probability, soft_vote(a).probability, atol=1e-15)


def test_who_judges_an_item_twice_counts_once_by_the_mean():
    twice = make([0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 0, 1, 2], [0, 1, 1, 0, 1, 1, 1])
    mean = np.asarray([[0.5, 0.5], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
    once = make([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], mean)
    got, expected = crowdtruth(twice), crowdtruth(once)
    assert_same_quality(got, expected)
    # the same answer twice is one answer
    again = make([0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1])
    assert_same_quality(crowdtruth(again), crowdtruth(make([0, 0, 0], [0, 1, 2], [0, 0, 1])))


def test_the_tolerance_is_one():
    case = ORACLE["hard"]
    a = make(case["item"], case["annotator"], case["vectors"])
    loose, usual, tight = (crowdtruth(a, tol=tol).details for tol in (0.1, 1e-3, 1e-9))
    assert loose["iterations"] < usual["iterations"] < tight["iterations"]
    np.testing.assert_allclose(tight["item_quality"], usual["item_quality"], atol=0.02)


def test_it_says_when_it_did_not_converge():
    case = ORACLE["hard"]
    a = make(case["item"], case["annotator"], case["vectors"])
    got = crowdtruth(a, max_iter=1).details
    assert got["converged"] is False
    assert got["iterations"] == 1
    np.testing.assert_array_equal(got["item_quality"], got["initial_item_quality"])


@pytest.mark.parametrize(("tol", "max_iter"), [(0, 10), (-1, 10), (np.nan, 10), (1e-3, 0)])
def test_a_rule_that_never_stops_is_refused(tol, max_iter):
    with pytest.raises(
        ValueError, match=r"`tol` must be above 0 and `max_iter` at least 1; .*came"
    ):
        crowdtruth(make([0], [0], [0]), tol=tol, max_iter=max_iter)


# Size


def test_a_hundred_thousand_annotators_of_one_item():
    rng = np.random.default_rng(0)
    R = 10**5
    y = rng.choice(3, R, p=[0.6, 0.3, 0.1])
    got = crowdtruth(make(np.zeros(R, int), np.arange(R), y))
    n = np.bincount(y)
    first = (np.sum(n * (n - 1)) / 2) / (R * (R - 1) / 2)
    assert got.details["initial_item_quality"][0] == pytest.approx(first, abs=1e-12)
    # the majority agrees with itself ever more
    assert got.probability[0, 0] > 0.9


def test_pairs_that_cannot_be_avoided_are_refused_in_time():
    R = 50_000
    a = make(np.repeat([0, 1], R), np.tile(np.arange(R), 2), np.arange(2 * R) % 3)
    with pytest.raises(
        ValueError,
        match=r"takes 2,499,950,000 pairs.*50,000 annotations on one item.*"
        r"max_pairs=250,000,000 came\. Pass open_ended=True",
    ):
        crowdtruth(a)
    got = crowdtruth(a, open_ended=True, max_iter=3)
    np.testing.assert_allclose(got.probability.sum(-1), 1)


def test_thousands_of_labels_take_no_table_of_labels_by_labels():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2400, 300), 3)
    y[::7] = rng.integers(0, 2400, len(y[::7]))
    a = make(np.repeat(np.arange(300), 3), np.tile(np.arange(30), 30), y, K=2400)
    got = crowdtruth(a)
    assert got.probability.shape == (300, 2400)
    assert got.details["converged"]


# The older score


@given(seeds, st.booleans())
def test_the_older_score_is_the_cosine_with_each_label(rng, soft):
    a = judged(rng, "soft" if soft else "hard")
    n = a.sums()
    got = sentence_relation_score(a)
    assert got.reliability is None
    for i in np.unique(a.item):
        for k in range(3):
            e = np.eye(3)[k]
            cosine = n[i] @ e / (np.linalg.norm(n[i]) * np.linalg.norm(e))
            assert got.probability[i, k] == pytest.approx(cosine, abs=1e-12)
    normalised = sentence_relation_score(a, normalize=True)
    vote = soft_vote(a)
    np.testing.assert_allclose(normalised.probability, vote.probability, rtol=0, atol=1e-12)
    assert got.details == normalised.details == vote.details


def test_the_older_score_of_silence_is_the_same_for_all_labels():
    a = make([0], [0], [0], N=2, K=4)
    np.testing.assert_array_equal(sentence_relation_score(a).probability[1], [0.5] * 4)

"""What holds for every way to aggregate a crowd, in one table of methods and one of properties.

A method has every property that its row does not except, and none that it does: an exception
must be seen to break on some crowd, so that the table stays the truth.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from crowds import ODD, crowd, make, one_item, shuffled

from slencodings import Opinion, aggregate, check, from_table
from slencodings.aggregate import Aggregate, Alpha

# The methods


class Method(NamedTuple):
    """A function of `aggregate` with options that may depend on the crowd, and what it lacks."""

    name: str
    options: Callable[[Any], dict[str, Any]]
    but: frozenset[str]
    id: str

    def __call__(self, a, **more):
        return getattr(aggregate, self.name)(a, **self.options(a) | more)

    @property
    def tolerance(self):
        """How far rounding carries: in what is iterated, and in what climbs by its own steps."""
        iterated = {"crowdtruth", "dawid_skene", "mace", "one_coin", "zero_based_skill"}
        iterated |= {"shrunk_dawid_skene", "bcc"}
        return 1e-5 if self.name == "glad" else 1e-8 if self.name in iterated else 1e-12


def method(name, *, but="", options=None, **fixed):
    told = [name, *(f"{x}={y}" for x, y in fixed.items()), *([options.__name__] if options else [])]
    given = (lambda a: options(a) | fixed) if options else (lambda a: fixed)
    return Method(name, given, frozenset(but.split()), ", ".join(told))


def by_agreement(a):
    return {"reliability": aggregate.as_reliability(aggregate.share_of_agreement(a)).reliability}


def by_lot(a):
    return {"ties": "random", "rng": np.random.default_rng(0)}


def given_start(a):
    """A start of MACE that moves with the names of annotators and labels."""
    said = np.ones((len(a.annotators), len(a.labels)))
    np.add.at(said, a.annotator, a.vectors * (1 - a.uncertainty)[:, None])
    return {"initial": (np.full((len(said), 2), 0.5), said / said.sum(-1, keepdims=True))}


METHODS = [
    # The first label is first in an order, and lots are drawn item by item, label by label.
    method("majority_vote", but="labels doubt"),
    method("majority_vote", options=by_lot, but="items labels copies doubt"),
    method("majority_vote", ties="soft", but="doubt"),
    method("soft_vote", but="doubt"),
    method("sle"),
    method("sle", smoothing=0),
    method("sle", options=by_agreement, but="doubt"),  # agreement is without doubt
    method("crowdtruth", but="doubt"),
    method("crowdtruth", open_ended=True, but="doubt"),
    method("sentence_relation_score", but="doubt"),
    method("sentence_relation_score", normalize=True, but="doubt"),
    # A prior counts less beside twice the crowd, and so does the floor under what never happened.
    method("dawid_skene", but="copies"),
    method("dawid_skene", prior_strength=0, but="copies"),
    method("dawid_skene", use_confidence=False, but="copies doubt"),
    method("shrunk_dawid_skene", but="copies"),
    method("shrunk_dawid_skene", use_confidence=False, but="copies doubt"),
    method("bcc", but="copies"),
    method("bcc", use_confidence=False, but="copies doubt"),
    method("bcc", types=2, but="items copies"),
    method("one_coin", but="copies"),
    method("one_coin", prior="uniform", but="copies"),
    method("one_coin", prior_strength=0),
    method("one_coin", use_confidence=False, but="copies doubt"),
    # Starts are drawn annotator by annotator, label by label.
    method("mace", n_restarts=2, but="annotators labels strangers copies"),
    method("mace", method="em", n_restarts=2, but="annotators labels strangers copies"),
    method("mace", options=given_start, but="copies"),
    method("mace", method="em", options=given_start, but="copies"),
    # Its reliability is for the mean item, and items that nobody labelled are among them.
    method("glad", but="copies"),
    method("wawa"),
    method("wawa", ties="first", but="labels"),
    method("zero_based_skill"),
    method("zero_based_skill", ties="first", but="labels"),
    method("share_of_agreement", but="doubt"),
    method("g_index", but="doubt"),
    method("pairwise_kappa", but="doubt"),
    # Chance draws without replacement, which matters less the more there is.
    method("krippendorff_alpha", but="copies doubt"),
    method("krippendorff_alpha", level="ordinal", but="labels copies doubt"),
    method("reliability_opinion", but="copies doubt"),
    method("reliability_opinion", chance=True, but="copies doubt"),
]
# They take annotations and make no aggregate of them.
OTHERS = {"certainty", "filter_by_reliability", "severity"}
# They judge the crowd or those in it, and say nothing of items.
JUDGES = {
    "share_of_agreement", "g_index", "pairwise_kappa", "krippendorff_alpha", "reliability_opinion"
}  # fmt: skip
TARGETS = [m for m in METHODS if m.name not in JUDGES]

every_method = pytest.mark.parametrize("m", METHODS, ids=lambda m: m.id)
every_target = pytest.mark.parametrize("m", TARGETS, ids=lambda m: m.id)

# What they find, and whose it is: N items, M annotators, K labels.
AXES = {
    "probability": "NK", "reliability": "M", "score": "M", "alpha": "",
    "confusion": "MKK", "crowd": "KK", "kappa": "M", "prior": "K", "strategy": "MK",
    "confusion_by_type": "MKTK", "prior_by_type": "KT", "spamming": "M",
    "ability": "M", "ease": "N", "label_score": "NK", "item_quality": "N",
    "annotator_quality": "M", "label_quality": "K", "annotator_agreement": "M",
    "crowd_agreement": "M",
}  # fmt: skip


def found(m, a, **more):
    """Numbers by name, each with its axes."""
    got = m(a, **more)
    if isinstance(got, Opinion):
        if m.name in JUDGES:
            return {name: (x, "M") for name, x in got._asdict().items()}
        named = got._asdict() | {"probability": got.probability}
        return {name: (x, "NK" if x.ndim == 2 else "N") for name, x in named.items()}
    if isinstance(got, Aggregate):
        named = got.details | {"probability": got.probability}
        named |= {} if got.reliability is None else {"reliability": got.reliability}
    else:
        named = {"alpha": got.alpha} if isinstance(got, Alpha) else {"score": got}
    return {name: (np.asarray(named[name]), AXES[name]) for name in named if name in AXES}


# The properties


def rows(a, rng):
    return shuffled(a, rng), {}


def items(a, rng):
    p = rng.permutation(len(a.items))
    return replace(a, item=p[a.item], items=a.items[np.argsort(p)]), {"N": p}


def annotators(a, rng):
    p = rng.permutation(len(a.annotators))
    return replace(a, annotator=p[a.annotator], annotators=a.annotators[np.argsort(p)]), {"M": p}


def labels(a, rng):
    p = np.roll(np.arange(len(a.labels)), 1)
    y = a.y[:, np.argsort(p)] if a.soft else p[a.y]
    return replace(a, y=y, labels=a.labels[np.argsort(p)]), {"K": p}


def vectors(a, rng):
    """Certain soft labels are labels."""
    return replace(a, y=a.vectors), {}


def silence(a, rng):
    """An item that nobody labelled changes nothing for the others."""
    return replace(a, items=np.arange(len(a.items) + 2)), {"N": np.arange(len(a.items))}


def strangers(a, rng):
    """An annotator who labelled nothing changes nothing for the others."""
    more = replace(a, annotators=np.arange(len(a.annotators) + 2))
    return more, {"M": np.arange(len(a.annotators))}


def copies(a, rng):
    """The crowd does all its work again on items that are the same: it learns nothing new."""
    N = len(a.items)
    twice = {x: np.concatenate([getattr(a, x)] * 2) for x in ("annotator", "y", "uncertainty")}
    more = replace(a, item=np.concatenate([a.item, N + a.item]), items=np.arange(2 * N), **twice)
    return more, {"N": np.arange(N) + N * rng.integers(0, 2, N)}


def doubt(a, rng):
    """An annotation without any confidence is none."""
    R, K = 20, len(a.labels)
    more = {
        "item": rng.integers(0, len(a.items), R),
        "annotator": rng.integers(0, len(a.annotators), R),
        "y": rng.dirichlet(np.ones(K), R) if a.soft else rng.integers(0, K, R),
        "uncertainty": np.ones(R),
    }
    return replace(a, **{x: np.concatenate([getattr(a, x), more[x]]) for x in more}), {}


PROPERTIES = {
    f.__name__: f
    for f in (rows, items, annotators, labels, vectors, silence, strangers, copies, doubt)
}


# The crowds: of mixed skill, ragged, some items without annotations, some annotated twice by one


def read_only(a):
    for x in (a.item, a.annotator, a.y, a.uncertainty):
        x.flags.writeable = False
    return a


def crowds_of(**kind):
    sizes = {}, {"N": 10, "M": 6, "K": 2, "R": 24}, {"N": 9, "M": 8, "K": 4, "R": 40}
    return [
        read_only(crowd(np.random.default_rng(seed), **size, **kind))
        for seed, size in enumerate(sizes)
    ]


KINDS = {
    "hard": crowds_of(),
    "soft": crowds_of(soft=True),
    "unsure": crowds_of(unsure=True)[:2] + crowds_of(unsure=True, soft=True)[2:],
}
CROWDS = {(kind, at): a for kind, crowds in KINDS.items() for at, a in enumerate(crowds)}


def for_each(crowds, check):
    """Check many crowds in one test, which says of which crowd it is that something is wrong."""
    for name, a in crowds.items():
        try:
            check(name, a)
        except Exception as error:
            error.add_note(f"The crowd is {name}.")
            raise


# Each iteration has the properties, so that a few will do; one crowd sees when they end.
ITERATED = {"bcc", "dawid_skene", "glad", "mace", "one_coin", "shrunk_dawid_skene"}
FEW = 4
TO_THE_END = "unsure", 1


def steps(m, name):
    return {"n_iter": FEW} if m.name in ITERATED and name != TO_THE_END else {}


@cache
def found_in(m, name):
    return found(m, CROWDS[name], **steps(m, name))


def assert_same_found(got, expected, tolerance, back=None):
    """`back` has the new place of each old item, annotator and label."""
    assert got.keys() == expected.keys()
    for name, (x, axes) in got.items():
        for axis, whose in enumerate(axes):
            x = np.take(x, back[whose], axis) if back and whose in back else x
        y = expected[name][0]
        # Nearly always so, and seen ten times as fast.
        if x.shape == y.shape and x.dtype == y.dtype and np.all(np.abs(x - y) <= tolerance):
            continue
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance, strict=True, err_msg=name)


def assert_holds(m, property, name):
    other, back = PROPERTIES[property](CROWDS[name], np.random.default_rng(name[1]))
    got = found(m, other, **steps(m, name))
    assert_same_found(got, found_in(m, name), m.tolerance, back)


def with_properties(pairs):
    pairs = list(pairs)
    return pytest.mark.parametrize(("m", "property"), pairs, ids=[f"{m.id}-{p}" for m, p in pairs])


@with_properties((m, p) for m in METHODS for p in PROPERTIES if p not in m.but)
def test_methods_have_their_properties(m, property):
    for_each(CROWDS, lambda name, _: assert_holds(m, property, name))


@with_properties((m, p) for m in METHODS for p in sorted(m.but))
def test_methods_lack_what_they_are_said_to_lack(m, property):
    assert property in PROPERTIES
    with pytest.raises(AssertionError):
        for_each(CROWDS, lambda name, _: assert_holds(m, property, name))


def test_no_method_is_missing_from_the_table():
    functions = {
        f.__name__: inspect.signature(f) for f in vars(aggregate).values() if inspect.isfunction(f)
    }
    of_annotations = {name for name, f in functions.items() if "annotations" in f.parameters}
    assert set(functions) <= set(aggregate.__all__)
    assert {m.name for m in METHODS} == of_annotations - OTHERS


# Names


NAMES = {
    "int": int,
    "negative": lambda i: i - 5,
    "large": lambda i: 2**60 + i,  # not to be told apart as floats
    "gaps": lambda i: 10**i,
    "str": lambda i: f"nr {i:02}",
}


@cache
def read(naming, kind):
    """A crowd by way of a table with other names, in the same order as the old ones."""
    a, name = CROWDS[kind, 1], NAMES[naming]
    K = [name(k) for k in range(len(a.labels))]
    silent = np.setdiff1d(np.arange(len(a.items)), a.item).tolist()
    table = {
        "post": [name(i) for i in [*a.item.tolist(), *silent]],
        "who": [name(i) for i in [*a.annotator.tolist(), *[0] * len(silent)]],
        "doubt": [*a.uncertainty.tolist(), *[None] * len(silent)],
    }
    said = a.y.tolist() if a.soft else [K[k] for k in a.y]
    table["said"] = [*said, *[None] * len(silent)]
    got = from_table(
        table, item="post", annotator="who", label="said", labels=K, uncertainty="doubt"
    )
    for names, n in ((got.items, a.items), (got.annotators, a.annotators), (got.labels, a.labels)):
        assert names.tolist() == [name(i) for i in n.tolist()]
    return got


@every_method
def test_names_may_be_of_any_kind(m):
    def check(name, a):
        few = {"n_iter": FEW} if m.name in ITERATED else {}
        expected = found(m, a, **few)
        for naming in NAMES:
            got = found(m, read(naming, name[0]), **few)
            assert_same_found(got, expected, m.tolerance)

    for_each({(kind, 1): CROWDS[kind, 1] for kind in KINDS}, check)


# Confidence


@every_method
def test_who_does_not_weigh_confidence_never_looks_at_it(m):
    def check(name, a):
        certain = replace(a, uncertainty=np.zeros(len(a.item)))
        sure = found(m, certain, **steps(m, name))
        if "doubt" in m.but and m.name != "sle":
            assert_same_found(sure, found_in(m, name), 0)
        else:
            with pytest.raises(AssertionError):
                assert_same_found(sure, found_in(m, name), m.tolerance)

    for_each({name: a for name, a in CROWDS.items() if name[0] == "unsure"}, check)


# What comes out


def assert_well_formed(m, a, found):
    """Targets are distributions, trust is a number in [0, 1], opinions are opinions."""
    got = {name: x for name, (x, _) in found.items()}
    assert got
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    if "probability" in got:
        assert got["probability"].shape == (N, K)
        assert (got["probability"] >= 0).all()
        assert (got["probability"] <= 1).all()
        unit = m.id == "sentence_relation_score"  # of length 1, not sum 1
        total = np.sum(got["probability"] ** (2 if unit else 1), axis=-1)
        np.testing.assert_allclose(total, 1, rtol=0, atol=1e-12)
    if "reliability" in got:
        assert got["reliability"].shape == (M,)
        a.per_annotation(got["reliability"])  # refuses what is no number in [0, 1]
    if "belief" in got:
        check(Opinion(*(got[name] for name in Opinion._fields)))
    if "score" in got:
        # There is none for those, and only those, who share no item with anybody.
        pairs = {(int(i), int(j)) for i, j in zip(a.item, a.annotator, strict=True)}
        judged = np.bincount([i for i, _ in pairs], minlength=N)
        company = {j for i, j in pairs if judged[i] > 1}
        np.testing.assert_array_equal(np.isnan(got["score"]), ~np.isin(np.arange(M), [*company]))
        lowest = 0 if m.name == "share_of_agreement" else -1
        assert all(lowest - 1e-12 <= x <= 1 + 1e-12 for x in got["score"] if not np.isnan(x))
    if "alpha" in got:
        assert got["alpha"] <= 1


@every_method
def test_results_are_well_formed(m):
    for_each(CROWDS, lambda name, a: assert_well_formed(m, a, found_in(m, name)))


@every_method
def test_odd_crowds_have_an_answer(m):
    """One annotator, one label, total disagreement, nobody sure, nobody at all."""

    def check(_, a):
        if m.name == "krippendorff_alpha" and np.bincount(a.item).max(initial=0) < 2:
            # There is nothing to compare.
            with pytest.raises(ValueError, match="some item needs two"):
                found(m, a)
        else:
            assert_well_formed(m, a, found(m, a))

    for_each(ODD, check)


@every_target
def test_one_annotator_is_believed(m):
    a = make(np.arange(6), np.zeros(6), [0, 1, 1, 2, 1, 0])
    np.testing.assert_array_equal(found(m, a)["probability"][0].argmax(-1), a.y)


@every_target
def test_what_all_say_is_so(m):
    a = make(np.repeat([0, 1, 2], [1, 2, 4]), [0, 0, 1, 0, 1, 2, 3], [1, 1, 1, 2, 2, 2, 2], K=4)
    np.testing.assert_array_equal(found(m, a)["probability"][0].argmax(-1), [1, 1, 2])


@every_method
def test_with_one_label_there_is_nothing_to_doubt(m):
    got = found(m, make([0, 0, 1, 1, 1], [0, 1, 0, 1, 2], [0] * 5, N=3))
    for name, value in (("probability", 1), ("score", 1), ("alpha", 1)):
        if name in got:
            np.testing.assert_array_equal(got[name][0], value)
    assert not any(np.isnan(x).any() for name, (x, _) in got.items() if name == "reliability")


@every_target
def test_total_disagreement_is_a_draw(m):
    """Turning labels around, or annotators, makes the same crowd: neither label can be ahead."""
    a = make([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0])
    p = found(m, a)["probability"][0]
    if {"labels", "annotators"} & m.but:
        assert np.isfinite(p).all()
    else:
        np.testing.assert_allclose(p[:, 0], p[:, 1], rtol=0, atol=1e-12)


@every_target
def test_an_item_nobody_labelled_gets_what_is_known_without_it(m):
    """The class prior if the method learns one, and nothing in favour of any label if not."""

    def check(_, a):
        a = replace(a, items=np.arange(len(a.items) + 1))
        got = m(a, **few)
        if isinstance(got, Aggregate) and "prior" in got.details:
            one_less = got.details["iterations"] - 1
            expected = m(a, n_iter=one_less, tol=0).details["prior"]
        else:
            expected = got.probability[-1].mean()
        np.testing.assert_allclose(got.probability[-1], expected, rtol=0, atol=1e-12)

    few = {"n_iter": FEW} if m.name in ITERATED else {}
    for_each({(kind, 0): CROWDS[kind, 0] for kind in KINDS}, check)


@every_method
def test_a_hundred_thousand_annotations_of_one_item_have_an_answer(m):
    a = one_item(M=300)
    got = found(m, a, **({"n_iter": 10} if m.name in ("glad", "mace") else {}))
    assert all(np.isfinite(x).all() for x, _ in got.values())
    assert_well_formed(m, a, got)
    if "probability" in got:
        np.testing.assert_array_equal(got["probability"][0].argmax(-1), 1)

"""Fusing against slower oracles, at its exact limits, and along every axis."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, example, given
from strategies import (
    EPS,
    Arrays,
    assert_close,
    assert_is_opinion,
    assert_relatively_close,
    small_crowds,
    to_numpy,
)

from slencodings import (
    Opinion,
    discount,
    encode,
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    smooth,
    unfuse,
)

Fusion = Callable[..., Opinion]
Numbers = list[Fraction]
OPERATORS = [fuse, fuse_average, fuse_weighted, fuse_constraint, fuse_compromise]
every_operator = pytest.mark.parametrize("operator", OPERATORS)


# -- oracles, in exact fractions ---------------------------------------------------------------


def exactly(crowd: Opinion) -> list[tuple[Numbers, Fraction, Numbers]]:
    b, u, a = (x.tolist() for x in crowd)
    return [
        ([Fraction(x) for x in beliefs], Fraction(doubt), [Fraction(x) for x in rates])
        for beliefs, doubt, rates in zip(b, u, a, strict=True)
    ]


def fold_exactly(crowd: Opinion) -> tuple[Numbers, Fraction, Numbers]:
    """Eq. 3, letter by letter, from the first source to the last."""
    (b, u, a), *others = exactly(crowd)
    for c, v, e in others:
        a = [
            (x * v + y * u - (x + y) * u * v) / (u + v - 2 * u * v)
            for x, y in zip(a, e, strict=True)
        ]
        d = u + v - u * v
        b, u = [(x * v + y * u) / d for x, y in zip(b, c, strict=True)], u * v / d
    return b, u, a


def combine_exactly(crowd: Opinion) -> tuple[Numbers, Fraction] | None:
    """Dempster's rule over focal sets; nothing in total conflict."""
    labels = range(crowd.belief.shape[-1])
    everything = frozenset(labels)
    mass = {everything: Fraction(1)}
    for b, u, _ in exactly(crowd):
        met: dict[frozenset[int], Fraction] = defaultdict(Fraction)
        for x, p in mass.items():
            met[x] += p * u
            for k in x:
                met[frozenset({k})] += p * b[k]
        mass = met
    total = sum(mass.values())
    if not total:
        return None
    return [mass[frozenset({k})] / total for k in labels], mass[everything] / total


def compromise_exactly(crowd: Opinion) -> tuple[Numbers, Fraction]:
    """Consensus, then every tuple of residues by its intersection or else its union."""
    beliefs, doubts, (a, *_) = zip(*exactly(crowd), strict=True)
    labels = range(len(a))
    shared = [min(b[k] for b in beliefs) for k in labels]
    rest = [[b[k] - shared[k] for k in labels] for b in beliefs]
    comp: dict[frozenset[int], Fraction] = defaultdict(Fraction)
    for i, k in product(range(len(rest)), labels):
        comp[frozenset({k})] += rest[i][k] * prod(doubts[:i] + doubts[i + 1 :])
    for said in product(labels, repeat=len(rest)):
        sets = [frozenset({k}) for k in said]
        meant = frozenset.intersection(*sets) or frozenset.union(*sets)
        comp[meant] += prod(residue[k] for residue, k in zip(rest, said, strict=True))

    total, everybody_unsure = sum(comp.values()), prod(doubts)
    if not total:
        return shared, 1 - sum(shared, Fraction(0))
    scale = (1 - sum(shared) - everybody_unsure) / total
    u = everybody_unsure + scale * comp.pop(frozenset(labels), Fraction(0))
    for meant, mass in comp.items():
        expected = sum(a[k] for k in meant)
        for k in meant:
            part = a[k] / expected if expected else Fraction(1, len(meant))
            shared[k] += scale * mass * part
    return shared, u


@given(small_crowds())
@example(encode(np.eye(3), [1 - 1e-12, 1e-12, 1.0]))
def test_fusing_is_the_fold_of_equation_3(crowd: Opinion) -> None:
    assume((crowd.uncertainty == 0).sum() <= 1)  # Eq. 3 is 0 / 0 for two certain sources
    assume(crowd.uncertainty[0] < 1)  # and its base rate for two vacuous ones
    for fused, folded in zip(fuse(crowd), fold_exactly(crowd), strict=True):
        assert_relatively_close(fused, np.asarray(folded, float))


@given(small_crowds())
@example(encode(np.eye(3), [1 - 1e-12, 0.5, 1.0]))
def test_constraint_fusion_is_dempsters_rule(crowd: Opinion) -> None:
    combined = combine_exactly(crowd)
    if combined is None:
        with pytest.raises(ValueError, match="total conflict"):
            fuse_constraint(crowd)
    else:
        belief, uncertainty, _ = fuse_constraint(crowd)
        assert_relatively_close(belief, np.asarray(combined[0], float))
        assert_relatively_close(uncertainty, float(combined[1]))


@given(small_crowds(shared_base_rate=True))
def test_compromise_looks_at_every_tuple(crowd: Opinion) -> None:
    belief, uncertainty, _ = fuse_compromise(crowd)
    expected = compromise_exactly(crowd)
    assert_close(belief, np.asarray(expected[0], float))
    assert_close(uncertainty, np.asarray(expected[1], float))


# -- exact limits ------------------------------------------------------------------------------


def test_three_certain_votes_give_a_third_each(xp: Arrays) -> None:
    b, u, _ = to_numpy(xp.whole(fuse)(xp(encode(np.eye(3)))))
    np.testing.assert_array_equal(b, [1 / 3] * 3)
    assert u == 0


@pytest.mark.parametrize("operator", [fuse, fuse_average, fuse_weighted])
def test_certain_sources_silence_the_others(xp: Arrays, operator: Fusion) -> None:
    y = np.asarray([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    fused = to_numpy(xp.whole(operator)(xp(encode(y, [0.0, 0.0, 1e-12]))))
    np.testing.assert_array_equal(fused.belief, [0.25, 0.75])
    assert fused.uncertainty == 0


def test_certain_sources_lend_their_mean_base_rate(xp: Arrays) -> None:
    a = np.asarray([[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]])
    fused = to_numpy(fuse(xp(encode(np.eye(2)[[0, 1, 1]], [0, 0, 0.5], base_rate=a))))
    np.testing.assert_array_equal(fused.base_rate, [0.625, 0.375])


@every_operator
def test_vacuous_sources_fuse_to_a_vacuous_one_of_mean_base_rate(
    xp: Arrays, operator: Fusion
) -> None:
    a = np.asarray([[0.5, 0.5], [1.0, 0.0]])
    b, u, base_rate = to_numpy(xp.whole(operator)(xp(encode(np.eye(2), 1.0, base_rate=a))))
    np.testing.assert_array_equal(b, [0, 0])
    assert u == 1
    np.testing.assert_array_equal(base_rate, [0.75, 0.25])


def test_belief_in_labels_that_nobody_expects_is_shared_evenly() -> None:
    said = encode(np.eye(3)[:2], base_rate=[0.0, 0.0, 1.0])
    fused = fuse_compromise(said)
    np.testing.assert_allclose(fused.belief, [0.5, 0.5, 0])


@pytest.mark.parametrize("K", [1, 12])
def test_compromise_takes_one_to_twelve_labels(K: int) -> None:
    assert_is_opinion(fuse_compromise(encode(np.full((3, K), 1 / K), [0.0, 0.2, 0.4])))


def test_a_consensus_but_for_rounding_takes_no_belief_away() -> None:
    rng = np.random.default_rng(0)
    y = rng.dirichlet([0.3] * 3, size=(1000, 1)) * (
        1 + EPS * rng.integers(-1, 2, size=(1000, 2, 3))
    )
    assert_is_opinion(fuse_compromise(encode(y, rng.choice([0, 1e-12, 0.5], size=(1000, 1)))))


def test_a_label_that_nobody_believes_gets_nothing() -> None:
    rng = np.random.default_rng(0)
    crowd = encode(np.eye(3)[rng.integers(2, size=500)], rng.uniform(0.99, 1, size=500))
    assert fuse_constraint(crowd).belief[2] == 0


# -- shapes ------------------------------------------------------------------------------------


def made_up(shape: tuple[int, ...], K: int = 3) -> Opinion:
    rng = np.random.default_rng(0)
    return encode(rng.dirichlet(np.ones(K), size=shape), rng.uniform(0.1, 0.9, size=shape))


@every_operator
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_an_axis_is_one_of_the_uncertainty(xp: Arrays, operator: Fusion, axis: int) -> None:
    crowd = made_up((2, 3, 4))
    b, u, a = crowd
    last = Opinion(
        np.moveaxis(b, axis % 3, -2), np.moveaxis(u, axis, -1), np.moveaxis(a, axis % 3, -2)
    )
    assert_close(xp.whole(partial(operator, axis=axis))(xp(crowd)), operator(last))


@every_operator
def test_no_items_fuse_to_no_opinions(xp: Arrays, operator: Fusion) -> None:
    assert xp.whole(operator)(xp(made_up((0, 3)))).belief.shape == (0, 3)


@every_operator
def test_one_source_stays_what_it_is(xp: Arrays, operator: Fusion) -> None:
    one = made_up((2, 1))
    assert_close(xp.whole(operator)(xp(one)), one.rows((..., 0)))


def test_unfusing_takes_one_source_out_of_each_item(xp: Arrays) -> None:
    crowd = made_up((5, 4))
    left = xp.whole(unfuse)(xp(fuse(crowd)), xp(crowd.rows((..., 3))))
    assert_close(left, fuse(crowd.rows((..., slice(3)))))


@every_operator
def test_belief_too_small_to_count_with_does_no_harm(operator: Fusion) -> None:
    assert_is_opinion(operator(discount(encode(np.eye(3), 0.25), 5e-324)))


def test_what_unfusing_leaves_is_an_opinion() -> None:
    rng = np.random.default_rng(0)
    y, a = rng.dirichlet([0.3] * 3, size=(2, 1000, 2))
    pairs = encode(y, [0.99, 1e-3], base_rate=a)
    assert_is_opinion(unfuse(fuse(pairs), pairs.rows((..., 1))))


# -- single precision and many sources ---------------------------------------------------------


@every_operator
def test_single_precision_stays(xp: Arrays, operator: Fusion) -> None:
    crowd = Opinion(*(xp.array(x.astype(np.float32)) for x in made_up((3, 4))))
    fused = xp.whole(operator)(crowd)
    assert {str(x.dtype).rpartition(".")[2] for x in fused} == {"float32"}
    assert_close(to_numpy(fused), Opinion(*map(np.float32, operator(made_up((3, 4))))), tol=1e-6)


@every_operator
@pytest.mark.parametrize("doubt", [1e-3, 1 - 1e-3])
def test_twenty_sources_do_not_underflow(operator: Fusion, doubt: float) -> None:
    y = np.eye(3, dtype=np.float32)[np.arange(20) % 3]
    assert_is_opinion(operator(encode(y, doubt)), tol=1e-6)


@pytest.mark.parametrize("operator", [fuse, fuse_average, fuse_weighted, fuse_constraint])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_sources_do_not_underflow(operator: Fusion, dtype: type) -> None:
    codes = np.arange(10**5) % 3
    said = encode(np.eye(3, dtype=dtype)[codes], np.asarray([0.25, 0.5, 0.75], dtype)[codes])
    assert_is_opinion(operator(said), tol=1e-4 if dtype is np.float32 else 1e-10)


# -- what is refused ---------------------------------------------------------------------------


@every_operator
@pytest.mark.parametrize("axis", [1, -2])
def test_an_axis_that_is_not_there_is_refused(operator: Fusion, axis: int) -> None:
    with pytest.raises(ValueError, match=rf"have 1 \(shape \(3,\)\); axis={axis} came\.$"):
        operator(encode(np.eye(3)), axis=axis)


@every_operator
def test_a_single_opinion_is_refused(operator: Fusion) -> None:
    with pytest.raises(ValueError, match="A single opinion needs no fusing"):
        operator(encode(np.asarray([1.0, 0.0])))


@every_operator
def test_nobody_is_refused(operator: Fusion) -> None:
    with pytest.raises(ValueError, match=r"at least one opinion; axis -1 of shape \(2, 0\)"):
        operator(encode(np.zeros((2, 0, 3))))


def test_total_conflict_is_refused(xp: Arrays) -> None:
    y = np.stack([np.eye(2), np.eye(2)[[0, 0]], np.eye(2)])
    with pytest.raises(ValueError, match=r"\(total conflict\); 2 of 3 items do. Smooth"):
        fuse_constraint(xp(encode(y)))


def test_total_conflict_is_resolved_by_smoothing(xp: Arrays) -> None:
    smoothed = xp.whole(lambda o: fuse_constraint(smooth(o, 0.01)))
    fused = smoothed(xp(encode(np.eye(2))))
    np.testing.assert_allclose(np.asarray(fused.belief), [0.99 / 1.99] * 2)


def test_too_many_labels_to_compromise_are_refused() -> None:
    with pytest.raises(ValueError, match=r"K may be at most 12; 13 came\. fuse_weighted"):
        fuse_compromise(encode(np.eye(13)))


@pytest.mark.parametrize("doubt", [0.0, 0.5])
def test_taking_out_a_certain_source_is_refused(xp: Arrays, doubt: float) -> None:
    certain, fused = encode(np.eye(2)), encode(np.eye(2), doubt)
    with pytest.raises(ValueError, match=r"take out a certain source.* 2 of 2 sources"):
        unfuse(xp(fused), xp(certain))

"""Laws that are quickly looked at, on a few small numbers, and so a million times.

The suite draws larger crowds, number by number and so that they can be made smaller, which takes
ten times as long.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from slencodings import (
    Opinion,
    alpha,
    discount,
    encode,
    from_alpha,
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    maximize_uncertainty,
    smooth,
    unfuse,
)
from slencodings.annotations import leave_one_out
from slencodings.divergence import kl_divergence
from slencodings.metrics import auroc, brier, jsd
from torture import again

Rng = np.random.Generator
OPERATORS = (fuse, fuse_average, fuse_weighted, fuse_constraint, fuse_compromise)
HARDLY = (1e-12, 1e-3, 1 - 1e-12, 1.0)


def shares(rng: Rng, *shape: int) -> np.ndarray:
    """Rows that sum to one, some of them one-hot."""
    counts = rng.integers(0, 6, shape).astype(float)
    counts[..., 0] += counts.sum(-1) == 0
    return counts / counts.sum(-1, keepdims=True)


def crowd(rng: Rng, *, certain: bool = True, least: int = 1) -> Opinion:
    """A few opinions of one item; as many certain, vacuous or nearly so as all others."""
    N, K = int(rng.integers(least, 6)), int(rng.integers(2, 5))
    odd = rng.choice([*HARDLY, 0.0] if certain else HARDLY, N)
    u = np.where(rng.random(N) < 0.5, rng.uniform(0.01, 0.99, N), odd)
    return encode(shares(rng, N, K), u, base_rate=shares(rng, K))


def assert_close(actual: Opinion, expected: Opinion, tol: float = 1e-12) -> None:
    """Not that of NumPy, which takes longer than what it looks at."""
    for x, y in zip(actual, expected, strict=True):
        assert x.shape == y.shape
        assert (np.abs(x - y) <= tol * (1 + np.abs(y))).all(), (actual, expected)


def fusing_ignores_order_and_names_and_keeps_the_mass(rng: Rng) -> None:
    operator = OPERATORS[rng.integers(5)]
    said = crowd(rng, certain=operator is not fuse_constraint)
    fused = operator(said)
    assert (fused.belief >= 0).all()
    assert 0 <= fused.uncertainty <= 1
    assert abs(fused.belief.sum() + fused.uncertainty - 1) <= 1e-12
    rows, labels = (rng.permutation(n) for n in said.belief.shape)
    b, u, a = said.rows(rows)
    b, v, c = operator(Opinion(b[:, labels], u, a[:, labels]))
    back = np.argsort(labels)
    assert_close(Opinion(b[back], v, c[back]), fused)


def groups_do_not_matter_where_evidence_adds_up(rng: Rng) -> None:
    operator = (fuse, fuse_constraint)[rng.integers(2)]
    said = crowd(rng, certain=False, least=2)
    i = rng.integers(1, len(said.uncertainty))
    parts = [operator(said.rows(slice(i))), operator(said.rows(slice(i, None)))]
    assert_close(
        operator(Opinion(*(np.stack(x) for x in zip(*parts, strict=True)))), operator(said)
    )


def a_vacuous_opinion_changes_nothing(rng: Rng) -> None:
    operator = (fuse, fuse_weighted, fuse_constraint)[rng.integers(3)]
    said = crowd(rng, certain=operator is not fuse_constraint)
    b, u, a = said
    more = Opinion(np.vstack([b, 0 * b[:1]]), np.append(u, 1.0), np.vstack([a, a[:1]]))
    assert_close(operator(more), operator(said))


def copies_do_not_count_where_sources_are_not_independent(rng: Rng) -> None:
    operator = (fuse_average, fuse_weighted, fuse_compromise)[rng.integers(3)]
    one = crowd(rng).rows(slice(1))
    copies = one.rows([0] * int(rng.integers(1, 6)))
    assert_close(operator(copies), one.rows(0))


def fusing_adds_pseudo_counts(rng: Rng) -> None:
    said = crowd(rng)
    u = np.clip(said.uncertainty, 0.01, 1)
    r = rng.choice([0.0, rng.random(), 1.0], len(u))
    said = encode(said.mode, u, base_rate=said.base_rate[0])
    c = r * (1 - u)
    counts = 2 * (c / (1 - c)) @ said.mode + 2 * said.base_rate[0]
    found = alpha(fuse(discount(said, r)), prior_weight=2.0)
    assert (np.abs(found - counts) <= 1e-12 * counts).all(), (found, counts)


def what_was_fused_can_be_taken_out_again(rng: Rng) -> None:
    said = encode(shares(rng, 2, 3), rng.uniform(0.05, 1, 2), base_rate=shares(rng, 3))
    # A base rate is heard as far as something is believed, and comes back as exactly as that.
    tol = max(1e-11, 1e-15 / (1 - said.uncertainty[0]))
    assert_close(unfuse(fuse(said), said.rows(1)), said.rows(0), tol=tol)


def trust_multiplies_and_smoothing_leaves_probability_near(rng: Rng) -> None:
    said, r, s = crowd(rng), rng.random(), rng.random()
    assert_close(discount(discount(said, r), s), discount(said, r * s))
    amount = rng.random()
    soft = smooth(said, amount)
    assert abs(soft.belief.sum(-1) + soft.uncertainty - 1).max() <= 1e-12
    assert (soft.uncertainty >= said.uncertainty - 1e-12).all()


def opinions_are_dirichlets_in_other_words(rng: Rng) -> None:
    said, W = crowd(rng, certain=False), rng.uniform(0.5, 5)
    counts = alpha(said, prior_weight=W)
    assert_close(from_alpha(counts, prior_weight=W, base_rate=said.base_rate), said, tol=1e-11)


def the_most_uncertain_opinion_expects_the_same(rng: Rng) -> None:
    said = crowd(rng)
    if not (said.base_rate > 0).all():
        said = said._replace(base_rate=np.full_like(said.base_rate, 1 / said.base_rate.shape[-1]))
    most = maximize_uncertainty(said)
    assert (np.abs(most.probability - said.probability) <= 1e-12).all()
    assert (most.uncertainty >= said.uncertainty - 1e-12).all()


def divergence_is_nothing_or_more(rng: Rng) -> None:
    K = int(rng.integers(2, 5))
    p, q = np.exp(rng.uniform(-5, 8, (2, K)))
    assert kl_divergence(p, p) == 0
    assert kl_divergence(p, q) >= 0
    y = shares(rng, 2, K)
    distance = jsd(y[:1], y[1:])
    assert 0 <= distance <= 1 + 1e-12
    assert abs(distance - jsd(y[1:], y[:1])) <= 1e-12
    assert 0 <= brier(y[:1], y[1:]) <= 2 + 1e-12


def sums_of_the_others_keep_their_digits(rng: Rng) -> None:
    n = int(rng.integers(1, 9))
    value, group = rng.choice([0.0, 1.0, 1e-9, 1e-200], n) * rng.random(n), rng.integers(0, 3, n)
    for i, found in enumerate(leave_one_out(value, group)):
        same = (Fraction(v) for j, v in enumerate(value) if j != i and group[j] == group[i])
        exact = float(sum(same))
        assert abs(found - exact) <= 1e-14 * exact


def ranks_are_shares_of_pairs(rng: Rng) -> None:
    n = int(rng.integers(2, 9))
    positive, score = rng.integers(0, 2, n).astype(bool), rng.integers(0, 4, n).astype(float)
    if not 0 < positive.sum() < n:
        return
    ahead = score[positive][:, None] - score[~positive]
    assert abs(auroc(positive, score) - np.mean((ahead > 0) + (ahead == 0) / 2)) <= 1e-12


LAWS: list[Callable[[Rng], None]] = [
    fusing_ignores_order_and_names_and_keeps_the_mass,
    groups_do_not_matter_where_evidence_adds_up,
    a_vacuous_opinion_changes_nothing,
    copies_do_not_count_where_sources_are_not_independent,
    fusing_adds_pseudo_counts,
    what_was_fused_can_be_taken_out_again,
    trust_multiplies_and_smoothing_leaves_probability_near,
    opinions_are_dirichlets_in_other_words,
    the_most_uncertain_opinion_expects_the_same,
    divergence_is_nothing_or_more,
    sums_of_the_others_keep_their_digits,
    ranks_are_shares_of_pairs,
]


def one_of_the_laws_holds(rng: Rng) -> None:
    """Any of them; the numbers of the example choose which."""
    LAWS[rng.integers(len(LAWS))](rng)


def turn(seed: int, until: float) -> None:
    """One example after the other."""
    again("examples of small laws", one_of_the_laws_holds, seed, until)

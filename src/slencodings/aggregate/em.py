"""What the methods that learn from the whole crowd share: weighted votes, gold, EM and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.result import OnStep
from slencodings.annotations import Annotations, counted, safe_log, sums_by
from slencodings.choices import ClassPrior
from slencodings.opinion import Codes, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# The known labels: by item, or as positions (N,) with -1 where there is none.
Gold: TypeAlias = Mapping[Any, Any] | Sequence[int] | NDArray[np.integer[Any]] | None

# Below this a probability or a mass counts as this, so that one slip condemns no label for ever.
FLOOR = 1e-10

# The annotator whom pseudo-counts describe is right so often. Pseudo-counts that favour no label
# push a lone annotator, whose errors nothing tells apart, away from being believed.
EXPECTED_ACCURACY = 0.9

# The first leap of EM goes at most so many steps, and the next four times as many if that was well.
_FIRST_LEAP = 4.0


class Ballots(NamedTuple):
    """Annotations as B votes for one label each, sorted by item, label and annotator.

    A soft label is a vote for each of its labels with its share of the weight, so that every
    method that adds up log-likelihoods takes the expected one, sum_l y_l log p(l). Sorted, they
    make every sum the same for any order of the rows.

    Attributes
    ----------
    item, annotator : int array (B,), of 32 bits if these do, as all codes here
    choice : int array (B,), which of the N * K (item, label) each vote is for
    cell : int array (B,), which of the M * K (annotator, label) each vote comes from
    weight : float array (B,), above 0
    shape : N, M, K
    """

    item: NDArray[Any]
    annotator: NDArray[Any]
    choice: NDArray[Any]
    cell: NDArray[Any]
    weight: Floats
    shape: tuple[int, int, int]

    def by_annotator(self, value: Floats) -> Floats:
        """Add up the values of each annotator's votes (M,)."""
        return sums_by(self.annotator, value, self.shape[1])

    def by_choice(self, value: Floats) -> Floats:
        """Add up the values of the votes for each label of each item (N, K)."""
        N, _, K = self.shape
        return sums_by(self.choice, value, N * K).reshape(N, K)

    def by_cell(self, value: Floats) -> Floats:
        """Add up the values of each annotator's votes for each label (M, K)."""
        _, M, K = self.shape
        return sums_by(self.cell, value, M * K).reshape(M, K)

    def tables(
        self, row: NDArray[Any], column: NDArray[Any], shape: tuple[int, int]
    ) -> tuple[csr_array, csr_array]:
        """The weights in rows (item or choice) and columns (annotator or cell), and turned.

        Their products are the weighted sums over votes, by row and by column, and take no memory
        for each vote. To turn a small table takes as long as to multiply it, so that is done once.
        """
        from scipy.sparse import csr_array

        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
        table = csr_array((self.weight, column, start.astype(column.dtype)), shape=shape)
        return table, table.T


def ballots_of(annotations: Annotations, *, use_confidence: bool) -> Ballots:
    """Split annotations into votes of weight 1 - uncertainty, or 1; those of weight 0 drop out."""
    a = annotations
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    weight = 1 - a.uncertainty if use_confidence else np.ones(len(a.item))
    item, annotator, label = a.item, a.annotator, a.y
    if a.soft:
        row, label = np.nonzero(a.y)
        item, annotator, weight = item[row], annotator[row], weight[row] * a.y[row, label]
    small = np.int32 if max(N, M) * K < 2**31 and len(item) < 2**31 else np.intp
    order = np.argsort((item * K + label) * M + annotator, kind="stable")
    weight = weight[order]
    if not np.all(weight > 0):
        order, weight = order[weight > 0], weight[weight > 0]
    item, annotator, label = (x[order].astype(small) for x in (item, annotator, label))
    return Ballots(item, annotator, item * K + label, annotator * K + label, weight, (N, M, K))


def gold_codes(annotations: Annotations, gold: Gold) -> Codes:
    """The known label of each item (N,), -1 where there is none.

    Takes a mapping from item to label, an integer array (N,) of positions in `labels` with -1 for
    unknown, or nothing.
    """
    N, K = len(annotations.items), len(annotations.labels)
    if gold is None:
        return np.full(N, -1)
    if isinstance(gold, Mapping):
        codes = np.full(N, -1)
        codes[_places(annotations.items, list(gold), "item")] = _places(
            annotations.labels, list(gold.values()), "label"
        )
        return codes
    codes = np.asarray(gold)
    if codes.shape != (N,) or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"`gold` must be a mapping from item to label or one integer per item, ({N},), -1 "
            f"where unknown; {codes.dtype} of shape {codes.shape} came. "
            "Pass dict(zip(items, labels))."
        )
    bad = (codes < -1) | (codes >= K)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"`gold` must be a position among the {K} labels, or -1 where unknown; {bad.sum()} of "
            f"{N} are not, first {codes[first]} at item {first}. Pass a mapping to use names."
        )
    return codes.astype(np.intp)


def _places(names: NDArray[Any], wanted: list[Any], what: str) -> list[int]:
    place = {name: i for i, name in enumerate(names.tolist())}
    strange = [name for name in wanted if name not in place]
    if strange:
        raise ValueError(
            f"`gold` names {counted(len(strange), what)} that the annotations do not have, first "
            f"{strange[0]!r}. Leave them out"
            + (", or read the table with labels=[...]." if what == "label" else ".")
        )
    return [place[name] for name in wanted]


def posterior(log_joint: Floats, gold: Codes) -> tuple[Floats, Floats]:
    """Normalise log p(votes, label) (N, K) to p(label | votes), and log p(votes) (N,).

    A gold item has its label for certain, and counts with log p(votes, gold label).
    """
    # NumPy goes through short rows ten times slower than through whole columns.
    p = log_joint.T.copy()
    top = np.max(p, axis=0)
    p -= top
    np.exp(p, out=p)
    total = np.sum(p, axis=0)
    p /= total
    p, evidence = p.T, top + np.log(total)
    known = np.flatnonzero(gold >= 0)
    evidence[known] = log_joint[known, gold[known]]
    pin(p, gold)
    return p, evidence


def pin(probability: Floats, gold: Codes) -> None:
    """Give the gold items their label, in place."""
    known = np.flatnonzero(gold >= 0)
    probability[known] = 0
    probability[known, gold[known]] = 1


def class_prior(probability: Floats, informed: NDArray[np.bool_], used: Floats) -> Floats:
    """How common each label is (K,): the mean over items that somebody labelled.

    Labels that nobody used and no gold item has stay at 0: a class that no vote speaks for would
    otherwise collect the items on which annotators disagree.
    """
    if not informed.any():
        return np.full(len(used), 1 / len(used))
    prior = np.mean(probability[informed] if not informed.all() else probability, axis=0)
    prior = np.where(used > 0, np.maximum(prior, FLOOR), 0)
    return prior / np.sum(prior)


class Climbed(NamedTuple):
    """Where EM led.

    Attributes
    ----------
    probability : array (N, K), of each label given the votes
    prior : array (K,), how common each label is
    annotators : array (M, ...), what each is like
    elbo : array, the log-posterior in each iteration
    converged : bool
    """

    probability: Floats
    prior: Floats
    annotators: Floats
    elbo: Floats
    converged: bool

    @property
    def details(self) -> dict[str, Any]:
        """What an `Aggregate` tells of it."""
        known = {"prior": self.prior, "elbo": self.elbo, "converged": self.converged}
        return known | {"iterations": len(self.elbo)}


class Point(NamedTuple):
    """Where EM is: how common labels are (K,), and what annotators are like (M, ...)."""

    prior: Floats
    annotators: Floats


def learn(
    votes: Floats,
    gold: Codes,
    fit: Callable[[Floats], Floats],
    log_likelihood: Callable[[Floats], tuple[Floats, float]],
    *,
    n_iter: int,
    tol: float,
    progress: OnStep | None,
    prior: ClassPrior = "learned",
    as_said: float = 0.0,
    log_source: Floats | None = None,
    leaps_of: NDArray[np.bool_] | None = None,
) -> Climbed:
    """Learn the truth q and what annotators are like in turn, from the shares of votes.

    q_ic ~ p_c exp(l_ic + s_ic),   p = (1 - h) mean q + h v,   annotators = fit(q),
    l = log_likelihood(...),   v the mean shares of votes

    Parameters
    ----------
    votes : array (N, K), weighted; it is written over
    log_likelihood : of each item's votes if a label is true, (N, K), and beside it the part of the
        log-posterior that is the same whatever is true
    prior : "uniform" keeps p alike for all labels that were used
    as_said : how strongly labels are held to be as common as they are said, in pairs of votes on
        one item: h is this by how many pairs there are, at most 1
    log_source : s, array (N, K), what else is known of each item, which then comes first: votes
        agree with themselves, and would be believed before the source was asked
    leaps_of : whose steps tell how far to go on after every two of them (`leap`), (M,), which ends
        at the same place in fewer; annotators are then probabilities along their last axis
    """
    K, known = votes.shape[1], gold >= 0
    cast = np.sum(votes, axis=-1, keepdims=True)
    informed = (cast[:, 0] > 0) | known
    used = np.sum(votes, axis=0) + np.bincount(gold[known], minlength=K)
    enough = tol * max(float(np.sum(cast)), 1)
    pairs = float(np.sum(cast * np.maximum(cast - 1, 0))) / 2
    h = as_said / max(pairs, as_said) if as_said else 0.0
    q = np.divide(votes, cast, out=votes, where=cast > 0)
    pin(q, gold)
    alike = (used > 0) / max(np.count_nonzero(used), 1) if used.any() else np.full(K, 1 / K)
    v = class_prior(q, informed, used)

    def common(q: Floats) -> Floats:
        if prior == "uniform":
            return alike
        return (1 - h) * class_prior(q, informed, used) + h * v

    def step(at: Point) -> tuple[Floats, float, Point]:
        """The truth as it is seen from here, how likely the votes are, and where that leads."""
        log_joint, rest = log_likelihood(at.annotators)
        log_p = safe_log(at.prior)
        log_joint += log_p if log_source is None else log_p + log_source
        q, evidence = posterior(log_joint, gold)
        # After the E-step the bound is the evidence itself, each item's prior counted once.
        return q, float(np.sum(evidence)) + rest, Point(common(q), fit(q))

    p = common(q)
    if log_source is not None:
        q, _ = posterior(safe_log(p) + log_source, gold)
    return _climb(step, Point(p, fit(q)), enough, n_iter, leaps_of, progress)


def _climb(
    step: Callable[[Point], tuple[Floats, float, Point]],
    at: Point,
    enough: float,
    n_iter: int,
    leaps_of: NDArray[np.bool_] | None,
    progress: OnStep | None,
) -> Climbed:
    """Go on by steps of EM, and by leaps where they may be made, until little is gained."""
    q, found, before = np.zeros(0), at, None
    steps, bounds, converged = 0, list[float](), False
    # Where a leap was made and would have gone without it; how far that was, and may be at most.
    left: tuple[Point, Point] | None = None
    length, longest = 0.0, _FIRST_LEAP
    while steps < n_iter and not converged:
        seen, bound, after = step(at)
        steps += 1
        if progress is not None:
            progress(steps, n_iter)
        if left is not None:
            if bound < bounds[-1] - abs(bounds[-1] - bounds[-2]):
                (before, at), left, longest = left, None, max(longest / 4, 1.0)
                continue
            longest *= 4 if length == longest else 1
        q, found = seen, after
        bounds.append(bound)
        # After a leap that gained much a step may gain little by chance.
        few = np.abs(np.diff(bounds[-2:] if leaps_of is None else bounds[-3:])) < enough
        converged = before is not None and bool(np.all(few))
        if leaps_of is None or before is None:
            left, before, at = None, at, after
            continue
        landed, length = leap(before, at, after, longest, leaps_of)
        left, before, at = (at, after), None, landed
    return Climbed(q, *found, np.asarray(bounds), converged)


def leap(
    x0: Point, x1: Point, x2: Point, longest: float, of: NDArray[np.bool_] | slice = slice(None)
) -> tuple[Point, float]:
    """Where two steps of EM lead to, and how far that is in steps, at most `longest`.

    x = x0 + 2 a r + a**2 v,   r = x1 - x0,   v = x2 - x1 - r,   a = |r| / |v|, at least 1

    in logarithms, measured on the prior and on those `of` some annotators: scheme S3 of Varadhan
    and Roland (2008), "Simple and globally convergent methods for accelerating the convergence of
    any EM algorithm".
    """
    y0, y1, y2 = ([np.log(np.maximum(part, FLOOR)) for part in point] for point in (x0, x1, x2))
    r = [b - a for a, b in zip(y0, y1, strict=True)]
    v = [c - b - d for b, c, d in zip(y1, y2, r, strict=True)]
    size, first = (
        float(np.sum(prior**2) + np.sum(annotators[of] ** 2)) for prior, annotators in (v, r)
    )
    a = math.sqrt(first / size) if size > 0 else 1.0
    a = min(max(a, 1.0), longest)
    far = (y + 2 * a * d + a**2 * e for y, d, e in zip(y0, r, v, strict=True))
    # What was impossible stays so.
    prior, annotators = (
        np.exp(np.maximum(y, math.log(FLOOR))) * (x > 0) for y, x in zip(far, x0, strict=True)
    )
    annotators /= np.einsum("...l->...", annotators)[..., None]
    return Point(prior / np.sum(prior), annotators), a


def above_chance(accuracy: Floats, chance: Floats) -> Floats:
    """How much of the way from chance to certainty: (accuracy - chance) / (1 - chance), at most 1.

    0 where chance alone is always right: there is no skill to see.
    """
    room = 1 - chance
    gained = np.divide(accuracy - chance, room, out=np.zeros(room.shape), where=room > 1e-12)
    return np.minimum(gained, 1)


def expected_answers(K: int) -> Floats:
    """What to expect of anybody where a label is true (row), (K, K): 0.9 right, slips alike."""
    c = EXPECTED_ACCURACY
    return np.where(np.eye(K), c, (1 - c) / max(K - 1, 1))


def accuracy_and_kappa(prior: Floats, confusion: Floats) -> tuple[Floats, Floats]:
    """How often annotators are right by their confusions (M, K, K), and above chance, (M,) each."""
    accuracy = np.clip(np.einsum("c,mcc->m", prior, confusion), 0, 1)
    return accuracy, above_chance(accuracy, np.einsum("c,mcl->ml", prior, confusion) @ prior)


def check_steps(n_iter: int, tol: float) -> None:
    """At least one iteration, and a tolerance that can be met."""
    check_count("n_iter", n_iter)
    check_strength("tol", tol, "1e-5 stops where an annotation gains less, 0 runs every iteration.")


def check_count(name: str, value: int) -> None:
    """A whole number of at least one."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1; {value!r} came.")


def check_strength(name: str, value: float, hint: str) -> None:
    """A number that is finite and not negative."""
    if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"`{name}` must be a number of at least 0; {value!r} came. {hint}")

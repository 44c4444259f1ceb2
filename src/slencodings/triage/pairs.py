"""Which two options to compare next, by whom, and what that mends of their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import BradleyTerry, bradley_terry
from slencodings.aggregate.bradley_terry import variance_of_gaps
from slencodings.annotations import Annotations, counted
from slencodings.kinds.pairs import Pairs, names_of_pairs
from slencodings.opinion import Codes, Floats
from slencodings.triage.assign import resources_of
from slencodings.triage.outlook import NEXT
from slencodings.triage.status import CONFLICT, LEAST_PROBABILITY, LEAST_VOTES, check_limits
from slencodings.triage.triage import Triage
from slencodings.trust.crowd import conflict_of

# Of so many options that comparisons link, any two may be compared next; of more, those that met.
MOST_ANY = 100


def triage_pairs(
    pairs: Pairs,
    *,
    found: BradleyTerry | None = None,
    budget: float = NEXT,
    capacity: Any = None,
    costs: Mapping[Any, float] | None = None,
    newcomers: bool = True,
    least_votes: int = LEAST_VOTES,
    least_probability: float = LEAST_PROBABILITY,
    conflict: float = CONFLICT,
) -> Triage:
    """Which options are in the right order, which two to compare next and by whom.

    Items are twos of options that comparisons link, whether these two met or not (of more than 100
    linked options, those that met). The label is the better one, right with the probability

    P = Phi(|gap| / sqrt(v)),   the gap of two scores and its variance, by `bradley_terry`

    One judgment after the other goes where it makes most of

    sum over all twos of p(0) (v - v') / 2,   p(0) = phi(gap / sqrt(v)) / sqrt(v)

    v' the variance after it: what is still lost, in scores, by taking the worse for the better is
    p(0) v' / 2 where v' is small, since it takes a true gap near 0. When all are made,

    P(the likelier is the worse) = 2 T(|gap| / sqrt(v), sqrt(v' / (v - v'))),   T of Owen (1956)

    `mends` of two are the errors about any two that comparing these mends.

    Parameters
    ----------
    found : what `bradley_terry` learned of the pairs; learned here when absent
    budget, capacity, costs, newcomers, least_probability, conflict : as in `triage`
    least_votes : judgments that both options need, whatever they were compared with

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": list("ababac"), "right": list("bababb"), "won": list("aaaaab")}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="won")
    >>> todo = triage_pairs(pairs, budget=2)
    >>> [(row["item"], row["label"], row["planned"]) for row in todo.to_rows()]
    [('b | c', 'b', 2), ('a | c', 'a', 0), ('a | b', 'a', 0)]
    """
    check_limits(least_votes, least_probability, conflict)
    learned = found or bradley_terry(pairs)
    sets = _sets(pairs, learned)
    one, other = (np.concatenate([getattr(x, end) for x in sets]) for end in ("one", "other"))
    crowd = _on_twos(pairs, one, other)
    resources = resources_of(crowd, learned.discrimination**2, budget, capacity, costs, newcomers)
    # Who judged two options may judge them again where something else is asked of both.
    judged_before = crowd if pairs.prompts is None else crowd.rows(slice(0, 0))
    affordable, most = resources.affordable(len(one)), resources.most_each(judged_before)
    planned, gain, next_mends = _plan(sets, learned, affordable, most)
    given = resources.assign(judged_before, planned, gain)
    asked = given.by_item
    mends = gain * asked / np.maximum(planned, 1)
    wrong = np.concatenate([_wrong(x.gap, x.variance, None) for x in sets])
    better = pairs.options[np.where(np.concatenate([x.gap for x in sets]) >= 0, one, other)]
    votes, item = crowd.sums(), pairs.annotations.item
    judged = np.bincount(np.r_[pairs.left[item], pairs.right[item]], minlength=len(pairs.options))
    fewest = np.minimum(judged[one], judged[other])
    clash = np.where(votes.sum(axis=1) > 1, conflict_of(votes), 0)
    settled = (1 - wrong >= least_probability) & (fewest >= least_votes)
    errors, names = float(np.sum(wrong)), (pairs.options[one], pairs.options[other])
    return Triage(
        items=crowd.items,
        annotators=crowd.annotators,
        status=np.where(settled, "settled", np.where(clash > conflict, "conflict", "few")),
        reason=_reasons(votes, fewest, least_votes, names, better, 1 - wrong),
        label=better,
        probability=1 - wrong,
        votes=votes.sum(axis=1).astype(np.intp),
        conflict=clash,
        planned=asked,
        mends=mends,
        assignment=given,
        errors=errors,
        errors_after=errors - float(np.sum(mends)),
        next_mends=next_mends,
        budget=budget,
        spent=resources.cost(given),
        truth=True,
    )


class _Set(NamedTuple):
    """Twos of options that comparisons link.

    Attributes
    ----------
    one, other : (T,), places in `options`
    here, there : (T,), the same as places in the covariance
    gap : (T,), how far the score of one is ahead of the other's
    covariance : (Q, Q), of the scores
    """

    one: Codes
    other: Codes
    here: Codes
    there: Codes
    gap: Floats
    covariance: Floats

    @property
    def variance(self) -> Floats:
        """Of each gap, (T,)."""
        return variance_of_gaps(self.covariance, self.here, self.there)

    @property
    def laplacian(self) -> Floats:
        """L, (Q, Q), by which s' L s = sum over twos of p(0) (s_one - s_other)^2."""
        v, Q = self.variance, len(self.covariance)
        density = np.exp(-(self.gap**2) / v / 2) / np.sqrt(2 * np.pi * v)
        between = np.zeros((Q, Q))
        np.add.at(between, (self.here, self.there), density)
        between += between.T
        return np.diag(between.sum(axis=1)) - between

    def after(self, two: int, information: float) -> _Set:
        """What is known after a judgment of two that tells so much of their gap."""
        c = self.covariance[self.here[two]] - self.covariance[self.there[two]]
        k, variance = information, c[self.here[two]] - c[self.there[two]]
        return self._replace(covariance=self.covariance - k / (1 + k * variance) * np.outer(c, c))

    def gains(self, laplacian: Floats, information: Floats) -> Floats:
        """What a judgment of each two makes of all variances, weighed by `laplacian`, (T,).

        A judgment of q takes k c c' / (1 + k v_q) from C, c = C d_q, so that d' C d of another two
        loses k (d' c)^2 / (1 + k v_q), and all of them, weighed, k d_q' C L C d_q / (1 + k v_q).
        """
        C, k = self.covariance, information
        each = variance_of_gaps(C @ laplacian @ C, self.here, self.there)
        return k * each / (1 + k * self.variance) / 2


def _sets(pairs: Pairs, learned: BradleyTerry) -> list[_Set]:
    sets: list[_Set] = []
    for linked in learned.linked(pairs):
        Q, P = len(linked.options), len(pairs.options)
        place = np.full(P, -1)
        place[linked.options] = np.arange(Q)
        if Q <= MOST_ANY:
            i, j = np.triu_indices(Q, 1)
        else:
            ends = place[pairs.left[linked.pairs]], place[pairs.right[linked.pairs]]
            i, j = np.divmod(np.unique(np.minimum(*ends) * Q + np.maximum(*ends)), Q)
        one, other = linked.options[i], linked.options[j]
        gap = learned.score[one] - learned.score[other]
        sets.append(_Set(one, other, i, j, gap, linked.covariance))
    return sets


def _plan(
    sets: list[_Set], learned: BradleyTerry, budget: int, most: Codes
) -> tuple[Codes, Floats, float]:
    """Judgments of each two, what they mend, and what the next 100 would mend, all together."""
    information = np.concatenate([learned.information(x.gap) for x in sets])
    first = np.cumsum([0, *(len(x.gap) for x in sets)])
    of = np.repeat(np.arange(len(sets)), np.diff(first))
    now, before = list(sets), [x.variance for x in sets]
    weights = [x.laplacian for x in sets]
    ends = [slice(int(a), int(b)) for a, b in pairwise(first)]
    gain = np.concatenate(
        [x.gains(L, information[here]) for x, L, here in zip(sets, weights, ends, strict=True)]
    )
    errors = [float(np.sum(_wrong(x.gap, v, v))) for x, v in zip(sets, before, strict=True)]
    planned, mends, later = (
        np.zeros(len(information), dtype=np.intp),
        np.zeros(len(information)),
        0.0,
    )
    gain[most == 0] = 0
    for step in range(budget + NEXT):
        # What is equal but for rounding goes by the order of options.
        two = int(np.argmax(gain >= gain.max(initial=0) * (1 - 1e-9)))
        if not len(gain) or gain[two] <= 0:
            break
        s = int(of[two])
        now[s] = now[s].after(two - int(first[s]), float(information[two]))
        v = now[s].variance
        left = float(np.sum(_wrong(now[s].gap, before[s], v)))
        mended, errors[s] = errors[s] - left, left
        if step < budget:
            planned[two] += 1
            mends[two] += mended
        else:
            later += mended
            most = most - (np.arange(len(most)) == two)
        here = ends[s]
        free = planned[here] < most[here]
        gain[here] = np.where(free, now[s].gains(weights[s], information[here]), 0)
    return planned, mends, later


def _wrong(gap: Floats, before: Floats, after: Floats | None) -> Floats:
    """The chance that the likelier is the worse: now, or when the variance is what it is `after`.

    Before anything is asked the ratio has no end, and T(h, inf) = Phi(-h) / 2.
    """
    from scipy.special import owens_t

    h = np.abs(gap) / np.sqrt(before)
    less = np.zeros_like(before) if after is None else before - after
    rest = before if after is None else after
    ratio = np.where(less > 0, rest / np.where(less > 0, less, 1), np.inf)
    return 2 * owens_t(h, np.sqrt(ratio))


def _on_twos(pairs: Pairs, one: Codes, other: Codes) -> Annotations:
    """Judgments as annotations of twos, in any placing and of any prompt; `one` stands left."""
    a, P = pairs.annotations, len(pairs.options)
    keys = one * P + other
    order = np.argsort(keys)
    left, right = pairs.left[a.item], pairs.right[a.item]
    key = np.minimum(left, right) * P + np.maximum(left, right)
    turned = left > right
    y = np.where(turned[:, None], a.vectors[:, ::-1], a.vectors)
    names = names_of_pairs(pairs.options, np.stack([one, other], axis=1))
    return replace(a, item=order[np.searchsorted(keys, key, sorter=order)], y=y, items=names)


def _reasons(
    votes: Floats,
    fewest: Codes,
    least: int,
    names: tuple[NDArray[Any], NDArray[Any]],
    better: NDArray[Any],
    probability: Floats,
) -> list[str]:
    """Who said what of two, and what comes of all comparisons."""
    found: list[str] = []
    for i, n in enumerate(fewest.tolist()):
        counts = {names[0][i]: votes[i, 0], names[1][i]: votes[i, 2], "a tie": votes[i, 1]}
        judged = ", ".join(f"{v:.3g} for {name}" for name, v in counts.items() if v > 0)
        likely = f"{better[i]} is {probability[i]:.2f} likely the better"
        few = f"one of them has {counted(n, 'judgment')}, and {least} are asked for"
        found.append(few if n < least else f"{judged or 'never met'}; {likely}")
    return found

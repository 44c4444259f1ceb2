"""Groups of annotators: what each would say, how far they differ, and about which items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, sums_by
from slencodings.annotators.roster import as_plain
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust import Crowd, count_each

# A column with more groups than these is likely to be another one.
MOST_GROUPS = 20


class Divergence(NamedTuple):
    """How far two groups differ, on the items that have two answers of each.

    Attributes
    ----------
    left, right : names of the groups
    items : how many such items
    differ : how often an answer of the one and an answer of the other differ
    left_differ, right_differ : how often two answers of the same group do
    divergence, low, high : how much more often answers of both differ than those of one, and
        between which that lies; 0 if the groups would say the same, 1 if each says one thing and
        never the same. The first four are None without such an item, the interval with one
    """

    left: Any
    right: Any
    items: int
    differ: float | None
    left_differ: float | None
    right_differ: float | None
    divergence: float | None
    low: float | None
    high: float | None


class Divided(NamedTuple):
    """An item, two groups, and how far their opinions contradict each other.

    conflict = 1/2 sum_k |P_k - Q_k| (1 - u)(1 - v)   (degree of conflict, Jøsang 2016, ch. 4)
    """

    item: Any
    left: Any
    right: Any
    conflict: float
    left_says: Any
    left_probability: float
    left_uncertainty: float
    right_says: Any
    right_probability: float
    right_uncertainty: float


@dataclass(frozen=True, eq=False)
class Groups:
    """What groups of annotators say.

    Attributes
    ----------
    names : (G,), of the groups
    annotators : (G,), how many of each group answered
    opinion : Opinion (G, N), of each group on each item; vacuous where nobody of it answered
    pairs : each two groups, and how far they differ
    items, labels : (N,) and (K,), the names
    """

    names: list[Any]
    annotators: list[int]
    opinion: Opinion
    pairs: list[Divergence]
    items: NDArray[Any]
    labels: NDArray[Any]

    def divided(self) -> list[Divided]:
        """Items that two groups both answered, those first whose opinions conflict most."""
        rows: list[Divided] = []
        items, labels = self.items.tolist(), self.labels.tolist()
        for g, h in combinations(range(len(self.names)), 2):
            one, other = self.opinion.rows(g), self.opinion.rows(h)
            P, Q = one.probability, other.probability
            known = (1 - one.uncertainty) * (1 - other.uncertainty)
            conflict = np.sum(np.abs(P - Q), axis=1) / 2 * known
            for i in np.flatnonzero(known > 0).tolist():
                sides = [
                    (as_plain(labels[int(x[i].argmax())]), float(x[i].max()), float(u[i]))
                    for x, u in ((P, one.uncertainty), (Q, other.uncertainty))
                ]
                pair = as_plain(items[i]), self.names[g], self.names[h]
                rows.append(Divided(*pair, float(conflict[i]), *sides[0], *sides[1]))
        return sorted(rows, key=lambda row: (-row.conflict, str(row.item)))

    def to_rows(self) -> list[dict[str, Any]]:
        """`divided` as plain values."""
        return [row._asdict() for row in self.divided()]

    def __str__(self) -> str:
        return "\n".join(self.in_words())

    def in_words(self) -> list[str]:
        """A sentence for each two groups, the most divided first."""
        known = [p for p in self.pairs if p.divergence is not None]
        known.sort(key=lambda p: -(p.divergence or 0.0))
        lines = [_sentence(pair) for pair in known]
        if unknown := [f"{p.left} and {p.right}" for p in self.pairs if p.divergence is None]:
            lines.append(
                f"No item has two answers of each of {', '.join(unknown)}, so that nothing tells "
                "whether they differ more than people of one group do."
            )
        return lines


def _sentence(p: Divergence) -> str:
    within = f"{p.left_differ:.0%} within {p.left}, {p.right_differ:.0%} within {p.right}"
    differ = f"answers differ {p.differ:.0%} of the time between them, {within}"
    ends = "" if p.low is None else f" ({p.low:.3f} to {p.high:.3f})"
    what = "differ"
    if p.low is None or p.high is None or p.low <= 0:
        what = "may differ, not for sure" if (p.divergence or 0) > 0 else "are not seen to differ"
    size = counted(p.items, "item")
    return (
        f"{p.left} and {p.right} {what}: divergence {p.divergence:.3f}{ends} on {size}; {differ}."
    )


def compare_groups(
    annotations: Annotations,
    group: Mapping[Any, Any] | Sequence[Any] | NDArray[Any],
    *,
    crowd: Crowd | None = None,
    coverage: float = 0.95,
) -> Groups:
    """Compare what groups of annotators say of the same items.

    D = P(one of each differ) - 1/2 (P(two of g differ) + P(two of h differ)) = mean 1/2 |p - q|^2

    where p and q are what the two groups say of an item. Pairs of different people estimate each
    part without bias, so that people who differ among themselves are not taken for groups that do;
    an estimate may be a little below 0. The interval is that of a mean (Student's t over items): it
    is about these people and other items. Who answers an item several times counts once.

    Parameters
    ----------
    group : a group for each annotator, (M,), or a mapping from annotator; None is in no group
    crowd : what was learned of the crowd, for the opinions; each annotation is one count when
        absent. How far groups differ is by plain answers

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [q // 4 for q in range(40)], "who": ["ann", "bob", "cyd", "dan"] * 10}
    >>> said["label"] = ["rude", "rude", "fine", "fine"] * 5 + ["fine"] * 20
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> groups = compare_groups(crowd, {"ann": "old", "bob": "old", "cyd": "young", "dan": "young"})
    >>> groups.pairs[0].divergence, groups.divided()[0].left_says
    (0.5, 'rude')
    """
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must lie between 0 and 1; {coverage:g} came. 0.95 is usual.")
    a = annotations.averaged()
    names, code = _codes_of_groups(a, group)
    crowd = count_each(a) if crowd is None else crowd
    mine = [a.rows(code[a.annotator] == g) for g in range(len(names))]
    opinions = [crowd.votes(rows) for rows in mine]
    answered = [len(np.unique(rows.annotator)) for rows in mine]
    counts = [_counts(rows) for rows in mine]
    pairs = [
        _divergence(names[g], names[h], counts[g], counts[h], coverage)
        for g, h in combinations(range(len(names)), 2)
    ]
    stacked = Opinion(*(np.stack(x) for x in zip(*opinions, strict=True)))
    return Groups(names, answered, stacked, pairs, a.items, a.labels)


def _codes_of_groups(a: Annotations, group: Any) -> tuple[list[Any], Codes]:
    """The groups, and the place of each annotator's among them, (M,); -1 for none."""
    M = len(a.annotators)
    if isinstance(group, Mapping):
        named = cast("Mapping[Any, Any]", group)
        of: list[Any] = [named.get(name) for name in a.annotators.tolist()]
        if strange := [name for name in named if name not in set(a.annotators.tolist())]:
            raise ValueError(
                f"`group` must be about annotators of the crowd; {len(strange)} of {len(named)} "
                f"are not, first {strange[0]!r}. Leave them out."
            )
    else:
        of = list(np.asarray(group, dtype=object).tolist())
    if len(of) != M:
        raise ValueError(
            f"`group` needs one for each of the {M} annotators, ({M},), or a mapping; "
            f"{len(of)} came."
        )
    of = [as_plain(x) for x in of]
    answered = np.bincount(a.annotator, minlength=M) > 0
    there = {x for x, some in zip(of, answered, strict=True) if some and x is not None}
    names = sorted(there, key=str)
    if not 2 <= len(names) <= MOST_GROUPS:
        shown = ", ".join(map(repr, names[:3])) + ", ..." * (len(names) > 3)
        raise ValueError(
            f"groups are compared by twos, so 2 to {MOST_GROUPS} are needed; {len(names)} came"
            f"{f' ({shown})' if names else ''}. Is another column the group?"
        )
    place = {name: g for g, name in enumerate(names)}
    return names, np.asarray([place.get(x, -1) for x in of], dtype=np.intp)


class _Counts(NamedTuple):
    """The answers of a group: by label (N, K), how many (N,), and those of two of it alike (N,)."""

    labels: Floats
    n: Floats
    alike: Floats


def _counts(rows: Annotations) -> _Counts:
    N, y = len(rows.items), rows.vectors
    labels, n = rows.sums(), np.bincount(rows.item, minlength=N).astype(float)
    own = sums_by(rows.item, np.sum(y**2, axis=1), N)
    pairs = np.where(n > 1, n * (n - 1), 1)
    return _Counts(labels, n, (np.sum(labels**2, axis=1) - own) / pairs)


def _divergence(left: Any, right: Any, one: _Counts, other: _Counts, coverage: float) -> Divergence:
    from scipy.special import stdtrit

    both = (one.n > 1) & (other.n > 1)
    n = int(np.sum(both))
    if n == 0:
        return Divergence(left, right, 0, None, None, None, None, None, None)
    alike: Floats = np.sum(one.labels * other.labels, axis=1)[both] / (one.n * other.n)[both]
    one_alike: Floats = one.alike[both]
    other_alike: Floats = other.alike[both]
    D = (one_alike + other_alike) / 2 - alike
    mean, half = float(np.mean(D)), None
    if n > 1:
        error = float(np.std(D, ddof=1)) / math.sqrt(n)
        half = error * float(stdtrit(n - 1, (1 + coverage) / 2))
    return Divergence(
        left,
        right,
        n,
        differ=float(1 - np.mean(alike)),
        left_differ=float(1 - np.mean(one_alike)),
        right_differ=float(1 - np.mean(other_alike)),
        divergence=mean,
        low=None if half is None else mean - half,
        high=None if half is None else mean + half,
    )

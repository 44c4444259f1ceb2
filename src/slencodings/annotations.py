"""Who said what about which item, how sure they were of it, and what that adds up to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.opinion import Codes, Floats, Opinion

# How far from 1 probabilities may sum: far beyond what rounding in half precision leaves, far below
# what counts or logits sum to.
ROOM_OF_SUMS = 5e-3


@dataclass(frozen=True)
class Annotations:
    """A crowd as integer codes: R annotations of N items by M annotators with K labels.

    Attributes
    ----------
    item, annotator : int array (R,), positions in `items` and `annotators`
    y : int array (R,), positions in `labels`; or float array (R, K), probabilities
    uncertainty : float array (R,), in [0, 1]: how unsure the annotator was
    items, annotators, labels : arrays (N,), (M,), (K,), the names behind the codes; items that
        nobody labelled are there too
    stated : float array (R,), confidence as it was stated, on any scale; None if nobody stated any
    reliability : float array (R,), in [0, 1], if it came with the annotations
    ordered : whether `labels` stand in an order that means something, such as 1 to 5 stars
    """

    item: Codes
    annotator: Codes
    y: NDArray[Any]
    uncertainty: Floats
    items: NDArray[Any]
    annotators: NDArray[Any]
    labels: NDArray[Any]
    stated: Floats | None = None
    reliability: Floats | None = None
    ordered: bool = False

    @property
    def soft(self) -> bool:
        """Whether labels are probabilities rather than one label each."""
        return self.y.ndim == 2

    @property
    def named(self) -> bool:
        """Whether annotators are told apart."""
        return self.annotators.tolist() != ["anonymous"]

    @property
    def vectors(self) -> Floats:
        """The labels as vectors (R, K)."""
        if self.soft:
            return self.y
        return np.eye(len(self.labels), dtype=np.float64)[self.y]

    @property
    def confidence(self) -> Floats:
        """Confidence as it was stated, (R,), checked; 1 - uncertainty where nobody stated any."""
        # Rounded, as 1 - (1 - 0.3) is not 0.3.
        x = np.round(1 - self.uncertainty, 12) if self.stated is None else self.stated
        x, R = np.asarray(x, dtype=float), len(self.item)
        if x.shape != (R,):
            raise ValueError(
                f"`stated` needs one confidence for each of the {R} annotations, ({R},); "
                f"shape {x.shape} came."
            )
        bad = np.flatnonzero(~np.isfinite(x))
        if len(bad):
            raise ValueError(
                f"stated confidence must be finite numbers; {len(bad)} of {R} are not, "
                f"first {x[bad[0]]} at row {bad[0]}. Leave those rows out, or fill in a level."
            )
        return x

    def completed(self, reliability: Any = None) -> Annotations:
        """The same with all that is known of confidence in `stated`, and with this reliability.

        Uncertainty says how sure people are too, unless it is the same for all.
        """
        known = self.stated is not None or len(np.unique(self.uncertainty)) > 1
        r = self.reliability if reliability is None else self.per_annotation(reliability)
        return replace(self, stated=self.confidence if known else None, reliability=r)

    def rows(self, index: Any) -> Annotations:
        """Take some of the annotations; items, annotators and labels stay, so codes still fit.

        >>> from slencodings import from_table
        >>> crowd = from_table({"item": ["p", "q"], "label": [1, 0]}, item="item", label="label")
        >>> crowd.rows([1]).item, crowd.rows([1]).items
        (array([1]), array(['p', 'q'], dtype=object))
        """
        names = ("item", "annotator", "y", "uncertainty", "stated", "reliability")
        columns = {name: getattr(self, name) for name in names}
        taken = {k: None if v is None else np.asarray(v)[index] for k, v in columns.items()}
        return replace(self, **taken)

    def averaged(self) -> Annotations:
        """One annotation for all that an annotator said of an item: their average.

        b / u = mean of b_q / u_q,   1 / u = mean of 1 / u_q;   where some are certain, those alone

        Answers of one source depend on each other, so that asking again makes it no surer, and the
        operator for that is averaging (`fuse_average`). What was stated and how reliable it came is
        averaged plainly. Annotators without a name, None, are not taken for one.

        >>> from slencodings import from_table
        >>> table = {"item": ["p", "p", "p"], "who": ["gpt", "gpt", "ann"], "label": [1, 0, 0]}
        >>> from_table(table, item="item", annotator="who", label="label").averaged().y
        array([[0.5, 0.5],
               [1. , 0. ]])
        """
        source = self.item * len(self.annotators) + self.annotator
        nobody = np.asarray([name is None for name in self.annotators.tolist()], dtype=bool)
        alone = nobody[self.annotator]
        source = np.where(alone, source.max(initial=0) + 1 + np.arange(len(source)), source)
        _, first, place, times = np.unique(
            source, return_index=True, return_inverse=True, return_counts=True
        )
        if len(first) == len(source):
            return self
        u = self.uncertainty
        least = np.full(len(first), np.inf)
        np.minimum.at(least, place, u)
        # share = least / u. Where both are 0 the limit of the ratio is 1.
        share = np.where(u == least[place], 1.0, least[place] / np.where(u == 0, 1.0, u))
        weight = (1 - u) * share
        # Those who know nothing each time have no belief to weigh by.
        weight = np.where(np.bincount(place, weight)[place] > 0, weight, 1.0)
        total = np.bincount(place, weight)
        y = np.stack([np.bincount(place, weight * x) / total for x in self.vectors.T], axis=1)

        def mean(x: Floats | None) -> Floats | None:
            return None if x is None else np.bincount(place, x) / times

        order = np.argsort(first)
        merged = replace(
            self,
            item=self.item[first],
            annotator=self.annotator[first],
            y=y if self.soft or np.any(y.max(axis=1) < 1) else np.argmax(y, axis=1),
            uncertainty=least * times / np.bincount(place, share),
            stated=mean(self.stated),
            reliability=mean(self.reliability),
        )
        return merged.rows(order)

    def of_items(self, items: Codes) -> Annotations:
        """The annotations of some items by their positions, which alone are left, in this order.

        Labels and annotators stay, whether or not they are still used.
        """
        place = np.full(len(self.items), -1)
        place[items] = np.arange(len(items))
        kept = self.rows(place[self.item] >= 0)
        return replace(kept, item=place[kept.item], items=self.items[items])

    def sums(self, weight: Floats | None = None) -> Floats:
        """Add up the labels of each item, each times its weight: an array (N, K).

        >>> from slencodings import from_table
        >>> crowd = {"item": ["p", "p", "q"], "label": [1, 1, 0]}
        >>> from_table(crowd, item="item", label="label").sums()
        array([[0., 2.],
               [1., 0.]])
        """
        shape = len(self.items), len(self.labels)
        if self.soft:
            weighted = self.y if weight is None else self.y * weight[:, None]
            columns = [np.bincount(self.item, column, shape[0]) for column in weighted.T]
            return np.stack(columns, axis=-1, dtype=float)
        cells = self.item * shape[1] + self.y
        counted: NDArray[Any] = np.bincount(cells, weight, shape[0] * shape[1])
        return counted.reshape(shape).astype(float)

    def sums_of_others(self, weight: Floats) -> Floats:
        """Add up the labels of the others on each annotation's item: an array (R, K).

        A label that nobody else named has exactly 0, whatever the rounding of sums.
        """
        if self.soft:
            return leave_one_out(self.y * weight[:, None], self.item)
        votes = self.sums(weight)[self.item]
        cells = self.item * len(self.labels) + self.y
        votes[np.arange(len(weight)), self.y] = leave_one_out(weight, cells)
        return votes

    def fuse(self, weight: Floats, base_rate: Floats, *, prior: Floats | float = 1.0) -> Opinion:
        """One opinion for every item, (N,): fusing adds.

        b_i = sum_q w_q y_q / T,   u_i = s_i / T,   T = sum_q w_q + s_i

        Parameters
        ----------
        weight : w (R,), pseudo-counts in the unit in which the prior weighs s
        base_rate : a (K,)
        prior : s, a number or (N,); where it is 0 the opinion is dogmatic
        """
        evidence = self.sums(weight)
        return beside_prior(evidence, np.sum(evidence, axis=1), base_rate, prior)

    def per_annotation(self, reliability: Any) -> Floats:
        """Reliability as one number per annotation (R,), checked to lie in [0, 1].

        Takes a number, an array (M,) in the order of `annotators`, an array (R,), a mapping from
        annotator to number, or nothing for what came with the annotations, else full trust. An
        array of M = R values is per annotator. A binomial Opinion (trustworthy, not) counts by its
        projected probability.
        """
        if reliability is None:
            reliability = 1.0 if self.reliability is None else self.reliability
        if isinstance(reliability, Opinion):
            if reliability.belief.shape[-1] != 2:
                raise ValueError(
                    "`reliability` as an opinion must be binomial, (trustworthy, not); one over "
                    f"{reliability.belief.shape[-1]} labels came. Pass a number in [0, 1]."
                )
            reliability = reliability.probability[..., 0]
        if hasattr(reliability, "to_dict"):  # a pandas Series, which may be in another order
            named: dict[Any, Any] = reliability.to_dict()
            reliability = named if set(named) == set(self.annotators.tolist()) else reliability
        if isinstance(reliability, Mapping):
            unknown = [name for name in self.annotators.tolist() if name not in reliability]
            if unknown:
                raise ValueError(
                    f"`reliability` must know every annotator; {len(unknown)} of "
                    f"{len(self.annotators)} are missing, first {unknown[0]!r}. "
                    "Add them, for example dict.fromkeys(crowd.annotators, 0.8) | reliability."
                )
            reliability = [reliability[name] for name in self.annotators.tolist()]
        r = np.asarray(reliability, dtype=float)
        M, R = len(self.annotators), len(self.item)
        if r.shape not in {(), (M,), (R,)}:
            raise ValueError(
                f"`reliability` must be a number, one per annotator ({M},) or one per annotation "
                f"({R},); shape {r.shape} came."
            )
        bad = ~((r >= 0) & (r <= 1))
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"`reliability` must lie in [0, 1]; {bad.sum()} of {bad.size} values do not, "
                f"first {np.atleast_1d(r)[first]:g} at position {first}. "
                "Map a score such as kappa first: np.clip(kappa, 0, 1)."
            )
        if r.ndim == 0:
            return np.full(R, float(r))
        return r[self.annotator] if len(r) == M else r


def as_names(names: Sequence[Any]) -> NDArray[Any]:
    """Names as an array: texts as objects, which are never cut, and all else as it comes."""
    return np.asarray(names, dtype=object if isinstance(names[0], str) else None)


def names_like(names: NDArray[Any], known: Sequence[Any]) -> NDArray[Any]:
    """Names, all integers, as numbers or as text, whichever the known ones are; else as they are.

    >>> names_like(as_names(["1", "10"]), [3]), names_like(as_names(["1", "no"]), [3])
    (array([ 1, 10]), array(['1', 'no'], dtype=object))
    """
    texts = [str(name) for name in names.tolist()]
    read: Any = next((kind for kind in (int, str) if known and type(known[0]) is kind), None)
    if read is None or not all(re.fullmatch("0|-?[1-9][0-9]*", text) for text in texts):
        return names
    return as_names([read(text) for text in texts]) if texts else names


def counted(n: int, noun: str) -> str:
    """For a sentence: "1 row", "2,000 rows"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def plainly(name: Any) -> str:
    """A name as it is; in quotes where it has a comma, several lines or an unseen space.

    >>> [plainly(name) for name in ("yes", 3, "yes, but", " no")]
    ['yes', '3', "'yes, but'", "' no'"]
    """
    text = str(name)
    return (
        repr(text) if "," in text or text != text.strip() or text.splitlines() != [text] else text
    )


def some(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first few of many names."""
    return ", ".join(map(show, names[:10])) + (", ..." if len(names) > 10 else "")


def by_annotators(n: int | None) -> str:
    """For a sentence: " by 3 annotators", or nothing where they are not told apart."""
    return "" if n is None else f" by {counted(n, 'annotator')}"


def sums_by(group: Codes, value: Floats, size: int = 0) -> Floats:
    """The sum of the values of each group, (size,) or as many as there are groups."""
    # Nothing at all is counted as whole numbers.
    return np.bincount(group, value, size).astype(float, copy=False)


def safe_log(x: Floats) -> Floats:
    """The logarithm, minus infinity at 0, without a warning."""
    return np.log(x, out=np.full(x.shape, -np.inf), where=x > 0)


def in_steps(x: Any) -> Any:
    """The nearest whole number of steps of 2**-32, of an array or of an expression of a table.

    Such numbers add up without rounding as long as sums stay below two million: to the same sum in
    whatever order they come.

    >>> in_steps(np.asarray([0.5, 1 / 3])).tolist()
    [0.5, 0.3333333332557231]
    """
    # The last digit of numbers about this large is worth one step, in any engine.
    large = 1.5 * 2.0**20
    return (x + large) - large


def leave_one_out(value: Floats, group: Codes) -> Floats:
    """For each value, the sum of the others in its group, (R,) or (R, K); none is negative.

    `total - value` cancels where a value is most of the total. At most one of a group is, so those
    are left out of a second sum instead.

    >>> leave_one_out(np.asarray([1.0, 1e20, 5.0]), np.asarray([0, 0, 1]))
    array([1.e+20, 1.e+00, 0.e+00])
    """
    if value.ndim == 2:
        columns = [leave_one_out(column, group) for column in value.T]
        return np.stack(columns, axis=-1)
    total = np.bincount(group, value)[group]
    most = value > total / 2
    rest = np.bincount(group, np.where(most, 0, value))[group]
    return np.where(most, rest, total - value)


def beside_prior(
    evidence: Floats, total: Floats, base_rate: Floats, prior: Floats | float = 1.0
) -> Opinion:
    """Opinions (N,) of what was added up (N, K), to a total (N,), beside a prior.

    b_i = E_i / T_i,   u_i = s_i / T_i,   T_i = total_i + s_i;   u_i = 1 where T_i is 0, the limit

    >>> beside_prior(np.asarray([[3.0, 0.0]]), np.asarray([3.0]), np.full(2, 0.5)).probability
    array([[0.875, 0.125]])
    """
    T = total + prior
    some = T > 0
    scale = np.where(some, T, 1)
    u = np.where(some, prior / scale, 1.0)
    return Opinion(evidence / scale[:, None], u, np.tile(base_rate, (len(T), 1)))


def base_rate_of(given: Floats) -> Floats:
    """How often labels are given, (K,); one annotation more, spread evenly, leaves none impossible.

    >>> base_rate_of(np.asarray([3.0, 0.0]))
    array([0.875, 0.125])
    """
    return (given + 1 / len(given)) / (given.sum() + 1)


def shared_base_rate(base_rate: Any, labels: Sequence[Any]) -> Floats:
    """One base rate per label (K,), from a mapping, K numbers, or nothing for equal ones."""
    K = len(labels)
    if base_rate is None:
        return np.full(K, 1 / K)
    if isinstance(base_rate, Mapping):
        named = cast(Mapping[Any, Any], base_rate)
        wrong = sorted(set(named) ^ set(labels), key=str)
        if wrong:
            raise ValueError(
                f"`base_rate` must name each of the {K} labels and no other; {len(wrong)} differ, "
                f"first {wrong[0]!r}. The labels are {', '.join(map(repr, labels))}."
            )
        base_rate = [named[name] for name in labels]
    try:
        a = np.asarray(base_rate, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"`base_rate` must be numbers, a mapping from label to number, or columns; "
            f"{base_rate!r} came."
        ) from None
    if a.shape != (K,):
        raise ValueError(
            f"`base_rate` needs one value per label, ({K},); shape {a.shape} came. "
            "Leave it out for equal ones."
        )
    # Written so that NaN fails it.
    if not (np.all(a >= 0) and abs(np.sum(a) - 1) <= 1e-6):
        raise ValueError(
            "`base_rate` must not be negative and must sum to 1; "
            f"the smallest is {np.min(a):g} and the sum {np.sum(a):g}. "
            "Divide counts by their sum: counts / counts.sum()."
        )
    return a


def check_smoothing(smoothing: Any) -> float:
    """The share of each annotation that counts as doubt, in [0, 1)."""
    if not (isinstance(smoothing, Real) and 0 <= float(smoothing) < 1):
        raise ValueError(
            f"`smoothing` must be a number in [0, 1); {smoothing!r} came. "
            "0.01 leaves one percent of doubt, 0 takes certain annotators at their word."
        )
    return float(smoothing)

"""Which items are settled, which have too few votes, where votes conflict, and why."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, plainly
from slencodings.opinion import Floats
from slencodings.trust import Weighed

# One vote is checked by nobody; the second may contradict it. How much more is needed depends on
# who voted, and that the probability knows.
LEAST_VOTES = 2
LEAST_PROBABILITY = 0.9
# Between two labels a fifteenth of all votes against the rest, by their worth.
CONFLICT = 0.25
# Of a label in a reason.
_LETTERS = 60


class Limits(NamedTuple):
    """What an item needs to be settled, and how much conflict to bear, as in `status`."""

    least_votes: int = LEAST_VOTES
    least_probability: float = LEAST_PROBABILITY
    conflict: float = CONFLICT


def status(
    weighed: Weighed,
    *,
    least_votes: int = LEAST_VOTES,
    least_probability: float = LEAST_PROBABILITY,
    conflict: float = CONFLICT,
) -> NDArray[np.str_]:
    """What is the matter with each item, (N,): "settled", "few" or "conflict".

    settled   as many votes as asked for, and the likeliest label is as probably true
    conflict  not settled, and votes contradict each other: conflict > `conflict`
    few       not settled, and they do not: too few votes, or by people who know too little

    `triage` and the report decide by this. Where all votes are for one label there is no conflict.

    Parameters
    ----------
    weighed : what `trust.weigh` gave
    least_votes, least_probability : what an item needs to be settled
    conflict : how much of it to bear, in [0, 1]; 0 where all agree, 1 where every label has as much

    Examples
    --------
    >>> from dataclasses import replace
    >>> from slencodings import from_table
    >>> from slencodings.trust import weigh
    >>> rows = {"item": list("pppppqqrr"), "who": list("abcdeabab"), "y": [1] * 5 + [0, 1, 0, 0]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="y")
    >>> weighed = weigh(replace(crowd, reliability=np.full(9, 0.7)))
    >>> status(weighed).tolist(), status(weighed, least_probability=0.6).tolist()
    (['settled', 'conflict', 'few'], ['settled', 'conflict', 'settled'])
    """
    check_limits(least_votes, least_probability, conflict)
    n, p = weighed.evidence.n, likeliest(weighed)
    settled = (n >= least_votes) & (p >= least_probability)
    # One annotation may be shared out over labels, which is no conflict of anybody with anybody.
    differ = (n > 1) & (weighed.conflict > conflict)
    return np.where(settled, "settled", np.where(differ, "conflict", "few"))


def likeliest(weighed: Weighed) -> Floats:
    """The probability that the likeliest label of each item is true, (N,)."""
    return np.max(weighed.truth.probability, axis=1, initial=0)


def reasons(
    annotations: Annotations,
    weighed: Weighed,
    found: NDArray[np.str_],
    *,
    least_votes: int = LEAST_VOTES,
    least_probability: float = LEAST_PROBABILITY,
) -> list[str]:
    """Why each item has the status that was found for it, in a few words."""
    P, votes = np.asarray(weighed.truth.probability), annotations.sums()
    labels: list[str] = [_name(label) for label in annotations.labels.tolist()]
    bound = _share(least_probability)
    split = np.flatnonzero(found == "conflict")
    in_words = {
        int(i): _votes_in_words(votes[i], most, labels)
        for i, most in zip(split, np.argsort(-votes[split], axis=1, kind="stable"), strict=True)
    }

    def reason(i: int, n: int, status: str, lead: int, p: float) -> str:
        if not n:
            return "nobody annotated it"
        leader = f"{labels[lead]} is {_share(p, least_probability)} likely"
        if status == "settled":
            return f"{leader}, by {counted(n, 'vote')}"
        if n < least_votes:
            return f"{counted(n, 'vote')}, and {least_votes} are asked for"
        short = f"{leader}, less than {bound}"
        return f"{short}, by {counted(n, 'vote')}" if status == "few" else f"{in_words[i]}; {short}"

    N = len(found)
    lead = np.argmax(P, axis=1) if N else np.zeros(0, dtype=np.intp)
    n, p = weighed.evidence.n.astype(np.intp), P[np.arange(N), lead]
    columns = (range(N), n.tolist(), found.tolist(), lead.tolist(), p.tolist())
    return [reason(*row) for row in zip(*columns, strict=True)]


def _votes_in_words(votes: Floats, most: NDArray[np.intp], labels: list[str]) -> str:
    """How many say what, of the three labels that most say."""
    first = [(float(votes[k]), labels[int(k)]) for k in most[:3]]
    text = ", ".join(f"{v:.3g} {'says' if v == 1 else 'say'} {name}" for v, name in first if v > 0)
    more = int(np.count_nonzero(votes)) - 3
    return text + (f" and {counted(more, 'more label')}" if more > 0 else "")


def _name(label: Any) -> str:
    """A label in a sentence: a long one loses its middle, and a number is no count."""
    text = plainly(label)
    if len(text) > _LETTERS:
        text = f"{text[: _LETTERS // 2]}…{text[-_LETTERS // 2 + 1 :]}"
    return repr(text) if text[:1].isdigit() else text


def _share(p: float, bound: float | None = None) -> str:
    """Two digits; cut and not rounded where that would reach a bound that was not reached."""
    text = f"{p:.2f}"
    if bound is not None and p < bound <= float(text):
        text = f"{np.floor(p * 1000) / 1000:.3f}"
    return text.removeprefix("0")


def check_limits(least_votes: int, least_probability: float, conflict: float) -> None:
    """Refuse limits that no item can be held against."""
    if operator.index(least_votes) < 1:
        raise ValueError(f"`least_votes` must be 1 or more; {least_votes} came. 2 is usual.")
    # Written so that NaN fails it.
    if not 0 < least_probability <= 1:
        raise ValueError(
            f"`least_probability` must lie above 0 and at most at 1; {least_probability} came. "
            "0.9 is usual."
        )
    if not 0 <= conflict <= 1:
        raise ValueError(f"`conflict` must lie in [0, 1]; {conflict} came. {CONFLICT} is usual.")

"""Several labels at once: a yes or no to each label, one crowd with the same people.

Every label of every item is a question, so opinions are binomial, (N, K), and whoever answers them
is trusted by how they answer all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slencodings.annotations import Annotations, counted
from slencodings.choices import SetDistance, check_word
from slencodings.opinion import Codes, Floats, Opinion

ANSWERS = ("no", "yes")


class MultiLabel(NamedTuple):
    """A crowd that chose several of K labels for each of N items.

    Attributes
    ----------
    annotations : Annotations of N K questions with the labels no and yes; question i K + k asks
        label k of item i
    items, labels : arrays (N,) and (K,), the names
    """

    annotations: Annotations
    items: NDArray[Any]
    labels: NDArray[Any]

    @property
    def asked_of(self) -> Codes:
        """The place in `items` of the item that each question is about, (N K,)."""
        return np.repeat(np.arange(len(self.items)), len(self.labels))

    def by_item(self, opinion: Opinion) -> Opinion:
        """Opinions on the questions as binomial opinions (N, K), of (no, yes)."""
        N, K = len(self.items), len(self.labels)
        b, u, a = opinion
        return Opinion(b.reshape(N, K, 2), u.reshape(N, K), a.reshape(N, K, 2))

    @property
    def sets(self) -> ChosenSets:
        """What each annotator chose for each item."""
        a, K = self.annotations, len(self.labels)
        item, label = np.divmod(a.item, K)
        key = item * len(a.annotators) + a.annotator
        keys, row = np.unique(key, return_inverse=True)
        chosen = np.zeros((len(keys), K), dtype=bool)
        chosen[row, label] = a.y == 1
        who = np.divmod(keys, len(a.annotators))
        return ChosenSets(who[0], who[1], chosen)


class ChosenSets(NamedTuple):
    """`item`, `annotator` (R,), and the labels `chosen` (R, K)."""

    item: Codes
    annotator: Codes
    chosen: NDArray[np.bool_]


def multi_label(
    item: Sequence[Any],
    chosen: Sequence[Sequence[Any] | None],
    *,
    annotator: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
) -> MultiLabel:
    """Lists of chosen labels, an item and an annotator for each, to yes or no questions.

    An empty list says no to all labels; None is no answer. Of who answers for an item twice, the
    last answer counts.

    Parameters
    ----------
    labels : all possible labels; those that were chosen when absent

    Examples
    --------
    >>> crowd = multi_label(["p", "p", "q"], [["cat"], ["cat", "dog"], []], annotator=list("aba"))
    >>> crowd.labels, crowd.annotations.items.tolist()
    (array(['cat', 'dog'], dtype=object), ['p / cat', 'p / dog', 'q / cat', 'q / dog'])
    >>> crowd.by_item(crowd.annotations.fuse(np.ones(6), np.asarray([0.5, 0.5]))).belief[0, :, 1]
    array([0.66666667, 0.33333333])
    """
    lists = [None if x is None else list(x) for x in chosen]
    people = ["anonymous"] * len(lists) if annotator is None else list(annotator)
    if not len(item) == len(lists) == len(people):
        raise ValueError(
            "`item`, `chosen` and `annotator` must be of one length; "
            f"{len(item)}, {len(lists)} and {len(people)} came."
        )
    names = _all_labels(lists, labels)
    place = {name: k for k, name in enumerate(names)}
    K, items = len(names), list(dict.fromkeys(item))
    whom = {name: n for n, name in enumerate(items)}
    judges = list(dict.fromkeys(people))
    codes = {name: m for m, name in enumerate(judges)}
    answers = {  # Without names nobody is known to answer twice.
        (whom[i], codes[m], r if annotator is None else 0): x
        for r, (i, m, x) in enumerate(zip(item, people, lists, strict=True))
        if x is not None
    }
    R = len(answers)
    i, m = (np.asarray([key[c] for key in answers], dtype=np.intp) for c in (0, 1))
    y = np.zeros((R, K), dtype=np.intp)
    for r, x in enumerate(answers.values()):
        y[r, [place[name] for name in x]] = 1
    question = i[:, None] * K + np.arange(K, dtype=np.intp)
    annotations = Annotations(
        item=question.ravel(),
        annotator=np.repeat(m, K),
        y=y.ravel(),
        uncertainty=np.zeros(R * K),
        items=np.asarray([f"{a} / {b}" for a in items for b in names], dtype=object),
        annotators=np.asarray(judges, dtype=object),
        labels=np.asarray(ANSWERS, dtype=object),
    )
    return MultiLabel(annotations, _objects(items), _objects(names))


def _objects(names: list[Any]) -> NDArray[Any]:
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _all_labels(lists: list[list[Any] | None], labels: Sequence[Any] | None) -> list[Any]:
    used = dict.fromkeys(x for chosen in lists if chosen is not None for x in chosen)
    names = sorted(used, key=str) if labels is None else list(labels)
    if not names:
        raise ValueError("at least one label must be possible; none came. Name them: labels=[...].")
    unknown = [x for x in used if x not in set(names)]
    if unknown:
        raise ValueError(
            f"chosen labels must be among `labels`; {len(unknown)} are not, first {unknown[0]!r}. "
            "Add what is missing, or leave `labels` out to take all there are."
        )
    return names


def jaccard(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """How much two sets share, (...), |A & B| / |A or B|, 1 if both are empty; higher is better.

    Parameters
    ----------
    truth, prediction : arrays (..., K), whether each label is in the set

    Examples
    --------
    >>> jaccard([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    array([0.5, 1. ])
    """
    both, either = _overlap(truth, prediction)
    return np.where(either > 0, both / np.where(either > 0, either, 1), 1.0)


def exact_match(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """1 where two sets are the same and else 0, (...); higher is better.

    >>> exact_match([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    array([0., 1.])
    """
    both, either = _overlap(truth, prediction)
    return (both == either).astype(float)


def masi(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """Agreement of sets (Passonneau 2006), (...), in [0, 1]; higher is better.

    Jaccard times 1 if they are the same, 2/3 if one holds the other, 1/3 if they overlap, else 0

    >>> masi([[1, 1, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 1]]).round(3)
    array([0.333, 0.111])
    """
    A, B = np.asarray(truth, dtype=bool), np.asarray(prediction, dtype=bool)
    both, either = _overlap(A, B)
    inside = (both == np.sum(A, axis=-1)) | (both == np.sum(B, axis=-1))
    share = np.where(both == either, 1.0, np.where(inside, 2 / 3, np.where(both > 0, 1 / 3, 0)))
    return share * jaccard(A, B)


def set_alpha(crowd: MultiLabel, *, distance: SetDistance = "masi") -> float:
    """Krippendorff's alpha of whole sets: 1 for perfect agreement, 0 as by chance.

    alpha = 1 - D_o / D_e,   of distances 1 - masi, 1 - jaccard or 1 - exact match

    Examples
    --------
    >>> said = [["a"], ["a"], ["b"], ["b"], ["a"], ["a", "b"]]
    >>> round(set_alpha(multi_label([1, 1, 2, 2, 3, 3], said, annotator=["x", "y"] * 3)), 3)
    0.643
    """
    check_word("distance", distance, SetDistance)
    alike = {"masi": masi, "jaccard": jaccard, "exact": exact_match}[distance]
    item, _, chosen = crowd.sets
    size = np.bincount(item, minlength=1)
    paired = size[item] > 1
    if not np.any(paired):
        raise ValueError(
            "alpha compares answers about the same item, so some item needs two; "
            f"of {counted(len(item), 'answer')} each is alone on its item."
        )
    item, chosen = item[paired], chosen[paired]
    kinds, kind = np.unique(chosen, axis=0, return_inverse=True)
    D = 1 - alike(kinds[:, None], kinds[None])
    of = np.unique(item, return_inverse=True)[1]
    counts = np.zeros((of.max() + 1, len(kinds)))
    np.add.at(counts, (of, kind.ravel()), 1)
    m, n_k = counts.sum(axis=1), counts.sum(axis=0)
    observed = np.sum(np.einsum("uk,kl,ul->u", counts, D, counts) / (m - 1))
    expected = n_k @ D @ n_k / (n_k.sum() - 1)
    return float(1 - observed / expected) if expected > 0 else 1.0


class SetScores(NamedTuple):
    """How near predicted sets are to those that were chosen; higher is better but for `hamming`.

    Attributes
    ----------
    jaccard, exact_match, masi : means over sets
    hamming : share of labels that are in one of two sets and not in the other
    micro_f1, macro_f1 : 2 TP / (2 TP + FP + FN) of all labels together, and the mean over labels
        that were chosen or predicted at all; 1 where there are none
    """

    jaccard: float
    exact_match: float
    masi: float
    hamming: float
    micro_f1: float
    macro_f1: float


def compare_sets(truth: ArrayLike, prediction: ArrayLike) -> SetScores:
    """How near predicted sets are to those that were chosen, (R, K) each.

    Examples
    --------
    >>> compare_sets([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]).macro_f1
    0.5
    """
    A, B = np.asarray(truth, dtype=bool), np.asarray(prediction, dtype=bool)
    share, same, alike = (float(np.mean(score(A, B))) for score in (jaccard, exact_match, masi))
    both: Floats = np.sum(A & B, axis=0).astype(float)
    either: Floats = np.sum(A | B, axis=0).astype(float)
    used = either > 0
    f1: Floats = 2 * both[used] / (both + either)[used]
    total = float(np.sum(both + either))
    return SetScores(
        jaccard=share,
        exact_match=same,
        masi=alike,
        hamming=float(np.mean(np.not_equal(A, B).astype(float))),
        micro_f1=2 * float(np.sum(both)) / total if total else 1.0,
        macro_f1=float(np.mean(f1)) if used.any() else 1.0,
    )


def score_sets(
    probability: ArrayLike, crowd: MultiLabel, gold: ArrayLike | None = None
) -> SetScores:
    """Sets of labels that are likelier than not, against those that people chose, or the truth.

    Parameters
    ----------
    probability : array (N, K), of yes to each label
    gold : array (N, K), whether each label is true; what annotators chose when absent

    Examples
    --------
    >>> crowd = multi_label(["p", "p"], [["cat"], ["cat", "dog"]], annotator=["ann", "bob"])
    >>> found = score_sets([[0.9, 0.3]], crowd)
    >>> found.jaccard, found.exact_match, found.hamming, found.micro_f1
    (0.75, 0.5, 0.25, 0.8)
    """
    P, shape = np.asarray(probability, dtype=float), (len(crowd.items), len(crowd.labels))
    if P.shape != shape or not np.all((P >= 0) & (P <= 1)):
        raise ValueError(
            f"`probability` must be {shape}, of yes to each label of each item; shape {P.shape} "
            "came. Of opinions by item take probability[..., 1]."
        )
    guess, sets = P > 0.5, crowd.sets
    truth = sets.chosen if gold is None else np.asarray(gold, dtype=bool)
    if gold is None:
        guess = guess[sets.item]
    elif truth.shape != shape:
        raise ValueError(f"`gold` must be {shape}, a yes or no each; shape {truth.shape} came.")
    return compare_sets(truth, guess)


def _overlap(truth: ArrayLike, prediction: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    A, B = np.asarray(truth, dtype=bool), np.asarray(prediction, dtype=bool)
    if A.ndim == 0 or A.shape[-1:] != B.shape[-1:]:
        raise ValueError(
            "sets must be arrays (..., K), whether each label is chosen; shapes "
            f"{A.shape} and {B.shape} came."
        )
    return np.sum(A & B, axis=-1), np.sum(A | B, axis=-1)

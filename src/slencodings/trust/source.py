"""What is true of items, from their annotations and a source from outside, such as a network."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import em, shrunk_dawid_skene
from slencodings.annotations import Annotations, leave_one_out, sums_by
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust.learn_crowd import count_each
from slencodings.trust.truth import Shrinking, TruthModel, log_likelihoods, posterior
from slencodings.trust.worth import ENOUGH

# How far the source is believed, how strongly confusions are shrunk to the crowd's, and how alike
# the errors of people on one item are; all are chosen on held-out votes.
_WORTHS = (0.0, 0.5, 1.0, 2.0)
_STRENGTHS = (3.0, 10.0, 30.0)
_CORRELATIONS = (0.02, 0.1, 0.3)
_FOLDS = 4
# What is only to choose by needs fewer digits.
_ROUGHLY = 1e-4


class Sourced(NamedTuple):
    """What is true of items by their annotations and a source, and what that is worth.

    Attributes
    ----------
    truth : Opinion (N,), which label is right
    worth : t, how far the source is believed: 0 not at all, 1 as it is
    loss : the log-loss of held-out votes, by annotators who are known
    model : what annotators say where a label is true, learned along with it
    log_source : (N, K), what the source adds to the log-odds of labels, t log(p_i / mean p)
    """

    truth: Opinion
    worth: float
    loss: float
    model: TruthModel
    log_source: Floats

    def vote_losses(self, annotations: Annotations) -> Floats:
        """The log-loss of each vote on these N items from the source alone, by known annotators.

        - log sum_c p(truth c | source) E_mc(vote)
        """
        p = self.model.posterior(self.log_source, np.zeros(len(self.log_source)))
        each = log_likelihoods(annotations, np.log(self.model.confusion))
        return _losses(p[annotations.item], each)


def truth_with_source(
    annotations: Annotations,
    also: Opinion | NDArray[Any],
    *,
    rng: np.random.Generator | int = 0,
) -> Sourced:
    """Fuse what annotators say of items with what a source says, by a worth that is learned.

    log q_i = log p + t log(s_i / mean s) + sum of log-likelihoods of its annotations + const

    s are the source's probabilities, which must not come from the item's own annotations: a
    network's on items that it was not trained on, a rule's, another crowd's. t is chosen so that
    votes on held-out items are predicted best, each by what its annotator says where a label is
    true, as `learn_truth` has it. So items with one annotation, or none, have a truth, and
    annotators can be compared who share no items. Where they share none and the source does not
    predict votes better by two standard errors, each annotation is one count (`count_each`).

    Parameters
    ----------
    also : Opinion (N,) or probabilities (N, K), in the order of the items and the labels
    rng : a generator or the seed of one, for what is held out

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": list(range(40)), "who": [0, 1] * 20, "label": [0, 0, 1, 1] * 10}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> seen = np.where(crowd.y[:, None] == [0, 1], 0.8, 0.2)
    >>> truth_with_source(crowd, seen).truth.probability[0].round(2)
    array([1., 0.])
    """
    rng = np.random.default_rng(rng)
    a = annotations.rows(rng.permutation(len(annotations.item)))
    ratio = _log_ratio(a, also)
    trials = _Trials.of(a, ratio, rng)
    tried = [trials.run(worth, _STRENGTHS[1]) for worth in _WORTHS]
    best = min(tried, key=_by_loss)
    others = [trials.run(best.worth, s) for s in _STRENGTHS if s != best.strength]
    best = min([best, *others], key=_by_loss)
    helps = surely_lower(best.each, tried[0].each, standard_errors=2)
    if not np.any(np.bincount(a.item) > 1) and not helps:
        # Nobody can be compared with anybody, and nothing says which label is which: EM would
        # give items any label that its confusions then explain.
        model = _learn_with_source(a, tried[0], 0 * ratio)
        return Sourced(count_each(a).truth(a), 0.0, tried[0].loss, model, 0 * ratio)
    source = best.worth * ratio
    model = _learn_with_source(a, best, source)
    each = log_likelihoods(a, np.log(model.confusion))
    n = np.bincount(a.item, minlength=len(a.items))
    summed = np.stack([sums_by(a.item, x, len(a.items)) for x in each.T], axis=1)
    log_prior = em.safe_log(model.prior) + source
    q = posterior(log_prior, summed, n.astype(float), best.correlation)
    return Sourced(_of_fact(q, model.prior), best.worth, best.loss, model, source)


class _Trial(NamedTuple):
    """A choice and how well it predicts votes; the least loss is the best."""

    loss: float
    worth: float
    strength: float
    correlation: float
    each: Floats  # the loss of each vote


_by_loss = attrgetter("loss")


class _Trials(NamedTuple):
    """Votes and items to try choices on: some, if there are many."""

    annotations: Annotations
    ratio: Floats
    fold: Codes

    @classmethod
    def of(cls, a: Annotations, ratio: Floats, rng: np.random.Generator) -> _Trials:
        fold = rng.integers(0, _FOLDS, len(a.items))
        some = rng.random(len(a.items)) < ENOUGH / max(len(a.item), 1)
        return cls(a.rows(some[a.item]), ratio, fold)

    def run(self, worth: float, strength: float) -> _Trial:
        """The best correlation with these, each vote predicted from all others and from none."""
        a, source = self.annotations, worth * self.ratio
        log_prior, each = np.zeros((2, len(a.item), len(a.labels)))
        for f in range(_FOLDS):
            test = self.fold[a.item] == f
            if test.any() and not test.all():
                model = _learn_with_source(
                    a.rows(~test), _Trial(0, worth, strength, 0, np.zeros(0)), source, _ROUGHLY
                )
                each[test] = log_likelihoods(a.rows(test), np.log(model.confusion))
                log_prior[test] = em.safe_log(model.prior) + source[a.item[test]]
        others, n = -leave_one_out(-each, a.item), (np.bincount(a.item)[a.item] - 1).astype(float)
        alone = _losses(posterior(log_prior, 0 * others, 0 * n, 0), each)
        found = {c: _losses(posterior(log_prior, others, n, c), each) for c in _CORRELATIONS}
        best = min(found, key=lambda c: np.mean(found[c]))
        both = (alone + found[best]) / 2
        return _Trial(float(np.mean(both)), worth, strength, best, both)


def surely_lower(losses: Floats, before: Floats, *, standard_errors: float) -> bool:
    """Whether votes are predicted better than before by more than so many standard errors."""
    gain = before - losses
    return bool(np.mean(gain) > standard_errors * np.std(gain) / np.sqrt(max(len(gain), 1)))


def _losses(truth: Floats, log_likelihood: Floats) -> Floats:
    """The log-loss of each vote."""
    return -np.log(np.einsum("qc,qc->q", truth, np.exp(log_likelihood)))


def _learn_with_source(
    a: Annotations, how: _Trial, source: Floats, tol: float = 1e-5
) -> TruthModel:
    found = shrunk_dawid_skene(
        a,
        prior_strength=how.strength,
        use_confidence=False,
        tol=tol,
        log_source=source if how.worth else None,
    ).details
    crowd = found["crowd"]
    shrinking = Shrinking(how.strength, along_order=False)
    return TruthModel(found["prior"], found["confusion"], crowd, crowd, how.correlation, shrinking)


def _log_ratio(a: Annotations, also: Opinion | NDArray[Any]) -> Floats:
    """What a source says beyond how common labels are with it, (N, K)."""
    p = also.probability if isinstance(also, Opinion) else np.asarray(also, dtype=float)
    shape = len(a.items), len(a.labels)
    if p.shape != shape or not np.all(p >= 0) or not np.all(np.sum(p, axis=1) > 0):
        raise ValueError(
            f"`also` must be opinions or probabilities of the items by label, {shape}; "
            f"{p.shape} came" + (", some negative or not numbers." if p.shape == shape else ".")
        )
    p = np.maximum(p / np.sum(p, axis=1, keepdims=True), em.FLOOR)
    return np.log(p) - np.log(np.mean(p, axis=0))


def _of_fact(q: Floats, prior: Floats) -> Opinion:
    """As uncertain as the probabilities allow: 1 at the prior, 0 where a label is ruled out."""
    a = prior
    u = np.minimum(np.min(q[:, a > 0] / a[a > 0], axis=1), 1)
    return Opinion(np.maximum(q - u[:, None] * a, 0), u, np.tile(a, (len(u), 1)))

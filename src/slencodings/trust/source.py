"""What is true of items, from their annotations and a source from outside, such as a network."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import em
from slencodings.annotations import Annotations, base_rate_of, leave_one_out, sums_by
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust.crowd import of_fact
from slencodings.trust.learn_crowd import count_each, learn_crowd
from slencodings.trust.truth import (
    ROUGHLY,
    STRENGTHS,
    Shrinking,
    TruthModel,
    fit_model,
    log_likelihoods,
    posterior,
)
from slencodings.trust.worth import ENOUGH

# How far the source is believed if not as it is, and how alike the errors of people on one item
# are; both are chosen on held-out votes.
_OTHER_WORTHS = (0.5, 2.0, 4.0)
_CORRELATIONS = (0.02, 0.1, 0.3)
_FOLDS = 4
# How much flatter a source may be said to be that is too sure of votes.
_FLATTER = (0.1, 0.25, 0.5)


class Sourced(NamedTuple):
    """What is true of items by their annotations and a source, and what that is worth.

    Attributes
    ----------
    truth : Opinion (N,), which label is right
    worth : t, how far the source is believed: 0 not at all, 1 as it is
    loss : the log-loss of held-out votes, by annotators who are known
    fused : whether it says something about items that have annotations, or about others alone
    model : what annotators say where a label is true, learned along with it
    log_source : (N, K), what the source adds to the log-odds of labels, log(r_i / mean r)
    """

    truth: Opinion
    worth: float
    loss: float
    fused: bool
    model: TruthModel
    log_source: Floats

    def vote_losses(
        self, annotations: Annotations, also: Opinion | NDArray[Any] | None = None
    ) -> Floats:
        """The log-loss of each vote on these N items from the source alone, by known annotators.

        - log sum_c p(truth c | source) E_mc(vote)

        The source is taken as far as it is believed; another one, `also`, as it is.
        """
        source = self.log_source
        if also is not None:
            source = _log_ratio(_probabilities(annotations, also), worth=1.0)
        p = self.model.posterior(source, np.zeros(len(source)))
        each = log_likelihoods(annotations, np.log(self.model.confusion))
        return _losses(p[annotations.item], each)


def truth_with_source(
    annotations: Annotations,
    also: Opinion | NDArray[Any],
    *,
    rng: np.random.Generator | int = 0,
) -> Sourced:
    """Fuse what annotators say of items with what a source says, by a worth that is learned.

    log q_i = log p + log(r_i / mean r) + sum of log-likelihoods of its annotations + const,
    r_i ~ s_i^t

    s are the source's probabilities, which must not come from the item's own annotations: a
    network's on items that it was not trained on, a rule's, another crowd's. t is chosen so that
    votes on held-out items are predicted best, each by what its annotator says where a label is
    true, as `learn_truth` has it. So items with one annotation, or none, have a truth, and
    annotators can be compared who share no items.

    A source is believed only if votes are predicted better with it by two standard errors; else
    the truth is that of `learn_crowd`. Where no item has two annotations, people are also taken at
    their word (`count_each`) unless votes are predicted better if they may err; the source then
    speaks for items without annotations alone.

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
    a = a.rows(np.argsort(a.item, kind="stable"))
    p = _probabilities(a, also)
    trials = _Trials.of(a, p, rng)
    without = trials.run_strengths(0.0)
    best = as_it_is = trials.run_strengths(1.0)
    for worth in _OTHER_WORTHS:
        tried = trials.run(worth, as_it_is.strength)
        if tried.loss < best.loss and surely_lower(tried.each, as_it_is.each, standard_errors=2):
            best = tried
    believed = surely_lower(best.each, without.each, standard_errors=2)
    if not np.any(np.bincount(a.item) > 1):
        word = trials.at_their_word()
        return (
            _fuse(a, best, p) if believed and best.loss < word.loss else _at_their_word(a, word, p)
        )
    return _fuse(a, best, p) if believed else _learn_apart(a, without, rng)


def as_sure_as_votes(annotations: Annotations, p: Floats) -> Floats:
    """What a source says people would say, (N, K), flattened if votes show that it is too sure.

    p_i^t / const;   t = 1 unless votes are predicted better by another, by two standard errors

    Of a source that is too sure, people would seem to err wherever it does.
    """
    as_it_is = word_losses(annotations, np.log(p))
    each = {t: word_losses(annotations, _powered(p, t)) for t in _FLATTER}
    surely = [t for t in _FLATTER if surely_lower(each[t], as_it_is, standard_errors=2)]
    return np.exp(_powered(p, min(surely, key=lambda t: np.mean(each[t])))) if surely else p


def truth_like(
    sourced: Sourced, annotations: Annotations, also: Opinion | NDArray[Any], *, worth: float
) -> Sourced:
    """The same from other annotations, or another source, with what was chosen but the worth."""
    strength, correlation = sourced.model.shrinking.strength, sourced.model.correlation
    how = _Trial(sourced.loss, worth, strength, correlation, np.zeros(0))
    return _fuse(annotations, how, _probabilities(annotations, also))


def _fuse(a: Annotations, how: _Trial, p: Floats) -> Sourced:
    source = _log_ratio(p, how.worth)
    model = _learn_with_source(a, how, source)
    each = log_likelihoods(a, np.log(model.confusion))
    n = np.bincount(a.item, minlength=len(a.items)).astype(float)
    summed = np.stack([sums_by(a.item, x, len(a.items)) for x in each.T], axis=1)
    q = posterior(em.safe_log(model.prior) + source, summed, n, how.correlation)
    return Sourced(of_fact(q, model.prior), how.worth, how.loss, True, model, source)


def _learn_apart(a: Annotations, without: _Trial, rng: np.random.Generator) -> Sourced:
    """A source that is not believed: what is true is what the crowd alone says."""
    nothing = np.zeros((len(a.items), len(a.labels)))
    model = _learn_with_source(a, without, nothing)
    return Sourced(learn_crowd(a, rng=rng).truth(a), 0.0, without.loss, False, model, nothing)


def _at_their_word(a: Annotations, how: _Trial, p: Floats) -> Sourced:
    """Each vote counts once, and items without any are as the source says, if it says anything.

    Where a vote and the source differ nobody else says which is wrong, and EM would give items any
    label that its confusions then explain.
    """
    M, K = len(a.annotators), len(a.labels)
    # Hardly anything is wrong, so that soft labels have likelihoods, too.
    source, right = _log_ratio(p, how.worth), np.maximum(np.eye(K), em.FLOOR)
    counted, prior = count_each(a).truth(a), base_rate_of(a.sums().sum(axis=0))
    from_source = of_fact(_by_source(a, source), prior)
    heard = np.bincount(a.item, minlength=len(a.items)) > 0
    truth = Opinion(
        np.where(heard[:, None], counted.belief, from_source.belief),
        np.where(heard, counted.uncertainty, from_source.uncertainty),
        from_source.base_rate,
    )
    every = np.broadcast_to(right, (M, K, K))
    model = TruthModel(prior, every, right, right, 0.0, Shrinking(np.inf, along_order=False))
    return Sourced(truth, how.worth, how.loss, False, model, source)


def _by_source(a: Annotations, source: Floats) -> Floats:
    """What is true by a source and by how common labels are, (N, K)."""
    log_prior = np.log(base_rate_of(a.sums().sum(axis=0))) + source
    return posterior(log_prior, 0 * source, np.zeros(len(source)), 0)


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
    p: Floats
    fold: Codes

    @classmethod
    def of(cls, a: Annotations, p: Floats, rng: np.random.Generator) -> _Trials:
        fold = rng.integers(0, _FOLDS, len(a.items))
        some = rng.random(len(a.items)) < ENOUGH / max(len(a.item), 1)
        return cls(a.rows(some[a.item]), p, fold)

    def run(self, worth: float, strength: float) -> _Trial:
        """The best correlation with these, each vote predicted from all others and from none."""
        a, source = self.annotations, _log_ratio(self.p, worth)
        how = _Trial(0, worth, strength, 0, np.zeros(0))
        log_prior, each = np.zeros((2, len(a.item), len(a.labels)))
        for f in range(_FOLDS):
            test = self.fold[a.item] == f
            if test.any() and not test.all():
                model = _learn_with_source(a.rows(~test), how, source, ROUGHLY)
                each[test] = log_likelihoods(a.rows(test), np.log(model.confusion))
                log_prior[test] = em.safe_log(model.prior) + source[a.item[test]]
        rest, n = -leave_one_out(-each, a.item), (np.bincount(a.item)[a.item] - 1).astype(float)
        alone = _losses(posterior(log_prior, 0 * rest, 0 * n, 0), each)
        found = {c: _losses(posterior(log_prior, rest, n, c), each) for c in _CORRELATIONS}
        best = min(found, key=lambda c: np.mean(found[c]))
        both = (alone + found[best]) / 2
        return _Trial(float(np.mean(both)), worth, strength, best, both)

    def run_strengths(self, worth: float) -> _Trial:
        return min((self.run(worth, s) for s in STRENGTHS), key=_by_loss)

    def at_their_word(self) -> _Trial:
        """If people only say what is true: with the source as it is, if that surely helps."""
        a, tried = self.annotations, list[_Trial]()
        for worth in (0.0, 1.0):
            each = word_losses(a, np.log(_by_source(a, _log_ratio(self.p, worth))))
            tried.append(_Trial(float(np.mean(each)), worth, 0, 0, each))
        without, with_source = tried
        helps = surely_lower(with_source.each, without.each, standard_errors=2)
        return with_source if helps else without


def surely_lower(losses: Floats, before: Floats, *, standard_errors: float) -> bool:
    """Whether votes are predicted better than before by more than so many standard errors."""
    gain = before - losses
    return bool(np.mean(gain) > standard_errors * np.std(gain) / np.sqrt(max(len(gain), 1)))


def word_losses(a: Annotations, log_p: Floats) -> Floats:
    """The log-loss of each vote where log p (N, K) is what people say of items."""
    log_p = log_p[a.item]
    return -(np.sum(a.y * log_p, axis=1) if a.soft else log_p[np.arange(len(a.y)), a.y])


def _losses(truth: Floats, log_likelihood: Floats) -> Floats:
    """The log-loss of each vote."""
    return -np.log(np.einsum("qc,qc->q", truth, np.exp(log_likelihood)))


def _learn_with_source(
    a: Annotations, how: _Trial, source: Floats, tol: float = 1e-5
) -> TruthModel:
    shrinking = Shrinking(how.strength, along_order=False)
    log_source = source if how.worth else None
    return fit_model(a, shrinking, how.correlation, log_source=log_source, tol=tol)


def _probabilities(a: Annotations, also: Opinion | NDArray[Any]) -> Floats:
    """What a source says, (N, K), none of it impossible."""
    p = also.probability if isinstance(also, Opinion) else np.asarray(also, dtype=float)
    shape = len(a.items), len(a.labels)
    if p.shape != shape or not np.all(p >= 0) or not np.all(np.sum(p, axis=1) > 0):
        raise ValueError(
            f"`also` must be opinions or probabilities of the items by label, {shape}; "
            f"{p.shape} came" + (", some negative or not numbers." if p.shape == shape else ".")
        )
    return np.maximum(p / np.sum(p, axis=1, keepdims=True), em.FLOOR)


def _log_ratio(p: Floats, worth: float) -> Floats:
    """What a source says beyond how common labels are with it, (N, K), as far as it is believed."""
    log_p = _powered(p, worth)
    return log_p - np.log(np.mean(np.exp(log_p), axis=0))


def _powered(p: Floats, t: float) -> Floats:
    """The logarithm of p^t / const, (N, K)."""
    log_p = t * np.log(p)
    log_p -= np.max(log_p, axis=1, keepdims=True)
    return log_p - np.log(np.sum(np.exp(log_p), axis=1, keepdims=True))

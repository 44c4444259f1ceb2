"""The methods that are compared, each from a crowd to what it makes of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slencodings import aggregate
from slencodings.aggregate import Aggregate
from slencodings.aggregate.glad import sigmoid
from slencodings.annotations import Annotations
from slencodings.confidence import calibrate
from slencodings.evaluation.predictors import Counts, Model, Reader, Readings
from slencodings.opinion import Floats, Opinion
from slencodings.trust import learn_crowd, learn_trust

# Items' log-ease in GLAD is N(1, 1); summed out over these places of it (Gauss-Hermite).
_EASE_NODES = 9
# Of items with one label, in EBCC.
_TYPES = 3
# One pseudo-count beside a prior weight of two.
_ONE_COUNT = 1 / 3


class Fitted(NamedTuple):
    """What a method learned from a crowd.

    Attributes
    ----------
    reader : predicts annotations from the others on their item
    infers_truth : whether its distribution is about the truth, not about what people say
    probability : (N, K), what it takes for true, or would give to train on if it infers no truth
    uncertainty : (N,), of opinions
    converged : whether learning came to an end
    notes : what people should know
    """

    reader: Reader
    infers_truth: bool
    probability: Floats
    uncertainty: Floats | None = None
    converged: bool = True
    notes: tuple[str, ...] = ()


Method = Callable[[Annotations], Fitted]


def _above_chance(a: Annotations) -> Floats:
    return aggregate.reliability_opinion(a, chance=True).probability[:, 0]


def _reliability_of(method: Callable[..., Aggregate]) -> Callable[[Annotations], Any]:
    return lambda a: method(a).reliability


# Where reliability may come from: scores (M,), NaN if unknown, negative ones possible.
SOURCES: dict[str, Callable[[Annotations], Any]] = {
    "agreement": aggregate.share_of_agreement,
    "agreement above chance": _above_chance,
    "kappa": aggregate.pairwise_kappa,
    "G-index": aggregate.g_index,
    "CrowdTruth": _reliability_of(aggregate.crowdtruth),
    "Dawid-Skene": _reliability_of(aggregate.dawid_skene),
    "MACE": _reliability_of(aggregate.mace),
    "GLAD": _reliability_of(aggregate.glad),
}


def sure(a: Annotations) -> Annotations:
    """The annotations as if nobody had said how sure they were."""
    return replace(a, uncertainty=np.zeros(len(a.item)))


def base_rate(a: Annotations) -> Floats:
    """How often each label was given; one annotation more, spread evenly, so that none has 0."""
    given = a.sums().sum(axis=0)
    return (given + 1 / len(given)) / (given.sum() + 1)


def _majority(a: Annotations) -> Fitted:
    found = aggregate.majority_vote(a, ties="soft")
    reader = Counts(_equal, base_rate(a), prior=0, winner=True)
    return Fitted(reader, True, found.probability)


def _soft(a: Annotations) -> Fitted:
    found = aggregate.soft_vote(a)
    return Fitted(Counts(_equal, base_rate(a), prior=0), True, found.probability)


def _equal(a: Annotations) -> Floats:
    return np.ones(len(a.item))


def _crowdtruth(a: Annotations) -> Fitted:
    found = aggregate.crowdtruth(a)
    quality = np.asarray(found.reliability)

    def weight(c: Annotations) -> Floats:
        return quality[c.annotator]

    return _inferred(Counts(weight, base_rate(a), prior=0), found)


def _dawid_skene(a: Annotations, *, use_confidence: bool = False) -> Fitted:
    found = aggregate.dawid_skene(a, use_confidence=use_confidence)
    prior, confusion = found.details["prior"], found.details["confusion"]
    return _inferred(Model(prior, confusion, use_confidence), found)


def _shrunk(a: Annotations) -> Fitted:
    found = aggregate.shrunk_dawid_skene(sure(a))
    return _inferred(Model(found.details["prior"], found.details["confusion"]), found)


def _bcc(a: Annotations, *, types: int) -> Fitted:
    found = aggregate.bcc(sure(a), types=types)
    prior, confusion = found.details["prior_by_type"], found.details["confusion_by_type"]
    M, K = confusion.shape[:2]
    by_hypothesis = np.swapaxes(confusion, 1, 2).reshape(M, types * K, K)
    return _inferred(Model(prior.T.ravel(), by_hypothesis), found)


def _mace(a: Annotations) -> Fitted:
    found = aggregate.mace(sure(a))
    strategy, spamming = found.details["strategy"], found.details["spamming"]
    K = strategy.shape[1]
    know = np.asarray(found.reliability)
    confusion = know[:, None, None] * np.eye(K) + (spamming[:, None] * strategy)[:, None]
    # VB's expectations of logarithms sum to less than one.
    confusion /= confusion.sum(axis=2, keepdims=True)
    return _inferred(Model(np.full(K, 1 / K), confusion), found)


def _glad(a: Annotations) -> Fitted:
    found = aggregate.glad(sure(a))
    K = len(a.labels)
    node, weight = np.polynomial.hermite_e.hermegauss(_EASE_NODES)
    x = found.details["ability"][:, None] * np.exp(1 + node)
    # 1 - p would be 0 where somebody is very able, and no slip could be explained.
    p, wrong = sigmoid(x), sigmoid(-x) / max(K - 1, 1)
    p = p if K > 1 else np.ones_like(p)
    confusion = np.where(np.eye(K) == 1, p[..., None, None], wrong[..., None, None])
    prior = np.repeat(weight / weight.sum() / K, K)
    return _inferred(Model(prior, confusion.reshape(len(p), -1, K)), found)


def _inferred(reader: Reader, found: Aggregate) -> Fitted:
    return Fitted(reader, True, found.probability, converged=found.details["converged"])


def _with_source(source: Callable[[Annotations], Any]) -> Method:
    def method(a: Annotations) -> Fitted:
        mapped = aggregate.as_reliability(source(sure(a)))
        return _sle(a, mapped.reliability)._replace(notes=_notes(a, mapped))

    return method


def _notes(a: Annotations, mapped: aggregate.Mapped) -> tuple[str, ...]:
    seen = np.unique(a.annotator)
    unknown = np.intersect1d(mapped.unknown, seen)
    texts = {
        "{} annotators score below 0, which counts as 0": len(mapped.negative),
        "{} annotators share no item with anybody and get the mean": len(unknown),
    }
    return tuple(text.format(f"{n:,}") for text, n in texts.items() if n)


def _given(a: Annotations) -> Fitted:
    target = aggregate.sle(sure(a), base_rate=base_rate(a))
    return _opinions(target, lambda c: _odds(aggregate.certainty(sure(c))), base_rate(a))


def _sle(a: Annotations, r: Any, *, smoothing: float = 0.01, keep: bool = False) -> Fitted:
    """SLE with reliability r, one for all or (M,); `keep` takes stated confidence at its word."""

    def doubt(c: Annotations) -> Annotations:
        return c if keep else sure(c)

    prior = base_rate(a)
    target = aggregate.sle(doubt(a), reliability=r, smoothing=smoothing, base_rate=prior)
    return _opinions(
        target,
        lambda c: _odds(aggregate.certainty(doubt(c), reliability=r, smoothing=smoothing)),
        prior,
    )


def _calibrated(a: Annotations, source: Callable[[Annotations], Any] | None) -> Fitted:
    earned = calibrate(a)
    notes: tuple[str, ...] = ()
    r: Any = 1.0
    if source is not None:
        mapped = aggregate.as_reliability(source(sure(a)))
        r, notes = mapped.reliability, _notes(a, mapped)

    def doubt(c: Annotations) -> Annotations:
        return replace(c, uncertainty=earned(c.confidence))

    prior = base_rate(a)
    target = aggregate.sle(doubt(a), reliability=r, base_rate=prior)
    return _opinions(
        target, lambda c: _odds(aggregate.certainty(doubt(c), reliability=r)), prior
    )._replace(notes=notes)


def _learned(a: Annotations) -> Fitted:
    trust = learn_trust(sure(a))
    target = trust.opinion(sure(a))

    def weight(c: Annotations) -> Floats:
        return trust.annotation_worth(sure(c))

    reader = Counts(weight, trust.base_rate, meaning=trust.meaning)
    return Fitted(reader, False, target.probability, target.uncertainty, trust.converged)


def _learned_crowd(a: Annotations) -> Fitted:
    crowd = learn_crowd(sure(a))
    votes, truth = crowd.votes(sure(a)), crowd.truth(sure(a))
    reader = Readings(crowd)
    return Fitted(reader, False, truth.probability, votes.uncertainty, crowd.converged)


def _opinions(target: Opinion, weight: Callable[[Annotations], Floats], a: Floats) -> Fitted:
    return Fitted(Counts(weight, a), False, target.probability, target.uncertainty)


def _odds(c: Floats) -> Floats:
    """Pseudo-counts per unit of prior weight; smoothing keeps c below 1."""
    return c / (1 - c)


@dataclass(frozen=True)
class _Row:
    """A method, what a crowd must have for it, and whether people know it by name."""

    name: str
    fit: Method
    needs: Callable[[Annotations], bool] = lambda a: True
    well_known: bool = False


def _ids(a: Annotations) -> bool:
    return len(a.annotators) > 1


def _doubts(a: Annotations) -> bool:
    return len(np.unique(a.uncertainty)) > 1


def _stated(a: Annotations) -> bool:
    return a.stated is not None


METHODS = (
    _Row("majority vote", _majority, well_known=True),
    _Row("soft votes", _soft, well_known=True),
    _Row("SLE, one count each", lambda a: _sle(a, _ONE_COUNT, smoothing=0.0)),
    _Row("SLE, full trust", lambda a: _sle(a, 1.0), well_known=True),
    _Row("CrowdTruth", _crowdtruth, _ids),
    _Row("Dawid-Skene", _dawid_skene, _ids, well_known=True),
    _Row("Dawid-Skene, shrunk to the crowd", _shrunk, _ids),
    _Row("IBCC", lambda a: _bcc(a, types=1), _ids),
    _Row("EBCC", lambda a: _bcc(a, types=_TYPES), _ids),
    _Row("MACE", _mace, _ids, well_known=True),
    _Row("GLAD", _glad, _ids),
    *(_Row(f"SLE, {name}", _with_source(source), _ids) for name, source in SOURCES.items()),
    _Row(
        "Dawid-Skene, weighted by confidence",
        lambda a: _dawid_skene(a, use_confidence=True),
        lambda a: _ids(a) and _doubts(a),
    ),
    _Row("SLE, given reliability", _given, lambda a: a.reliability is not None, well_known=True),
    _Row("SLE, stated confidence", lambda a: _sle(a, 1.0, keep=True), _doubts, well_known=True),
    _Row("SLE, calibrated confidence", lambda a: _calibrated(a, None), _stated, well_known=True),
    _Row(
        "SLE, kappa and calibrated confidence",
        lambda a: _calibrated(a, SOURCES["kappa"]),
        lambda a: _ids(a) and _stated(a),
    ),
    _Row("SLE, learned", _learned, well_known=True),
    _Row("learned crowd", _learned_crowd, well_known=True),
)


def methods_for(a: Annotations) -> dict[str, Method]:
    """The methods that make sense for a crowd, by name: some need annotator ids, or confidence."""
    return {row.name: row.fit for row in METHODS if row.needs(a)}


def well_known(a: Annotations) -> list[str]:
    """Those of them that people know by name."""
    return [row.name for row in METHODS if row.well_known and row.needs(a)]

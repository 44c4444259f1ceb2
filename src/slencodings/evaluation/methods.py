"""The methods that are compared, each from a crowd to what it makes of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slencodings import aggregate
from slencodings.aggregate import Aggregate
from slencodings.annotations import Annotations, counted
from slencodings.confidence import calibrate
from slencodings.evaluation.learner import Encoding, Fitted, Learner, Method, sure
from slencodings.evaluation.predictors import (
    Averaged,
    Counts,
    Model,
    Predictor,
    Readings,
    RightOrNot,
)
from slencodings.opinion import Floats
from slencodings.trust import learn_crowd
from slencodings.trust.learn_crowd import learns_confusions

# Items' log-ease in GLAD is N(1, 1); summed out over these places of it (Gauss-Hermite).
_EASE_NODES = 9

# Of items with one label, in EBCC.
_TYPES = 3

# Certainty that is worth one pseudo-count, beside a prior weight of two.
_SURE_OF_ONE = 1 / 3

# Where reliability may come from: scores (M,), NaN if unknown, negative ones possible.
SOURCES: dict[str, Callable[[Learner], Any]] = {
    "agreement": lambda c: aggregate.share_of_agreement(c.sure),
    "agreement above chance": lambda c: _above_chance(c.sure),
    "kappa": lambda c: c.kappa,
    "G-index": lambda c: aggregate.g_index(c.sure),
    "CrowdTruth": lambda c: c.crowdtruth.reliability,
    "Dawid-Skene": lambda c: c.dawid_skene.reliability,
    "MACE": lambda c: c.mace.reliability,
    "GLAD": lambda c: c.glad.reliability,
}


def _above_chance(a: Annotations) -> Floats:
    return aggregate.reliability_opinion(a, chance=True).probability[:, 0]


def _majority(c: Learner) -> Fitted:
    found = aggregate.majority_vote(c.annotations, ties="soft")
    reader = Counts(_equal, c.base_rate, prior=0, winner=True)
    return Fitted(reader, True, Encoding(found.probability))


def _soft(c: Learner) -> Fitted:
    found = aggregate.soft_vote(c.annotations)
    return Fitted(Counts(_equal, c.base_rate, prior=0), True, Encoding(found.probability))


def _equal(a: Annotations) -> Floats:
    return np.ones(len(a.item))


def _crowdtruth(c: Learner) -> Fitted:
    quality = np.asarray(c.crowdtruth.reliability)

    def weight(a: Annotations) -> Floats:
        return quality[a.annotator]

    return _inferred(Counts(weight, c.base_rate, prior=0), c.crowdtruth)


def _model(found: Aggregate, *, weighted: bool = False) -> Fitted:
    """Dawid and Skene's, however it was learned."""
    model = Model(found.details["prior"], found.details["confusion"], weighted)
    return _inferred(model, found)


def _shrunk(c: Learner) -> Fitted:
    return _model(aggregate.shrunk_dawid_skene(c.sure))


def _bcc(c: Learner, *, types: int) -> Fitted:
    found = aggregate.bcc(c.sure, types=types)
    prior, confusion = found.details["prior_by_type"], found.details["confusion_by_type"]
    M, K = confusion.shape[:2]
    by_hypothesis = np.swapaxes(confusion, 1, 2).reshape(M, types * K, K)
    return _inferred(Model(prior.T.ravel(), by_hypothesis), found)


def _mace(c: Learner) -> Fitted:
    strategy, spamming = c.mace.details["strategy"], c.mace.details["spamming"]
    know, wrong = np.asarray(c.mace.reliability)[:, None], spamming[:, None] * strategy
    # VB's expectations of logarithms sum to less than one.
    total = know + wrong.sum(axis=1, keepdims=True)
    right, wrong = (np.log(x / total)[:, None] for x in (know + wrong, wrong))
    return _inferred(RightOrNot(np.ones(1), right, wrong), c.mace)


def _glad(c: Learner) -> Fitted:
    K = len(c.sure.labels)
    node, weight = np.polynomial.hermite_e.hermegauss(_EASE_NODES)
    x = c.glad.details["ability"][:, None] * np.exp(1 + node)
    # 1 - p would be 0 where somebody is very able, and no slip could be explained.
    right, wrong = -np.logaddexp(0, -x), -np.logaddexp(0, x) - math.log(max(K - 1, 1))
    right = right if K > 1 else np.zeros_like(right)
    right, wrong = right[:, :, None], wrong[:, :, None]
    return _inferred(RightOrNot(weight / weight.sum(), right, wrong), c.glad)


def _inferred(reader: Predictor, found: Aggregate) -> Fitted:
    target = Encoding(found.probability, converged=found.details["converged"])
    return Fitted(reader, True, target)


def _by_source(c: Learner, source: Callable[[Learner], Any]) -> Fitted:
    r, notes = _mapped(c, source)
    return _sle(c, r, notes=notes)


def _mapped(c: Learner, source: Callable[[Learner], Any]) -> tuple[Floats, tuple[str, ...]]:
    """Reliability of annotators from scores, (M,), and what to tell of that."""
    mapped = aggregate.as_reliability(source(c))
    below = len(mapped.negative)
    alone = len(np.intersect1d(mapped.unknown, c.sure.annotator))
    s, t = "s" * (below == 1), "s" * (alone == 1)
    notes = [
        (below, f"{counted(below, 'annotator')} score{s} below 0, which counts as 0"),
        (alone, f"{counted(alone, 'annotator')} share{t} no item with anybody and get{t} the mean"),
    ]
    return mapped.reliability, tuple(text for n, text in notes if n)


def _sle(
    c: Learner,
    r: Any,
    *,
    doubt: Callable[[Annotations], Annotations] = sure,
    smoothing: float = 0.01,
    notes: tuple[str, ...] = (),
) -> Fitted:
    """SLE with reliability r: one for all, (M,), or as it came for None; doubt as it is read."""

    def weight(a: Annotations) -> Floats:
        """Pseudo-counts per unit of prior weight; smoothing keeps certainty below 1."""
        certain = aggregate.certainty(doubt(a), reliability=r, smoothing=smoothing)
        return certain / (1 - certain)

    opinion = aggregate.sle(
        doubt(c.annotations), reliability=r, smoothing=smoothing, base_rate=c.base_rate
    )
    target = Encoding(opinion.probability, opinion.uncertainty, True, notes=notes)
    return Fitted(Counts(weight, c.base_rate), False, target)


def _calibrated(c: Learner, source: Callable[[Learner], Any] | None) -> Fitted:
    earned = calibrate(c.annotations)
    r, notes = (1.0, ()) if source is None else _mapped(c, source)
    return _sle(c, r, doubt=lambda a: replace(a, uncertainty=earned(a.confidence)), notes=notes)


def _averaged(c: Learner) -> Fitted:
    reader = Averaged.learn(c.sure)
    return Fitted(reader, False, Encoding(reader.target(c.sure)))


def _learned_crowd(c: Learner, *, as_names: bool = False) -> Fitted:
    crowd = c.crowd
    if as_names:
        crowd = learn_crowd(replace(c.sure, ordered=False), scored=c.scored)
    votes, truth = crowd.votes(c.sure), crowd.truth(c.sure)
    target = Encoding(truth.probability, votes.uncertainty, True, crowd.converged)
    return Fitted(Readings(crowd), False, target)


@dataclass(frozen=True)
class _Row:
    """A method, what a crowd must have for it, whether people know it by name, and pool it.

    Some learn a confusion of labels for each annotator, which of many labels is too much.
    """

    name: str
    fit: Method
    needs: Callable[[Annotations], bool] = lambda a: True
    well_known: bool = False
    pooled: bool = False
    confusions: bool = False

    def suits(self, a: Annotations) -> bool:
        return self.needs(a) and not (self.confusions and not learns_confusions(a))


def _ids(a: Annotations) -> bool:
    return len(a.annotators) > 1


def _doubts(a: Annotations) -> bool:
    return len(np.unique(a.uncertainty)) > 1


def _stated(a: Annotations) -> bool:
    return a.stated is not None


def _ordered(a: Annotations) -> bool:
    return a.ordered


METHODS = (
    _Row("majority vote", _majority, well_known=True),
    _Row("soft votes", _soft, well_known=True, pooled=True),
    _Row(
        "SLE, one count each",
        lambda c: _sle(c, _SURE_OF_ONE, smoothing=0.0),
        well_known=True,
        pooled=True,
    ),
    _Row("SLE, full trust", lambda c: _sle(c, 1.0), well_known=True),
    _Row("CrowdTruth", _crowdtruth, _ids),
    _Row("Dawid-Skene", lambda c: _model(c.dawid_skene), _ids, well_known=True, confusions=True),
    _Row("Dawid-Skene, shrunk to the crowd", _shrunk, _ids, pooled=True, confusions=True),
    _Row("IBCC", lambda c: _bcc(c, types=1), _ids, confusions=True),
    _Row("EBCC", lambda c: _bcc(c, types=_TYPES), _ids, pooled=True, confusions=True),
    _Row("MACE", _mace, _ids, well_known=True, pooled=True),
    _Row("GLAD", _glad, _ids, pooled=True),
    *(
        _Row(f"SLE, {name}", partial(_by_source, source=of), _ids, confusions=name == "Dawid-Skene")
        for name, of in SOURCES.items()
    ),
    _Row(
        "Dawid-Skene, weighted by confidence",
        lambda c: _model(aggregate.dawid_skene(c.annotations), weighted=True),
        lambda a: _ids(a) and _doubts(a),
        confusions=True,
    ),
    _Row(
        "SLE, given reliability",
        lambda c: _sle(c, None),
        lambda a: a.reliability is not None,
        well_known=True,
    ),
    _Row(
        "SLE, stated confidence",
        lambda c: _sle(c, 1.0, doubt=lambda a: a),
        _doubts,
        well_known=True,
    ),
    _Row("SLE, calibrated confidence", lambda c: _calibrated(c, None), _stated, well_known=True),
    _Row(
        "SLE, kappa and calibrated confidence",
        lambda c: _calibrated(c, SOURCES["kappa"]),
        lambda a: _ids(a) and _stated(a),
    ),
    _Row("averaged numbers", _averaged, _ordered, well_known=True, pooled=True),
    _Row("learned crowd, labels as names", lambda c: _learned_crowd(c, as_names=True), _ordered),
    _Row("learned crowd", _learned_crowd, well_known=True, pooled=True),
)


def methods_for(a: Annotations) -> dict[str, Method]:
    """The methods that make sense for a crowd, by name: some need annotator ids, or confidence."""
    return {row.name: row.fit for row in METHODS if row.suits(a)}


def left_out(a: Annotations) -> list[str]:
    """Those that would make sense, but for a confusion of so many labels for each annotator."""
    return [row.name for row in METHODS if row.needs(a) and not row.suits(a)]


def pooled(a: Annotations) -> list[str]:
    """Those of them that a pool chooses from: one of each kind, none that takes another's model."""
    return [row.name for row in METHODS if row.pooled and row.suits(a)]


def well_known(a: Annotations) -> list[str]:
    """Those of them that people know by name."""
    return [row.name for row in METHODS if row.well_known and row.suits(a)]

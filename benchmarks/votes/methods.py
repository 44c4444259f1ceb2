"""What a method is, and those of this package: functions from annotations to predictions."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import slencodings
from slencodings.annotations import Annotations
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.learner import Method as Fit
from slencodings.evaluation.methods import METHODS
from slencodings.evaluation.predictors import Predictor, crowd_habits
from slencodings.opinion import Codes, Floats

Own = Callable[[Codes, Codes], Floats]


class Prediction(NamedTuple):
    """What a method says of the N items of the annotations that it was given, K labels.

    Attributes
    ----------
    probability : (N, K), what is true of each item; or what people say of it, if `of_votes`
    of_votes : what is true is translated into votes by the benchmark; what people say is not
    spread : (N,), 1 / sum(alpha) of a Dirichlet: how far several votes may stray together from
        their probabilities; none if no such doubt is told
    own : from items (Q,) and annotators (Q,), codes, what these very people say of them (Q, K);
        the benchmark learns it from `probability` if absent
    truth : (N, K), what is true, if `of_votes` and it is not the same
    """

    probability: Floats
    of_votes: bool = False
    spread: Floats | None = None
    own: Own | None = None
    truth: Floats | None = None


class Method(NamedTuple):
    """A function from annotations to a `Prediction`, or to what is true of each item, (N, K).

    Attributes
    ----------
    suits : whether a crowd has what it needs
    version : its rows are measured anew when this is another
    """

    run: Callable[[Annotations], Prediction | Floats]
    version: str
    suits: Callable[[Annotations], bool] = lambda annotations: True


def predict(method: Method, annotations: Annotations) -> Prediction:
    """What a method says, checked."""
    said = method.run(annotations)
    said = said if isinstance(said, Prediction) else Prediction(np.asarray(said, dtype=float))
    shape = len(annotations.items), len(annotations.labels)
    for name, p in (("probability", said.probability), ("truth", said.truth)):
        if p is None:
            continue
        if p.shape != shape:
            raise ValueError(f"`{name}` must be {shape}, items and labels; shape {p.shape} came.")
        bad = np.flatnonzero(~(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-6)))
        if len(bad):
            raise ValueError(
                f"`{name}` must not be negative and must sum to 1 for every item; "
                f"{len(bad)} of {len(p)} do not, first {p[bad[0]]} of item {bad[0]}."
            )
    return said


def ours() -> dict[str, Method]:
    """The rows of `slencodings.compare`."""
    version = f"slencodings {slencodings.__version__}"
    return {row.name: Method(_fitted(row.fit), version, row.needs) for row in METHODS}


def _fitted(fit: Fit) -> Callable[[Annotations], Prediction]:
    def run(train: Annotations) -> Prediction:
        fitted = fit(Learner(train))
        reader, N = fitted.reader, len(train.items)
        asked = _asked(train, np.arange(N), np.zeros(N, dtype=np.intp))
        said = reader.predict(asked)[:N]
        if fitted.infers_truth:
            said = said @ crowd_habits(reader.predict(train), train)
        spread = reader.spread(asked)[:N] if fitted.target.doubts else None
        own = _own(reader, train)
        return Prediction(said, True, spread, own, fitted.target.probability)

    return run


def _asked(train: Annotations, item: Codes, annotator: Codes) -> Annotations:
    """Annotations to predict, with the others on their items after them; their labels are void."""
    Q, R = len(item), len(train.item)
    rows = train.rows(np.r_[np.zeros(Q, dtype=np.intp), np.arange(R)])
    return replace(rows, item=np.r_[item, train.item], annotator=np.r_[annotator, train.annotator])


def _own(reader: Predictor, train: Annotations) -> Own:
    def own(item: Codes, annotator: Codes) -> Floats:
        # Each question is an item of its own, so that none is among the others of another.
        order = np.argsort(train.item, kind="stable")
        size = np.bincount(train.item, minlength=len(train.items))
        start = np.cumsum(size) - size
        n, Q = size[item], len(item)
        place = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        others = train.rows(order[np.repeat(start[item], n) + place])
        apart = replace(others, item=np.repeat(np.arange(Q), n), items=np.arange(Q))
        return reader.predict_own(train, _asked(apart, np.arange(Q), annotator))[:Q]

    return own


def from_file(word: str) -> dict[str, Method]:
    """The method of FILE.py:FUNCTION; it is run."""
    path, _, name = word.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(
            f"a method is FILE.py:FUNCTION, and the file must be there; {word!r} came."
        )
    found = runpy.run_path(path)
    if not callable(found.get(name)):
        raise ValueError(f"{path} must have a function {name!r}; it has none.")
    version = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    return {name: Method(found[name], f"{Path(path).name} {version}")}


def chosen(known: Mapping[str, Method], names: list[str]) -> dict[str, Method]:
    """Those asked for, by name; all if none."""
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"methods are {', '.join(known)}; {', '.join(unknown)} came.")
    return {name: known[name] for name in names or known}

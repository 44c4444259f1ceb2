"""What a crowd is worth, as a value to read, store and apply."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Opinion
from slencodings.trust import objective
from slencodings.trust.objective import Ridge

Floats = NDArray[np.float64]
Counts = NDArray[np.intp]

_HOW = "Make one: sle encode IN -o OUT --trust learned --save-trust trust.json"
# How many annotators and confusions are printed, and labels in a full matrix.
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Trust:
    """What the annotations of a crowd are worth, and what they say.

    w = worth[annotator] x share[level] pseudo-counts per unit of prior weight, of meaning[label]

    As the operators see it (Eqs. 4, 5), the annotator's reliability is r = worth / (1 + worth),
    which is theirs at the most telling level of confidence, and at other levels uncertainty is
    u = (1 - r)(1 - share) / (1 - r + r share), so that r (1 - u) = w / (1 + w).

    Attributes
    ----------
    annotators, worth, count : arrays (M,), names, worth and how many annotations it comes from
    typical_worth : the geometric mean of `worth`, which annotators unknown so far get
    levels, share, level_count : arrays (L,), stated confidence, ascending, and the share of worth
        that is left at it, in (0, 1]; empty if confidence was not learned
    labels, meaning : arrays (K,), (K, K): what a vote for label j (row) says about label k
    base_rate : array (K,), how often each label was given
    ridge : how strongly each part was held back
    losses : mean held-out vote log-loss: "votes" at one pseudo-count each and W = 2, "learned" on
        the annotations it was learned from, "held_out" on items left out while choosing ridges
    from_uncertainty : whether confidence is 1 - uncertainty, as nobody stated any
    converged : whether learning came to an end
    """

    annotators: NDArray[Any]
    worth: Floats
    count: Counts
    typical_worth: float
    levels: Floats
    share: Floats
    level_count: Counts
    labels: NDArray[Any]
    meaning: Floats
    base_rate: Floats
    ridge: Ridge
    losses: dict[str, float]
    from_uncertainty: bool
    converged: bool

    @property
    def reliability(self) -> dict[Any, float]:
        """The reliability of each annotator, at the most telling level of confidence."""
        return self.reliability_of(self.annotators.tolist())

    def reliability_of(self, annotators: Iterable[Any]) -> dict[Any, float]:
        """The reliability of each of these annotators; the typical one where they are new."""
        known = self._known()
        worth = {name: known.get(name, self.typical_worth) for name in annotators}
        return {name: w / (1 + w) for name, w in worth.items()}

    def uncertainty(self, stated: Any, reliability: Any = None) -> Any:
        """Uncertainty of stated confidence, for an annotator of this reliability.

        u = (1 - r)(1 - s) / (1 - r + r s),   s the share of the nearest level

        Parameters
        ----------
        stated : array (...), or a narwhals expression to run inside a table; missing stays missing
        reliability : the same kind, or a number; the typical one when absent
        """
        r = self.typical_worth / (1 + self.typical_worth) if reliability is None else reliability
        s = self.share_at(stated)
        return (1 - r) * (1 - s) / (1 - r + r * s)

    def __call__(self, stated: Any) -> Any:
        """Uncertainty of stated confidence for the typical annotator: a `confidence_scale`."""
        return self.uncertainty(stated)

    def annotation_worth(self, annotations: Annotations) -> Floats:
        """What each annotation is worth, (R,), per unit of prior weight; c = w / (1 + w)."""
        known = self._known()
        names = annotations.annotators.tolist()
        worth = np.asarray([known.get(name, self.typical_worth) for name in names])
        if not len(self.levels):
            return worth[annotations.annotator]
        return worth[annotations.annotator] * self.share_at(self.confidence(annotations))

    def confidence(self, annotations: Annotations) -> Floats:
        """The confidence of each annotation, (R,), as it was learned: as stated, or 1 - u."""
        if self.from_uncertainty:
            return replace(annotations, stated=None).confidence
        if annotations.stated is None and len(self.levels):
            raise ValueError(
                "`stated` is needed, as this trust was learned with stated confidence; none came. "
                f"Give each annotation one of the levels {_some(self.levels.tolist())}: "
                "dataclasses.replace(annotations, stated=...)."
            )
        return annotations.confidence

    def read(self, annotations: Annotations) -> Annotations:
        """The annotations as they are to be understood: y = meaning, u = 1 / (1 + w).

        `aggregate.sle(trust.read(annotations), smoothing=0, base_rate=trust.base_rate)` is
        `trust.opinion(annotations)`. New annotators have typical worth, new levels the nearest.
        """
        y, C = self._labelled(annotations).y, self.meaning
        if not np.array_equal(C, np.eye(len(C))):
            y = y @ C if annotations.soft else C[y]
        u = 1 / (1 + self.annotation_worth(annotations))
        plain = replace(annotations, stated=None, reliability=None)
        return replace(plain, y=y, uncertainty=u, labels=self.labels)

    def opinion(self, annotations: Annotations) -> Opinion:
        """One opinion for every item, (N,): `fuse(discount(encode(y C, u), r))`.

        b_i = sum_q w_q y_q C / T,   u_i = 1 / T,   T = sum_q w_q + 1

        Examples
        --------
        >>> from slencodings import from_table
        >>> said = {"item": [0, 0, 1, 1], "label": [0, 0, 1, 1]}
        >>> crowd = from_table(said, item="item", label="label")
        >>> from slencodings.trust import learn_trust
        >>> learn_trust(crowd, meaning=False).opinion(crowd).belief.argmax(axis=1)
        array([0, 1])
        """
        w = self.annotation_worth(annotations)
        return self._labelled(annotations).fuse(w, self.base_rate, meaning=self.meaning)

    def log_loss(self, annotations: Annotations) -> Floats:
        """Log-loss of each annotation, predicted by the others on its item, (R,); nan if alone.

        loss_q = - sum_k y_qk log P_qk,   P_q = (sum w y C + a) / (sum w + 1) over the others;
        `metrics.held_out_log_loss`, with what the others say told apart from what is scored.
        """
        y = self._labelled(annotations).y
        everybody = np.zeros(len(y), dtype=np.intp)
        votes = objective.votes(annotations.item, everybody, everybody, y, self.base_rate, 1, 1)
        w = self.annotation_worth(annotations)[votes.row]
        loss = np.full(len(y), np.nan)
        loss[votes.row] = objective.losses(votes, w, self.meaning)
        return loss

    def gain(self) -> str:
        """How much better than plain votes it predicts, in words."""
        votes, held_out = self.losses["votes"], self.losses.get("held_out")
        if held_out is None:
            return (
                f"too few to hold some out; vote log-loss {votes:.3f} (votes) -> "
                f"{self.losses['learned']:.3f} on these themselves"
            )
        return f"held-out vote log-loss {votes:.3f} (votes) -> {held_out:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """The whole value in lists, numbers and names."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
        return plain | {"ridge": self.ridge._asdict()}

    def to_json(self) -> str:
        """The whole value as JSON; `from_json` reads it."""
        try:
            return json.dumps(self.to_dict(), allow_nan=False)
        except TypeError as error:
            raise ValueError(
                "annotators and labels must be text or numbers to be stored; "
                f"{error}. Make them text before learning: str(name)."
            ) from None

    @classmethod
    def from_json(cls, text: str) -> Trust:
        """Read what `to_json` wrote."""
        given: Any = json.loads(text)
        names = {f.name for f in fields(cls)}
        there = cast(dict[str, Any], given) if type(given) is dict else None
        if there is None or set(there) != names:
            came = type(cast(object, given)).__name__ if there is None else sorted(there)
            raise ValueError(
                f"a stored trust has the fields {', '.join(sorted(names))}; {_some(came)} came. "
                "Make it with trust.to_json()."
            )
        made: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(("annotators", "labels"), _names),
            **dict.fromkeys(("worth", "levels", "share", "meaning", "base_rate"), _floats),
            "count": lambda v: np.asarray(v, dtype=np.intp),
            "level_count": lambda v: np.asarray(v, dtype=np.intp),
            "ridge": lambda v: Ridge(**v),
            "typical_worth": float,
        }
        try:
            trust = cls(**{k: made[k](v) if k in made else v for k, v in there.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"a stored trust is damaged: {error}. Store it again.") from error
        M, L, K = (len(x) for x in (trust.annotators, trust.levels, trust.labels))
        shapes = {
            **dict.fromkeys(("worth", "count"), (M,)),
            **dict.fromkeys(("share", "level_count"), (L,)),
            "base_rate": (K,),
            "meaning": (K, K),
        }
        for name, shape in shapes.items():
            if getattr(trust, name).shape != shape:
                raise ValueError(
                    f"a stored trust is damaged: {name} must have the shape {shape}; "
                    f"{getattr(trust, name).shape} came. Store it again."
                )
        return trust

    def __str__(self) -> str:
        given = ", ".join(f"{name} {loss:.3f}" for name, loss in self.losses.items())
        return "\n".join(
            [
                f"Whom to trust ({len(self.annotators):,} annotators)",
                f"{'annotator':>24} {'annotations':>12} {'worth':>8} {'reliability':>12}",
                *self._annotator_lines(),
                "\nWhat stated confidence is worth",
                *self._level_lines(),
                "\nWhat a vote says (row) about each label (column)",
                *self._meaning_lines(),
                f"\nHeld-out vote log-loss: {given}",
            ]
        )

    def _annotator_lines(self) -> list[str]:
        order = np.argsort(-self.worth, kind="stable")
        rows = [
            f"{_cut(self.annotators[m], 24):>24} {self.count[m]:>12,} "
            f"{self.worth[m]:>8.3g} {self.worth[m] / (1 + self.worth[m]):>12.3f}"
            for m in order.tolist()
        ]
        half = _SHOWN // 2
        return rows if len(rows) <= _SHOWN else [*rows[:half], f"{'...':>24}", *rows[-half:]]

    def _level_lines(self) -> list[str]:
        if not len(self.levels):
            return ["  the same at any confidence: not learned"]
        u = self(self.levels)
        return [f"{'stated':>24} {'annotations':>12} {'share':>8} {'uncertainty':>12}"] + [
            f"{level:>24.4g} {n:>12,} {share:>8.3f} {doubt:>12.3f}"
            for level, n, share, doubt in zip(
                self.levels, self.level_count, self.share, u, strict=True
            )
        ]

    def _meaning_lines(self) -> list[str]:
        names = [_cut(label, 9) for label in self.labels.tolist()]
        if np.array_equal(self.meaning, np.eye(len(names))):
            return ["  what it says: not learned"]
        if len(names) <= _SHOWN:
            return [" ".join(f"{name:>9}" for name in ["", *names])] + [
                " ".join([f"{name:>9}", *(f"{p:>9.3f}" for p in row)])
                for name, row in zip(names, self.meaning, strict=True)
            ]
        off = np.where(np.eye(len(names)) == 1, 0, self.meaning)
        worst = np.argsort(-off, axis=None, kind="stable")[:_SHOWN]
        pairs = np.stack(np.unravel_index(worst, off.shape), axis=1).tolist()
        return [f"  {names[j]} says {names[k]} to {off[j, k]:.3f}" for j, k in pairs]

    def _known(self) -> dict[Any, float]:
        return dict(zip(self.annotators.tolist(), self.worth.tolist(), strict=True))

    def share_at(self, stated: Any) -> Any:
        """The share of worth at the nearest level, the lower of two; 1 if there are no levels."""
        import narwhals as nw

        middle = (self.levels[1:] + self.levels[:-1]) / 2
        share = self.share if len(self.levels) else np.ones(1)
        if isinstance(stated, nw.Expr):
            # NaN counts as large in some engines and as missing in others.
            stated = stated.cast(nw.Float64()).fill_nan(None)
            steps = nw.lit(float(share[0]))
            for edge, s in zip(middle.tolist(), share[1:].tolist(), strict=True):
                steps = nw.when(stated > edge).then(nw.lit(s)).otherwise(steps)
            return nw.when(~stated.is_null()).then(steps)
        x = np.asarray(stated, dtype=float)
        return np.where(np.isnan(x), np.nan, share[np.searchsorted(middle, x)])

    def _labelled(self, annotations: Annotations) -> Annotations:
        """The annotations with their labels in the order of the trust's."""
        place = {label: k for k, label in enumerate(self.labels.tolist())}
        new = [label for label in annotations.labels.tolist() if label not in place]
        if new:
            raise ValueError(
                f"the labels must be among those trust was learned for, {_some(list(place))}; "
                f"{len(new)} are not, first {new[0]!r}. Learn again with annotations that have it."
            )
        at = np.asarray([place[label] for label in annotations.labels.tolist()], dtype=np.intp)
        y = annotations.y @ np.eye(len(place))[at] if annotations.soft else at[annotations.y]
        return replace(annotations, y=y, labels=self.labels)


def load_trust(name: str) -> Trust:
    """Read a trust that was stored as JSON."""
    path = Path(name)
    if not path.is_file():
        words = ["none", "learned", *(p.name for p in Path(path.parent).glob("*.json"))]
        near = difflib.get_close_matches(path.name, words, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise FileNotFoundError(
            f"trust must be 'none', 'learned' or a file with a stored one; there is no file "
            f"{name!r}.{meant}"
        )
    try:
        return Trust.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        why = "it is no text"
    except ValueError as error:
        why = str(error).removesuffix(" Make it with trust.to_json().").removesuffix(".")
    raise ValueError(f"{path.name} is not a stored trust: {why}. {_HOW}")


def _floats(values: Any) -> Floats:
    return np.asarray(values, dtype=float)


def _names(names: list[Any]) -> NDArray[Any]:
    plain = all(isinstance(name, int | float) for name in names)
    return np.asarray(names, dtype=None if plain else object)


def _some(names: Any) -> str:
    shown = names if isinstance(names, str) else ", ".join(map(str, names[:_SHOWN]))
    return shown + ", ..." * (not isinstance(names, str) and len(names) > _SHOWN)


def _cut(name: Any, width: int) -> str:
    text = str(name)
    return text if len(text) <= width else text[: width - 1] + "…"

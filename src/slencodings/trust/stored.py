"""A learned crowd in a file, to be applied to new annotations."""

from __future__ import annotations

import difflib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.trust.crowd import Crowd, People
from slencodings.trust.truth import Shrinking, TruthModel
from slencodings.trust.worth import Ridge

_HOW = "Make one: sle encode IN -o OUT --save-crowd crowd.json"
_NAMES = ("annotators", "labels")
_COUNTS = ("count", "level_count")
_PLAIN = (
    "typical_worth",
    "through_truth",
    "prior_weight",
    "losses",
    "converged",
    "from_uncertainty",
)


def crowd_to_dict(crowd: Crowd) -> dict[str, Any]:
    """The whole value in lists, numbers and names."""
    return {f.name: _plain(getattr(crowd, f.name)) for f in fields(crowd)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value).tolist()
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return value


def crowd_to_json(crowd: Crowd) -> str:
    """The whole value as JSON; `crowd_from_json` reads it."""
    try:
        return json.dumps(crowd_to_dict(crowd), allow_nan=False)
    except TypeError as error:
        raise ValueError(
            "annotators and labels must be text or numbers to be stored; "
            f"{error}. Make them text before learning: str(name)."
        ) from None


def crowd_from_json(text: str) -> Crowd:
    """Read what `crowd_to_json` wrote."""
    given: Any = json.loads(text)
    names = {f.name for f in fields(Crowd)}
    there = cast("dict[str, Any]", given) if type(given) is dict else None
    if there is None or set(there) != names:
        came = type(cast("object", given)).__name__ if there is None else ", ".join(sorted(there))
        raise ValueError(
            f"a stored crowd has the fields {', '.join(sorted(names))}; {came[:80]} came. {_HOW}"
        )
    try:
        crowd = Crowd(**{name: _read(name, value) for name, value in there.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"a stored crowd is damaged: {error}. Store it again.") from error
    _check_shapes(crowd)
    return crowd


def _read(name: str, value: Any) -> Any:
    if name in _NAMES:
        return np.asarray(value, dtype=object if any(isinstance(v, str) for v in value) else None)
    if name in _COUNTS:
        return np.asarray(value, dtype=np.intp)
    if name == "ridge":
        return Ridge(**value)
    if name == "people":
        return People(**{part: _floats(x) for part, x in value.items()})
    if name == "model" and value is not None:
        others = ("correlation", "shrinking")
        arrays = {part: _floats(x) for part, x in value.items() if part not in others}
        shrinking = Shrinking(**value["shrinking"])
        return TruthModel(**arrays, correlation=float(value["correlation"]), shrinking=shrinking)
    if value is None or name in _PLAIN:
        return value
    return _floats(value)


def _floats(value: Any) -> NDArray[np.float64]:
    return np.asarray(value, dtype=float)


def _check_shapes(crowd: Crowd) -> None:
    """Refuse parts that do not fit each other."""
    M, L, K = (len(x) for x in (crowd.annotators, crowd.levels, crowd.labels))
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("worth", "count"), (M,)),
        **dict.fromkeys(("share", "level_count"), (L,)),
        "base_rate": (K,),
        **({} if crowd.meaning is None else {"meaning": (K, K)}),
    }
    parts = {name: getattr(crowd, name) for name in shapes} | crowd.people._asdict()
    shapes |= dict.fromkeys(crowd.people._fields, (M,))
    if crowd.model is not None:
        parts |= crowd.model._asdict()
        shapes |= {"prior": (K,), "confusion": (M, K, K), "crowd": (K, K), "habits": (K, K)}
    for name, shape in shapes.items():
        if parts[name].shape != shape:
            raise ValueError(
                f"a stored crowd is damaged: {name} must have the shape {shape}; "
                f"{parts[name].shape} came. Store it again."
            )


def load_crowd(name: str) -> Crowd:
    """Read a crowd that was stored as JSON."""
    path = Path(name)
    if not path.is_file():
        words = ["learned", "stated", *(p.name for p in Path(path.parent).glob("*.json"))]
        near = difflib.get_close_matches(path.name, words, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise FileNotFoundError(
            "weigh must be 'learned', 'stated' or a file with a stored crowd; there is no file "
            f"{name!r}.{meant}"
        )
    try:
        return crowd_from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        why = "it is not text"
    except json.JSONDecodeError as error:
        why = f"it is not JSON ({error})"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"{name} holds no stored crowd: {why} {_HOW}")

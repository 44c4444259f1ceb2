"""A learned crowd in a file, to be applied to new annotations."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.trust.crowd import Crowd, People
from slencodings.trust.truth import Shrinking, TruthModel
from slencodings.trust.worth import Ridge

_HOW = "Make one: sle encode IN -o OUT --save-crowd crowd.json"
# The kind of file that this version writes, and the only one that it reads.
KIND = 1
_NUMBERS = ("typical_worth", "through_truth", "prior_weight")
# Rows of these sum to 1.
_SHARES = ("base_rate", "meaning", "prior", "confusion", "crowd", "habits")
_AT_MOST_ONE = ("share", "through_truth", "correlation")


def crowd_to_dict(crowd: Crowd) -> dict[str, Any]:
    """The whole value in lists, numbers and names."""
    return {f.name: _as_json(getattr(crowd, f.name)) for f in fields(crowd)}


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value).tolist()
    if hasattr(value, "_asdict"):
        return {name: _as_json(part) for name, part in value._asdict().items()}
    return value


def crowd_to_json(crowd: Crowd) -> str:
    """The whole value as JSON; `crowd_from_json` reads it."""
    try:
        return json.dumps({"stored_crowd": KIND} | crowd_to_dict(crowd), allow_nan=False)
    except TypeError as error:
        raise ValueError(
            "annotators and labels must be text or numbers to be stored; "
            f"{error}. Make them text before learning: str(name)."
        ) from None


def crowd_from_json(text: str) -> Crowd:
    """Read what `crowd_to_json` wrote."""
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"a stored crowd is JSON; this is not ({error}). {_HOW}") from None
    except RecursionError:
        raise ValueError(f"a stored crowd is JSON of four levels; more came. {_HOW}") from None
    if type(given) is not dict:
        raise _no_crowd(type(given).__name__)
    there = cast("dict[str, Any]", given)
    if there.get("meaning") is not None and "worth" in there and "model" not in there:
        raise ValueError(
            "this is trust as slencodings 0.1.0 learned it, without what is said where a label is "
            f"true; a crowd is needed, and is learned from the same annotations. {_HOW}"
        )
    kind = there.pop("stored_crowd", KIND)
    if kind != KIND:
        raise ValueError(
            f"a stored crowd of kind {KIND} is needed; one of kind {kind!r:.20} came. Install the "
            f"version of slencodings that wrote it, or learn it again. {_HOW}"
        )
    return crowd_from_dict(there)


def crowd_from_dict(there: Mapping[str, Any]) -> Crowd:
    """Read what `crowd_to_dict` gave."""
    if set(there) != {f.name for f in fields(Crowd)}:
        raise _no_crowd(", ".join(sorted(there)) or "none")
    try:
        crowd = Crowd(**{name: _READERS.get(name, _floats)(x) for name, x in there.items()})
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"a stored crowd is damaged: {error}. Store it again.") from error
    _check_parts(crowd)
    return crowd


def _no_crowd(came: str) -> ValueError:
    names = ", ".join(sorted(f.name for f in fields(Crowd)))
    return ValueError(f"a stored crowd has the fields {names}; {came[:80]} came. {_HOW}")


def _read_model(value: Mapping[str, Any] | None) -> TruthModel | None:
    if value is None:
        return None
    not_arrays = ("correlation", "shrinking")
    arrays = {part: _floats(x) for part, x in value.items() if part not in not_arrays}
    how = value["shrinking"]
    shrinking = Shrinking(float(how["strength"]), bool(how["along_order"]))
    return TruthModel(**arrays, correlation=float(value["correlation"]), shrinking=shrinking)


def _read_people(value: Mapping[str, Any]) -> People:
    parts = {part: _floats(x) for part, x in value.items()}
    # Crowds that were stored before have the truth reading alone.
    return People(**{"right_by_model": parts["right"]} | parts)


def _plain_names(value: list[Any]) -> NDArray[Any]:
    plain = type(value) is list and all(isinstance(v, str | int | float) for v in value)
    if not plain or len({*value}) < len(value):
        raise ValueError("annotators and labels must be text or numbers, each once")
    return np.asarray(value, dtype=object if any(isinstance(v, str) for v in value) else None)


def _floats(value: Any) -> NDArray[np.float64]:
    return np.asarray(value, dtype=float)


# How the parts are read that are not just numbers in an array.
_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("annotators", "labels"), _plain_names),
    **dict.fromkeys(("count", "level_count"), partial(np.asarray, dtype=np.intp)),
    **dict.fromkeys(("converged", "from_uncertainty"), bool),
    **dict.fromkeys(_NUMBERS, float),
    "ridge": lambda parts: Ridge(**{part: float(x) for part, x in parts.items()}),
    "people": _read_people,
    "losses": lambda parts: {str(part): float(x) for part, x in parts.items()},
    "meaning": lambda value: None if value is None else _floats(value),
    "model": _read_model,
}


def _check_parts(crowd: Crowd) -> None:
    """Refuse parts that do not fit each other, and numbers that are none of a crowd."""
    M, L, K = (x.size for x in (crowd.annotators, crowd.levels, crowd.labels))
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("worth", "count"), (M,)),
        **dict.fromkeys(("levels", "share", "level_count"), (L,)),
        **dict.fromkeys(_NUMBERS, ()),
        "base_rate": (K,),
        **({} if crowd.meaning is None else {"meaning": (K, K)}),
    }
    parts: dict[str, Any] = {name: getattr(crowd, name) for name in shapes}
    parts |= crowd.people._asdict()
    shapes |= dict.fromkeys(crowd.people._fields, (M,))
    if crowd.model is not None:
        parts |= crowd.model._asdict()
        shapes |= {"prior": (K,), "confusion": (M, K, K), "crowd": (K, K), "habits": (K, K)}
        shapes["correlation"] = ()
    for name, shape in shapes.items():
        x = _floats(parts[name])
        if x.shape != shape:
            raise _damaged(name, f"must have the shape {shape}; {x.shape} came")
        if not np.isfinite(x).all() or ((x < 0).any() and name != "levels"):
            raise _damaged(name, "must hold numbers that are 0 or more; others came")
        if name in _SHARES and (abs(x.sum(axis=-1) - 1) > 1e-6).any():
            raise _damaged(name, "must sum to 1 in every row; it does not")
        if name in _AT_MOST_ONE and (x > 1).any():
            raise _damaged(name, "must be 1 at most; more came")
    if not crowd.prior_weight > 0:
        raise _damaged("prior_weight", "must be more than 0; 0 came")


def _damaged(name: str, why: str) -> ValueError:
    return ValueError(f"a stored crowd is damaged: {name} {why}. Store it again.")


def load_crowd(name: str) -> Crowd:
    """Read a crowd that was stored as JSON."""
    path = Path(name)
    if not path.is_file():
        words = ["learned", "stated", *(p.name for p in Path(path.parent).glob("*.json"))]
        near = difflib.get_close_matches(path.name, words, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise FileNotFoundError(
            "`weigh` must be 'learned', 'stated' or a file with a stored crowd; there is no file "
            f"{name!r}.{meant}"
        )
    try:
        return crowd_from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        why = "it is not text"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"{name} holds no stored crowd: {why} {'' if _HOW in why else _HOW}".strip())

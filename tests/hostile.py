"""Values that no file should have, and how to put them anywhere in JSON."""

from typing import Any

HOSTILE = [None, True, -1, 3.5, float("nan"), 10**30, "", [], [None], [[1]], {}, {"a": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all that is inside a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(*path, key) for key in keys]
    nested = [key for key in keys if isinstance(value[key], dict | list)]
    return found + [p for key in nested for p in places(value[key], (*path, key))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy

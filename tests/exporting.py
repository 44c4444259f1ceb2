"""What tests of exports share: the rows that are read, and that something is refused."""

from typing import Any

import pytest

from slencodings.files.exports import read_export


def said(source: Any, **how: Any) -> list[tuple[Any, ...]]:
    """The rows as tuples (item, annotator, label)."""
    return _tuples(read_export(source, **how))


def votes(export: Any) -> list[tuple[Any, ...]]:
    """The rows of an export that was read, in the order of their text."""
    return sorted(_tuples(export), key=str)


def _tuples(export: Any) -> list[tuple[Any, ...]]:
    c = export.columns
    nobody = [None] * len(c["item"])
    return list(zip(c["item"], c.get("annotator", nobody), c["label"], strict=True))


def assert_refused(match: str, source: Any, **how: Any) -> None:
    with pytest.raises(ValueError, match=match):
        read_export(source, **how)

"""What tests of exports share: the rows that are read, and that something is refused."""

from typing import Any

import pytest

from slencodings.files.exports import read_export


def said(source: Any, **how: Any) -> list[tuple[Any, ...]]:
    """The rows as tuples (item, annotator, label)."""
    c = read_export(source, **how).columns
    nobody = [None] * len(c["item"])
    return list(zip(c["item"], c.get("annotator", nobody), c["label"], strict=True))


def assert_refused(match: str, source: Any, **how: Any) -> None:
    with pytest.raises(ValueError, match=match):
        read_export(source, **how)

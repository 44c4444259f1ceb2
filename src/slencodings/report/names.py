"""Names and numbers as a page can show them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Any

# Letters of an item's name, and of an annotator's.
ITEM_LETTERS, NAME_LETTERS = 100, 40


def shown(names: Iterable[Any], width: int) -> list[str]:
    """Names as text of at most about `width` letters, different where the names are.

    Long ones lose their middle, as ids tend to differ at their ends. What cannot be seen becomes a
    space, and those that look the same then are numbered.

    >>> shown(["a" * 9 + "1", "a" * 9 + "2", "", None], 5)
    ['aa…a1', 'aa…a2', '(empty)', '(none)']
    """
    used: set[str] = set()
    times: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        text = unique = _text(name, width)
        while unique in used:
            times[text] = times.get(text, 1) + 1
            unique = f"{text} ({times[text]})"
        used.add(unique)
        result.append(unique)
    return result


def which_are_listed(total: int, listed: int, what: str, if_cut: str) -> str:
    """Whether a list has all there are, in words; else what is to be said of it.

    >>> which_are_listed(3, 3, "item", ""), which_are_listed(9, 3, "item", "Three are listed.")
    ('All 3 items are listed.', 'Three are listed.')
    """
    if listed < total:
        return if_cut
    return f"The only {what} is listed." if total == 1 else f"All {total:,} {what}s are listed."


def _text(name: Any, width: int) -> str:
    if name is None or (isinstance(name, float) and math.isnan(name)):
        return "(none)"
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    text = str(name)
    if len(text) > width:
        tail = (width - 1) // 2
        text = f"{text[: width - 1 - tail]}…{text[-tail:]}"
    # Control characters, and halves of characters that no file can hold.
    unseen = ("Cc", "Cs")
    text = "".join(" " if unicodedata.category(c) in unseen else c for c in text).strip()
    return text or "(empty)"


def rounded(x: Any, digits: int = 9) -> float | int:
    """A number with digits enough that rounding it for people is the first rounding they see.

    >>> rounded(0.52549999), rounded(0.5254999, 3), rounded(2.0)
    (0.52549999, 0.525, 2)
    """
    short = round(float(x), digits)
    return int(short) if short == int(short) else short

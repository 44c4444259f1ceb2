"""Markup in which everything that is not markup is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any, cast


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; children and attributes are escaped, `class_` and `aria_label` spelled with -.

    >>> tag("p", "a < b", tag("b", "!"), class_="note", hidden=False, title='"')
    '<p class="note" title="&quot;">a &lt; b<b>!</b></p>'
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[Any]) -> Markup:
    """Markup as it is, anything else as text; nothing for None."""
    return Markup("".join(_part(part) for part in parts))


def _part(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Markup):
        return part
    if isinstance(part, list | tuple):
        return join(cast(Iterable[Any], part))
    return html.escape(str(part), quote=False)


def data(name: str, value: Any) -> Markup:
    """Values for a script to read, which no value can end.

    >>> data("x", "</script>&")
    '<script type="application/json" id="x">"\\\\u003c/script\\\\u003e\\\\u0026"</script>'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')

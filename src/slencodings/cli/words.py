"""What was typed after an option, as a value: words, prices, the ends of a scale."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import typer


def words(text: str | None) -> list[str] | None:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return next(csv.reader([text], skipinitialspace=True)) if text else None


def prices(text: str) -> dict[str, float]:
    """What annotations cost, by name: from a file, or as NAME=PRICE,... was typed."""
    if Path(text).is_file():
        from slencodings.files.costs import read_costs

        return read_costs(text)
    found: dict[str, float] = {}
    for word in words(text) or [""]:
        name, equals, price = word.rpartition("=")
        if not equals or not re.fullmatch(r" *\d*\.?\d+(e-?\d+)? *", price):
            raise typer.BadParameter(
                f"NAME=PRICE with commas is needed, such as gpt-4o=3,llama=0.5; {word!r} came.",
                param_hint="--costs",
            )
        found[name.strip()] = float(price)
    return found


def scale_of(text: str | None, *, learned: bool) -> Any:
    """The ends of a confidence scale, or `calibrated` where that can be learned."""
    if text is None or (text == "calibrated" and learned):
        return text
    number = r"(-?\d+(?:\.\d+)?)"
    ends = re.fullmatch(rf"{number}(?:-|:|,|\.\.){number}", text)
    if not ends or float(ends[1]) == float(ends[2]):
        raise typer.BadParameter(
            f"two different ends such as 1-5 or 0-100, or `calibrated`, are needed; {text!r} came.",
            param_hint="--confidence-scale",
        )
    return float(ends[1]), float(ends[2])

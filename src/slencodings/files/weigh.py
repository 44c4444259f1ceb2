"""How the annotations of files are weighed: as stated, or by a crowd that is stored or learned."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from slencodings.progress import Say
from slencodings.tables.fuse import Fusing
from slencodings.tables.roles import Reading
from slencodings.trust.crowd import Crowd
from slencodings.trust.stored import load_crowd


class Weighing(NamedTuple):
    """Whether to learn a crowd, or the one that was stored; neither where it is as stated."""

    how: str
    learns: bool
    crowd: Crowd | None


def only_stated(reading: Reading, fusing: Fusing) -> list[str]:
    """What was asked for that only annotations weighed as stated have, by parameter."""
    scale, operator = reading.confidence_scale, fusing.operator
    asked = {
        "reliability": reading.reliability is not None,
        "uncertainty": _is_number(reading.uncertainty),
        "confidence_scale": scale == "calibrated" or callable(scale),
        "smoothing": fusing.smoothing is not None,
        "operator": operator != "cumulative",
        "base_rate": reading.base_rate is not None or fusing.base_rate is not None,
    }
    return [name for name, came in asked.items() if came]


def choose_weighing(reading: Reading, fusing: Fusing, say: Say) -> Weighing:
    """How to weigh: as was asked; learned if nothing was, but for what only the stated has."""
    needs_stated, weigh = only_stated(reading, fusing), fusing.weigh
    if weigh is None and needs_stated:
        weigh = "stated"
        option = "--" + needs_stated[0].replace("_", "-")
        say("note", f"{option} is of annotations weighed as stated, so nothing is learned")
    elif weigh not in (None, "stated") and needs_stated:
        raise ValueError(
            f"what annotations are worth is learned; `{needs_stated[0]}` came with "
            f"weigh={weigh!r}. Leave one of them out, or pass weigh='stated'."
        )
    weigh = weigh or "learned"
    if weigh == "stated" and fusing.reading == "truth":
        raise ValueError(
            "what is true is a question to a learned crowd, and annotations are weighed as stated; "
            "reading='truth' came. Pass weigh='learned', or leave it out."
        )
    if weigh in ("stated", "learned"):
        return Weighing(weigh, weigh == "learned", None)
    return Weighing(weigh, learns=False, crowd=load_crowd(weigh))


def _is_number(spec: Any) -> bool:
    with suppress(TypeError, ValueError):
        return bool(float(spec) == float(spec))
    return False

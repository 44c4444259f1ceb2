"""How the annotations of files are weighed: as stated, or by a crowd that is stored or learned."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from slencodings.progress import Say
from slencodings.tables.fuse import About, Fusing, describe
from slencodings.tables.roles import Reading
from slencodings.tables.rows import Rows
from slencodings.trust.crowd import Crowd
from slencodings.trust.stored import crowd_to_dict, load_crowd

# So many numbers of a crowd are written with opinions; larger ones only in short.
_MOST_WRITTEN = 10_000
_ASKED = {
    "votes": "probability that the next person says it",
    "truth": "probability that it is true",
}


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


def about_rows(rows: Rows, reading: Reading, weighing: Weighing, seed: int) -> About:
    """How rows were read and weighed, in plain values."""
    about: About = {"columns": reading.columns}
    if reading.confidence is not None:
        as_stated = rows.crowd is not None and not rows.crowd.from_uncertainty
        scale: Any = reading.confidence_scale or (0, 1)
        ends: Any = scale.to_rows() if hasattr(scale, "to_rows") else list(scale)
        about["confidence_scale"] = "as stated" if as_stated else ends
    about |= {"missing": reading.missing, "duplicates": reading.duplicates, **rows.counts}
    about["weigh"] = weighing.how
    return about | ({} if rows.crowd is None else about_crowd(rows.crowd, weighing.how, seed))


def about_crowd(crowd: Crowd, weigh: str, seed: int) -> About:
    """What was learned and how, for what is kept with opinions."""
    size = len(crowd.annotators) * (1 if crowd.model is None else len(crowd.labels) ** 2)
    known = crowd_to_dict(crowd) if size <= _MOST_WRITTEN else describe(crowd)
    learned = {"seed": seed} if weigh == "learned" else {}
    return {"weigh": weigh, **learned, "crowd": known}


def how_written(about: About) -> str:
    """How opinions were made and what they mean, in words."""
    if "reading" not in about:
        return f"{about['form']}, {about['operator']}, smoothing {about['smoothing']:g}"
    weights = {"learned": "learned weights"}.get(about["weigh"], f"weights of {about['weigh']}")
    weights = weights if about["crowd"]["losses"] else "one count each"
    return f"{about['form']}: {_ASKED[about['reading']]}, {weights}"

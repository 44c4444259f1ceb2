"""What a store asks of annotations that are added to it: to be weighed as those before them."""

from __future__ import annotations

from dataclasses import replace

from slencodings.files.job import Weighing, choose_weighing
from slencodings.files.store.value import Store
from slencodings.progress import Say
from slencodings.tables.fuse import Fusing
from slencodings.tables.roles import Reading
from slencodings.trust.stored import crowd_to_dict, load_crowd


def check_additive(fusing: Fusing, reading: Reading) -> None:
    """Refuse what needs all annotations at once: a store has no more than sums."""
    if reading.keep:
        raise ValueError(
            f"a store holds items and sums alone; keep={list(reading.keep)!r} came. Leave it out, "
            "or encode the file without a store."
        )
    if fusing.operator != "cumulative":
        raise ValueError(
            "a store holds evidence that adds up, which is that of the cumulative operator; "
            f"operator={fusing.operator!r} came. Leave it out."
        )
    if fusing.weigh == "learned":
        raise ValueError(
            "a crowd is learned from all annotations at once, and a store does not have them; "
            "weigh='learned' came. Learn it from a file, save_crowd='crowd.json', and pass "
            "weigh='crowd.json'."
        )
    if reading.confidence_scale == "calibrated":
        raise ValueError(
            "what confidence is worth is learned from all annotations at once, and a store does "
            "not have them; `calibrated` came. Name the ends of the scale: confidence_scale=(1, 5)."
        )


def check_annotators(store: Store | None, wanted: bool, reading: Reading, name: str) -> bool:
    """Whether sums are kept for each annotator, as the store was begun; then there must be some."""
    if wanted and store is not None and not store.by_annotator:
        raise ValueError(
            "sums of this store are of all annotators together, and cannot be told apart; "
            "by_annotator=True came. Leave it out, or begin another store with it."
        )
    kept = wanted if store is None else store.by_annotator
    if kept and reading.annotator is None:
        raise ValueError(
            f"sums of each annotator need to know who annotated; no column of {name} looks like "
            "it. Name it: annotator='COLUMN'."
        )
    return kept


def weighing_of_new(reading: Reading, fusing: Fusing, say: Say) -> Weighing:
    """How annotations of a store that is begun are weighed: as stated, or by a stored crowd.

    To learn from its first batch would make it depend on which that is.
    """
    if fusing.weigh is None:
        say(
            "note",
            "annotations of this store are weighed as stated; to weigh them by a learned "
            "crowd, begin it with --weigh FILE that --save-crowd wrote",
        )
    weigh = fusing.weigh or "stated"
    return choose_weighing(reading, replace(fusing, weigh=weigh, reading="votes"), say)


def weighing_of(store: Store, reading: Reading, fusing: Fusing) -> Weighing:
    """How annotations of a store are weighed; settings other than its own are refused."""
    asked = None if fusing.weigh in (None, "stated") else load_crowd(fusing.weigh)
    kept = "none" if store.crowd is None else "its own"
    if asked is not None and crowd_to_dict(asked) != store.crowd:
        _differs(f"{kept} as crowd", "another one")
    if fusing.weigh == "stated" and store.crowd is not None:
        _differs("a crowd of its own", "weigh='stated'")
    smoothing, scale = fusing.smoothing, reading.confidence_scale
    if smoothing is not None and smoothing != store.smoothing:
        _differs(f"smoothing={store.smoothing:g}", f"smoothing={smoothing:g}")
    if None not in (scale, store.confidence_scale):
        kept, came = (
            "confidence_scale=({:g}, {:g})".format(*ends)
            for ends in (store.confidence_scale, scale)
        )
        if kept != came:
            _differs(kept, came)
    if store.crowd is None:
        return Weighing("stated", learns=False, crowd=None)
    return Weighing("the crowd of the store", learns=False, crowd=store.learned)


def _differs(kept: str, came: str) -> None:
    raise ValueError(
        f"sums can be added up if they were made alike; the store has {kept}, and {came} came. "
        "Leave it out, or begin another store."
    )

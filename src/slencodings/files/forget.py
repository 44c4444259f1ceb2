"""An annotator taken out of a store that keeps sums of each, as if they had never been in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slencodings.annotations import counted, some
from slencodings.files.locate import Relation
from slencodings.files.store.opening import alone, open_store
from slencodings.files.store.sums import read_sums
from slencodings.files.store.value import Store
from slencodings.files.write import STORED, disk_errors, literal, workspace, writing
from slencodings.progress import Say
from slencodings.tables.roles import nearest


def forget(path: str, annotators: Sequence[str], say: Say = lambda what, text: None) -> Store:
    """Take annotators out of a store, as if they had never been in it.

    What is left is what the others alone would have given; of a crowd that the store was begun
    with, which was learned before, nothing is changed.

    Parameters
    ----------
    path : a store that was begun with `by_annotator`
    annotators : their names, as text
    """
    place = Path(path)
    with disk_errors(), workspace() as (connection, _), alone(place):
        store = open_store(connection, place)
        if store is None:
            raise FileNotFoundError(f"there is no store {path!r}.")
        if not store.by_annotator:
            raise ValueError(
                f"{place.name} has sums of all annotators together, so that nobody can be taken "
                "out. Begin one of which they can: sle encode IN --into STORE.parquet "
                "--by-annotator"
            )
        sums = read_sums(connection, place, store)
        named = f"CAST(annotator AS VARCHAR) IN ({', '.join(map(literal, annotators))})"
        _check_known(sums, named, annotators, place.name)
        left, gone = sums.filter(f"({named}) IS NOT TRUE"), sums.filter(named)
        taken = float(gone.aggregate("sum(annotations)").fetchall()[0][0])
        labels = store.labels if store.fixed else _labels_left(store, left, gone)
        store = store._replace(labels=labels, forgotten=store.forgotten + taken)
        with writing(connection, left, place, STORED, store.about()):
            pass
    gone = counted(round(taken), "annotation")
    say("forgot", f"{', '.join(annotators)}: {gone}; {path}: {store.in_words()}")
    if store.crowd is not None:
        say(
            "note",
            "the crowd of this store was learned before, perhaps from them too: to forget them "
            "there, learn without them and begin another store",
        )
    return store


def _check_known(sums: Relation, named: str, annotators: Sequence[str], name: str) -> None:
    found = sums.filter(named).project("CAST(annotator AS VARCHAR)").distinct().fetchall()
    if strange := [who for who in annotators if (who,) not in found]:
        all_of_them = sums.project("CAST(annotator AS VARCHAR)").distinct().fetchall()
        near = nearest(strange[0], [who for (who,) in all_of_them if who is not None])
        meant = f" Did you mean {near!r}?" if near else ""
        raise ValueError(
            f"there is no annotator {strange[0]!r} among the {len(all_of_them):,} of {name}; "
            f"nothing was changed.{meant}"
        )


def _labels_left(store: Store, left: Relation, gone: Relation) -> list[Any]:
    """The labels of a store without those that only annotators who are gone have given."""
    given, theirs = (
        part.filter("annotations > 0").project("label").distinct().fetchall()
        for part in (left, gone)
    )
    labels = [v for v in store.labels if (v,) in given or (v,) not in theirs]
    if len(labels) < 2:
        raise ValueError(
            f"at least two labels must be left; only {some(labels)} would be. Nothing was "
            "changed. Begin another store, and name all labels that are possible: labels=[...]."
        )
    return labels

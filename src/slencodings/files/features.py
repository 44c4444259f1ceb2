"""What a model sees of each item: numbers or text from a file, in the order of a crowd's items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import counted
from slencodings.files.duckdb import opened
from slencodings.files.readable import check_unpacked
from slencodings.files.values import typed
from slencodings.tables.roles import Reading, find_columns

# Of n items, (n, D) or (n, ...).
Features: TypeAlias = NDArray[np.float32]
# What makes features (n, D) of n texts.
Embed: TypeAlias = Callable[[list[str]], Features]

# Words and pairs of words are counted in so many places. Nothing is learned, so nothing but this
# has to be stored with a model.
TEXT_FEATURES = 4096


class ItemFeatures(NamedTuple):
    """Features of a crowd's items, and then of what else a file has.

    Attributes
    ----------
    items : the crowd's, and the others by the names they have in the file
    X : (N, ...)
    there : (N,), which items the file has
    """

    items: list[Any]
    X: Features
    there: NDArray[np.bool_]


def read_features(
    source: str,
    items: Sequence[Any],
    *,
    feature_item: str | None = None,
    text: str | None = None,
    embed: Embed | None = None,
) -> ItemFeatures:
    """Features of the items, which of them the file has, and features of all others in it.

    Parameters
    ----------
    source : .npz with the arrays `item` (n,) and `X` (n, D) or images `X` (n, ...); or CSV, TSV,
        Parquet or JSONL with a column for the item and numbers in all others; all rows of an item
        say the same, as those of a crowd do
    items : the names to look for
    feature_item : the column of item names, found by its usual names if left out
    text : a column of text instead of numbers
    embed : turns texts into features; counts of words and pairs of words if left out
    """
    arrays = Path(source).suffix.lower() == ".npz"
    names, X = (
        _from_arrays(Path(source))
        if arrays
        else _from_table(source, feature_item, text, embed or _counted)
    )
    if not names:
        raise ValueError(f"{source} must have features of the crowd's items; it has no rows.")
    place: dict[Any, int] = {}
    for n, name in enumerate(names):
        place.setdefault(name, n)
    wanted = [str(name) if str(name) in place else name for name in items]
    if not any(name in place for name in wanted):
        raise ValueError(
            f"{source} must have features of the crowd's items; none of {len(wanted):,} is there, "
            f"not even {wanted[0]!r}. Its first is {names[0]!r}."
        )
    bad = ~np.isfinite(X.reshape(len(X), -1)).all(axis=1)
    if bad.any():
        raise ValueError(
            f"features must be finite numbers; {bad.sum():,} of {counted(len(X), 'row')} of "
            f"{source} are not, first that of item {names[int(np.argmax(bad))]!r}."
        )
    if len(place) < len(names):
        _check_alike(X, names, place, source)
    known = set(wanted)
    extra = [name for name in place if name not in known]
    there = np.asarray([name in place for name in (*wanted, *extra)], dtype=bool)
    rows = np.zeros((len(there), *X.shape[1:]), dtype=np.float32)
    rows[there] = X[[place[name] for name in (*wanted, *extra) if name in place]]
    return ItemFeatures([*items, *extra], rows, there)


def _check_alike(X: Features, names: list[Any], place: dict[Any, int], source: str) -> None:
    """Refuse rows that say something else of an item than its first."""
    first = X[[place[name] for name in names]]
    differ = (first != X).reshape(len(X), -1).any(axis=1)
    if differ.any():
        raise ValueError(
            f"the features of an item must be the same in all its rows of {source}; "
            f"{counted(int(differ.sum()), 'row')} of {len(X):,} differ from an earlier one, first "
            f"of item {names[int(np.argmax(differ))]!r}. Keep one row for each item."
        )


def _from_arrays(path: Path) -> tuple[list[Any], Features]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    try:
        with ZipFile(path) as archive:
            check_unpacked(path, sum(part.file_size for part in archive.infolist()))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name]) for name in arrays.files}
    except Exception as error:  # what is cut or altered breaks its reader in many ways
        # Names that come from pandas are such arrays.
        objects = (
            " Save text as text: item=names.astype(str)." if "Object arrays" in str(error) else ""
        )
        raise ValueError(f"{path.name} cannot be read as NPZ: {error}.{objects}") from error
    item, X = found.get("item"), found.get("X")
    fit = item is not None and X is not None and item.shape == X.shape[:1] and X.ndim > 1
    if item is None or X is None or not fit or X.dtype.kind not in "biuf":
        shapes = {name: f"{array.dtype} {array.shape}" for name, array in found.items()}
        raise ValueError(
            f"{path.name} must have the arrays `item` (n,) and `X` (n, ...), of numbers; {shapes} "
            "came. Write it with numpy.savez(path, item=names, X=features)."
        )
    return item.tolist(), X.astype(np.float32)


def _from_table(
    source: str, item: str | None, text: str | None, embed: Embed
) -> tuple[list[Any], Features]:
    with opened(source, Reading()) as (called, table):
        names = table.names
        column = item or find_columns(names).get("item")
        wrong = [c for c in (column, text) if c is not None and c not in names]
        if column is None or wrong:
            raise ValueError(
                f"no column of {called} is called "
                f"{wrong[0] if wrong else 'like an item'!r}; "
                f"the columns are {', '.join(map(repr, names[:20]))}. "
                "Name it: feature_item='COLUMN', text='COLUMN'."
            )
        inputs = [text] if text else [name for name in names if name != column]
        if not inputs:
            raise ValueError(f"{called} has no columns but {column!r}; features are needed.")
        if cut := next((name for name in (column, *inputs) if "\0" in name), None):
            # DuckDB hands out the part before it.
            raise ValueError(f"{called} has a column {cut!r}; names end at \\x00. Rename it.")
        numbers = [] if text else inputs
        or_else = "say that it is the text to learn from: text={}"
        relation = typed(table.pick([column, *inputs], numbers), numbers, or_else=or_else)
        arrays = relation.fetchnumpy()
    rows = _names(called, column, np.ma.asarray(arrays[column]).tolist(None))
    if text:
        texts: list[Any] = np.ma.asarray(arrays[text]).tolist(None)  # they may be numbers
        texts = ["" if words is None else str(words) for words in texts]
        # A crowd has the text of an item in each row of it.
        pairs = list(dict.fromkeys(zip(rows, texts, strict=True)))
        return [name for name, _ in pairs], embed([words for _, words in pairs])
    columns = [np.ma.filled(np.ma.asarray(arrays[c]).astype(float), np.nan) for c in inputs]
    return rows, np.stack(columns, axis=1).astype(np.float32)


def _names(called: str, column: str, values: list[Any]) -> list[Any]:
    """The names of items, one in each row, which can be looked up."""
    bad = [n for n, x in enumerate(values) if x is None or not isinstance(x, Hashable)]
    if bad:
        first = "nothing" if values[bad[0]] is None else str(values[bad[0]])
        raise ValueError(
            f"column {column!r} of {called} must name an item in each row, by text, a number or a "
            f"date; {len(bad):,} of {counted(len(values), 'row')} "
            f"{'does' if len(bad) == 1 else 'do'} not, first {first} in row {bad[0] + 1} of the "
            "data. Fill it, or leave such rows out."
        )
    return values


def _counted(texts: list[str]) -> Features:
    """Counts of words and pairs of words, hashed into places and scaled to length one."""
    try:
        from sklearn.feature_extraction.text import HashingVectorizer
    except ImportError as error:
        raise ImportError(
            "words are counted by scikit-learn, which is not installed. "
            "Type: pip install 'slencodings[torch]'"
        ) from error
    counts = HashingVectorizer(n_features=TEXT_FEATURES, ngram_range=(1, 2)).transform(texts)
    return counts.toarray().astype(np.float32)

"""Every reader of files, given bytes: it reads them, or refuses them in words of its own."""

import io
import json
import re
import sqlite3
import struct
import tempfile
import traceback
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slencodings
from slencodings import from_table
from slencodings.files.crowd import read_crowd
from slencodings.files.crowd_columns import read_costs
from slencodings.files.database import encode_table
from slencodings.files.encode import encode_file
from slencodings.files.exports import read_export
from slencodings.files.features import read_features
from slencodings.trust import count_each, crowd_from_json, crowd_to_json, learn_crowd
from slencodings.trust.stored import load_crowd

EXPORTS, DATA = (Path(__file__).parents[1] / name for name in ("exports", "data"))
SOURCE = str(Path(slencodings.__file__).parent)
# What a reader may raise. What Python's own readers raise (UnicodeDecodeError, JSONDecodeError,
# KeyError) has no words for people, though some of them are ValueErrors.
REFUSALS = (ValueError, OSError, FileNotFoundError, IsADirectoryError)
TABLE: dict[str, list[Any]] = {
    "item": ["007", "7", "7", "a, b", "a, b", "naïve"],
    "annotator": ["ann", "ann", "bob", "bob", "cy", "cy"],
    "label": ["no", "yes", "no", "no", "yes", "yes"],
    "confidence": [0.5, 1.0, 0.25, 0.9, 0.0, 1.0],
}
ROWS = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]


class Reader(NamedTuple):
    """What reads a file; the bytes of files to begin with, and of the file that bytes become.

    `wrap` puts bytes where a reader meets them: behind checksums and into packed files, where
    chance alone would never come.
    """

    name: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    wrap: Callable[[bytes], bytes] = bytes


def refused(reader: Reader, data: bytes, folder: Path) -> str | None:
    """The words in which bytes are refused, None if they are read; all else is an error."""
    path = folder / reader.name
    path.write_bytes(reader.wrap(data))
    try:
        reader.read(path)
    except Exception as error:
        innermost = traceback.extract_tb(error.__traceback__)[-1].filename
        if type(error) not in REFUSALS or not innermost.startswith(SOURCE):
            raise
        return str(error)
    return None


# Tables


def _crowd(path: Path) -> None:
    read_crowd(str(path))


def _csv() -> list[bytes]:
    lines = [",".join(TABLE), *(",".join(f'"{x}"' for x in row.values()) for row in ROWS)]
    text = "\n".join(lines) + "\n"
    wide = text.replace('"', "").replace("a, b", "ab").replace(",", ";").replace(".", ",")
    return [text.encode(), wide.encode("cp1252"), text.encode("utf-16"), text.encode("utf-8-sig")]


def _jsonl() -> list[bytes]:
    soft = [row | {"label": [0.25, 0.75]} for row in ROWS]
    lists = [row | {"label": [row["label"]], "item": n} for n, row in enumerate(ROWS)]
    return ["".join(json.dumps(r) + "\n" for r in rows).encode() for rows in (ROWS, soft, lists)]


def _parquet() -> list[bytes]:
    found: list[bytes] = []
    for how in ({}, {"compression": "none", "use_dictionary": False}):
        sink = io.BytesIO()
        pq.write_table(pa.table(TABLE), sink, **how)
        found.append(sink.getvalue())
    return found


def _gzip() -> list[bytes]:
    import gzip

    return [gzip.compress(data, mtime=0) for data in (*_csv()[:2], *_jsonl()[:1])]


def _costs() -> list[bytes]:
    return [b"annotator,cost\nann,1.5\nbob,2\n", b"worker;price\nann;1,5\nbob;2\n"]


# Databases


def _database(path: Path) -> None:
    encode_table(f"sqlite:///{path}", "labels", str(path.with_name("targets.csv")))


def database(described: bytes) -> bytes:
    """A database with these types of columns and these rows, as JSON; other bytes as they are."""
    try:
        said = json.loads(described)
        types = [re.sub(r"[^\w (),]", "", str(kind)) for kind in said["types"]]
        with closing(sqlite3.connect(":memory:")) as connection:
            columns = ", ".join(f"{name} {kind}" for name, kind in zip(TABLE, types, strict=True))
            connection.execute(f"CREATE TABLE labels ({columns})")
            for row in said["rows"]:
                # SQLite has bytes, which JSON has not: a list of text is meant so.
                values = [str(x[0]).encode("utf-8", "replace") if isinstance(x, list) and x
                          else x for x in row]  # fmt: skip
                connection.execute("INSERT INTO labels VALUES (?, ?, ?, ?)", values)
            connection.commit()
            return connection.serialize()
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, sqlite3.Error):
        return described


def _databases() -> list[bytes]:
    rows = [list(row.values()) for row in ROWS]
    whole = [[n // 2, n, n % 2, n] for n in range(6)]
    tables = [
        (["TEXT", "TEXT", "TEXT", "REAL"], rows),
        ([""] * 4, rows),
        (["INTEGER"] * 4, whole),
        (["TIMESTAMP", "JSON", "DATE", "DECIMAL(3,2)"], whole),
        (["VARCHAR(9)", "BLOB", "BOOLEAN", "INT"], [*whole, [["x"], None, 2**40, 0.5]]),
    ]
    return [json.dumps({"types": types, "rows": some}).encode() for types, some in tables]


# Workbooks

_PARTS = {
    "[Content_Types].xml": '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/'
    'package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships'
    '+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    "</Types>",
    "_rels/.rels": '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/'
    'package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/'
    'spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships"><sheets><sheet name="one" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<?xml version="1.0"?><Relationships xmlns="http://schemas.'
    'openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.'
    'openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"'
    "/></Relationships>",
}


def workbook(sheet: bytes) -> bytes:
    """A workbook with this sheet, of XML."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _PARTS.items():
            archive.writestr(zipfile.ZipInfo(name), text)
        archive.writestr(zipfile.ZipInfo("xl/worksheets/sheet1.xml"), sheet)
    return packed.getvalue()


def sheet(cells: dict[str, str], dimension: str = "A1:D7") -> bytes:
    """A sheet of a workbook: texts by the names of their cells."""
    rows: dict[str, str] = {}
    for name, text in cells.items():
        row = name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        cell = f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>'
        rows[row] = rows.get(row, "") + cell
    body = "".join(f'<row r="{row}">{cells}</row>' for row, cells in rows.items())
    return (
        '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/'
        f'2006/main"><dimension ref="{dimension}"/><sheetData>{body}</sheetData></worksheet>'
    ).encode()


def _cells() -> list[list[str]]:
    return [[*TABLE], *([str(x) for x in row.values()] for row in ROWS)]


def _sheets() -> list[bytes]:
    table = enumerate(_cells(), 1)
    return [sheet({f"{'ABCD'[k]}{n}": x for n, row in table for k, x in enumerate(row)})]


def open_document(content: bytes) -> bytes:
    """A workbook of LibreOffice with this content, of XML."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        kind = "application/vnd.oasis.opendocument.spreadsheet"
        archive.writestr(zipfile.ZipInfo("mimetype"), kind)
        names = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
        entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        manifest = f"<manifest:manifest {names}>{entry}</manifest:manifest>"
        archive.writestr(zipfile.ZipInfo("META-INF/manifest.xml"), manifest)
        archive.writestr(zipfile.ZipInfo("content.xml"), content)
    return packed.getvalue()


def _contents() -> list[bytes]:
    text = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    rows = ("".join(text.format(x) for x in row) for row in _cells())
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    return [
        f'<?xml version="1.0"?><office:document-content{names}><office:body><office:spreadsheet>'
        f'<table:table table:name="one">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>".encode()
    ]


# Features and models


def _features(path: Path) -> None:
    read_features(str(path), ["007", "7", "naïve"])


def _texts(path: Path) -> None:
    read_features(str(path), ["007", "7", "naïve"], text="text")


def _numbers_of_items() -> list[bytes]:
    return [b"item,x,y\n007,1,2.5\n7,0,-1e3\nother,3,4\n", b"id;x\n007;1,5\n7;2\n"]


def _texts_of_items() -> list[bytes]:
    rows = [{"item": name, "text": f"{name}: a text, no more"} for name in ("007", "7", "x")]
    return ["".join(json.dumps(row) + "\n" for row in rows).encode()]


def _npz() -> list[bytes]:
    found: list[bytes] = []
    for X in (np.eye(3), np.zeros((3, 2, 2), dtype=np.uint8)):
        for save in (np.savez, np.savez_compressed):
            sink = io.BytesIO()
            save(sink, item=np.asarray(["007", "7", "x"]), X=X)
            found.append(sink.getvalue())
    return found


def npz_with_header(header: bytes) -> bytes:
    """Arrays, of which one has this description of itself."""
    packed, item = io.BytesIO(), io.BytesIO()
    np.save(item, np.asarray(["007", "7"]))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("item.npy", item.getvalue())
        said = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) & 0xFFFF) + header
        archive.writestr("X.npy", said + bytes(64))
    return packed.getvalue()


def _headers() -> list[bytes]:
    kinds = ["<f8", "|O", "<U3", "|u1"]
    return [
        f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 4), }}\n".encode()
        for kind in kinds
    ]


_NETWORK: dict[str, Any] = {"hidden": (3,), "max_epochs": 1, "batch_size": 2, "random_state": 0}
_IMAGES = np.eye(4, dtype=np.float32), ["no", "yes", "no", "yes"]


@cache
def _model() -> tuple[Any, dict[str, Any], bytes]:
    """A small model: its tensors, what it says of itself, and its file."""
    from slencodings.torch import SLEClassifier, saving

    model = SLEClassifier(**_NETWORK).fit(*_IMAGES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        tensors, about = saving.read(path, "classifier")
        return tensors, about, path.read_bytes()


def _load(path: Path) -> None:
    from slencodings.torch import SLEClassifier

    SLEClassifier.load(path).predict(np.eye(4, dtype=np.float32))


def model_that_says(about: bytes) -> bytes:
    """A sound file of a model that says this of itself."""
    return _sound("classifier", _model()[0], about)


def checkpoint_that_says(about: bytes) -> bytes:
    """A sound checkpoint that says this of its training."""
    return _sound("checkpoint", _checkpoint()[0], about)


def _sound(kind: str, tensors: Any, about: bytes) -> bytes:
    from safetensors.torch import save

    from slencodings.torch import saving

    text = about.decode("utf-8", errors="replace")
    header = {"slencodings": kind, "about": text, "sha256": saving._digest(tensors, text)}
    return save(tensors, metadata=header)


@cache
def _checkpoint() -> tuple[Any, dict[str, Any]]:
    """A network after an epoch: its tensors, and what its file says of the training."""
    from slencodings.torch import SLEClassifier, saving

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        SLEClassifier(checkpoint=path, **_NETWORK).fit(*_IMAGES)
        return saving.read(path, "checkpoint")


def _go_on(path: Path) -> None:
    from slencodings.torch import SLEClassifier

    SLEClassifier(checkpoint=path, **_NETWORK).fit(*_IMAGES)


# Crowds and stores that were kept


def _annotations() -> Any:
    roles: dict[str, Any] = {name: name for name in TABLE}
    return from_table(TABLE, **roles)


@cache
def _learned() -> Any:
    return learn_crowd(_annotations())


def _apply(path: Path) -> None:
    crowd_from_json(path.read_text(encoding="utf-8", errors="replace"))
    crowd, annotations = load_crowd(str(path)), _annotations()
    for opinion in (crowd.votes(annotations), crowd.truth(annotations)):
        assert np.isfinite(opinion.belief).all()
        assert (abs(opinion.belief.sum(-1) + opinion.uncertainty - 1) < 1e-6).all()


def _crowds() -> list[bytes]:
    kept = [_learned(), count_each(_annotations())]
    return [crowd_to_json(crowd).encode() for crowd in kept]


def _fuse_store(path: Path) -> None:
    encode_file(str(path), str(path.with_name("targets.csv")))


@cache
def _stores() -> list[bytes]:
    found: list[bytes] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "crowd.csv").write_bytes(_csv()[0])
        (folder / "crowd.json").write_text(crowd_to_json(_learned()))
        for weigh in ("stated", str(folder / "crowd.json")):
            from slencodings.tables.fuse import Fusing

            store = folder / f"{len(found)}.parquet"
            encode_file(str(folder / "crowd.csv"), into=str(store), fusing=Fusing(weigh=weigh))
            found.append(store.read_bytes())
    return found


def _what_stores_say() -> list[bytes]:
    return [pq.read_metadata(io.BytesIO(data)).metadata[b"slencodings"] for data in _stores()]


def store_that_says(about: bytes) -> bytes:
    """A store whose sums are sound, and which says this of itself."""
    table = pq.read_table(io.BytesIO(_stores()[1]))
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"slencodings": about}), sink)
    return sink.getvalue()


# Exports of annotation tools and judges


def _export(path: Path) -> None:
    read_export(path)


def _encode_export(path: Path) -> None:
    encode_file(str(path), str(path.with_name("targets.csv")))


def _exports() -> list[bytes]:
    return [path.read_bytes() for path in sorted(EXPORTS.iterdir()) if path.suffix != ".zip"
            and path.is_file()]  # fmt: skip


def _zips() -> list[bytes]:
    return [(EXPORTS / "doccano.zip").read_bytes()]


READERS = {
    reader.name: reader
    for reader in (
        Reader("crowd.csv", _crowd, _csv),
        Reader("crowd.jsonl", _crowd, _jsonl),
        Reader("crowd.parquet", _crowd, _parquet),
        Reader("crowd.csv.gz", _crowd, _gzip),
        Reader("costs.csv", lambda path: read_costs(str(path)), _costs),
        Reader("labels.db", _database, lambda: [database(data) for data in _databases()[:1]]),
        Reader("values.db", _database, _databases, database),
        Reader("sheet.xlsx", _crowd, _sheets, workbook),
        Reader("crowd.xlsx", _crowd, lambda: [workbook(data) for data in _sheets()]),
        Reader("crowd.xls", _crowd, lambda: [(DATA / "crowd.xls").read_bytes()]),
        Reader("sheet.ods", _crowd, _contents, open_document),
        Reader("features.csv", _features, _numbers_of_items),
        Reader("texts.jsonl", _texts, _texts_of_items),
        Reader("arrays.npz", _features, _npz),
        Reader("header.npz", _features, _headers, npz_with_header),
        Reader("model.safetensors", _load, lambda: [_model()[2]]),
        Reader("about.safetensors", _load, lambda: [json.dumps(_model()[1]).encode()],
               model_that_says),
        Reader("checkpoint.safetensors", _go_on, lambda: [json.dumps(_checkpoint()[1]).encode()],
               checkpoint_that_says),
        Reader("crowd.json", _apply, _crowds),
        Reader("store.parquet", _fuse_store, _stores),
        Reader("about.parquet", _fuse_store, _what_stores_say, store_that_says),
        Reader("export", _export, _exports),
        Reader("export.jsonl", _encode_export, _exports),
        Reader("export.zip", _export, _zips),
    )
}  # fmt: skip

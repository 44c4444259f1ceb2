"""Files that this version stores, for later versions to read, and what they are made of.

`PYTHONPATH=src:tests python tests/stored_files.py` writes them into tests/written/VERSION, once for
each version, when it is released. Those of 0.1.0 were written by its last commit.
"""

import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

import slencodings
from slencodings.files.encode import encode_file
from slencodings.tables.fuse import Fusing
from slencodings.tables.roles import Reading

WRITTEN = Path(__file__).parent / "written"
# Who said what of which item, and how sure they were, 1 to 3.
ROWS = (
    "i1 ann cat 3, i1 bob cat 2, i1 cy dog 1, i2 ann dog 3, i2 bob dog 3, i2 cy dog 2, "
    "i3 ann cat 1, i3 bob dog 2, i3 cy cat 3, i4 ann dog 2, i4 bob dog 1, i4 cy cat 1"
)
HEAD = "item annotator label confidence"
CROWD = "\n".join([HEAD, *ROWS.split(", ")]).replace(" ", ",") + "\n"
# Enough to learn what is said where a label is true: one of four is often wrong, and unsure.
_WRONG = {"ann": 11, "bob": 7, "cy": 5, "dan": 3}
_SAID = [
    f"i{n:02} {who} {'dog' if (n + (n * 5 % often == 0)) % 2 else 'cat'} {1 + n % min(3, often)}"
    for n in range(40)
    for who, often in _WRONG.items()
]
LARGER = "\n".join([HEAD, *_SAID]).replace(" ", ",") + "\n"


def write(folder: Path) -> None:
    """A crowd, a store that is weighed as stated, one by a learned crowd, a model, and opinions."""
    folder.mkdir(parents=True, exist_ok=True)
    crowd, scaled = folder / "crowd.csv", Reading(confidence_scale=(1, 3))
    larger = folder / "larger.csv"
    crowd.write_text(CROWD)
    larger.write_text(LARGER)
    kept, learned = str(folder / "crowd.json"), str(folder / "learned-store.parquet")
    encode_file(str(larger), str(folder / "votes.csv"), save_crowd=kept)
    encode_file(str(larger), None, fusing=Fusing(weigh=kept), into=learned)
    truth = Fusing(reading="truth")
    encode_file(learned, str(folder / "truth.csv"), fusing=truth)
    assert "log_likelihood" in _parquet(Path(learned))["columns"], "there is no model of truth"
    store = str(folder / "store.parquet")
    encode_file(str(crowd), str(folder / "targets.csv"), scaled, into=store)
    for path in (crowd, larger, *folder.glob("v*.meta.json"), *folder.glob("tr*.meta.json")):
        path.unlink()
    write_model(folder)


def write_model(folder: Path) -> None:
    """A small model, and what it says."""
    from slencodings.torch import SLEClassifier

    X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    labels = np.where(X[:, 0] > 0, "cat", "dog").tolist()
    model = SLEClassifier(hidden=(3,), max_epochs=20, random_state=0).fit(X, labels)
    model.save(folder / "model.safetensors")
    said = {name: np.asarray(x).tolist() for name, x in model.predict_opinion(X)._asdict().items()}
    (folder / "predicted.json").write_text(json.dumps({"X": X.tolist(), **said}))


def described(folder: Path) -> dict[str, Any]:
    """The form of every file: names and types of what is in it, and not its values."""
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".parquet":
            found[path.name] = _parquet(path)
        elif path.suffix == ".json" and path.name != "predicted.json":
            found[path.name] = _form(json.loads(path.read_text()))
        elif path.suffix == ".safetensors":
            found[path.name] = _safetensors(path)
    return found


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    about = json.loads(pq.read_metadata(path).metadata[b"slencodings"])
    schema = pq.read_schema(path)
    return {"columns": {f.name: str(f.type) for f in schema}, "about": _form(about)}


def _safetensors(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    about = header.pop("__metadata__")
    tensors = {name: [t["dtype"], len(t["shape"])] for name, t in header.items()}
    return {"tensors": tensors, "header": sorted(about), "about": _form(json.loads(about["about"]))}


def _form(value: Any) -> Any:
    """The names of an object with the forms below; of a list the form of its first."""
    if isinstance(value, dict):
        return {name: _form(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_form(part) for part in value[:1]]
    return "number" if type(value) in (int, float) else type(value).__name__


if __name__ == "__main__":
    home = WRITTEN / slencodings.__version__
    if home.exists() and "--again" not in sys.argv:
        sys.exit(f"{home} is there: what a released version wrote stays. Before: --again")
    shutil.rmtree(home, ignore_errors=True)
    write(home)

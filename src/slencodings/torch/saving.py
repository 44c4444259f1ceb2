"""Tensors and what they mean in one file: safetensors, with JSON in its header and no pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from slencodings.files.write import check_place, replacing
from slencodings.torch.training import Checkpoint


class Labels(TypedDict):
    """Labels as plain values, and the type to read them back as."""

    values: list[str | float]
    dtype: str


class StoredModel(TypedDict):
    """What a stored model says of itself: labels, parameters, what was fitted, if it is plain."""

    labels: Labels
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    plain: bool


class Training(TypedDict):
    """What a checkpoint says of its training."""

    labels: Labels
    parameters: dict[str, Any]
    data: str
    seed: int


# The parts of a checkpoint, as the names of its tensors begin.
_PARTS = ("network", "best", "optimizer")


def write(path: str | Path, kind: str, tensors: Mapping[str, Tensor], about: Any) -> None:
    """Write all of a file in place of the old one, or nothing."""
    # Safetensors refuses tensors that share memory, as tied weights do.
    plain = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    text = _text(about)
    header = {"slencodings": kind, "about": text, "sha256": _digest(plain, text)}
    with replacing(Path(path)) as new:
        save_file(plain, new, metadata=header)


def read(path: str | Path, kind: str) -> tuple[dict[str, Tensor], Any]:
    """Read what `write` wrote; a damaged file is told apart from one of another kind."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{str(path)!r} is not there. Write it first, or check its name.")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, OSError) as error:
        raise ValueError(f"{str(path)!r} is damaged or no safetensors file: {error}.") from error
    if header.get("slencodings") != kind:
        raise ValueError(
            f"{str(path)!r} must be a {kind} of slencodings; it is "
            f"{header.get('slencodings', 'a safetensors file of something else')!r}."
        )
    text = header.get("about", "")
    if header.get("sha256") != _digest(tensors, text):
        raise ValueError(f"{str(path)!r} is damaged: its contents do not match their checksum.")
    try:
        return tensors, json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged: what it says of itself is not JSON ({error})."
        ) from error


def says(about: Any, kind: type[Any], *more: str) -> bool:
    """Whether a file says of itself just what files of its kind do."""
    return isinstance(about, dict) and {*cast("Any", about)} == {*kind.__annotations__, *more}


def write_checkpoint(path: str | Path, now: Checkpoint, about: Training) -> None:
    """Write a checkpoint."""
    tensors = {f"{part}.{k}": v for part in _PARTS for k, v in getattr(now, part).items()}
    write(path, "checkpoint", tensors | {"random": now.random}, {**about, "history": now.history})


def read_checkpoint(path: str | Path, about: Training) -> tuple[Checkpoint | None, int]:
    """Where training had come to, and its seed; or an error if it was another training."""
    check_place(str(path), ())
    if not Path(path).exists():
        return None, about["seed"]
    tensors, stored = read(path, "checkpoint")
    parted = {name.partition(".")[0] for name in tensors} <= {*_PARTS, "random"}
    if not parted or not _tells_training(stored) or not _is_random_state(tensors.get("random")):
        raise ValueError(f"{str(path)!r} is damaged: it does not say where training had come to.")
    again = f"Name another file, or delete {str(path)!r} to start again."
    mine: Training = json.loads(_text(about))
    if stored["labels"] != mine["labels"]:
        was, now = (", ".join(map(repr, x["labels"]["values"][:10])) for x in (stored, mine))
        raise ValueError(f"the checkpoint is for the labels {was}; {now} came. {again}")
    was, now = stored["parameters"], mine["parameters"]
    if other := [name for name in now if was.get(name) != now[name]]:
        raise ValueError(
            f"the checkpoint was made with other parameters; {len(other)} differ, first "
            f"{other[0]}={was.get(other[0])!r}, and {now[other[0]]!r} came. {again}"
        )
    if stored["data"] != mine["data"]:
        raise ValueError(f"the checkpoint was made from other rows or targets. {again}")
    parts: dict[str, dict[str, Tensor]] = {part: {} for part in (*_PARTS, "random")}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    network, best, optimizer = (parts[part] for part in _PARTS)
    found = Checkpoint(stored["history"], network, best, optimizer, tensors["random"])
    return found, stored["seed"]


def _tells_training(about: Any) -> bool:
    """Whether a file says of a training what `write_checkpoint` does: it may be changed."""
    if not says(about, Training, "history"):
        return False
    labels, seed, history = about["labels"], about["seed"], about["history"]
    return (
        says(labels, Labels)
        and isinstance(labels["values"], list)
        and isinstance(about["parameters"], dict)
        and (type(seed) is int and 0 <= seed < 2**63)
        and (isinstance(history, list) and all(map(_is_epoch, cast("list[Any]", history))))
    )


def _is_epoch(row: Any) -> bool:
    """Whether this is a row of a history."""
    if not isinstance(row, dict):
        return False
    values = cast("dict[str, Any]", row)
    names = {"epoch", "loss"} <= {*values} <= {"epoch", "loss", "validation_loss"}
    return names and all(type(x) in (int, float) for x in values.values())


def _is_random_state(state: Tensor | None) -> bool:
    """Whether random numbers can go on from there."""
    if state is None:
        return False
    now = torch.get_rng_state()
    try:
        torch.set_rng_state(state)
    except (RuntimeError, TypeError):
        return False
    finally:
        torch.set_rng_state(now)
    return True


def name_hashes(names: Sequence[Any]) -> NDArray[np.int64]:
    """64 bits of each name: enough to know it again, and not to read it."""
    digests = [hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<i8").copy()


def fingerprint(*arrays: Tensor) -> str:
    """A text that differs where the data differ."""
    return _digest({str(i): x for i, x in enumerate(arrays)}, "")


def labels_to_json(labels: NDArray[Any]) -> Labels:
    """The labels to store."""
    values = labels.tolist()
    if not all(isinstance(v, str | int | float) for v in values):
        raise ValueError(
            f"labels must be text or numbers to be stored; {type(values[0]).__name__} came. "
            "Make them text before fitting: str(label)."
        )
    return {"values": values, "dtype": labels.dtype.str}


def labels_from_json(stored: Labels) -> NDArray[Any]:
    """The labels that `labels_to_json` wrote."""
    return np.asarray(stored["values"], dtype=np.dtype(stored["dtype"]))


def _text(about: Any) -> str:
    # Parameters may be numbers of NumPy's, as grids are made of.
    return json.dumps(about, allow_nan=False, default=lambda number: number.tolist())


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # As bytes, since NumPy does not know every type that PyTorch has.
        flat = torch.empty(tensor.numel(), dtype=tensor.dtype)  # whatever strides it came with
        flat.copy_(tensor.detach().cpu().flatten())
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()

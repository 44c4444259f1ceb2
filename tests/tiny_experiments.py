"""What experiments need, tiny: an encoder, texts for it, a data set, and a plan."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fitting import crowd_of
from torch import nn

from experiments import data as sets
from experiments import texts

WORDS = [
    *("the", "cat", "sat", "on", "a", "mat", "and"),
    *("saw", "one", "more", "dog", "run", "home"),
]
TEXTS = [
    "the cat sat",
    "a dog saw the cat and the mat on one more mat",
    "run",
    "the dog",
    *["a cat and a dog run home", "one mat", "the mat sat on the mat", "saw home", "more"],
]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def tiny_encoder(*, mean=True, seed=0):
    """A BERT of three layers with random weights, and a tokenizer of thirteen words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    vocab = {word: i for i, word in enumerate(special + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    config = transformers.BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = transformers.BertModel(config).eval()
    # Random weights are small and leave texts alike; larger ones tell them apart.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return texts.Encoder("tiny", fast, model, mean)


def tiny_data(*, gold=True, N=40, silent=0):
    """Two folds of points with three labels; of the first `silent` items the crowd says nothing."""
    X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
    y = X[:, :3].argmax(axis=1)
    said = crowd_of(y)
    said = replace(said, stated=said.confidence)
    said = said.rows(said.item >= silent)
    halves = np.array_split(np.arange(N), 2)
    return sets.Data(
        X=X,
        annotations=said,
        gold=y if gold else None,
        splits=[(halves[0], halves[1]), (halves[1], halves[0])],
        tested=said,
        network=lambda: nn.Linear(4, 5),
        encoder="linear",
    )


PLAN = sets.Plan(None, 2, 16, 1e-2)

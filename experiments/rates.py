"""How far does the learning rate matter? Accuracy on new digits, by loss and rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from experiments.rounds import digits
from experiments.rows import Job, Row
from slencodings.torch import SLEClassifier

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1)
LOSSES = {
    "cross-entropy, soft votes": {"objective": "cross_entropy"},
    "reverse KL": {},
    "reverse KL, as printed": {"normalize": False},
}
_EPOCHS = 20
SEEDS = 3


def jobs() -> list[Job]:
    """One loss with one rate and seed each."""
    return [
        {"experiment": "rates", "setting": f"{rate:g}", "method": loss, "seed": seed}
        for rate in RATES
        for loss in LOSSES
        for seed in range(SEEDS)
    ]


def rows(experiment: str, setting: str, method: str, seed: int) -> Iterator[Row]:
    """Learn from 1,200 digits and read 597 others; nothing is held out to stop by."""
    torch.set_num_threads(1)
    X, said, gold, train, test, *_ = digits(seed)
    how = {"max_epochs": _EPOCHS, "validation": 0.0, "random_state": seed}
    model = SLEClassifier(learning_rate=float(setting), **how, **LOSSES[method])
    model.fit(X[train], said.of_items(train))
    yield {
        "experiment": experiment,
        "setting": setting,
        "annotations": "all",
        "method": method,
        "seed": seed,
        "metric": "accuracy",
        "value": float(np.mean(model.predict_proba(X[test]).argmax(axis=1) == gold[test])),
    }

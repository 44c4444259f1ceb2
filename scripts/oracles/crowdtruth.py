# needs: crowdtruth==2.1 pandas==2.2.3 numpy==2.4.6
"""What the crowdtruth package makes of small crowds, as JSON: crowdtruth.py OUTPUT."""

import json
import logging
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

# This file has the name of the package and must not be taken for it.
sys.path.pop(0)
import crowdtruth
from crowdtruth.configuration import DefaultConfig

warnings.simplefilter("ignore")


def ragged(rng, N, M, low, high):
    """Every item has at least `low` annotators, and nobody annotates one twice."""
    return [
        (f"u{u:02}", f"w{w:02}")
        for u in range(N)
        for w in sorted(rng.choice(M, rng.integers(low, high + 1), replace=False))
    ]


def hard(rng, rows, K, noise):
    """One label each, wrong as often as the annotator is unskilled."""
    truth, skill = {}, {}
    vectors = []
    for u, w in rows:
        t = truth.setdefault(u, rng.integers(K))
        s = skill.setdefault(w, rng.random() * noise)
        vectors.append(np.eye(K)[rng.integers(K) if rng.random() < s else t])
    return np.asarray(vectors)


def cases():
    """Name, (unit, worker) rows, vectors (R, K), and whether the task is open-ended."""
    rng = np.random.default_rng(20181108)
    rows = ragged(rng, 20, 9, 2, 6)
    yield "hard", rows, hard(rng, rows, 4, 1.0), False
    rows = ragged(rng, 12, 40, 2, 5)  # most annotators are seen once
    yield "strangers", rows, hard(rng, rows, 3, 0.8), False
    rows = ragged(rng, 15, 6, 2, 5)
    yield "random", rows, np.eye(5)[rng.integers(0, 4, len(rows))], False  # nobody says the fifth
    rows = ragged(rng, 15, 8, 2, 6)
    some = (rng.random((len(rows), 4)) < 0.4) | (hard(rng, rows, 4, 0.5) > 0)
    yield "several", rows, some.astype(float), False
    rows = ragged(rng, 15, 8, 2, 6)
    near = 0.7 * hard(rng, rows, 3, 0.5) + 0.3 * rng.dirichlet(np.ones(3), len(rows))
    yield "soft", rows, np.round(near, 6), False
    sparse = np.round(near, 6) * (rng.random(near.shape) < 0.6)
    sparse[np.arange(len(rows)), np.argmax(near, axis=1)] = 1.0
    yield "graded", rows, sparse, False
    rows = ragged(rng, 20, 9, 2, 6)
    yield "open", rows, hard(rng, rows, 4, 1.0), True
    rows = [(f"u{u:02}", f"w{w:02}") for u in range(4) for w in range(3)]
    yield "nobody agrees", rows, np.eye(3)[[0, 1, 2] * 4], False
    yield "everybody agrees", rows, np.eye(3)[np.repeat([0, 1, 2, 0], 3)], False


def run(rows, vectors, open_ended):
    """All that the package computes, in sorted order of units, workers and labels."""
    K = vectors.shape[1]
    labels = [f"k{k}" for k in range(K)]

    settings = DefaultConfig()
    settings.inputColumns, settings.outputColumns = ["text"], ["answer"]
    settings.customPlatformColumns = ["judgment", "unit", "worker", "started", "submitted"]
    settings.open_ended_task, settings.annotation_vector = open_ended, labels
    answers = [
        {k: (int(x) if x == int(x) else float(x)) for k, x in zip(labels, v, strict=True) if x}
        for v in vectors
    ]
    frame = pd.DataFrame(
        {
            "judgment": np.arange(len(rows)),
            "unit": [u for u, _ in rows],
            "worker": [w for _, w in rows],
            "started": "2018-11-08 10:00:00",
            "submitted": "2018-11-08 10:01:00",
            "text": "-",
            "answer": answers,
        }
    )
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    data, config = crowdtruth.load(data_frame=frame, config=settings)
    got = crowdtruth.run(data, config)
    logging.getLogger().removeHandler(handler)
    iterations = sum("iterations; max d" in line for line in seen)
    units, workers, annotations = got["units"], got["workers"], got["annotations"]

    def score(column):
        return [[float(units[column][u].get(k, 0)) for k in labels] for u in sorted(units.index)]

    out = {
        "item_quality": units["uqs"].sort_index().tolist(),
        "annotator_quality": workers["wqs"].sort_index().tolist(),
        "annotator_agreement": workers["wwa"].sort_index().tolist(),
        "crowd_agreement": workers["wsa"].sort_index().tolist(),
        "label_score": score("unit_annotation_score"),
        "initial_item_quality": units["uqs_initial"].sort_index().tolist(),
        "initial_annotator_quality": workers["wqs_initial"].sort_index().tolist(),
        "initial_label_score": score("unit_annotation_score_initial"),
        "iterations": iterations,
    }
    if not open_ended:
        out["label_quality"] = annotations["aqs"].reindex(labels).tolist()
        out["initial_label_quality"] = annotations["aqs_initial"].reindex(labels).tolist()
    return out


def main(path):
    """Write inputs and outputs of all cases."""
    result = {}
    for name, rows, vectors, open_ended in cases():
        items, annotators = (sorted({row[i] for row in rows}) for i in (0, 1))
        result[name] = {
            "item": [items.index(u) for u, _ in rows],
            "annotator": [annotators.index(w) for _, w in rows],
            "vectors": vectors.tolist(),
            "open_ended": open_ended,
            "expected": run(rows, vectors, open_ended),
        }
    versions = {name: version(name) for name in ("crowdtruth", "pandas", "numpy")}
    text = json.dumps({"versions": versions, "cases": result}, indent=None, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


main(sys.argv[1])

# needs: krippendorff==0.9.0 scikit-learn==1.9.1 numpy==2.4.6
"""What scikit-learn and krippendorff say of small crowds, as JSON: agreement.py OUTPUT."""

import json
import math
import sys
import warnings
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score

warnings.simplefilter("ignore")


def cases():
    """Annotators x items, NaN where there is nothing; the values are positions in `labels`."""
    rng = np.random.default_rng(1960)
    for name, M, N, K, missing, noise in (
        ("full", 4, 30, 3, 0.0, 0.3),
        ("ragged", 7, 25, 4, 0.6, 0.5),
        ("thin", 12, 10, 3, 0.8, 0.5),
        ("contrary", 3, 20, 2, 0.2, 1.0),
        ("many labels", 5, 30, 12, 0.3, 0.4),
    ):
        truth = rng.integers(0, K, N)
        said = np.where(rng.random((M, N)) < noise, rng.integers(0, K, (M, N)), truth)
        if name == "contrary":
            said[1] = 1 - said[0]
        yield name, np.where(rng.random((M, N)) < missing, np.nan, said), np.arange(K) ** 1.5


def kappas(said, K):
    """i, j, shared items and kappa for each two annotators who share any; None where it is 0/0."""
    out = []
    for i, j in combinations(range(len(said)), 2):
        both = ~np.isnan(said[[i, j]]).any(axis=0)
        if both.any():
            a, b = said[i, both].astype(int), said[j, both].astype(int)
            kappa = float(cohen_kappa_score(a, b, labels=list(range(K))))
            out.append([i, j, int(both.sum()), None if math.isnan(kappa) else kappa])
    return out


def main(path):
    """Write inputs and outputs of all cases."""
    result = {}
    for name, said, labels in cases():
        who, item = np.nonzero(~np.isnan(said))
        valued = np.where(np.isnan(said), np.nan, labels[np.nan_to_num(said).astype(int)])
        alpha = {
            level: float(
                krippendorff.alpha(
                    reliability_data=valued if level == "interval" else said,
                    level_of_measurement=level,
                )
            )
            for level in ("nominal", "ordinal", "interval")
        }
        result[name] = {
            "item": item.tolist(),
            "annotator": who.tolist(),
            "y": said[who, item].astype(int).tolist(),
            "n_items": said.shape[1],
            "n_annotators": said.shape[0],
            "labels": labels.tolist(),
            "kappa": kappas(said, len(labels)),
            "alpha": alpha,
        }
    versions = {name: version(name) for name in ("krippendorff", "scikit-learn")}
    text = json.dumps({"versions": versions, "cases": result}, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


main(sys.argv[1])

# needs: crowd-kit==1.4.2 pandas==2.3.3 scikit-learn==1.5.2 scipy==1.17.1 numpy==2.4.6
"""What crowd-kit makes of small crowds, as JSON: crowdkit.py OUTPUT."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

# This file has the name of the package and must not be taken for it.
sys.path.pop(0)
from crowdkit.aggregation import (
    GLAD,
    MACE,
    DawidSkene,
    MajorityVote,
    OneCoinDawidSkene,
    Wawa,
    ZeroBasedSkill,
)

warnings.simplefilter("ignore")
NEVER = -1e9  # a tolerance that no step meets


def crowd(seed, N, M, K, per_item):
    """Rows (item, annotator, label). Annotators and labels first appear in sorted order, as
    crowd-kit's MACE mixes them up otherwise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, N)
    skill = np.linspace(0.3, 0.95, M)
    rows = [(0, m, min(m, K - 1)) for m in range(M)]
    for i in range(1, N):
        size = rng.integers(*per_item)
        for m in sorted(rng.choice(M, size, replace=False).tolist()):
            right = rng.random() < skill[m]
            rows.append((i, m, int(truth[i] if right else rng.integers(0, K))))
    return rows, truth.tolist()


def table(frame, index, columns):
    """A data frame in our order, as lists."""
    return frame.reindex(index=index, columns=columns).to_numpy().tolist()


def oracle(seed, N, M, K, per_item):
    """One crowd and what each method of theirs makes of it."""
    rows, truth = crowd(seed, N, M, K, per_item)
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    items, annotators, labels = range(N), range(M), range(K)

    def of_items(model):
        return table(model.probas_, items, labels)

    def of_annotators(series):
        return series.reindex(annotators).tolist()

    def confusion(model):
        """By annotator, truth and label said; a label that an annotator never used has 0."""
        index = pd.MultiIndex.from_product([annotators, labels])
        errors = model.errors_.reindex(index=index, columns=labels, fill_value=0.0)
        return errors.to_numpy().reshape(M, K, K).swapaxes(1, 2).tolist()

    vote = MajorityVote().fit(data)
    out = {
        "rows": rows,
        "shape": [N, M, K],
        "majority_vote": {
            "share": of_items(vote),
            "label": vote.labels_.reindex(items).tolist(),
            "agreement": of_annotators(vote.skills_),
        },
    }
    gold = {i: truth[i] for i in range(0, N, 4)}
    out["dawid_skene"] = [
        {
            "n_iter": n_iter,
            "gold": [gold.get(i, -1) for i in items] if known else None,
            "probability": of_items(model),
            "prior": [float(model.priors_[k]) for k in labels],
            "confusion": confusion(model),
        }
        for n_iter, known in ((1, False), (3, False), (10, False), (5, True))
        for model in [
            DawidSkene(n_iter=n_iter, tol=NEVER).fit(data, pd.Series(gold) if known else None)
        ]
    ]
    coin = OneCoinDawidSkene(n_iter=5, tol=NEVER).fit(data)
    out["one_coin"] = {
        "n_iter": 5,
        "probability": of_items(coin),
        "accuracy": of_annotators(coin.skills_),
    }
    out["mace"] = []
    for method in ("vb", "em"):
        model = MACE(n_restarts=1, n_iter=12, method=method)
        model._initialize(M, K)
        initial = [model.spamming_.tolist(), model.thetas_.tolist()]
        model.fit(data)
        out["mace"].append(
            {
                "method": method,
                "n_iter": 12,
                "initial": initial,
                "probability": of_items(model),
                "spamming": model.spamming_[:, 0].tolist(),
                "competence": model.spamming_[:, 1].tolist(),
                "strategy": model.thetas_.tolist(),
            }
        )
    # Far beyond its own tolerances, as only the summit is the same on another way up.
    glad = GLAD(n_iter=150, tol=NEVER, m_step_max_iter=500, m_step_tol=1e-9).fit(data)
    out["glad"] = {
        "probability": of_items(glad),
        "ability": of_annotators(glad.alphas_),
        "log_ease": glad.betas_.reindex(items).tolist(),
    }
    for name, model in (("wawa", Wawa()), ("zero_based_skill", ZeroBasedSkill())):
        model.fit_predict_proba(data)
        out[name] = {"probability": of_items(model), "skill": of_annotators(model.skills_)}
    return out


if __name__ == "__main__":
    cases = [oracle(1979, 12, 5, 3, (2, 5)), oracle(2013, 15, 4, 2, (1, 5))]
    Path(sys.argv[1]).write_text(json.dumps(cases) + "\n")

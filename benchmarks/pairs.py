"""Who predicts judgments of pairs best: ours, choix, crowd-kit? `python -m benchmarks.pairs`.

Judgments that are no ties are held out in five folds, and each method tells the chance that the
left one wins; mean log-loss, and the share on the likelier side. Others than ours know no ties, so
they learn from the rest. A package that is not installed is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from slencodings import aggregate, pairs_from_table
from slencodings.datasets import alttest
from slencodings.kinds.pairs import Pairs

FOLDS = 5
# From what to learn and what to predict, to the chance that the left one wins (R,).
Method = Callable[[Pairs, Pairs], np.ndarray]


def _ours(judge_spread: float | None) -> Method:
    def predict(train: Pairs, test: Pairs) -> np.ndarray:
        p = aggregate.bradley_terry(train, judge_spread=judge_spread).predict(test)
        return p[:, 0] / (p[:, 0] + p[:, 2])

    return predict


def _choix(train: Pairs, test: Pairs) -> np.ndarray:
    import choix

    a = train.annotations
    left, right = train.left[a.item], train.right[a.item]
    won = [(i, j) if y == 0 else (j, i) for i, j, y in zip(left, right, a.y, strict=True) if y != 1]
    # It holds back alpha times the squares of scores. Ours chooses its spread on folds of what it
    # learns from, so alpha is chosen likewise, of the same three: 1 / (2 spread^2).
    fold = np.random.default_rng(0).permutation(np.arange(len(won)) % 4)
    pairs, P = np.asarray(won).reshape(-1, 2), len(train.options)

    def loss(alpha: float) -> float:
        total = 0.0
        for f in range(4):
            s = choix.opt_pairwise(P, pairs[fold != f].tolist(), alpha=alpha)
            gap = s[pairs[fold == f, 0]] - s[pairs[fold == f, 1]]
            total += float(np.sum(np.log1p(np.exp(-gap))))
        return total

    alpha = min((1 / (2 * spread**2) for spread in (0.5, 1.5, 4.0)), key=loss)
    score = choix.opt_pairwise(P, won, alpha=alpha)
    b = test.annotations
    return 1 / (1 + np.exp(score[test.right[b.item]] - score[test.left[b.item]]))


def _frame(pairs: Pairs):  # type: ignore[no-untyped-def]
    import pandas as pd

    a = pairs.annotations
    left, right = pairs.options[pairs.left[a.item]], pairs.options[pairs.right[a.item]]
    who = a.annotators[a.annotator]
    won = np.where(a.y == 0, left, right)
    frame = pd.DataFrame({"worker": who, "left": left, "right": right, "label": won})
    return frame[a.y != 1]


def _crowd_kit(train: Pairs, test: Pairs) -> np.ndarray:
    from crowdkit.aggregation import BradleyTerry

    frame = _frame(test)
    score = BradleyTerry(n_iter=100).fit_predict(_frame(train))
    left, right = (frame[side].map(score).to_numpy() for side in ("left", "right"))
    return left / (left + right)


def _noisy(train: Pairs, test: Pairs) -> np.ndarray:
    from crowdkit.aggregation import NoisyBradleyTerry

    frame, model = _frame(test), NoisyBradleyTerry(n_iter=100)
    score = model.fit_predict(_frame(train))
    odds = score / (1 - score)
    left, right = (frame[side].map(odds).to_numpy() for side in ("left", "right"))
    skill, side = (frame["worker"].map(x).to_numpy() for x in (model.skills_, model.biases_))
    return skill * left / (left + right) + (1 - skill) * side


METHODS: dict[str, tuple[str | None, Method]] = {
    "ours, sides and judges learned": (None, _ours(None)),
    "ours, all judges alike": (None, _ours(0.0)),
    "choix, opt_pairwise": ("choix", _choix),
    "crowd-kit BradleyTerry": ("crowdkit", _crowd_kit),
    "crowd-kit NoisyBradleyTerry": ("crowdkit", _noisy),
}


def mtbench(*, people: bool) -> Pairs:
    """Answers of models to prompts, compared by people, or by people and models."""
    crowd = alttest("mtbench")
    a = crowd.annotations
    keep = np.flatnonzero(crowd.people[a.annotator]) if people else np.arange(len(a.item))
    names = [str(a.items[i]).split("__") for i in a.item[keep]]
    table = {
        "prompt": [f"{name[0]} {name[3]}" for name in names],
        "left": [name[1] for name in names],
        "right": [name[2] for name in names],
        "judge": a.annotators[a.annotator[keep]].tolist(),
        "won": a.labels[a.y[keep]].tolist(),
    }
    return pairs_from_table(
        table, left="left", right="right", winner="won", annotator="judge", item="prompt"
    )


def simulated(seed: int = 0) -> Pairs:
    """Eight options, six judges of whom two hardly look, and a favoured left side."""
    rng = np.random.default_rng(seed)
    score, skill = rng.normal(0, 1.2, 8), np.asarray([1.5, 1.2, 1.0, 1.0, 0.2, 0.0])
    left = rng.integers(0, 8, 800)
    right = (left + rng.integers(1, 8, 800)) % 8
    who = rng.integers(0, 6, 800)
    p = 1 / (1 + np.exp(-(skill[who] * (score[left] - score[right]) + 0.7)))
    won = np.where(rng.random(800) < p, "left", "right")
    table = {
        "left": [f"o{k}" for k in left],
        "right": [f"o{k}" for k in right],
        "judge": [f"j{m}" for m in who],
        "won": won.tolist(),
    }
    return pairs_from_table(table, left="left", right="right", winner="won", annotator="judge")


def score(pairs: Pairs, method: Method, seed: int = 0) -> tuple[float, float]:
    """Mean log-loss of held-out judgments, and the share on the likelier side."""
    y = pairs.annotations.y
    fold = np.random.default_rng(seed).permutation(np.arange(len(y)) % FOLDS)
    losses, right = [], []
    for f in range(FOLDS):
        test = pairs.rows(np.flatnonzero((fold == f) & (y != 1)))
        p = np.nan_to_num(method(pairs.rows(np.flatnonzero(fold != f)), test), nan=0.5)
        won = test.annotations.y == 0
        chance = np.where(won, p, 1 - p)
        with np.errstate(divide="ignore"):
            losses.append(-np.log(chance))
        right.append((chance > 0.5) + 0.5 * (chance == 0.5))
    return float(np.mean(np.concatenate(losses))), float(np.mean(np.concatenate(right)))


def main() -> None:
    """Print a table for the documents, a row a method."""
    crowds = {
        "mtbench, people": mtbench(people=True),
        "mtbench, people and models": mtbench(people=False),
        "simulated": simulated(),
    }
    print(f"| method | {' | '.join(crowds)} |\n|{'---|' * (len(crowds) + 1)}")
    for name, (package, method) in METHODS.items():
        if package is None or find_spec(package):
            found = (score(pairs, method) for pairs in crowds.values())
            cells = (f"{loss:.3f} ({right:.0%})" for loss, right in found)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    sizes = (f"{len(p.annotations.item):,} ({np.mean(p.annotations.y == 1):.0%} ties)"
             for p in crowds.values())  # fmt: skip
    print(f"| judgments | {' | '.join(sizes)} |")


if __name__ == "__main__":
    main()

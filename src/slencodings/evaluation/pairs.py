"""Which way to score pairs fits a crowd of judges, by judgments that were held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slencodings import metrics
from slencodings.aggregate import bradley_terry
from slencodings.aggregate.bradley_terry import judgment_losses
from slencodings.annotations import base_rate_of, sums_by
from slencodings.evaluation.held_out import Comparison, chosen_names, counting
from slencodings.evaluation.measure import OTHER_FOLDS, Resampled, measure, resample_groups
from slencodings.evaluation.methods import Encoding
from slencodings.evaluation.predicted import SCORES
from slencodings.evaluation.rows import ComparedOn, Row
from slencodings.kinds.pairs import LABELS, Pairs
from slencodings.opinion import Codes, Floats


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learned: predicts judgments (R, 3), with the doubt about each pair, if it has any.

    A method that infers nothing but chances has no `uncertainty`.
    """

    predict: Callable[[Pairs], Floats]
    uncertainty: Floats | None = None
    converged: bool = True


_Method = Callable[[Pairs], _Fitted]


def compare_pairs(
    pairs: Pairs,
    *,
    methods: Sequence[str] | None = None,
    folds: int = 5,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Comparison:
    """Compare ways to predict who wins, on judgments that were held out; the best first.

    `votes` is the mean log-loss of judgments, each predicted from those of the other folds;
    `new_pairs` the same where all judgments of two options, in any placing and for any prompt, are
    held out together, so that nothing but the other comparisons of both can tell (absent where
    fewer than `folds` twos of options meet). Intervals are by resamples of such twos.

    | method | predicts |
    |---|---|
    | how common | how often left, tie and right are |
    | votes on the pair | that, and the judgments of the same pair, placed so, for the same prompt |
    | shares of wins | w_left / (w_left + w_right), w shares of wins; ties as common |
    | Bradley-Terry, ties as half wins | scores by wins alone, half of one for a tie; as common |
    | Bradley-Terry | scores, with ties by Davidson |
    | Bradley-Terry, sides | and which side is favoured |
    | Bradley-Terry, sides and judges | and how well each judge tells options apart |

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": list("abcbca") * 8, "right": list("bcaabc") * 8, "won": list("abaaba") * 8}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="won")
    >>> found = compare_pairs(pairs, methods=["how common", "Bradley-Terry"])
    >>> [(row["method"], row["best"]) for row in found.rows]
    [('Bradley-Terry', True), ('how common', False)]
    """
    a, met = pairs.annotations, pairs.met
    names = chosen_names(list(METHODS), methods, what="`methods` of pairs")
    if folds < 2 or folds > len(a.item):
        raise ValueError(
            f"`folds` must be at least 2 and at most the judgments, {len(a.item)}; {folds} came. "
            "5 is usual."
        )
    rng = np.random.default_rng(seed)
    deals = _deals(pairs, folds, rng)
    tell = counting(progress, len(names) * (1 + folds * len(deals)))
    targets: dict[str, Encoding] = {}
    seconds: list[float] = []
    for name in names:
        tell(name)
        start = time.perf_counter()
        fit = METHODS[name](pairs)
        seconds.append(time.perf_counter() - start)
        targets[name] = Encoding(fit.predict(pairs), fit.uncertainty, converged=fit.converged)
    predicted = [
        [_held_out(pairs, METHODS[name], fold, partial(tell, name)) for name in names]
        for fold in deals
    ]
    sums = np.stack([_scores(p, pairs, met) for p in predicted[0]])
    counts = np.tile(np.bincount(met[a.item], minlength=sums.shape[2]), (len(SCORES), 1))
    plain = {"direct": False, "own": False, "joint": False, "ordered": False}
    rows = measure(targets, seconds, sums, counts.astype(float), bootstrap, rng, **plain)
    for unseen in predicted[1:]:
        _score_new_pairs(rows, unseen, pairs, bootstrap, rng)
    how = {"scored": len(a.item), "folds": folds, "bootstrap": bootstrap, "seed": seed}
    about = ComparedOn.of(a, **how, options=len(pairs.options))
    notes = [f"{name} did not converge" for name, x in targets.items() if not x.converged]
    return Comparison(sorted(rows, key=lambda row: row["votes"]), notes, about)


def _score_new_pairs(
    rows: list[Row], unseen: list[Floats], pairs: Pairs, bootstrap: int, rng: np.random.Generator
) -> None:
    """Score what each row predicted, (R, 3), of two options that it had not seen together."""
    a = pairs.annotations
    losses = np.stack([judgment_losses(p, a.vectors) for p in unseen], axis=1)
    drawn = resample_groups(pairs.met[a.item], losses, bootstrap, rng)
    held = Resampled(losses.mean(axis=0), drawn, OTHER_FOLDS)
    for n, row in enumerate(rows):
        row["new_pairs"], row["best_new_pairs"] = float(held.mean[n]), held.best(n)
        row["new_pairs_low"], row["new_pairs_high"] = held.interval(n)


def _deals(pairs: Pairs, folds: int, rng: np.random.Generator) -> list[Codes]:
    """The fold of each judgment, (R,): any judgment its own; then, if enough meet, all of two."""
    item, met = pairs.annotations.item, pairs.met
    by_judgment = rng.permutation(np.arange(len(item)) % folds)
    twos = np.unique(met[item])
    of_twos = np.full(len(met), -1)
    of_twos[rng.permutation(twos)] = np.arange(len(twos)) % folds
    return [by_judgment] + [of_twos[met[item]]] * (len(twos) >= folds)


def _held_out(pairs: Pairs, method: _Method, fold: Codes, tell: Callable[[], None]) -> Floats:
    """What a method says of each judgment, (R, 3), from those of the other folds."""
    p = np.zeros((len(fold), len(LABELS)))
    for f in range(int(fold.max()) + 1):
        tell()
        p[fold == f] = method(pairs.rows(fold != f)).predict(pairs.rows(fold == f))
    return p


def _scores(p: Floats, pairs: Pairs, met: Codes) -> Floats:
    """The scores that judgments have, added up by which two met, (S, twos)."""
    a, y = pairs.annotations, pairs.annotations.vectors
    sums = np.zeros((len(SCORES), int(met.max()) + 1))
    for name, values in {
        "votes": judgment_losses(p, y),
        "brier": np.sum((p - y) ** 2, axis=1),
        "agreement": np.sum(y * metrics.top_shares(p), axis=1),
    }.items():
        sums[SCORES.index(name)] = sums_by(met[a.item], values, sums.shape[1])
    return sums


def _common(train: Pairs) -> _Fitted:
    shares = _shares(train)
    return _Fitted(lambda test: np.tile(shares, (len(test.annotations.item), 1)))


def _votes(train: Pairs) -> _Fitted:
    """One count each beside a prior weight of two, as opinions are."""
    votes, a = train.annotations.sums(), _shares(train)
    n = votes.sum(axis=1)
    P = (votes + 2 * a) / (n[:, None] + 2)
    return _Fitted(lambda test: P[test.annotations.item], 2 / (n + 2))


def _wins(train: Pairs) -> _Fitted:
    """Half a win and half a loss beside what was seen leave nobody without a chance."""
    a, P = train.annotations, len(train.options)
    wins, n = np.full(P, 0.5), np.ones(P)
    for side, label in ((train.left, "left"), (train.right, "right")):
        y = a.vectors
        won = y[:, LABELS.index(label)] + y[:, LABELS.index("tie")] / 2
        wins += sums_by(side[a.item], won, P)
        n += np.bincount(side[a.item], minlength=P)
    w, shares = wins / n, _shares(train)

    def predict(test: Pairs) -> Floats:
        item = test.annotations.item
        left, right = w[test.left[item]], w[test.right[item]]
        return _beside_ties(left / (left + right), shares)

    return _Fitted(predict)


def _half_wins(train: Pairs) -> _Fitted:
    a, shares = train.annotations, _shares(train)
    y = a.vectors
    half = y[:, [LABELS.index("tie")]] / 2
    soft = np.where(np.asarray(LABELS) == "tie", 0, y + half)
    found = bradley_terry(
        train._replace(annotations=replace(a, y=soft)), judge_spread=0.0, sides=False
    )
    return _Fitted(
        lambda test: _beside_ties(found.predict(test)[:, 0], shares),
        found.opinion.uncertainty,
        found.converged,
    )


def _beside_ties(p: Floats, shares: Floats) -> Floats:
    """Left by its chance p where there is no tie, which is as common as ever, (R, 3)."""
    tie = np.full_like(p, shares[LABELS.index("tie")])
    return np.stack([(1 - tie) * p, tie, (1 - tie) * (1 - p)], axis=1)


def _learned(train: Pairs, *, judge_spread: float | None, sides: bool) -> _Fitted:
    found = bradley_terry(train, judge_spread=judge_spread, sides=sides)
    return _Fitted(found.predict, found.opinion.uncertainty, found.converged)


def _shares(pairs: Pairs) -> Floats:
    """How often left, tie and right were said; one more, spread evenly, leaves none impossible."""
    return base_rate_of(pairs.annotations.sums().sum(axis=0))


METHODS: dict[str, _Method] = {
    "how common": _common,
    "votes on the pair": _votes,
    "shares of wins": _wins,
    "Bradley-Terry, ties as half wins": _half_wins,
    "Bradley-Terry": partial(_learned, judge_spread=0.0, sides=False),
    "Bradley-Terry, sides": partial(_learned, judge_spread=0.0, sides=True),
    "Bradley-Terry, sides and judges": partial(_learned, judge_spread=None, sides=True),
}

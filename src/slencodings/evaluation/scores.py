"""How good predicted opinions are: as labels, as distributions, and as what is known of those.

The crowd's votes on items that the model has not seen are the yardstick, and gold labels are where
there are any.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.aggregate.em import gold_codes
from slencodings.annotations import ROOM_OF_SUMS, Annotations
from slencodings.divergence import kl_divergence
from slencodings.evaluation.dissonance import dissonance
from slencodings.evaluation.sets import check_sets, score_questions
from slencodings.evaluation.vote_counts import LEVELS, coverage, dirichlet_log_loss, mean
from slencodings.kinds.multilabel import SetScores
from slencodings.kinds.ordered import absolute_error, ranked_probability_score, wasserstein
from slencodings.opinion import Floats, Opinion, alpha, as_floats, check

Scores: TypeAlias = dict[str, float | None]


class _Predicted(NamedTuple):
    probability: Floats
    opinion: Opinion | None


def evaluate(
    predicted: Any,
    annotations: Annotations,
    gold: Any = None,
    *,
    ood: Any = None,
    target: Opinion | None = None,
    sets: Any = None,
    prior_weight: float = 2.0,
) -> Scores:
    """Score predictions against a crowd and gold labels; one flat row, whatever is known.

    Each vote counts the same, however unsure. `_gold` compares with gold labels, on items that have
    one; `_crowd` with the shares of votes p, on items that have votes, and F1 and errors with the
    labels of most votes. Labels that tie, in truth or prediction, count in parts.

    | key | is |
    |---|---|
    | items, items_crowd, items_gold, votes | how many there are: in all, with votes, with gold |
    | micro_f1_*, macro_f1_* | F1; micro is accuracy, macro the mean over labels that occur |
    | cross_entropy_*, brier_* | mean of - sum p log P (log-loss), of sum (p - P)^2 |
    | ece_* | calibration error of max P in 15 bins of equal width, p of that label as the truth |
    | ranked_*, steps_* | ranked probability score and absolute error, where labels are ordered |
    | auroc_errors_*, auroc_errors_*_probability | does u, does 1 - max P, rank errors first |
    | wasserstein | mean steps that probability is from the crowd's, where labels are ordered |
    | jsd, jsd_root | mean Jensen-Shannon divergence from the crowd, and of its root; base e |
    | nes, nec | entropy similarity and correlation with the crowd |
    | vote_log_loss | mean - log P of the votes, each on its own |
    | vote_log_loss_dirichlet | the same, each vote given the item's others before it |
    | coverage_50, _80, _90, _95 | share of votes' counts in their intervals, see `coverage` |
    | uncertainty, dissonance | means: what is not known (vacuity), and what conflicts |
    | auroc_ood, auroc_ood_probability | does u, does 1 - max P, rank `ood` first |
    | kl_forward, kl_reverse | mean KL(target, predicted) and KL(predicted, target) of Dirichlets |

    With `sets` also `set_exact_match_*`, `set_jaccard_*`, `set_masi_*`, `set_hamming_*` (share of
    labels in one set and not in the other), `set_micro_f1_*` and `set_macro_f1_*`: labels that are
    likelier than not, against each set that somebody chose, and against gold where all of it is
    known.

    Every other key is always there. None says that it is not defined: nothing to compare with, no
    errors or nothing but errors, equal entropies, no uncertainty in probabilities, counts of votes
    where labels are soft, the KL of an opinion that is dogmatic or rules a label out (`smooth` it).
    An infinite loss stays so: what happened had no chance.

    Parameters
    ----------
    predicted : Opinion (N,) on the items of `annotations` in their order, of any array library; or
        probabilities (N, K)
    gold : mapping from item to label, or codes (N,) with -1 for unknown
    ood : Opinion (M,) or probabilities (M, K) for out-of-distribution inputs
    target : Opinion (N,), such as the fused crowd
    sets : where items are yes or no questions, the item that each is about, (N,), such as
        `MultiLabel.asked_of`; questions of an item stand in the same order of labels
    prior_weight : W of the Dirichlets that opinions stand for

    Examples
    --------
    >>> from slencodings import encode, from_table
    >>> columns = {"item": ["p", "p", "p", "q"], "label": ["yes", "yes", "no", "no"]}
    >>> crowd = from_table(columns, item="item", label="label")
    >>> row = evaluate(encode([[0.2, 0.8], [0.6, 0.4]], [0.1, 0.5]), crowd, {"q": "yes"})
    >>> row["micro_f1_crowd"], row["micro_f1_gold"], round(row["vote_log_loss"], 3)
    (1.0, 0.0, 0.648)
    """
    a = annotations
    N, K = len(a.items), len(a.labels)
    if not 0 < prior_weight < math.inf:
        raise ValueError(
            f"`prior_weight` must be above 0 and finite; {prior_weight} came. 2 is usual."
        )
    guess = _read_predicted("predicted", predicted, N, K)
    opinion, codes, votes = guess.opinion, gold_codes(a, gold), a.sums()
    known, voted = codes >= 0, votes.sum(axis=1) > 0
    share = votes[voted] / votes[voted].sum(axis=1, keepdims=True)
    row: dict[str, float] = {
        "items": N,
        "items_crowd": int(voted.sum()),
        "items_gold": int(known.sum()),
        "votes": len(a.item),
        **_labels("gold", np.eye(K)[codes[known]], _some(guess, known), ordered=a.ordered),
        **_labels("crowd", share, _some(guess, voted), ordered=a.ordered),
        **_crowd(share, guess.probability[voted], ordered=a.ordered),
        **_vote_losses(a, votes[voted], _some(guess, voted), prior_weight),
        "uncertainty": math.nan if opinion is None else mean(opinion.uncertainty),
        "dissonance": math.nan if opinion is None else mean(dissonance(opinion)),
        **_outside(guess, None if ood is None else _read_predicted("ood", ood, None, K)),
        **_divergence(guess, target, N, K, prior_weight),
    }
    found: Scores = {key: None if math.isnan(value) else value for key, value in row.items()}
    if sets is not None:
        scored = score_questions(guess.probability[:, -1], a, check_sets(a, sets), codes)
        for against, scores in scored.items():
            for name in SetScores._fields:
                value = None if scores is None else float(getattr(scores, name))
                found[f"set_{name}_{against}"] = value
    return found


def _labels(name: str, truth: Floats, guess: _Predicted, *, ordered: bool) -> dict[str, float]:
    """What compares with one truth (N, K), whether labels or shares of votes."""
    P = guess.probability
    right = metrics.shares_right(truth, P)
    return {
        f"micro_f1_{name}": mean(right),
        f"macro_f1_{name}": metrics.macro_f1(truth, P),
        f"cross_entropy_{name}": mean(metrics.cross_entropy(truth, P)),
        f"brier_{name}": mean(metrics.brier(truth, P)),
        f"ece_{name}": metrics.calibration_error(truth, P),
        f"ranked_{name}": mean(ranked_probability_score(truth, P)) if ordered else math.nan,
        f"steps_{name}": mean(absolute_error(truth, P)) if ordered else math.nan,
        **_ranked(f"auroc_errors_{name}", 1 - right, *_doubts(guess)),
    }


def _doubts(guess: _Predicted) -> tuple[Floats | None, Floats]:
    """Uncertainty, and what ranks as 1 - max P does; (N,)."""
    u = None if guess.opinion is None else guess.opinion.uncertainty
    return u, -np.max(guess.probability, axis=1)


def _ranked(name: str, positive: Floats, u: Floats | None, low: Floats) -> dict[str, float]:
    return {
        name: math.nan if u is None else metrics.auroc(positive, u),
        f"{name}_probability": metrics.auroc(positive, low),
    }


def _crowd(share: Floats, P: Floats, *, ordered: bool) -> dict[str, float]:
    some = len(share) > 0
    return {
        "wasserstein": mean(wasserstein(share, P)) if ordered else math.nan,
        "jsd": mean(metrics.jsd(share, P)),
        "jsd_root": mean(metrics.jsd(share, P, root=True)),
        "nes": metrics.entropy_similarity(share, P) if some else math.nan,
        "nec": metrics.entropy_correlation(share, P) if some else math.nan,
    }


def _vote_losses(a: Annotations, votes: Floats, guess: _Predicted, W: float) -> dict[str, float]:
    P, R = guess.probability, votes.sum()
    share = votes / votes.sum(axis=1, keepdims=True)
    loss = votes.sum(axis=1) @ metrics.cross_entropy(share, P) / R if R else math.nan
    joint, inside = math.nan, np.full(len(LEVELS), math.nan)
    countable = not a.soft or bool(np.all((a.y == 0) | (a.y == 1)))
    if guess.opinion is not None and countable and R:
        n, s = votes.astype(np.intp), guess.opinion.uncertainty / W
        joint, inside = dirichlet_log_loss(n, P, s).sum() / R, coverage(n, P, s)
    return {
        "vote_log_loss": float(loss),
        "vote_log_loss_dirichlet": float(joint),
        **{
            f"coverage_{100 * level:.0f}": x
            for level, x in zip(LEVELS, inside.tolist(), strict=True)
        },
    }


def _outside(guess: _Predicted, ood: _Predicted | None) -> dict[str, float]:
    """Are inputs of another kind told apart from those that were evaluated?"""
    if ood is None:
        return {"auroc_ood": math.nan, "auroc_ood_probability": math.nan}
    (u, low), (v, lower) = _doubts(guess), _doubts(ood)
    strange = np.repeat([0.0, 1.0], [len(low), len(lower)])
    both = None if u is None or v is None else np.concatenate([u, v])
    return _ranked("auroc_ood", strange, both, np.concatenate([low, lower]))


def _divergence(
    guess: _Predicted, target: Opinion | None, N: int, K: int, W: float
) -> dict[str, float]:
    nothing = {"kl_forward": math.nan, "kl_reverse": math.nan}
    wanted = None if target is None else _read_predicted("target", target, N, K).opinion
    if target is not None and wanted is None:
        raise ValueError(
            "`target` must be an Opinion, since KL compares Dirichlets; "
            f"{type(target).__name__} came. encode(y, uncertainty) makes one."
        )
    if wanted is None or guess.opinion is None:
        return nothing
    p, q = (alpha(x, prior_weight=W) for x in (wanted, guess.opinion))
    if not np.all((p > 0) & (q > 0) & np.isfinite(p + q)):
        return nothing
    return {"kl_forward": mean(kl_divergence(p, q)), "kl_reverse": mean(kl_divergence(q, p))}


def _read_predicted(name: str, value: Any, N: int | None, K: int) -> _Predicted:
    """Opinions or probabilities as NumPy arrays, checked: one each for N items, over K labels."""
    try:
        opinion = Opinion(*map(as_floats, value)) if isinstance(value, Opinion) else None
        values = as_floats(value) if opinion is None else opinion.belief
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be an Opinion or an array of probabilities; {type(value).__name__} "
            "came, of which NumPy makes no numbers. Of an Aggregate pass its .probability."
        ) from None
    if values.ndim != 2 or values.shape != (len(values) if N is None else N, K):
        size, what = "M" if N is None else N, "probabilities" if opinion is None else "belief"
        raise ValueError(
            f"`{name}` must be an Opinion ({size},) or probabilities ({size}, {K}), in the order "
            f"of annotations.items and annotations.labels; {what} of shape {values.shape} came."
        )
    if opinion is not None:
        # Networks answer in single precision or in half of it, so no more is asked of sums.
        half = any(getattr(x, "dtype", np.dtype(float)).itemsize < 4 for x in value)
        with np.errstate(over="ignore"):
            check(Opinion(*(x.astype(np.float16 if half else np.float32) for x in opinion)))
        opinion = Opinion(*(np.maximum(x, 0) for x in opinion))
        values = opinion.probability
    P: Floats = values
    total = np.sum(P, axis=1, keepdims=True)
    bad = np.flatnonzero(~((np.abs(total[:, 0] - 1) <= ROOM_OF_SUMS) & np.all(P >= 0, axis=1)))
    if len(bad):
        raise ValueError(
            f"`{name}` must be probabilities, not negative and with sum 1 over the labels; "
            f"{len(bad)} of {len(P)} are not, first {np.array2string(P[bad[0]], threshold=9)} at "
            f"row {bad[0]}. Logits need a softmax first, counts x / x.sum(-1, keepdims=True)."
        )
    # What sums to 1 but for rounding is left alone, so that equal predictions stay tied.
    return _Predicted(np.where(np.abs(total - 1) > 1e-12, P / total, P), opinion)


def _some(guess: _Predicted, keep: NDArray[np.bool_]) -> _Predicted:
    P, opinion = guess
    return _Predicted(P[keep], None if opinion is None else opinion.rows(keep))

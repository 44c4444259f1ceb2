"""What to minimise: divergences between opinions, the usual losses on labels, and held-out votes.

Every loss takes the prediction first, as PyTorch's own do, and gives the mean over items unless
`reduction` says otherwise. `loss_of` says which of them an objective of `SLEClassifier` is.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from slencodings.choices import Direction, Reduction, TrainingObjective, check_word
from slencodings.divergence import kl_and_gradients
from slencodings.opinion import Opinion

Values: TypeAlias = tuple[Tensor, ...]
# What is learned of each row: an opinion, label shares, votes, or a gold label and label shares.
LEARNED: dict[TrainingObjective, Literal["opinion", "shares", "votes", "gold and shares"]] = {
    "reverse_kl": "opinion",
    "forward_kl": "opinion",
    "cross_entropy": "shares",
    "soft_kl": "shares",
    "mtlsl": "gold and shares",
    "votes": "votes",
}


class _KL(torch.autograd.Function):
    """KL of Dirichlets with its derivatives written out: they share most of the work."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        first, second = ctx.needs_input_grad
        kl, in_a, in_b = kl_and_gradients(a, b, first=first, second=second)
        ctx.save_for_backward(a, b, in_a, in_b)
        return kl

    @staticmethod
    def backward(ctx: Any, *upper: Tensor) -> tuple[Tensor | None, ...]:
        a, b, *slopes = ctx.saved_tensors
        # For second derivatives the first ones need the history that the saved ones have lost.
        if torch.is_grad_enabled():
            first, second = ctx.needs_input_grad
            slopes = kl_and_gradients(a, b, first=first, second=second)[1:]
        return tuple(None if slope is None else upper[0][..., None] * slope for slope in slopes)


def _kl(a: Tensor, b: Tensor) -> Tensor:
    function: Any = _KL  # PyTorch does not say what `apply` takes.
    return function.apply(a, b)


def kl_loss(
    predicted: Opinion,
    target: Opinion,
    *,
    direction: Direction = "reverse",
    prior_weight: float | None = None,
    normalize: bool = True,
    reduction: Reduction = "mean",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """How far the predicted Dirichlet is from the target (Eqs. 10, 12).

    reverse: KL(Q || P) / A,   forward: KL(P || Q) / A,   Q predicted, P target of concentration
    A = sum alpha,   alpha = W (b/u + a);   `normalize=False` leaves A out, as the paper prints it

    Parameters
    ----------
    predicted, target : opinions of the same shape; targets need doubt, u > 0: `smooth` them
    prior_weight : W; where none is said 2, and a quarter more for each label beyond ten. A label
        that nobody named has W / K counts, and with next to none of them gradients have no bound
    normalize : divide by A, as Prior Networks do. Then items count alike and gradients are of the
        size of cross-entropy's, whose limit the reverse KL is where doubt vanishes; else an item
        counts with its evidence, and a sure one a thousand times as much as an unsure one
    dtype : computed in float64 where the device has it, else float32; the loss comes back in the
        prediction's own type, and in no less than float32
    """
    check_word("direction", direction, Direction)
    _check_same("target.belief", target.belief, predicted.belief)
    _check_same("target.uncertainty", target.uncertainty, predicted.uncertainty)
    wide = dtype or _widest(predicted.belief)
    many = max(predicted.belief.shape[-1] - 10, 0)
    W = 2 + many / 4 if prior_weight is None else prior_weight
    q, p = (_concentration(o, W, wide) for o in (predicted, target))
    _check_target(target, p)
    loss = _kl(q, p) if direction == "reverse" else _kl(p, q)
    if normalize:
        loss = loss / p.sum(dim=-1)
    return _reduce(loss, reduction).to(_at_least_single(predicted))


def multilabel_kl_loss(
    predicted: Opinion,
    target: Opinion,
    *,
    direction: Direction = "reverse",
    prior_weight: float = 2.0,
    reduction: Reduction = "mean",
) -> Any:
    """The KL of each label's Beta from its target, added up over the labels of an item.

    sum_k KL_k,   KL_k as in `kl_loss`;   labels are independent, so their Dirichlets are, too

    Parameters
    ----------
    predicted, target : binomial Opinion (N, K), of (no, yes)

    Examples
    --------
    >>> import torch
    >>> from slencodings import encode, smooth
    >>> target = smooth(encode(torch.eye(2)[torch.tensor([[0, 1, 1]])]), 0.1)
    >>> float(multilabel_kl_loss(target, target))
    0.0
    """
    if target.belief.ndim != 3 or target.belief.shape[-1] != 2:
        raise ValueError(
            "`target` must be binomial opinions (N, K), a yes or no to each of K labels; belief "
            f"of shape {tuple(target.belief.shape)} came. MultiLabel.by_item makes such."
        )
    each = kl_loss(
        predicted, target, direction=direction, prior_weight=prior_weight, reduction="none"
    )
    return _reduce(each.sum(-1), reduction)


def out_of_distribution_loss(
    predicted: Opinion, *, direction: Direction = "reverse", **how: Any
) -> Tensor:
    """How far opinions about strange inputs are from knowing nothing (Malinin & Gales 2018).

    kl_loss to the vacuous opinion, u = 1; add it, weighted, to the loss of ordinary inputs. Theirs
    is the flat Dirichlet, which is vacuous where `prior_weight` is the number of labels.
    """
    b, u, a = predicted
    vacuous = Opinion(torch.zeros_like(b), torch.ones_like(u), a.detach())
    return kl_loss(predicted, vacuous, direction=direction, **how)


def soft_cross_entropy(
    predicted: Opinion, target: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """Cross-entropy of the projected probability (Eq. 8): - sum_k y_k log P_k.

    `target` is (..., K), probabilities; or (...), label codes, which makes it the usual loss on
    hard labels.
    """
    p = predicted.probability
    if not target.is_floating_point():
        _check_same("target", target, predicted.uncertainty)
        return _reduce(-torch.log(_at(p, target)), reduction)
    _check_same("target", target, p)
    y = target.to(p.dtype)
    # Labels of probability 0 add nothing, nor to gradients, even where 0 is predicted.
    log_p = torch.log(torch.where(y > 0, p, torch.ones_like(p)))
    return _reduce(-torch.sum(y * log_p, dim=-1), reduction)


def soft_kl(predicted: Opinion, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """KL from the soft label to the projected probability (Eq. 9): sum_k y_k log(y_k / P_k).

    Labels of probability 0 add nothing, where y log(y / P) as it is printed would be NaN.
    """
    _check_same("target", target, predicted.belief)
    y = target.to(predicted.belief.dtype)
    cross_entropy = soft_cross_entropy(predicted, target, reduction="none")
    return _reduce(cross_entropy + torch.xlogy(y, y).sum(dim=-1), reduction)


def mtlsl_loss(
    gold_logits: Tensor,
    soft_logits: Tensor,
    gold: Tensor,
    soft: Tensor,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Multi-task learning with soft labels (Fornaciari et al. 2021): two heads, two losses.

    cross-entropy of the gold head, and KL(Q || P) from the soft head's Q to the soft labels P

    `gold` is (...), label codes; `soft` (..., K), probabilities above 0 (a softmax of counts, or
    smoothed ones), as the reverse KL is infinite where they are 0.
    """
    _check_same("soft", soft, soft_logits)
    _check_same("gold", gold, gold_logits[..., 0])
    if not torch.compiler.is_compiling() and not bool((soft > 0).all()):
        raise ValueError(
            f"`soft` must be above 0 for the reverse KL; {int((~(soft > 0)).sum())} of "
            f"{soft.numel()} are not. Smooth them: 0.99 * soft + 0.01 / K."
        )
    log_q = torch.log_softmax(soft_logits, dim=-1)
    reverse = torch.sum(torch.exp(log_q) * (log_q - torch.log(soft)), dim=-1)
    return _reduce(reverse - _at(torch.log_softmax(gold_logits, dim=-1), gold), reduction)


def vote_loss(
    predicted: Opinion,
    votes: Tensor,
    *,
    prior_weight: float = 2.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """Minus the log-likelihood of an item's votes under the predicted opinion, per vote.

    - log DirMult(n | alpha) / N,   N = sum n,   without the orderings:
    log Gamma(A + N) - log Gamma(A) - sum_k (log Gamma(alpha_k + n_k) - log Gamma(alpha_k))

    A proper score of an opinion that needs no fusing: one vote makes it the cross-entropy of the
    projected probability, and more votes also ask for the right certainty. `votes` (..., K) are
    counts or weights, not negative; items without any add nothing.
    """
    _check_same("votes", votes, predicted.belief)
    wide = _widest(predicted.belief)
    a, n = _concentration(predicted, prior_weight, wide), votes.to(wide)
    if not torch.compiler.is_compiling() and not bool((n >= 0).all()):
        raise ValueError(
            f"`votes` must not be negative; {int((~(n >= 0)).sum())} of {n.numel()} are. "
            "Pass counts, or weights above 0."
        )
    A, N = a.sum(dim=-1), n.sum(dim=-1)
    # What the votes are expected to cost, less what they would teach. That is the same, where
    # differences of log Gamma would have no digits left: at large concentrations.
    expected = N * torch.digamma(A) - torch.sum(n * torch.digamma(a), dim=-1)
    loss = (expected - _kl(a, a + n)) / torch.where(N > 0, N, torch.ones_like(N))
    return _reduce(loss, reduction).to(_at_least_single(predicted))


def loss_of(
    objective: TrainingObjective,
    predicted: Any,
    values: Values,
    *,
    prior_weight: float | None,
    normalize: bool,
) -> Tensor:
    """The mean loss of an objective, of what a network says and a target's values.

    It says opinions, or where a gold label and shares are `LEARNED`, logits of both side by side.
    """
    match objective:
        case "reverse_kl" | "forward_kl":
            return kl_loss(
                predicted,
                Opinion(*values),
                direction="reverse" if objective == "reverse_kl" else "forward",
                prior_weight=prior_weight,
                normalize=normalize,
            )
        case "cross_entropy":
            return soft_cross_entropy(predicted, *values)
        case "soft_kl":
            return soft_kl(predicted, *values)
        case "mtlsl":
            return mtlsl_loss(*predicted.chunk(2, dim=-1), *values)
        case "votes":
            return vote_loss(predicted, *values, prior_weight=prior_weight or 2.0)


def _at(x: Tensor, codes: Tensor) -> Tensor:
    return x.gather(-1, codes.long()[..., None])[..., 0]


def _widest(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64


def _at_least_single(opinion: Opinion) -> torch.dtype:
    return torch.promote_types(opinion.belief.dtype, torch.float32)


def _concentration(opinion: Opinion, prior_weight: float, dtype: torch.dtype) -> Tensor:
    """Eq. 1 as `alpha` has it, without its limits at u = 0, which nothing here gets to."""
    b, u, a = (x.to(dtype) for x in opinion)
    return torch.addcdiv(prior_weight * a, b, u[..., None], value=prior_weight)


def _reduce(loss: Tensor, reduction: Reduction) -> Tensor:
    check_word("reduction", reduction, Reduction)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _check_same(name: str, given: Tensor, like: Tensor) -> None:
    if given.shape != like.shape:
        raise ValueError(
            f"`{name}` must have the shape of the prediction, {tuple(like.shape)}; "
            f"{tuple(given.shape)} came."
        )


def _check_target(target: Opinion, concentration: Tensor) -> None:
    """A certain target is infinitely far from any prediction. Not asked while compiling."""
    p = concentration
    if torch.compiler.is_compiling() or not p.numel():
        return
    lowest, highest = torch.aminmax(p)
    # Written so that NaN fails it.
    if bool(lowest > 0) and bool(highest < float("inf")):
        return
    certain = ~(target.uncertainty > 0) | torch.isinf(p).any(dim=-1)
    if bool(certain.any()):
        raise ValueError(
            f"targets need some doubt; {int(certain.sum())} of {certain.numel()} have "
            "uncertainty 0, which is infinite evidence. Smooth them: sle.smooth(target, 0.01)."
        )
    empty = ~(p > 0).all(dim=-1)
    raise ValueError(
        "targets need belief or a base rate above 0 for every label; "
        f"{int(empty.sum())} of {empty.numel()} have a label without either. "
        "Give it a little of the base rate, or leave it out."
    )

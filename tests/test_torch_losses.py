"""Losses on opinions: against mpmath, torch.distributions, brute force and their limits."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from strategies import assert_close, assert_relatively_close

from slencodings import Opinion, alpha, encode, from_alpha, smooth

torch = pytest.importorskip("torch")
from slencodings.torch import (
    kl_loss,
    mtlsl_loss,
    opinion_from_logits,
    out_of_distribution_loss,
    soft_cross_entropy,
    soft_kl,
    vote_loss,
)
from slencodings.torch.losses import loss_of

CASES = json.loads((Path(__file__).parent / "data" / "kl.json").read_text())["cases"]
WEIGHT = 0.01


def opinions(shape=(4,), K=3, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return opinion_from_logits(torch.randn(*shape, K + 1, generator=rng, dtype=dtype), floor=0.01)


def of_alpha(values):
    """An opinion that stands for any concentrations, at the prior weight WEIGHT."""
    a = torch.tensor(values, dtype=torch.float64)
    return from_alpha(a, base_rate=a / a.sum(), prior_weight=WEIGHT)


def with_gradients(opinion):
    return Opinion(*(x.detach().clone().requires_grad_() for x in opinion))


# -- Dirichlets --------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_values_and_gradients_are_those_of_mpmath(direction):
    for case in CASES:
        pair = [of_alpha(case["alpha"]), of_alpha(case["beta"])]
        predicted, target = pair if direction == "reverse" else pair[::-1]
        predicted = with_gradients(predicted)
        how = {"direction": direction, "prior_weight": WEIGHT, "normalize": False}
        loss = kl_loss(predicted, target, **how)
        loss.backward()
        assert_relatively_close(loss.detach(), case["kl"], 1e-6)
        # d alpha / d base_rate = W.
        right = np.asarray(case["in_alpha" if direction == "reverse" else "in_beta"])
        came = predicted.base_rate.grad.numpy() / WEIGHT
        np.testing.assert_allclose(came, right, rtol=0, atol=1e-6 * abs(right).max())


@pytest.mark.parametrize("direction", ["reverse", "forward"])
@pytest.mark.parametrize("normalize", [False, True])
def test_gradients_are_those_of_finite_differences(direction, normalize):
    target = opinions(seed=1)

    def loss(*parts):
        return kl_loss(Opinion(*parts), target, direction=direction, normalize=normalize)

    assert torch.autograd.gradcheck(loss, tuple(with_gradients(opinions())))


def test_targets_can_learn_too():
    predicted, target = opinions(), with_gradients(opinions(seed=1))
    assert torch.autograd.gradcheck(lambda *o: kl_loss(predicted, Opinion(*o)), tuple(target))


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_second_derivatives_are_those_of_finite_differences(direction):
    target = opinions((2,), seed=1)

    def loss(b, u):
        return kl_loss(Opinion(b, u, target.base_rate), target, direction=direction)

    b, u, _ = with_gradients(opinions((2,)))
    assert torch.autograd.gradgradcheck(loss, (b, u))


@pytest.mark.parametrize("prior_weight", [2.0, 3.0])
def test_reverse_and_forward_are_the_two_orders_of_torch_distributions(prior_weight):
    q, p = opinions(), opinions(seed=1)
    Q, P = (torch.distributions.Dirichlet(alpha(o, prior_weight=prior_weight)) for o in (q, p))
    kl = torch.distributions.kl_divergence
    how = {"prior_weight": prior_weight, "reduction": "none", "normalize": False}
    assert_close(kl_loss(q, p, **how), kl(Q, P), 1e-10)
    assert_close(kl_loss(q, p, direction="forward", **how), kl(P, Q), 1e-10)


def test_equal_opinions_are_no_loss_and_no_gradient():
    target = opinions()
    predicted = with_gradients(target)
    loss = kl_loss(predicted, target)
    loss.backward()
    assert loss == 0
    assert all(bool((part.grad == 0).all()) for part in predicted)


def test_the_loss_is_divided_by_the_concentration_of_the_target_unless_told_not_to():
    q, p = opinions(), opinions(seed=1)
    printed = kl_loss(q, p, normalize=False, reduction="none")
    assert_close(kl_loss(q, p, reduction="none"), printed / alpha(p).sum(dim=-1))


@pytest.mark.parametrize("u", [1e-2, 1e-4, 1e-6])
def test_without_doubt_the_reverse_kl_is_the_divergence_of_soft_labels(u):
    """The categorical limit: KL(Q || P) / A goes to sum_k y_k log(y_k / P_k) as doubt goes to 0."""
    q, y = opinions(), opinions(seed=1).probability
    sure = Opinion((1 - u) * q.probability, torch.full((4,), u).double(), q.base_rate)
    target = Opinion((1 - u) * y, torch.full((4,), u).double(), q.base_rate)
    gap = kl_loss(sure, target, reduction="none") - soft_kl(sure, y, reduction="none")
    assert float(gap.abs().max()) < 3 * u
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    logits.requires_grad_()
    said = sure._replace(belief=(1 - u) * torch.softmax(logits, dim=-1))
    pulls = [
        torch.autograd.grad(loss, logits, retain_graph=True)[0]
        for loss in (kl_loss(said, target), soft_cross_entropy(said, y))
    ]
    assert float((pulls[0] - pulls[1]).norm() / pulls[1].norm()) < 10 * u


def test_single_precision_in_is_single_precision_out_and_double_within():
    q, p = opinions(dtype=torch.float32), opinions(seed=1, dtype=torch.float32)
    wide = kl_loss(*(Opinion(*(x.double() for x in o)) for o in (q, p)))
    loss = kl_loss(q, p)
    assert loss.dtype == torch.float32
    assert_relatively_close(loss, wide.float(), 0)
    assert_relatively_close(kl_loss(q, p, dtype=torch.float32), wide, 1e-5)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_reductions_are_mean_sum_and_none(shape):
    q, p = opinions(shape), opinions(shape, seed=1)
    each = kl_loss(q, p, reduction="none")
    assert each.shape == shape
    assert_close(kl_loss(q, p), each.mean())
    assert_close(kl_loss(q, p, reduction="sum"), each.sum())


def test_strange_inputs_ought_to_know_nothing():
    q = with_gradients(opinions())
    a = q.base_rate.detach()
    vacuous = Opinion(torch.zeros_like(a), torch.ones_like(a[:, 0]), a)
    loss = out_of_distribution_loss(q, reduction="none")
    assert_close(loss.detach(), kl_loss(q, vacuous, reduction="none").detach())
    loss.sum().backward()
    # Less evidence is better: more uncertainty lowers the loss.
    assert bool((q.uncertainty.grad < 0).all())
    assert out_of_distribution_loss(vacuous) == 0


# -- refusals ----------------------------------------------------------------------------------


def test_certain_targets_are_refused_with_the_advice_to_smooth():
    certain = encode(torch.eye(3), torch.tensor([0.0, 0.5, 0.0]))
    with pytest.raises(ValueError, match=r"2 of 3 have uncertainty 0.*sle\.smooth\(target, 0\.01"):
        kl_loss(opinions((3,)), certain)
    assert bool(torch.isfinite(kl_loss(opinions((3,)), smooth(certain, 0.01))))


def test_a_direction_or_reduction_of_another_name_is_refused():
    with pytest.raises(
        ValueError, match="`direction` must be one of reverse, forward; 'back' came"
    ):
        kl_loss(opinions(), opinions(), direction="back")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`reduction` must be one of mean, sum, none; 'max' came"):
        kl_loss(opinions(), opinions(), reduction="max")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("target.belief", lambda o: kl_loss(o, opinions(K=4))),
        ("target.belief", lambda o: kl_loss(o, opinions((1,)))),
        (
            "target.uncertainty",
            lambda o: kl_loss(o, Opinion(o.belief, o.uncertainty[:1], o.base_rate)),
        ),
        ("target", lambda o: soft_cross_entropy(o, torch.ones(4, 2))),
        ("target", lambda o: soft_cross_entropy(o, torch.zeros(3, dtype=torch.long))),
        ("target", lambda o: soft_kl(o, torch.ones(3))),
        ("votes", lambda o: vote_loss(o, torch.ones(4))),
        ("soft", lambda o: mtlsl_loss(o.belief, o.belief, torch.zeros(4), torch.ones(4, 2))),
        ("gold", lambda o: mtlsl_loss(o.belief, o.belief, torch.zeros(3), torch.ones(4, 3))),
    ],
)
def test_other_shapes_are_refused(name, call):
    with pytest.raises(ValueError, match=f"`{name}` must have the shape of the prediction"):
        call(opinions())


@pytest.mark.parametrize("u", [float("nan"), -0.1, 1e-320])
def test_what_is_no_doubt_is_refused_like_none(u):
    target = opinions()
    target.uncertainty[1] = u
    with pytest.raises(ValueError, match="targets need some doubt; 1 of 4 have uncertainty 0"):
        kl_loss(opinions(seed=1), target)


def test_targets_with_a_label_that_cannot_be_are_refused():
    b, u = torch.tensor([[0.5, 0.0], [0.1, 0.0]]), torch.tensor([0.5, 0.9])
    a = torch.tensor([[1.0, 0.0], [0.9, 0.1]])
    with pytest.raises(ValueError, match=r"base rate above 0 .* 1 of 2 have a label without"):
        kl_loss(opinions((2,), K=2), Opinion(b, u, a))


def test_negative_votes_are_refused():
    with pytest.raises(ValueError, match="`votes` must not be negative; 1 of 12 are"):
        vote_loss(opinions(), torch.eye(3)[[0, 1, 2, 2]] - 2 * torch.eye(4, 3)[[0, 3, 3, 3]])


# -- soft and hard labels ----------------------------------------------------------------------


def test_hard_labels_are_one_hot_soft_labels_and_the_usual_cross_entropy():
    q, y = opinions(), torch.tensor([0, 2, 1, 1])
    one_hot = torch.eye(3, dtype=torch.float64)[y]
    expected = torch.nn.functional.nll_loss(torch.log(q.probability), y)
    assert_close(soft_cross_entropy(q, y), expected)
    assert_close(soft_cross_entropy(q, one_hot), expected)
    assert_close(soft_kl(q, one_hot), expected)


def test_soft_kl_is_that_of_categoricals_also_where_labels_are_impossible():
    q = with_gradients(opinions())
    y = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]).double()
    expected = torch.nn.functional.kl_div(q.probability.log(), y, reduction="batchmean")
    loss = soft_kl(q, y)
    assert_close(loss.detach(), expected.detach())
    loss.backward()
    assert bool(torch.isfinite(q.belief.grad).all())
    assert_close(soft_kl(q, q.probability.detach()).detach(), torch.tensor(0.0).double())


def test_mtlsl_is_cross_entropy_and_reverse_kl():
    rng = torch.Generator().manual_seed(0)
    gold_logits, soft_logits = torch.randn(2, 5, 3, generator=rng)
    gold = torch.tensor([0, 1, 2, 0, 1])
    soft = torch.softmax(torch.randn(5, 3, generator=rng), dim=-1)
    Q, P = (
        torch.distributions.Categorical(logits=soft_logits),
        torch.distributions.Categorical(soft),
    )
    expected = torch.nn.functional.cross_entropy(gold_logits, gold)
    expected = expected + torch.distributions.kl_divergence(Q, P).mean()
    assert_close(mtlsl_loss(gold_logits, soft_logits, gold, soft), expected, 1e-6)
    one = mtlsl_loss(gold_logits[0], soft_logits[0], gold[0], soft[0])
    each = mtlsl_loss(gold_logits, soft_logits, gold, soft, reduction="none")
    assert_close(one, each[0], 1e-6)


@pytest.mark.parametrize("prior_weight", [2.0, 5.0])
def test_an_objective_is_the_loss_of_its_name(prior_weight):
    q, target, y = opinions(), opinions(seed=1), opinions(seed=2).probability
    gold, logits = torch.tensor([0, 2, 1, 1]), torch.randn(4, 6, generator=torch.manual_seed(0))
    for normalize in (True, False):
        how = {"prior_weight": prior_weight, "normalize": normalize}
        expected = kl_loss(q, target, direction="reverse", **how)
        assert_close(loss_of("reverse_kl", q, tuple(target), **how), expected)
        expected = kl_loss(q, target, direction="forward", **how)
        assert_close(loss_of("forward_kl", q, tuple(target), **how), expected)
        assert_close(loss_of("cross_entropy", q, (y,), **how), soft_cross_entropy(q, y))
        assert_close(loss_of("soft_kl", q, (y,), **how), soft_kl(q, y))
        expected = mtlsl_loss(logits[:, :3], logits[:, 3:], gold, y)
        assert_close(loss_of("mtlsl", logits, (gold, y), **how), expected)
        expected = vote_loss(q, 3 * y, prior_weight=prior_weight)
        assert_close(loss_of("votes", q, (3 * y,), **how), expected)


def test_items_of_soft_labels_may_stand_in_any_shape():
    q, y = opinions((2, 5)), opinions((2, 5), seed=1).probability
    for loss in (soft_kl, soft_cross_entropy):
        each = [loss(Opinion(*(x[i] for x in q)), y[i], reduction="none") for i in range(2)]
        assert_close(loss(q, y, reduction="none"), torch.stack(each))


def test_mtlsl_refuses_soft_labels_of_zero():
    logits = torch.zeros(2, 2)
    with pytest.raises(ValueError, match=r"`soft` must be above 0.*; 1 of 4 are not\. Smooth them"):
        mtlsl_loss(logits, logits, torch.tensor([0, 1]), torch.tensor([[0.0, 1.0], [0.5, 0.5]]))


# -- votes -------------------------------------------------------------------------------------


def test_one_vote_is_the_cross_entropy_of_the_projected_probability():
    q, y = opinions(), torch.tensor([0, 2, 1, 1])
    assert_close(vote_loss(q, torch.eye(3)[y]), soft_cross_entropy(q, y), 1e-10)


def test_the_probabilities_of_all_sequences_of_votes_sum_to_one():
    q, N = opinions((1,)), 4
    sequences = itertools.product(range(3), repeat=N)
    votes = torch.stack([torch.eye(3)[list(s)].sum(dim=0) for s in sequences])
    crowd = Opinion(*(x.expand(len(votes), *x.shape[1:]) for x in q))
    total = torch.exp(-N * vote_loss(crowd, votes, reduction="none")).sum()
    assert_close(total, torch.tensor(1.0).double(), 1e-10)


def test_items_without_votes_add_nothing():
    q = with_gradients(opinions())
    loss = vote_loss(q, torch.zeros(4, 3))
    loss.backward()
    assert loss == 0
    assert bool((q.belief.grad == 0).all())


def test_much_evidence_makes_votes_independent():
    p = torch.tensor([0.2, 0.3, 0.5]).double()
    votes = torch.tensor([3.0, 1.0, 6.0])
    sure = from_alpha(1e8 * p, base_rate=p)
    expected = -(votes * torch.log(p)).sum() / 10
    assert_relatively_close(vote_loss(sure, votes), expected, 1e-6)


def test_votes_have_gradients_of_finite_differences():
    votes = torch.tensor([[1.0, 2.0, 0.0]] * 4)
    loss = lambda *o: vote_loss(Opinion(*o), votes)  # noqa: E731
    assert torch.autograd.gradcheck(loss, tuple(with_gradients(opinions())))


def test_the_loss_of_votes_is_least_near_the_opinion_that_made_them():
    rng = np.random.default_rng(0)
    true = np.asarray([4.0, 2.0, 1.0])
    votes = torch.tensor(np.stack([rng.multinomial(8, p) for p in rng.dirichlet(true, 4000)]))

    def loss(a):
        o = from_alpha(torch.tensor(a).double())
        return float(vote_loss(Opinion(*(x.expand(4000, *x.shape) for x in o)), votes))

    for other in (true * 2, true / 1.4, true[[1, 0, 2]], true + 1):
        assert loss(true) < loss(other)


@pytest.mark.parametrize("u", [1e-8, 1e-6, 1e-4, 0.01, 0.5, 1.0])
def test_votes_are_scored_precisely_at_any_concentration(u):
    """Against the product of what each vote costs after those before it, in fractions."""
    b, a = (
        torch.tensor([0.5, 0.3, 0.2]).double() * (1 - u),
        torch.tensor([0.25, 0.25, 0.5]).double(),
    )
    n = [3, 2, 1]
    v = torch.tensor(u, dtype=torch.float64, requires_grad=True)
    loss = vote_loss(Opinion(b, v, a), torch.tensor(n))
    loss.backward()
    x, bs, as_ = Fraction(u), [Fraction(float(z)) for z in b], [Fraction(float(z)) for z in a]
    alphas = [2 * (y / x + z) for y, z in zip(bs, as_, strict=True)]
    slopes = [-2 * y / x**2 for y in bs]
    terms = [(sum(alphas) + j, sum(slopes), 1) for j in range(6)]
    terms += [(alphas[k] + j, slopes[k], -1) for k in range(3) for j in range(n[k])]
    value = math.fsum(sign * math.log(z) for z, _, sign in terms) / 6
    assert_relatively_close(loss.detach(), value, 1e-11)
    assert_relatively_close(v.grad, float(sum(sign * d / z for z, d, sign in terms) / 6), 1e-6)


# -- types and limits --------------------------------------------------------------------------


def test_no_items_are_no_loss():
    assert kl_loss(opinions((0,)), opinions((0,)), reduction="none").shape == (0,)
    assert vote_loss(opinions((0,)), torch.zeros(0, 3), reduction="sum") == 0


def test_losses_of_half_precision_are_single():
    half = Opinion(*(x.bfloat16() for x in opinions()))
    assert kl_loss(half, opinions(seed=1)).dtype == torch.float32
    assert vote_loss(half, torch.ones(4, 3)).dtype == torch.float32


def test_double_labels_keep_the_type_of_the_prediction():
    y = opinions(seed=1).probability
    for loss in (soft_cross_entropy, soft_kl):
        assert loss(opinions(dtype=torch.float32), y).dtype == torch.float32


def test_impossible_labels_cost_nothing_and_pull_at_nothing():
    b = torch.tensor([[1.0, 0.0]], requires_grad=True)
    certain = Opinion(b, torch.zeros(1), torch.full((1, 2), 0.5))
    loss = soft_kl(certain, torch.tensor([[1.0, 0.0]]))
    loss.backward()
    assert loss == 0
    assert_close(b.grad, torch.tensor([[-1.0, 0.0]]))


def test_nothing_leaves_the_device_of_the_prediction(monkeypatch):
    # The device that holds no values refuses to meet tensors of another, as a GPU does; values
    # cannot be looked at there, so that they are not checked, as in compiled code.
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    logits = torch.zeros(4, 4, device="meta", requires_grad=True)
    said = opinion_from_logits(logits)
    target = Opinion(*(x.detach() for x in said))
    shares, code = torch.ones(4, 3, device="meta"), torch.zeros(4, device="meta", dtype=torch.long)
    losses = [
        kl_loss(said, target),
        kl_loss(said, target, direction="forward"),
        out_of_distribution_loss(said),
        soft_cross_entropy(said, shares),
        soft_cross_entropy(said, code),
        soft_kl(said, shares),
        mtlsl_loss(logits[:, :3], logits[:, 1:], code, shares),
        vote_loss(said, shares),
    ]
    torch.stack(losses).sum().backward()
    assert logits.grad is not None
    assert {logits.grad.device.type, *(loss.device.type for loss in losses)} == {"meta"}
    with pytest.raises(RuntimeError, match="device"):
        vote_loss(said, torch.ones(4, 3))

"""Networks that say opinions: what the head promises for any features, type and shape."""

import numpy as np
import pytest
from strategies import assert_close, assert_is_opinion, present

from slencodings import alpha, check, encode, smooth

torch = pytest.importorskip("torch")
from slencodings.torch import OpinionHead, kl_loss, opinion_from_logits, vote_loss

# PyTorch says this of the caches in array-api-compat, which hold what cannot change.
about_caches = pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cach")


def detached(opinion):
    return type(opinion)(*(x.detach() for x in opinion))


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_any_leading_shape_and_number_of_labels_gives_opinions(shape, K):
    opinion = detached(OpinionHead(4, K)(torch.randn(*shape, 4)))
    assert opinion.uncertainty.shape == shape
    assert opinion.belief.shape == opinion.base_rate.shape == (*shape, K)
    assert_is_opinion(opinion, 1e-6)


def test_the_opinion_is_the_softmax_smoothed_by_the_floor():
    logits = torch.randn(6, 4, dtype=torch.float64)
    bare = torch.softmax(logits, dim=-1)
    plain = type(opinion_from_logits(logits))(bare[:, :3], bare[:, 3], torch.full((6, 3), 1 / 3))
    expected = smooth(plain, 0.05)
    opinion = opinion_from_logits(logits, floor=0.05)
    assert_close(opinion.belief, expected.belief)
    assert_close(opinion.uncertainty, expected.uncertainty)


@pytest.mark.parametrize("size", [-1e4, -100.0, 100.0, 1e4])
def test_no_logit_makes_evidence_or_gradients_infinite(size):
    logits = torch.tensor([[1.0, 0.0, size], [size, 0.0, 0.0]], requires_grad=True)
    opinion = opinion_from_logits(logits, floor=1e-4)
    assert bool((opinion.uncertainty >= 0.99e-4).all())
    assert bool((alpha(opinion) <= 2.01e4).all())
    target = smooth(detached(opinion_from_logits(torch.zeros(2, 3))), 0.01)
    kl_loss(opinion, target).backward()
    assert bool(torch.isfinite(logits.grad).all())


def test_autocast_does_not_reach_the_head():
    head, x = OpinionHead(8, 3), torch.randn(5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = head(x)
        halved = head(x.to(torch.bfloat16))
    assert {part.dtype for part in (*inside, *halved)} == {torch.float32}
    assert_close(detached(inside), detached(head(x)), 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_head_of_half_precision_says_opinions_in_single(dtype):
    opinion = detached(OpinionHead(8, 3).to(dtype)(torch.randn(5, 8).to(dtype)))
    assert {part.dtype for part in opinion} == {torch.float32}
    # The uniform base rate itself was rounded to half precision with the head.
    assert_is_opinion(opinion, 1e-2)


def test_double_precision_stays_double():
    assert OpinionHead(4, 2).double()(torch.randn(3, 4).double()).belief.dtype == torch.float64


def test_a_base_rate_is_kept_and_saved():
    head = OpinionHead(4, 2, base_rate=[0.9, 0.1])
    assert_close(head(torch.randn(4)).base_rate, np.asarray([0.9, 0.1], np.float32))
    again = OpinionHead(4, 2)
    again.load_state_dict(head.state_dict())
    assert_close(again.base_rate, np.asarray([0.9, 0.1], np.float32))


@pytest.mark.parametrize("n_labels", [1, 0])
def test_fewer_than_two_labels_are_refused(n_labels):
    with pytest.raises(ValueError, match=f"`n_labels` must be at least 2; {n_labels} came"):
        OpinionHead(4, n_labels)


@pytest.mark.parametrize("floor", [0.0, 1.0, -1.0])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(ValueError, match="`floor` must lie between 0 and 1"):
        OpinionHead(4, 2, floor=floor)


def test_printing_the_head_shows_its_floor():
    assert "floor=0.01" in str(OpinionHead(4, 2, floor=0.01))


@about_caches
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_torch_compiles_head_and_losses():
    head, x = OpinionHead(4, 3), torch.randn(5, 4)
    target = detached(opinion_from_logits(torch.randn(5, 4), floor=0.01))

    def step(x):
        said = head(x)
        both = kl_loss(said, target) + 2 * kl_loss(said, target, direction="forward")
        return both + 3 * vote_loss(said, torch.ones(5, 3))

    came = torch.compile(step, fullgraph=True, backend="eager")(x)
    came.backward()
    compiled = present(head.linear.weight.grad).clone()
    head.zero_grad()
    expected = step(x)
    expected.backward()
    assert_close(came.detach(), expected.detach(), 1e-6)
    assert_close(compiled, head.linear.weight.grad, 1e-5)


@pytest.mark.parametrize("half", [False, True], ids=["single", "bfloat16"])
def test_networks_learn_under_autocast_as_they_do_without(half):
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    target = smooth(encode(torch.eye(3)[x[:, :3].argmax(dim=1)], torch.full((64,), 0.1)), 0.01)
    encoder, head = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU()), OpinionHead(16, 3)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.03)
    losses, right = [], 0.0
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            features = encoder(x)
            said = head(features)
            loss = kl_loss(said, target)
        assert features.dtype == (torch.bfloat16 if half else torch.float32)
        assert loss.dtype == torch.float32
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        right = float((said.probability.argmax(1) == target.belief.argmax(1)).float().mean())
    assert losses[-1] < 0.1 * losses[0]
    assert right > 0.95


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("base_rate", [None, [0.2, 0.3, 0.5]])
def test_base_rates_sum_to_one_in_whatever_precision_the_head_is_moved_to(dtype, base_rate):
    opinion = OpinionHead(4, 3, base_rate=base_rate).to(dtype)(torch.randn(2, 4, dtype=dtype))
    check(opinion)
    np.testing.assert_allclose(opinion.base_rate[0], base_rate or [1 / 3] * 3, rtol=2**-8)


def test_a_label_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"`base_rate` must be above 0 .* 1 of 3 are 0"):
        OpinionHead(4, 3, base_rate=[0.5, 0.5, 0.0])


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
def test_too_few_logits_are_refused(shape):
    with pytest.raises(ValueError, match=r"`logits` needs K \+ 1 of them"):
        opinion_from_logits(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(), (2,), (2, 4)])
def test_a_base_rate_of_another_length_is_refused(shape):
    with pytest.raises(ValueError, match="`base_rate` needs 3 values on its last axis"):
        opinion_from_logits(torch.zeros(2, 4), base_rate=torch.zeros(shape))


@pytest.mark.parametrize("floor", [0.0, 1.0, float("nan")])
def test_logits_without_a_floor_are_refused(floor):
    with pytest.raises(ValueError, match="`floor` must lie between 0 and 1"):
        opinion_from_logits(torch.zeros(2, 4), floor=floor)

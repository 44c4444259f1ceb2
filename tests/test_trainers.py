"""Trainers that people already use; run as a script, this file is two processes that train."""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from documents import run_block

import slencodings as sle

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
torch = pytest.importorskip("torch", reason="needs the extra `torch`")
# Looked for, not imported: every process of a run collects this file, and one runs it.
pytestmark = pytest.mark.skipif(
    not (find_spec("transformers") and find_spec("accelerate")),
    reason="needs the extra `trainers`",
)

from safetensors.torch import load_file

from slencodings.torch import kl_loss, opinion_from_logits, soft_cross_entropy, vote_loss
from slencodings.torch.trainer import opinion_loss, opinion_metrics, pack, unpack

CLASSES: dict[str, Any] = {"num_labels": 3}
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


def texts(n=96, seed=0):
    """Rows of tokens; which of two words is in them is the label, and a third makes it disputed."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(4, 20, (n, 6))
    label, disputed = rng.integers(0, 2, n), rng.random(n) < 0.3
    tokens[:, 0], tokens[:, 1] = np.where(disputed, 3, 4), 1 + label
    target = sle.encode(np.eye(2)[label], np.where(disputed, 0.6, 0.1))
    mask = np.ones(6, dtype=int).tolist()
    return [
        {"input_ids": row.tolist(), "attention_mask": mask, "labels": y.tolist()}
        for row, y in zip(tokens, pack(target), strict=True)
    ]


def images(n=96, seed=0):
    """Noise with one bright half."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    pixels = rng.normal(0, 0.3, (n, 1, 8, 8)).astype(np.float32)
    pixels[label == 0, :, :4] += 1
    pixels[label == 1, :, 4:] += 1
    labels = pack(sle.encode(np.eye(2)[label], 0.1))
    return [{"pixel_values": x, "labels": y} for x, y in zip(pixels, labels, strict=True)]


def text_model(dropout=0.0):
    import transformers

    torch.manual_seed(0)
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=20, max_position_embeddings=8, **CLASSES, **rates, **SIZES
        )
    )


def image_model(dropout=0.0):
    import transformers

    torch.manual_seed(0)
    shape = {"image_size": 8, "patch_size": 4, "num_channels": 1}
    config = transformers.ViTConfig(**CLASSES, hidden_dropout_prob=dropout, **shape, **SIZES)
    return transformers.ViTForImageClassification(config)


def trainer_for(model, data, folder, **how):
    import transformers

    settings = {
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "save_strategy": "no",
        "logging_strategy": "no",
        "lr_scheduler_type": "constant",
        "learning_rate": 1e-2,
        "per_device_train_batch_size": 8,
        **how,
    }
    return transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(str(folder), **settings),
        train_dataset=data,
        eval_dataset=data,
        compute_loss_func=opinion_loss(),
        compute_metrics=opinion_metrics(),
    )


def assert_same_weights(got, expected, *, atol=0.0):
    assert got.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(
            got[name], weight, rtol=0, atol=atol, msg=lambda m, n=name: n + m
        )


def weights(model):
    return {name: x.detach().clone() for name, x in model.state_dict().items()}


# Labels


def test_packing_loses_nothing_but_digits_beyond_float32():
    rng = np.random.default_rng(0)
    target = sle.encode(rng.dirichlet(np.ones(4), 7), rng.random(7), base_rate=[0.1, 0.2, 0.3, 0.4])
    rows = pack(target)
    assert rows.shape == (7, 9)
    assert rows.dtype == np.float32
    for got, expected in zip(unpack(rows), target, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-7)
    for got, expected in zip(unpack(torch.as_tensor(rows)), target, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-7)


def test_what_is_no_opinion_is_not_packed():
    with pytest.raises(ValueError, match=r"belief and uncertainty must sum to 1; 1 of 2 opinions"):
        pack(sle.Opinion(np.eye(2), np.asarray([0.0, 0.5]), np.full((2, 2), 0.5)))


@pytest.mark.parametrize("shape", [(), (3,), (4, 4), (4, 1)])
def test_rows_that_hold_no_opinion_are_refused(shape):
    with pytest.raises(ValueError, match=r"2K \+ 1 numbers per row.*came\. Make the column with"):
        unpack(np.zeros(shape))


# Losses


def batch(n=6, K=3, seed=0):
    rng = np.random.default_rng(seed)
    target = sle.encode(rng.dirichlet(np.ones(K), n), rng.uniform(0.05, 1, n))
    logits = torch.as_tensor(rng.normal(size=(n, K + 1)), dtype=torch.float32)
    return logits, torch.as_tensor(pack(target)), target


def test_the_loss_is_the_kl_of_dirichlets_averaged_over_items():
    logits, labels, target = batch()
    q = torch.distributions.Dirichlet(
        torch.as_tensor(sle.alpha(opinion_from_logits(logits.double())))
    )
    p = torch.distributions.Dirichlet(torch.as_tensor(sle.alpha(target)))
    reverse, forward = (
        torch.distributions.kl_divergence(*pair).mean().item() for pair in ((q, p), (p, q))
    )
    outputs = {"logits": logits}
    printed: dict[str, Any] = {"normalize": False}
    assert opinion_loss(**printed)(outputs, labels).item() == pytest.approx(reverse, rel=1e-4)
    got = opinion_loss(direction="forward", **printed)(outputs, labels)
    assert got.item() == pytest.approx(forward, rel=1e-4)
    divided = torch.distributions.kl_divergence(q, p) / p.concentration.sum(dim=-1)
    assert opinion_loss()(outputs, labels).item() == pytest.approx(divided.mean().item(), rel=1e-4)


def test_the_floor_and_the_base_rate_are_those_of_the_prediction():
    logits, labels, _ = batch()
    a = [0.2, 0.3, 0.5]
    got = opinion_loss(floor=0.1, base_rate=a)({"logits": logits}, labels)
    predicted = opinion_from_logits(logits, floor=0.1, base_rate=torch.tensor(a))
    assert got == kl_loss(predicted, unpack(labels))


def test_packed_labels_bring_their_base_rate_along():
    logits, _, target = batch()
    labels = torch.as_tensor(pack(target._replace(base_rate=np.tile([0.2, 0.3, 0.5], (6, 1)))))
    told: dict[str, Any] = {"base_rate": [0.2, 0.3, 0.5]}
    got, expected = (opinion_loss(**how)({"logits": logits}, labels) for how in ({}, told))
    torch.testing.assert_close(got, expected)
    got, expected = (opinion_metrics(**how)((logits.numpy(), labels.numpy())) for how in ({}, told))
    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_unequal_parts_of_a_batch_add_up_to_its_mean(cut):
    logits, labels, _ = batch()
    loss, count = opinion_loss(), labels.numel()  # what the Trainer counts: numbers, not items
    whole = loss({"logits": logits}, labels)
    parts = [
        loss({"logits": logits[part]}, labels[part], num_items_in_batch=torch.tensor(count))
        for part in (slice(cut), slice(cut, None))
    ]
    torch.testing.assert_close(sum(parts), whole)


def test_votes_probabilities_and_codes_are_labels_too():
    logits, _, _ = batch()
    outputs, predicted = {"logits": logits}, opinion_from_logits(logits)
    votes = torch.tensor(np.random.default_rng(0).integers(0, 4, (6, 3)), dtype=torch.float32)
    codes = torch.tensor([0, 1, 2, 0, 1, 2])
    for objective, labels in ((vote_loss, votes), (soft_cross_entropy, codes)):
        expected = objective(predicted, labels)
        torch.testing.assert_close(opinion_loss(objective)(outputs, labels), expected)
        counted = opinion_loss(objective)(outputs, labels, num_items_in_batch=labels.numel())
        torch.testing.assert_close(counted, expected)


def test_labels_of_another_form_are_refused():
    logits, labels, _ = batch()
    with pytest.raises(ValueError, match=r"2K \+ 1 numbers per row.*\(6, 4\) came"):
        opinion_loss()({"logits": logits}, labels[:, :4])
    with pytest.raises(ValueError, match=r"shape of the prediction, \(6, 3\); \(6, 7\) came"):
        opinion_loss(vote_loss)({"logits": logits}, labels)


# Metrics


def test_metrics_are_those_of_the_projected_probability():
    logits, labels, target = batch(n=40)
    got = opinion_metrics()((logits.numpy(), labels.numpy()))
    guess, truth = opinion_from_logits(logits), target.probability
    hits = [
        int(p.argmax()) == int(t.argmax()) for p, t in zip(guess.probability, truth, strict=True)
    ]
    assert got["accuracy"] == pytest.approx(np.mean(hits))
    assert 0 < got["accuracy"] < 1
    assert got["jsd"] == pytest.approx(sle.metrics.jsd(truth, guess.probability).mean(), abs=1e-6)
    each = -np.sum(truth * np.log(guess.probability.numpy()), axis=-1)
    assert got["vote_log_loss"] == pytest.approx(float(each.mean()), abs=1e-6)
    similar = sle.metrics.entropy_similarity(truth, guess.probability)
    assert got["entropy_similarity"] == pytest.approx(similar, abs=1e-6)
    assert got["uncertainty"] == pytest.approx(float(guess.uncertainty.mean()), abs=1e-6)


def test_metrics_read_votes_and_codes_and_leave_out_items_without_votes():
    logits = np.asarray([[5.0, 0, 0], [5.0, 0, 0], [0, 5.0, 0], [0, 0, 9.0]])
    measure = opinion_metrics()
    votes = np.asarray([[3, 0], [1, 1], [1, 2], [0, 0]])
    from_votes = measure((logits, votes))
    assert from_votes["accuracy"] == pytest.approx(2.5 / 3)  # one of the three is a tie
    assert from_votes["uncertainty"] < 0.1
    assert measure((logits[:3], np.asarray([0, 1, 1])))["accuracy"] == pytest.approx(2 / 3)
    shares = np.asarray([[1, 0], [0.5, 0.5], [1 / 3, 2 / 3]])
    assert measure((logits[:3], shares)) == pytest.approx(from_votes)
    with_states = measure(((logits, np.zeros((4, 2, 8))), votes))
    assert with_states == from_votes


def test_metrics_for_another_number_of_labels_are_refused():
    logits, labels, _ = batch(K=3)
    with pytest.raises(ValueError, match=r"with 3 logits; they are about 3 labels.*num_labels=4"):
        opinion_metrics()((logits[:, :3].numpy(), labels.numpy()))


# Hugging Face


@pytest.mark.parametrize(
    ("model", "data"), [(text_model, texts), (image_model, images)], ids=["text", "image"]
)
def test_the_trainer_learns_opinions(tmp_path, model, data):
    trainer = trainer_for(model(), data(), tmp_path, num_train_epochs=5)
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate(data(seed=1))
    assert before["eval_accuracy"] < 0.8
    assert after["eval_accuracy"] > 0.9
    assert after["eval_loss"] < before["eval_loss"] / 4
    assert after["eval_jsd"] < before["eval_jsd"] / 4


def test_the_trainer_learns_which_texts_are_disputed(tmp_path):
    trainer = trainer_for(text_model(), texts(), tmp_path, num_train_epochs=8)
    trainer.train()
    logits, labels, _ = trainer.predict(cast(Any, texts(seed=1)))
    u = opinion_from_logits(torch.as_tensor(logits)).uncertainty.numpy()
    disputed = unpack(labels).uncertainty > 0.5
    assert u[disputed].mean() > u[~disputed].mean() + 0.2


def test_the_trainer_keeps_the_epoch_that_predicts_votes_best(tmp_path):
    votes = {"metric_for_best_model": "vote_log_loss", "greater_is_better": False}
    each = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    # Steps so large that later epochs are not the best.
    how = {"num_train_epochs": 4, "learning_rate": 0.3, **votes, **each}
    trainer: Any = trainer_for(text_model(), texts(n=32), tmp_path, **how)
    trainer.train()
    losses = [row["eval_vote_log_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    assert len(losses) == 4
    assert min(losses) < losses[-1]
    assert trainer.evaluate()["eval_vote_log_loss"] == pytest.approx(min(losses))


# A fresh model would not do: the Trainer restores by name, and some models (ViT among them) are
# saved under other names than they have (huggingface/transformers issue 43701).
@pytest.mark.parametrize(
    ("model", "data"), [(text_model, texts), (image_model, images)], ids=["text", "image"]
)
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, model, data):
    how = {"max_steps": 20, "save_strategy": "steps", "save_steps": 8}
    whole: Any = trainer_for(model(dropout=0.2), data(), tmp_path, **how)
    whole.train()
    stopped = type(whole.model).from_pretrained(tmp_path / "checkpoint-8")
    assert not torch.equal(stopped.classifier.weight, whole.model.classifier.weight)
    again = trainer_for(stopped, data(), tmp_path / "again", **how)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))
    assert again.state.global_step == 20
    assert_same_weights(weights(again.model), weights(whole.model))
    assert (tmp_path / "checkpoint-20" / "model.safetensors").exists()


def train_plainly(folder, **how):
    """Sixteen steps of plain gradient descent over shuffled batches of eight, all told."""
    how = {"optim": "sgd", "learning_rate": 0.05, "max_steps": 16, "max_grad_norm": 0.0, **how}
    trainer = trainer_for(text_model(), texts(), folder, **how)
    trainer.train()
    return trainer


def test_small_batches_added_up_equal_large_ones(tmp_path):
    large = train_plainly(tmp_path)
    small = train_plainly(tmp_path, per_device_train_batch_size=2, gradient_accumulation_steps=4)
    assert_same_weights(weights(small.model), weights(large.model), atol=1e-5)


def test_two_processes_give_what_one_gives(tmp_path):
    words = [__file__, str(tmp_path)]
    run = run_block(
        f"import runpy, sys; sys.argv = {words}; runpy.run_path(sys.argv[0], None, '__main__')"
    )
    assert run.code == 0, run.err
    one = train_plainly(tmp_path)
    start = weights(text_model())
    moved = max(float((x - start[n]).abs().max()) for n, x in weights(one.model).items())
    assert moved > 0.01
    assert_same_weights(load_file(tmp_path / "model.safetensors"), weights(one.model), atol=1e-5)
    alone, together = (
        one.evaluate(),
        dict(line.split("=") for line in run.out.split() if line.startswith("eval_")),
    )
    for name in ("eval_loss", "eval_accuracy", "eval_jsd"):
        assert float(together[name]) == pytest.approx(alone[name], abs=1e-5)


def become_one_of_two():
    """What torchrun does, but for its processes, each of which takes seconds to import all this."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = os.fork()
    rank = {"RANK": str(int(child == 0)), "LOCAL_RANK": str(int(child == 0))}
    sizes = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= rank | sizes | place
    return child


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    child = become_one_of_two()
    trainer = train_plainly(folder, per_device_train_batch_size=4)
    assert trainer.args.world_size == 2
    results = trainer.evaluate()
    trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        print("", *(f"{name}={value}" for name, value in results.items()), sep="\n")
    torch.distributed.destroy_process_group()
    if child:
        assert os.waitpid(child, 0)[1] == 0

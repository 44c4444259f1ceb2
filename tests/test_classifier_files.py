"""The classifier is stored without pickle, survives being killed, and refuses politely."""

import json
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from fitting import (
    assert_same_weights,
    assert_untouched,
    crowd_of,
    one_thread,
    quick,
    rows,
)
from hostile import put
from safetensors.torch import save_file
from stored_files import WRITTEN
from torch import nn

from slencodings import Opinion, encode, fuse_table, smooth
from slencodings.choices import TrainingObjective
from slencodings.tables.arrays import from_table
from slencodings.torch import SLEClassifier, saving, training

OBJECTIVES = get_args(TrainingObjective)
__all__ = ["one_thread"]


# Stored and read


@pytest.mark.parametrize(
    "labels", [["b", "a", "c"], [10, 20, 30], [1.0, 2.0, 3.0], [True, False, True]]
)
def test_a_saved_model_predicts_the_same(tmp_path, labels):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("wxyz"))
    model = quick(learning_rate=np.float64(0.01)).fit(table, np.asarray(labels)[y])
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = SLEClassifier.load(path)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert_same_weights(again, model)
    again.save(path)
    assert_same_weights(SLEClassifier.load(path), model)
    assert_same_weights(clone(again).fit(table, np.asarray(labels)[y]), model)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table.rename(columns={"w": "v"}))


def test_loading_changes_nobodys_random_numbers(tmp_path):
    quick().fit(*rows()).save(tmp_path / "m.safetensors")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    SLEClassifier.load(tmp_path / "m.safetensors")
    assert torch.equal(torch.rand(3), expected)


def test_a_model_with_an_encoder_needs_one_like_it_to_be_loaded(tmp_path):
    X, y = rows()
    path, plain = tmp_path / "m.safetensors", tmp_path / "plain.safetensors"
    tied = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    model = quick(encoder=tied, objective="mtlsl").fit(X, y)
    model.save(path)
    quick().fit(X, y).save(plain)
    again = SLEClassifier.load(
        path, encoder=nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    )
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"trained with an encoder.*load\(path, encoder=module\)"):
        SLEClassifier.load(path)
    with pytest.raises(ValueError, match=r"trained without an encoder.*load\(path\)"):
        SLEClassifier.load(plain, encoder=tied)
    with pytest.raises(
        ValueError, match=r"weights of another network; 6 of 8 tensors differ, first"
    ):
        SLEClassifier.load(path, encoder=nn.Linear(4, 4))


def damaged(whole, how):
    match how:
        case "cut short":
            return whole[:-100]
        case "empty":
            return b""
        case "one bit":
            return whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:]
        case "header":
            return whole.replace(b"max_epochs", b"max_epochz")
    return b"this is text, and no tensors are in it"


@pytest.mark.parametrize("how", ["cut short", "empty", "one bit", "header", "text"])
def test_a_damaged_file_is_told_and_left_alone(tmp_path, how):
    X, y = rows()
    path = tmp_path / "file.safetensors"
    quick().fit(X, y).save(path)
    path.write_bytes(damaged(path.read_bytes(), how))
    with pytest.raises(ValueError, match=r"file.safetensors' is damaged"):
        SLEClassifier.load(path)
    path.unlink()
    quick(checkpoint=path).fit(X, y)
    broken = damaged(path.read_bytes(), how)
    path.write_bytes(broken)
    with pytest.raises(ValueError, match=r"file.safetensors' is damaged"):
        quick(checkpoint=path).fit(X, y)
    assert_untouched(path, broken)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_a_model_of_an_earlier_version_predicts_what_it_predicted(version):
    kept = json.loads((WRITTEN / version / "predicted.json").read_text())
    model = SLEClassifier.load(WRITTEN / version / "model.safetensors")
    said = model.predict_opinion(np.asarray(kept["X"], dtype=np.float32))
    np.testing.assert_allclose(said.belief, kept["belief"], atol=1e-6)
    np.testing.assert_allclose(said.uncertainty, kept["uncertainty"], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about: "{", "damaged: what it says of itself is not JSON"),
        (lambda about: "[" * 100_000, "damaged: what it says of itself is not JSON"),
        (lambda about: "[]", "damaged: it does not say what model it holds"),
        (lambda about: about | {"plain": None}, "was trained with an encoder of its own"),
        (lambda about: about | {"labels": {}}, "hold a model that can be made again: 'values'"),
        (lambda about: put(about, ("parameters",), {"no_such": 1}), "again: .*no_such"),
        (lambda about: put(about, ("parameters", "hidden"), [10**9]), "more weights than"),
        (lambda about: put(about, ("fitted", "input_dtype_"), "load"), "can be made again"),
        (
            lambda about: put(about, ("fitted", "n_features_in_"), []),
            r"it says \[\] features, and \d",
        ),
        (lambda about: put(about, ("parameters", "hidden"), []), "the weights of another network"),
    ],
)
def test_a_sound_file_that_says_what_no_model_is_is_refused(tmp_path, change, words):
    """Whoever can write a file can write its checksum, too."""
    path = tmp_path / "model.safetensors"
    tensors, about = saving.read(WRITTEN / "0.2.0" / "model.safetensors", "classifier")
    new = change(about)
    text = new if isinstance(new, str) else json.dumps(new)
    header = {"slencodings": "classifier", "about": text, "sha256": saving._digest(tensors, text)}
    save_file(tensors, path, metadata=header)
    with pytest.raises(ValueError, match=words):
        SLEClassifier.load(path)


def test_a_checkpoint_that_says_nothing_of_training_is_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "checkpoint.safetensors"
    saving.write(path, "checkpoint", {"random": torch.zeros(1)}, {"labels": []})
    with pytest.raises(ValueError, match="damaged: it does not say where training had come to"):
        quick(checkpoint=path).fit(X, y)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("labels",), ["a", "b", "c"]),
        (("labels",), {"dtype": "<U1"}),
        (("labels", "values"), None),
        (("parameters",), "none"),
        (("seed",), "cosine"),
        (("seed",), 2**63),
        (("seed",), True),
        (("history",), None),
        (("history",), [1]),
        (("history", 0), {"epoch": 1}),
        (("history", 0, "loss"), "low"),
    ],
)
def test_a_checkpoint_that_says_something_else_of_training_is_refused(where, value, tmp_path):
    X, y = rows()
    path = tmp_path / "checkpoint.safetensors"
    quick(checkpoint=path).fit(X, y)
    tensors, about = saving.read(path, "checkpoint")
    saving.write(path, "checkpoint", tensors, put(about, where, value))
    with pytest.raises(ValueError, match="damaged: it does not say where training had come to"):
        quick(checkpoint=path).fit(X, y)


@pytest.mark.parametrize("state", [torch.zeros(3, dtype=torch.uint8), torch.zeros(5056)])
def test_a_checkpoint_without_a_state_of_random_numbers_is_refused(state, tmp_path):
    X, y = rows()
    path = tmp_path / "checkpoint.safetensors"
    quick(checkpoint=path).fit(X, y)
    tensors, about = saving.read(path, "checkpoint")
    saving.write(path, "checkpoint", {**tensors, "random": state}, about)
    with pytest.raises(ValueError, match="damaged: it does not say where training had come to"):
        quick(checkpoint=path).fit(X, y)


def test_files_of_another_kind_are_refused(tmp_path):
    X, y = rows()
    model, other = tmp_path / "model.safetensors", tmp_path / "other.safetensors"
    quick().fit(X, y).save(model)
    with pytest.raises(ValueError, match="must be a checkpoint of slencodings; it is 'classifier'"):
        quick(checkpoint=model).fit(X, y)
    save_file({"x": torch.zeros(1)}, other)
    with pytest.raises(ValueError, match=r"must be a classifier .* file of something else"):
        SLEClassifier.load(other)
    with pytest.raises(FileNotFoundError, match="'nowhere' is not there"):
        SLEClassifier.load("nowhere")


def test_labels_that_are_no_plain_values_cannot_be_stored(tmp_path):
    X, y = rows()
    dates = np.asarray(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]").astype(
        object
    )
    model = quick(labels=dates, objective="cross_entropy").fit(X, np.eye(3)[y])
    with pytest.raises(ValueError, match="text or numbers to be stored; date came"):
        model.save(tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


# Killed and gone on


def noisy_encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3))


PLANS = [
    {"validation": 0.3, "encoder": noisy_encoder()},
    {"objective": "forward_kl"},
    {"objective": "mtlsl", "schedule": "constant", "random_state": None},
]


@pytest.mark.parametrize("plan", PLANS, ids=["validation", "forward", "two heads"])
def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path, monkeypatch, plan):
    X, y = rows(60)
    path = tmp_path / "run.safetensors"
    seed = {"random_state": np.random.RandomState(5)} if plan.get("random_state", 0) is None else {}
    whole = quick(**plan | seed | {"max_epochs": 8, "batch_size": 16}).fit(X, y)
    step, calls = torch.optim.AdamW.step, []

    def stop(self, *rest):
        calls.append(1)
        if len(calls) == 14:  # in the middle of an epoch of three or four batches
            raise KeyboardInterrupt
        return step(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", stop)
        first = {"random_state": np.random.RandomState(5)} if seed else {}
        with pytest.raises(KeyboardInterrupt):
            quick(**plan | first | {"max_epochs": 8, "batch_size": 16}, checkpoint=path).fit(X, y)
    before = len(calls)
    # a seed that was not chosen is in the checkpoint
    resumed = quick(**plan | {"max_epochs": 8, "batch_size": 16}, checkpoint=path).fit(X, y)
    assert before == 14
    assert_same_weights(resumed, whole)
    assert resumed.history_ == whole.history_
    # once it has come to its end, there is nothing left to do
    monkeypatch.setattr(training, "_learn", None)
    done = quick(**plan | {"max_epochs": 8, "batch_size": 16}, checkpoint=path).fit(X, y)
    assert_same_weights(done, whole)


def test_a_process_that_was_killed_leaves_a_checkpoint_to_go_on_from(tmp_path):
    X, y = rows(60)
    path = tmp_path / "run.safetensors"
    code = f"""
    import os, signal, sys, numpy as np, torch
    torch.set_num_threads(1)
    from slencodings.torch import SLEClassifier
    X = np.random.default_rng(0).normal(size=(60, 4))
    step, calls = torch.optim.AdamW.step, []
    def kill(self, *rest):
        calls.append(1)
        if len(calls) == 14:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *rest)
    torch.optim.AdamW.step = kill
    SLEClassifier(max_epochs=8, hidden=(8,), random_state=0, batch_size=16,
                  checkpoint={str(path)!r}).fit(X, X[:, :3].argmax(axis=1))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert run.returncode == -signal.SIGKILL
    how = {"max_epochs": 8, "batch_size": 16}
    resumed = quick(**how, checkpoint=path).fit(X, y)
    assert_same_weights(resumed, quick(**how).fit(X, y))


def test_a_checkpoint_of_another_training_is_refused_and_left_alone(tmp_path):
    X, y = rows()
    path = tmp_path / "run.safetensors"
    quick(checkpoint=path).fit(X, y)
    before = path.read_bytes()
    names = np.asarray(["a", "b", "c"])
    for model, data, match in (
        (quick(), (X, names[y]), r"for the labels 0, 1, 2; 'a', 'b', 'c' came\. Name another"),
        (quick(learning_rate=0.1), (X, y), r"first learning_rate=0.003, and 0.1 came"),
        (quick(random_state=1), (X, y), r"other parameters; 1 differ, first random_state=0"),
        (quick(), (X + 1, y), r"made from other rows or targets"),
        (quick(), (X, y[::-1]), r"made from other rows or targets"),
        (quick(), (X[1:], y[1:]), r"made from other rows or targets"),
        (quick(encoder=nn.Linear(4, 8)), (X, y), r"weights of another network; 4 of 7 tensors"),
    ):
        with pytest.raises(ValueError, match=match):
            model.set_params(checkpoint=path).fit(*data)
        assert_untouched(path, before)
    np.testing.assert_array_equal(quick(checkpoint=path).fit(X, y).classes_, [0, 1, 2])


def test_bad_input_is_refused_before_a_checkpoint_is_touched(tmp_path):
    X, y = rows()
    path = tmp_path / "run.safetensors"
    quick(checkpoint=path).fit(X, y)
    before = path.read_bytes()
    bad = X.copy()
    bad[3, 1] = np.nan
    for data in ((bad, y), (X[:, :, None], y), (X, y[:-1]), (X, np.full(40, np.nan))):
        with pytest.raises(ValueError, match=r"NaN|dim 3|40 rows and the target is for 39"):
            quick(checkpoint=path).fit(*data)
        assert_untouched(path, before)
    with pytest.raises(FileNotFoundError, match="needs a folder that is there"):
        quick(checkpoint=tmp_path / "no" / "run").fit(X, y)


# Bad input


SAID = crowd_of(rows()[1])
SOFT = np.full((40, 3), 1 / 3)


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"objective": "kl"}, 0, r"`objective` must be one of reverse_kl, .*; 'kl' came"),
        ({"max_epochs": 0}, 0, r"`max_epochs` must be at least 1; 0 came"),
        ({"batch_size": 0}, 0, r"`batch_size` must be at least 1; 0 came"),
        ({"learning_rate": 0}, 0, r"`learning_rate` must be above 0 and finite; 0 came"),
        ({"weight_decay": -1}, 0, r"`weight_decay` must be at least 0 and finite; -1 came"),
        ({"schedule": "step"}, 0, r"`schedule` must be one of constant, cosine; 'step' came"),
        ({"validation": 1}, 0, r"`validation` must be a share in \[0, 1\); 1 came"),
        ({"validation": 0.99}, 0, r"must leave rows to train on; 0.99 of 40 rows leaves none"),
        ({"patience": 0}, 0, r"`patience` must be at least 1; 0 came"),
        ({"learning_rate": 1e30}, 0, r"training went astray\. Lower learning_rate \(1e\+30\)"),
        ({"smoothing": 0}, 0, r"`smoothing` of labels must lie between 0 and 1; 0 came"),
        (
            {"labels": [0, 1]},
            0,
            r"`y` must be among the 2 labels \(0, 1\); 1\d of 40 are not, first 2",
        ),
        ({"reliability": 0.5}, 0, r"`reliability` is for annotations.*ndarray came as target"),
        ({"reliability": "known"}, SAID, r"in words is 'learned'; 'known' came"),
        ({"reliability": 0.5, "objective": "votes"}, SAID, r"'votes' learns from plain votes"),
        ({"labels": [0, 1]}, SAID, r"the annotations must be among the 2 labels"),
        ({"reliability": 0}, SAID, r"some row needs a target; 40 rows came and none has one"),
        ({"objective": "mtlsl"}, SAID, r"learns one gold label a row as well; none came"),
        ({"objective": "votes"}, smooth(encode(SOFT), 0.1), r"counts votes, and opinions came"),
        ({}, encode(SOFT), r"some doubt; 40 of 40 have uncertainty 0.*sle.smooth"),
        ({}, smooth(encode(SOFT[None]), 0.1), r"one opinion per row, \(N,\), .*\(1, 40\) came"),
        ({}, Opinion(SOFT, np.ones(40), SOFT), r"belief and uncertainty must sum to 1; 40 of 40"),
        ({"labels": [0, 1]}, smooth(encode(SOFT), 0.1), r"the target has 3 labels; 2 are known"),
        ({}, 2 * SOFT, r"must sum to 1; 40 of 40 do not, first row 0 with the sum 2\. Divide"),
        ({"objective": "votes"}, SOFT - 1, r"must not be negative .* 40 of 40"),
        ({}, np.full((40, 2), "yes"), r"two axes is probabilities \(N, K\); <U3 came"),
        ({}, np.zeros(40), r"needs at least 2 classes; 1 class came"),
        ({}, SAID, r"X has 40 rows and the target is for 39"),
        ({}, None, r"requires y to be passed, but the target y is None"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(parameters, y, words):
    X, labels = rows()
    if words.startswith("X has"):
        y = replace(crowd_of(labels[:39]), items=np.arange(39))
    with pytest.raises(ValueError, match=words):
        quick(**parameters).fit(X, labels if isinstance(y, int) else y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"items": [f"post-{i}" for i in range(40)]}, r"`items` must be among the 40 items of the "
         r"target \('item-0', .*\.\.\.\); 40 of 40 are not, first 'post-0'"),
        ({"items": ["item-0"]}, r"must name the 40 rows of X; 1 names came"),
        ({"gold": [0] * 39 + [7]}, r"`gold` must be among the 3 labels.*1 of 40 are not, first 7"),
        ({"gold": [0]}, r"`gold` must have a label for each of 40 rows; 1 came"),
    ],
)  # fmt: skip
def test_names_and_gold_of_other_rows_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        quick(objective="mtlsl").fit(rows()[0], SAID, **{"gold": [0] * 40} | options)


def test_names_are_refused_where_the_target_has_none():
    with pytest.raises(ValueError, match="this target has no names"):
        quick().fit(*rows(), items=np.arange(40))


def test_labels_unseen_in_training_are_refused():
    X, y = rows()
    model = quick().fit(X, np.minimum(y, 1))
    with pytest.raises(ValueError, match=r"`y` must be among the 2 labels \(0, 1\); \d+ of 40"):
        model.score(X, y)
    with pytest.raises(ValueError, match="the annotations must be among the 2 labels"):
        model.score(X, SAID)


def test_an_encoder_that_gives_no_rows_is_refused():
    class Whole(nn.Module):
        def forward(self, x):
            return x.sum()

    with pytest.raises(
        ValueError, match=r"one row per input.*for one input torch.Size\(\[\]\) came"
    ):
        quick(encoder=Whole()).fit(*rows())


def test_tables_of_other_labels_are_refused():
    X, y = rows()
    table = fuse_table(pd.DataFrame({"item": range(40), "label": y}), item="item", label="label")
    quick(labels=[2, 0, 1]).fit(X, table)
    with pytest.raises(ValueError, match=r"the labels must be among the 3 of the table.*first '7'"):
        quick(labels=[0, 1, 7]).fit(X, table)


def test_nothing_is_predicted_or_saved_before_it_is_learned(tmp_path):
    X, _ = rows()
    with pytest.raises(NotFittedError):
        quick().predict_opinion(X)
    failed = quick()
    with pytest.raises(ValueError, match="at least 2 classes"):
        failed.fit(X, np.zeros(40))
    with pytest.raises(NotFittedError):
        failed.save(tmp_path / "m.safetensors")


def test_table_rows_are_found_by_name():
    X, y = rows()
    said = from_table({"item": list(range(40)), "label": y.tolist()}, item="item", label="label")
    table = fuse_table(pd.DataFrame({"item": range(40), "label": y}), item="item", label="label")
    part = [5, 3, 39, 20, 11]
    np.testing.assert_array_equal(np.sort(np.unique(y[part])), [0, 1, 2])
    by_table = quick(labels=[0, 1, 2]).fit(X[part], table, items=part)
    assert_same_weights(by_table, quick().fit(X[part], said, items=part))

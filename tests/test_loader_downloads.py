"""The loaders download: real files, served on this machine as their origins have them."""

import csv
import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from real_crowds import SHARED, module
from serving import site

from slencodings.datasets import download, local
from slencodings.datasets.download import cache

__all__ = ["site"]


@pytest.fixture
def github(site, monkeypatch, tmp_path):
    """The site in place of GitHub, and an empty cache."""
    monkeypatch.setenv("SLENCODINGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(local, "_usual", lambda names, cached: [cached])
    opened = download.urlopen

    def here(ask, **how):
        assert ask.full_url.startswith("https://raw.githubusercontent.com/")
        ask.full_url = ask.full_url.replace("https://raw.githubusercontent.com", site.url)
        return opened(ask, **how)

    monkeypatch.setattr(download, "urlopen", here)
    return site


def shared(path):
    if not (SHARED / path).exists():
        pytest.skip(f"{SHARED / path} is not there")
    return (SHARED / path).read_bytes()


def serve(github, source, body):
    github.files[source.url.removeprefix("https://raw.githubusercontent.com")] = body


def assert_same_crowd(one, other):
    for a, b in zip(one, other, strict=True):
        if hasattr(a, "item") and hasattr(a, "annotator"):
            assert_same_crowd(vars(a).values(), vars(b).values())
        else:
            assert np.array_equal(np.asarray(a), np.asarray(b))


def assert_downloads(name, folder, github, /, **how):
    """A loader gives the same from its download as from the folder, and fetches a file once."""
    load = getattr(module(name), name)
    with pytest.raises(FileNotFoundError, match=r"pass download=True to fetch \d+ files? \(about"):
        load(**how)
    assert github.asked == []
    assert_same_crowd(load(download=True, **how), load(folder=SHARED / folder, **how))
    assert len(github.asked) == len({path for path, _ in github.asked})
    assert not list(cache().rglob("*.part"))


def test_rte_downloads(github):
    m = module("rte")
    for file in (m._VOTES, m._PAIRS):
        serve(github, file.sources[0], shared(f"rte/{file.path}"))
    assert_downloads("rte", "rte", github)
    count = len(github.asked)
    assert_same_crowd(m.rte(), m.rte(download=True))
    assert len(github.asked) == count == 2


def test_convabuse_downloads(github):
    for file in module("convabuse")._SPLITS.values():
        serve(github, file.sources[0], shared(f"convabuse/{file.path}"))
    assert_downloads("convabuse", "convabuse", github)


def test_known_truths_download(github):
    for file in module("truth_inference")._files("web"):
        serve(github, file.sources[0], shared(f"truth_inference/{file.path}"))
    assert_downloads("truth_inference", "truth_inference", github, name="web")


def located(data):
    """The csv with the columns that SOURCE.txt says the original has."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    out = io.StringIO(newline="")
    where = ["_country", "_region", "_city", "_ip"], ["XXX", "", "Nowhere", "203.0.113.77"]
    csv.writer(out).writerows(
        [*row[:8], *(where[1] if i else where[0]), *row[8:]] for i, row in enumerate(rows)
    )
    return out.getvalue().encode("utf-8")


def test_mre_downloads_and_keeps_no_address(github, monkeypatch):
    m = module("mre")
    assert len(m._BATCHES) == 46
    # Some of each form of ids: all of them take long.
    monkeypatch.setattr(m, "_BATCHES", m._BATCHES[14:19])
    gold = m._GOLD["treat"]
    serve(github, gold.sources[0], shared(f"mre/{gold.path}"))
    for file in m._BATCHES:
        serve(github, file.sources[0], located(shared(f"mre/{file.path}")))
    assert_downloads("mre", "mre", github, relation="treat")
    kept = b"".join(path.read_bytes() for path in cache().rglob("*") if path.is_file())
    assert b"203.0.113.77" not in kept
    assert b"Nowhere" not in kept
    assert b"_ip" not in kept


def conllu(sentences):
    """Sentences as CoNLL-U has them, with a range and an empty node, which are no words."""
    blocks = []
    for its in sentences:
        lines = ["# newdoc id = x", f"# sent_id = {its['sentence_id']}", f"# text = {its['text']}"]
        lines += [f"{i}\t{word}\t_" for i, word in enumerate(its["tokens"], 1)]
        blocks.append("\n".join([*lines[:3], "1-2\tboth\t_", *lines[3:], "8.1\tnone\t_"]))
    return ("\n\n".join(blocks) + "\n\n").encode("utf-8")


def test_uds_downloads_its_votes_and_its_text(github):
    m = module("uds_factuality")
    serve(github, m._VOTES.sources[0], shared(f"uds_confidence/{m._VOTES.path}"))
    text = json.loads(gzip.decompress(shared(f"uds_confidence/{m._TEXT.path}")))
    ids = {uds: {"sentence_id": its["sentence_id"]} for uds, its in text.items()}
    ids["ewt-dev-341"] = {"sentence_id": "one that the corpus no longer has"}
    serve(github, m._TEXT.sources[0], json.dumps(ids).encode("utf-8"))
    for source, part in zip(m._TEXT.sources[1:], ("train", "dev", "test"), strict=True):
        its = [said for uds, said in text.items() if uds.split("-")[1] == part]
        serve(github, source, conllu(its))
    crowd = m.uds_factuality(download=True)
    assert crowd.X[0] == ("From the AP comes this story :", "comes")
    assert len(crowd.annotations.y) == 52886
    for file in (m._VOTES, m._TEXT):
        kept, ours = cache() / "uds_factuality", SHARED / "uds_confidence"
        assert download.read(kept, file) == download.read(ours, file)
    assert len(github.asked) == 5


def test_uds_votes_are_there_even_if_its_text_has_changed(github):
    m = module("uds_factuality")
    serve(github, m._VOTES.sources[0], shared(f"uds_confidence/{m._VOTES.path}"))
    for source in m._TEXT.sources:
        serve(github, source, b"{}")
    with pytest.raises(ValueError, match=r"en_ewt-ud-test\.conllu is cut or altered: its content"):
        m.uds_factuality(download=True)
    crowd = m.uds_factuality()
    assert len(crowd.annotations.y) == 52886
    assert set(crowd.X) == {("", "")}


def raw_log(index, classes):
    """The answers as the log of the study has them, among its other pages."""
    rows = []
    for row in sorted(index, key=lambda row: int(row["annotator"])):
        said = {"classSelect": f"mostProb{row['top1']}", "prob": row["top1_prob"].split(".")[0]}
        # One annotator typed 8p for 80, and a few 0 for 100.
        said["prob"] = {"80": "8p", "100": "0"}.get(said["prob"], row["top1_prob"])
        said |= {"classSelect2": f"secondProb{row['top2']}", "prob2": row["top2_prob"]}
        said |= {f"improbClassSelect{name}": "1" for name in row["impossible"].split("|") if name}
        its = {"trial_index": row["trial_index"], "subject": row["subject"], "task": row["task"]}
        its |= {"img_id": f"{row['img_id']}.0", "label": classes[int(row["img_id"])]}
        rows += [its | {"trial_type": "survey-html-form", "response": json.dumps(said)}]
        rows += [its | {"trial_type": "survey-text", "response": "PRIVATE", "img_id": ""}]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8")


def test_cifar10s_downloads_and_keeps_no_free_text(github):
    m = module("cifar10s")
    index = local.csv_rows(shared("cifar10s/derived_annotator_index.csv"))
    with np.load(io.BytesIO(shared("cifar10_images/cifar10_test10000_train5000.npz"))) as arrays:
        classes = [m._NAMES[k] for k in arrays["test_labels"]]
    serve(github, m._RAW, raw_log(index, classes))
    for file in (m._TRAIN, m._TEST):
        serve(github, file.sources[0], shared(f"cifar10s/{file.path}"))
    assert_downloads("cifar10s", "cifar10s", github)
    kept = b"".join(path.read_bytes() for path in cache().rglob("*") if path.is_file())
    assert b"PRIVATE" not in kept
    assert index[0]["subject"].encode() not in kept


def test_cifar10_images_are_read_from_the_binary_archive(tmp_path):
    m = module("cifar10_images")
    shared("cifar10_images/cifar10_test10000_train5000.npz")
    images = m.cifar10_images(SHARED / "cifar10_images")
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w") as archive:
        for name, x, k in (("test_batch", *images[:2]), ("data_batch_1", *images[2:])):
            planes = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
            body = np.column_stack([k.astype(np.uint8), planes]).tobytes()
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    assert_same_crowd(m.cifar10_images(tmp_path), images)


def test_an_archive_without_images_is_refused(tmp_path):
    m = module("cifar10_images")
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz"):
        pass
    with pytest.raises(ValueError, match=r"cannot be read \(.*test_batch\.bin.* not found"):
        m.cifar10_images(tmp_path)

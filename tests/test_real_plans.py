"""Rows of the experiments on real data: known by encoder and plan, and shown as they are."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
# Looked for, not imported: every process of a run collects this file, and one runs it.
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

from fitting import one_thread
from tiny_experiments import PLAN, tiny_data, tiny_encoder
from torch import nn

from experiments import data as sets
from experiments import networks, real, texts

__all__ = ["one_thread"]

# Plans


@pytest.mark.parametrize("kl", [True, False])
@pytest.mark.parametrize("plan", [*sets.PLANS.values(), sets.Plan(None, 3, 16, 2e-5, False, False)])
def test_a_plan_is_read_as_it_was_written(plan, kl):
    expected = plan if kl else plan._replace(normalize=True)
    assert sets.read_plan(plan.in_words(kl=kl)) == expected


def test_a_plan_that_nobody_wrote_is_refused():
    with pytest.raises(ValueError, match=r"a plan is 'layers N, .*; '10 epochs' came"):
        sets.read_plan("10 epochs")


@pytest.mark.parametrize(
    ("option", "word"),
    [("--layers", "some"), ("--rate", "fast"), ("--rate", "0"), ("--batch", "0")],
)
def test_plans_that_cannot_be_are_refused(option, word, capsys):
    from experiments.__main__ import main

    with pytest.raises(SystemExit):
        main(["real", option, word])
    assert f"{word!r} came" in capsys.readouterr().err


def test_an_encoder_that_is_not_there_is_refused_and_another_finds_no_rows(tmp_path, monkeypatch):
    from experiments.__main__ import main

    words = ["real", "--dataset", "mre", "--encoder", str(tmp_path / "nowhere"), "--workers", "1"]
    with pytest.raises(SystemExit, match=r"--encoder must name a model or its folder; .*nowhere"):
        main(words)
    with pytest.raises(SystemExit, match=r"--encoder is of texts, and cifar10s are images\. Leave"):
        main(["real", "--dataset", "cifar10s", "--encoder", str(tmp_path), "--kept"])
    data = tiny_data()._replace(encoder="tiny")
    monkeypatch.setattr(real, "_loaded", lambda *_, **__: data)
    job = real.jobs({"rte": PLAN}, {"rte": "other"}, ["CE"], seeds=1)[0]
    with pytest.raises(ValueError, match=r"rows of the encoder 'other' .*'tiny' is what reads rte"):
        next(real.rows(**job))


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
    trained, _ = tiny_runs(monkeypatch, path, *words)
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


# Tables


def test_images_with_soft_labels_are_written_into_the_document(monkeypatch, tmp_path):
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

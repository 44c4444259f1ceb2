"""What pulls a network at its start: kept rows, and what they are made of."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fitting import one_thread

from experiments import gradients, rates, tables
from experiments.rows import FOLDER, read
from slencodings import encode

__all__ = ["one_thread"]


def test_divided_and_begun_at_the_mean_target_the_kl_pulls_as_cross_entropy_does():
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(16, 3, 32, 32)).astype(np.float32))
    target = encode(np.eye(10)[rng.integers(0, 10, 16)], rng.choice([0.01, 0.05], 16))
    usual = gradients.first_gradient(None, X, target, target, 0)
    found = {
        name: gradients.compared(gradients.first_gradient(how, X, target, target, 0), usual)
        for name, how in gradients.METHODS.items()
    }
    same, printed, divided, begun = found.values()
    assert list(same.values())[1:] == pytest.approx([1, 1, 1], abs=1e-3)
    assert printed["ratio"] > 100 > 10 > divided["ratio"]
    assert begun["ratio"] < 2
    for part in ("encoder", "head"):
        assert begun[f"cosine, {part}"] > 0.8 > divided[f"cosine, {part}"]


def test_the_document_shows_the_rows():
    table = tables.markdown(gradients.table(read(FOLDER / "gradients.parquet")))
    text = (tables.DOCS / "training.md").read_text(encoding="utf-8")
    assert f"<!-- gradients -->\n{table}\n<!-- end of gradients -->" in text


def test_a_kept_row_of_rates_comes_again():
    kept = read(FOLDER / "rates.parquet")
    (row,) = rates.rows("rates", "0.01", "reverse KL", 0)
    job = {name: row[name] for name in ("setting", "method", "seed", "metric")}
    # Another processor may round otherwise: two of 597 digits.
    assert row["value"] == pytest.approx(kept.filter(**job)["value"].item(), abs=2.5 / 597)

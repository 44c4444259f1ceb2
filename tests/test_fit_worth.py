"""What votes are worth is fitted by one thread of BLAS, whatever else the process may do."""

import sys
from typing import Any

import numpy as np
import pytest
from crowds import crowd

from slencodings.trust import fit_worth, learn_crowd


def test_learning_keeps_blas_to_one_thread_and_then_gives_the_others_back(
    monkeypatch: pytest.MonkeyPatch,
):
    threads = pytest.importorskip("threadpoolctl")
    pytest.importorskip("scipy.optimize")  # Its BLAS is another than that of NumPy.

    def of_blas() -> set[int]:
        found = threads.threadpool_info()
        return {library["num_threads"] for library in found if library["user_api"] == "blas"}

    seen: list[set[int]] = []
    fit = fit_worth._fit

    def watched(*given: Any, **how: Any) -> Any:
        seen.append(of_blas())
        return fit(*given, **how)

    monkeypatch.setattr(fit_worth, "_fit", watched)
    with threads.threadpool_limits(2, user_api="blas"):
        assert of_blas() == {2}
        learn_crowd(crowd(np.random.default_rng(0)), rng=0)
        assert of_blas() == {2}
    assert seen == [{1}] * len(seen) != []


def test_what_is_learned_does_not_depend_on_who_can_limit_threads(monkeypatch: pytest.MonkeyPatch):
    a = crowd(np.random.default_rng(0))
    expected = learn_crowd(a, rng=0)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    np.testing.assert_allclose(learn_crowd(a, rng=0).worth, expected.worth, rtol=1e-9)

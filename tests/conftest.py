"""Fixtures that several test files share."""

import atexit
import io
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from file_by_file import forget_garbage, pytest_addoption, pytest_configure  # noqa: F401
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from jax_numbers import float64, quick_to_compile
from needs import is_needed
from running import Run, Sle
from strategies import Arrays

# When all is told, DuckDB counts what it still holds on to, in a hundred lines below the last one.
atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
# The networks of the tests are small: threads would wait for each other, in every process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", quick_to_compile())
# A submission never depends on luck: the same examples are drawn every time, and none is timed.
settings.register_profile("slencodings", max_examples=10, deadline=None, derandomize=True)
# Chance is for `make torture`, which says how many examples of each law to draw, always new ones.
settings.register_profile(
    "torture",
    max_examples=int(os.environ.get("SLENCODINGS_EXAMPLES", "5000")),
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
if os.environ.get("SLENCODINGS_TORTURE"):
    settings.load_profile("torture")
else:
    settings.load_profile("slencodings")
    # It would draw numbers and words of the source too, and read all of it for that: of as much as
    # is imported by then, so that examples would differ with what ran before.
    assert hasattr(providers, "_get_local_constants"), "Hypothesis calls it otherwise now"
    providers._get_local_constants = lambda: providers._local_constants


# What `make quick` leaves out: files that need Spark, Dask, servers, a browser, the site, a network
# or whole crowds, that repeat experiments or start, stop and kill processes, and those that learn
# crowds or run whole commands, one after the other. Their tests are slow, and so is any test with
# such a library in its name. Those that take longest come first, so that all processes end
# together.
SLOW = [
    "test_spark.py",
    "test_documents.py",
    "test_crowd_tables.py",
    "test_backends.py",
    "test_dask.py",
    "test_site.py",
    "test_cli_process.py",
    "test_table_kinds.py",
    "test_readme.py",
    "test_sources.py",
    "test_databases.py",
    "test_tables.py",
    "test_cli_weigh.py",
    "test_report.py",
    "test_demo.py",
    "test_survey.py",
    "test_classifier.py",
    "test_one_pass.py",
    "test_trainers.py",
    "test_plot.py",
    "test_intake.py",
    "test_rounds.py",
    "test_models.py",
    "test_real_experiments.py",
    "test_comparison.py",
    "test_store.py",
    "test_store_safety.py",
    "test_learned_crowd.py",
    "test_files.py",
    "test_loaders.py",
    "test_bucket.py",
    "test_experiments.py",
    "test_answers.py",
    "test_classifier_files.py",
    "test_crowds.py",
    "test_sample_recipe.py",
    "test_loader_downloads.py",
    "test_scratch.py",
    "test_pool.py",
    "test_times.py",
    "test_store_learned.py",
    "test_benchmarks.py",
    "test_kinds_cli.py",
    "test_cli_panel.py",
    "test_report_items.py",
    "test_helped.py",
    "test_votebench.py",
    "test_rounds_experiment.py",
    "test_real_networks.py",
    "test_real_plans.py",
    "test_exports_encoded.py",
    "test_panel_sets.py",
    "test_report_command.py",
    "test_cifar10s.py",
    "test_scored.py",
    "test_pairs_verbs.py",
    "test_comparison_scores.py",
    "test_benchmarks_questions.py",
    "test_benchmarks_tables.py",
    "test_annotators_page.py",
    "test_store_forget.py",
    "test_torch_head.py",
    "test_report_kinds.py",
    "test_torch_losses.py",
    "test_uses.py",
    "test_bench_learning.py",
    "test_threads.py",
    "test_gradients.py",
    "test_torch_start.py",
    "test_report_page.py",
]

# The longest of the others, for the same reason.
LONG = ["test_cli.py", "test_aggregate_properties.py", "test_annotations.py"]

# Files for one process, which does once for all what takes seconds: to import and to fork PyTorch,
# to let JAX compile the same steps, to put together the scripts of a report.
TOGETHER = {
    "networks": [
        "test_documents.py",
        "test_trainers.py",
        "test_real_experiments.py",
        "test_real_networks.py",
        "test_real_plans.py",
        "test_rounds_experiment.py",
        "test_notebooks.py",
    ],
    "jax": [
        "test_backends.py",
        "test_divergence.py",
        "test_evaluation.py",
        "test_fusion.py",
        "test_opinion.py",
        "test_vectors.py",
    ],
    "reports": [
        "test_answers.py",
        "test_readme.py",
        "test_report.py",
        "test_report_command.py",
        "test_report_items.py",
        "test_report_kinds.py",
        "test_report_page.py",
        "test_times.py",
    ],
    "training": [
        "test_bench_learning.py",
        "test_classifier.py",
        "test_classifier_files.py",
        "test_helped.py",
        "test_models.py",
        "test_rounds.py",
        "test_torch_head.py",
        "test_torch_losses.py",
        "test_torch_start.py",
    ],
}
GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Helpers have no tests, and what `make quick` leaves out is not even imported."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    left_out = config.option.markexpr == "not slow" and collection_path.name in SLOW
    return True if helper or left_out else None


@pytest.hookimpl(tryfirst=True)  # before marks are looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in SLOW or re.search("dask|jax|torch", item.name):
            item.add_marker(pytest.mark.slow)
    order = {name: place for place, name in enumerate([*SLOW, *LONG])}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file runs in one process, and so does each group of `TOGETHER`."""
    from xdist.scheduler import LoadFileScheduling

    class Grouped(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return GROUPS.get(Path(file).name, file)

    return Grouped(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a process of xdist, what passes is reported once: six messages a test cost more than most.

    A start and an end that pass unseen and take no time (`--durations` shows 5 ms and more) are not
    sent, nor are the keywords of what passes, which nobody reads.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.passed:
            report.keywords = {}
        if report.when == "call" or not report.passed or report.duration >= 0.005:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skipped for want of what must be there, as `SLENCODINGS_NEEDS` says, is failed."""
    report = yield
    if report.skipped and is_needed(str(report.longrepr)):
        report.outcome = "failed"
    return report


def pytest_collection_finish() -> None:
    forget_garbage()


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


@pytest.fixture(
    scope="module", params=["numpy", "numpy-read-only", "array-api-strict", "torch", "jax"]
)
def xp(request: pytest.FixtureRequest) -> Iterator[Arrays]:
    """The array libraries in turn. Only their own tests import them, and JAX counts in float64."""
    match request.param:
        case "numpy":
            yield Arrays(request.param, np.asarray)
        case "numpy-read-only":
            yield Arrays(request.param, _read_only)
        case "array-api-strict":
            yield Arrays(request.param, pytest.importorskip("array_api_strict").asarray)
        case "torch":
            yield Arrays(request.param, pytest.importorskip("torch").asarray)
        case "jax":
            jax = pytest.importorskip("jax")
            with float64(True):
                yield Arrays(request.param, jax.numpy.asarray, jax.jit)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which the test is in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Sle]:
    """Run the command in this process, in an empty folder."""
    from slencodings.cli.main import main

    def run(*words: object, stdin: bytes = b"") -> Run:
        monkeypatch.setattr(sys, "argv", ["sle", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            main()
        assert isinstance(stop.value.code, int)
        said = capsys.readouterr()
        return Run(stop.value.code, said.out, said.err)

    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)

"""`--file-by-file`: a process of xdist looks into a file when it is the file's turn.

Else every process would import and collect all files, of which it runs a part.
"""

import gc
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--file-by-file",
        action="store_true",
        help="with -n: only the process that runs a file imports it. Not with -k, and of marks with"
        " -m 'not slow' alone.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.file_by_file and hasattr(config, "workerinput"):
        # Hooks of a conftest.py are not asked about files elsewhere, such as examples in src.
        config.pluginmanager.register(FileByFile())


def forget_garbage() -> None:
    """What is there for the whole run is no garbage, and need not be looked through again."""
    gc.collect()
    gc.freeze()
    # Tests leave little that only the collector can find, and it looked more often than it found.
    gc.set_threshold(20_000, 20, 20)


class WholeFile(pytest.Item):
    """All tests of a file that nobody has looked into yet."""

    def __init__(self, *, collectors: list[pytest.Collector], **how: Any) -> None:
        super().__init__(**how)
        self.collectors = collectors

    def runtest(self) -> None:
        raise NotImplementedError("its tests run one by one")

    def look_into(self) -> list[pytest.Item]:
        session, config = self.session, self.config
        items = [item for found in self.collectors for item in session.genitems(found)]
        config.hook.pytest_collection_modifyitems(session=session, config=config, items=items)
        forget_garbage()
        return items

    def run_all(self, nextitem: pytest.Item | None) -> None:
        """To xdist, which looks up what it ran by place, each test is the file while it runs."""
        items, place = self.look_into(), self.session.items.index(self)
        for item, then in zip(items, [*items, nextitem][1:], strict=True):
            self.session.items[place] = item
            self.config.hook.pytest_runtest_protocol(item=item, nextitem=then)
        self.session.items[place] = self
        # Where there is no test, nothing was torn down for the next file, which may lie elsewhere.
        self.session._setupstate.teardown_exact(nextitem)


class FileByFile:
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[Any]]:
        collectors = yield
        if not collectors:
            return []
        how: dict[str, Any] = {"path": file_path, "collectors": collectors}
        # Else it would be a test of its folder, and all of a folder would run in one process.
        how["nodeid"] = collectors[0].nodeid
        return [WholeFile.from_parent(parent, name=file_path.name, **how)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        if not isinstance(item, WholeFile):
            return None
        item.run_all(nextitem)
        return True

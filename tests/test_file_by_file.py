"""Files that are looked into one by one: every test runs, and what is wrong is told."""

import os
import re
import subprocess
import sys
from pathlib import Path

FILES = {
    "pytest.ini": """
        [pytest]
        testpaths = tests src
        addopts = --doctest-modules --import-mode=importlib --dist loadfile -rA -p no:anyio
        markers = slow: it is not quick
        filterwarnings = error
        """,
    "tests/conftest.py": "from file_by_file import pytest_addoption, pytest_configure",
    "tests/test_a.py": """
        import pytest

        @pytest.fixture(scope="module")
        def number():
            yield 3
            print("torn down")

        @pytest.mark.parametrize("x", range(4))
        def test_x(x, number):
            assert x != number

        @pytest.mark.slow
        def test_slow(): ...
        """,
    "tests/test_broken.py": "import nothing_of_that_name",
    "tests/test_empty.py": "",
    "tests/test_warns.py": 'import warnings; warnings.warn("beware")',
    "src/example.py": """
        def one():
            '''
            >>> one()
            1
            '''
            return 1
        """,
}


def test_every_test_runs_and_what_is_wrong_is_told(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(re.sub("^        ", "", text, flags=re.MULTILINE))
    command = [sys.executable, "-m", "pytest", "-n", "1", "--file-by-file", "-m", "not slow"]
    place = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    run = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True)
    assert run.returncode == 1
    assert set(re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)) == {
        *(("PASSED", f"tests/test_a.py::test_x[{x}]") for x in range(3)),
        ("FAILED", "tests/test_a.py::test_x[3]"),
        ("ERROR", "tests/test_broken.py"),
        ("ERROR", "tests/test_warns.py"),
        ("PASSED", "src/example.py::src.example.one"),
    }
    assert "torn down" in run.stdout

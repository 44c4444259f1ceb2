"""The house: what is public, and what it imports."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import house
from house import HOUSE, MAY_IMPORT, STOREYS

import slencodings

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "slencodings"

HEAVY = (
    "dask",
    "distributed",
    "duckdb",
    "jax",
    "matplotlib",
    "mpltern",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "torch",
)


def statements(nodes: list[Any]) -> Iterator[Any]:
    """All of them, those within others too, but not what is there for type checkers alone."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            yield from statements(node.orelse)
            continue
        for part in ("body", "handlers", "cases", "orelse", "finalbody"):
            yield from statements(getattr(node, part, []))


def rooms(path: Path) -> set[str]:
    """The rooms of ours that a file imports when it runs, wherever in the file it does so."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "slencodings":
            found |= {f"slencodings.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name.split(".")[1] for name in found if name.startswith("slencodings.")}


def test_every_room_imports_just_what_the_law_says():
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__":
            found.setdefault(room, set()).update(rooms(path) - {room, "__version__"})
    assert found == MAY_IMPORT


def test_stairs_go_down_only():
    storey = {
        name: STOREYS.index(room.storey) for name, room in zip(MAY_IMPORT, HOUSE, strict=True)
    }
    for room, imported in MAY_IMPORT.items():
        assert all(storey[other] <= storey[room] for other in imported), room


def test_no_rooms_import_each_other_in_a_ring():
    seen: list[str] = []
    for room in HOUSE:
        seen.append(room.name.rstrip("/").removesuffix(".py"))
        # Each room stands below those that it imports, so there is an order and hence no ring.
        assert MAY_IMPORT[seen[-1]] <= set(seen), room.name


def test_the_import_walk_can_fail(tmp_path):
    bad = tmp_path / "opinion.py"
    bad.write_text("def f():\n    from slencodings.fusion import fuse\n")
    assert rooms(bad) == {"fusion"}


def test_every_public_name_is_there_and_sorted():
    assert slencodings.__all__ == sorted(slencodings.__all__)
    for name in slencodings.__all__:
        assert getattr(slencodings, name) is not None, name
    assert set(slencodings.__all__) <= set(dir(slencodings))


def loaded_by(code: str) -> set[str]:
    show = f"{code}\nimport sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_importing_everything_public_loads_nothing_heavy():
    assert not loaded_by("from slencodings import *") & set(HEAVY)


def test_fusing_arrays_loads_no_table_engine():
    code = "import numpy, slencodings as s; s.fuse(s.encode(numpy.eye(2), [0.1, 0.2]))"
    assert not loaded_by(code) & set(HEAVY)


def test_the_heavy_import_test_can_fail():
    assert "scipy" in loaded_by("import scipy.special")


def test_contributing_has_the_law_of_imports():
    made, kept = house.as_markdown(), house.between_marks(house.CONTRIBUTING.read_text())
    assert kept == made, "python tests/house.py writes it"


def test_the_base_install_is_light():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=\[ ]", d)[0] for d in project["dependencies"]}
    assert not names & {"torch", "pandas", "matplotlib", "pyspark", "polars", "jax", "scikit-learn"}


# Bound to many kinds of things before; what each holds has a name.
VAGUE = {"said", "others", "told", "whole", "went", "grown", "flaw", "flaws", "survey", "intake"}


def bound(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The names that a module binds, with their lines; but fields of values, which are public."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in fields
        ):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def test_names_say_what_they_hold():
    vague = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path in SOURCE.rglob("*.py")
        for name, line in bound(ast.parse(path.read_text()))
        if name.strip("_").lower() in VAGUE
    ]
    assert not vague


def kinds_of(tree: ast.Module) -> Iterator[str]:
    """The public classes and names of types that a module defines."""
    for x in tree.body:
        if isinstance(x, ast.ClassDef):
            name = x.name
        elif isinstance(x, ast.AnnAssign) and ast.unparse(x.annotation) == "TypeAlias":
            name = ast.unparse(x.target)
        else:
            continue
        if not name.startswith("_"):
            yield name


def test_a_kind_of_value_has_a_name_of_its_own():
    found = Counter(
        name for path in SOURCE.rglob("*.py") for name in kinds_of(ast.parse(path.read_text()))
    )
    found["Array"] -= 1  # Any, wherever arrays may be of any library.
    assert {"Annotations", "Floats", "Opinion"} <= found.keys()
    assert [name for name, times in found.items() if times > 1] == []


def test_values_with_fields_stand_where_dicts_of_anything_did_and_few_modules_at_the_root():
    counts = [path.read_text().count("dict[str, Any]") for path in SOURCE.rglob("*.py")]
    assert sum(counts) <= 40
    assert len([path for path in SOURCE.glob("*.py") if path.stem != "__init__"]) <= 8


def texts(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """All text in a module, with its line; of formatted text the parts that stand there."""
    within = {id(v) for x in ast.walk(tree) if isinstance(x, ast.JoinedStr) for v in x.values}
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        if id(node) not in within:
            yield (
                "…".join(
                    part.value
                    for part in parts
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ),
                getattr(node, "lineno", 0),
            )


def test_messages_of_the_library_name_parameters_and_options_only_in_whole_commands():
    # A page of the report is read by people who have the command, and has variables of CSS.
    speak_in_options = ("cli", "report", "torch")
    found = [
        f"{path.relative_to(SOURCE)}:{line} {text}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in speak_in_options
        for text, line in texts(ast.parse(path.read_text()))
        if re.search(r"--[a-z]", re.sub(r"\bsle [a-z]+ .*", "", text, flags=re.DOTALL))
    ]
    assert not found


def test_a_command_changes_module_rarely_enough_to_be_followed(tmp_path: Path):
    (tmp_path / "crowd.csv").write_text("item,who,label,sure\n1,a,x,0.9\n1,b,y,0.5\n2,a,y,0.8\n")
    roles = ["--item", "item", "--annotator", "who", "--label", "label", "--confidence", "sure"]
    encode = ["encode", "crowd.csv", *roles, "--weigh", "stated", "-o", "out.csv", "-q"]
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "path", *encode],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "out.csv").exists()
    changes = re.match(r"(\d+) changes of module", found.stdout)
    assert changes is not None, found.stdout + found.stderr
    assert int(changes[1]) <= 35

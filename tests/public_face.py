"""What is public: names, signatures, columns, options, exit codes, formats of files.

`PYTHONPATH=src:tests python tests/public_face.py` writes it into tests/data/public.json, and
`test_public_face.py` keeps both the same: what changes here is said in the changelog.
"""

import contextlib
import csv
import dataclasses
import functools
import inspect
import io
import json
import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import typer
from stored_files import LARGER, described, write

import slencodings
from slencodings import choices
from slencodings.cli.main import app, main
from slencodings.evaluation.rows import Row

PATH = Path(__file__).parent / "data" / "public.json"
MODULES = ("aggregate", "annotators", "confidence", "datasets", "evaluation", "files.exports")
MODULES += ("kinds.multilabel", "kinds.ordered", "metrics", "panel", "plot", "report", "torch")
MODULES += ("triage", "trust")
# Of modules that are not public as a whole.
ALONE = ("divergence.kl_divergence", "files.encode.encode_file", "files.spark.encode_files")
ALONE += ("progress.bar", "tables.fuse.Fusing", "tables.roles.Reading")
CROWD = {"item": ["p", "p"], "annotator": ["a", "b"], "label": ["no", "yes"]}
MODEL = "crowd.csv --features X.csv --model m.safetensors"
# Everything that writes a table with columns of its own.
VERBS = [
    *(
        f"encode crowd.csv --confidence 1 --weigh stated --form {form}"
        for form in get_args(choices.FileForm)
    ),
    "encode crowd.csv",
    "encode crowd.csv --reading truth",
    "compare crowd.csv --bootstrap 0 --method MACE",
    "reliability crowd.csv",
    "reliability crowd.csv --all",
    "groups teams.csv --group team",
    "triage crowd.csv",
    "panel crowd.csv --models dan --folds 2 --bootstrap 0 --targets targets.csv",
    f"train {MODEL} --predictions predicted.csv --epochs 1",
    f"evaluate {MODEL}",
]
STORING = [
    "encode crowd.csv --weigh stated --confidence 1 --into store.parquet --by-annotator",
    "forget store.parquet --annotator ann",
]


def face() -> dict[str, Any]:
    """All of it, as JSON has it."""
    names = {name: getattr(slencodings, name) for name in slencodings.__all__}
    for module in MODULES:
        found = import_module(f"slencodings.{module}")
        listed = getattr(found, "__all__", None) or own_names(found)
        names |= {f"{module}.{name}": getattr(found, name) for name in listed}
    for name in ALONE:
        module, _, own = name.rpartition(".")
        names[name] = getattr(import_module(f"slencodings.{module}"), own)
    names |= {f"{of}.{name}": m for of, value in names.items() for name, m in methods(value)}
    return {
        "names": {name: shape(value) for name, value in sorted(names.items())},
        "words": {
            name: sorted(map(str, get_args(value)))
            for name, value in sorted(vars(choices).items())
            if name[0].isupper() and get_args(value)
        },
        "columns": {
            **{f"fuse_table, {form}": columns(form) for form in get_args(choices.Form)},
            "compare": sorted(Row.__annotations__),
            **outputs(),
        },
        "command": command(),
        "files": files(),
        "exit codes": {"done": 0, "bad data": 1, "wrong usage": 2, "stopped": [130, 143]},
    }


def own_names(module: Any) -> list[str]:
    """Public functions and classes that a module without a list of them defines."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def methods(value: Any) -> list[tuple[str, Any]]:
    """What a class of ours offers besides its fields: methods and properties, by name."""
    if not inspect.isclass(value) or not value.__module__.startswith("slencodings"):
        return []
    ours = [kind for kind in value.__mro__ if kind.__module__.startswith("slencodings")]
    found = {name for kind in ours for name in vars(kind) if not name.startswith("_")}
    more = {name: inspect.getattr_static(value, name) for name in sorted(found)}
    # scikit-learn puts methods of its own into every class that is made from its own.
    theirs = [name for name, m in more.items() if type(m).__module__.startswith("sklearn")]
    return [(name, more[name]) for name in more if name not in {*theirs, *fields(value)}]


def fields(value: Any) -> dict[str, str]:
    """The fields of a dataclass or a named tuple, with their defaults."""
    if dataclasses.is_dataclass(value):
        return {f.name: default(f) for f in dataclasses.fields(value)}
    defaults = getattr(value, "_field_defaults", {})
    return {
        name: f"{name}={defaults[name]!r}" if name in defaults else name
        for name in getattr(value, "_fields", ())
    }


def default(field: Any) -> str:
    """A field of a dataclass, with its default if it has one."""
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name}={field.default_factory.__name__}()"
    return field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default!r}"


def shape(value: Any) -> str | list[str]:
    """Parameters and defaults of a function, fields of a value."""
    if isinstance(value, property | functools.cached_property):
        return "property"
    value = getattr(value, "__func__", value)  # of a method of a class
    if inspect.isclass(value) and (found := fields(value)):
        return [*found.values()]
    if inspect.ismodule(value) or not callable(value):
        return type(value).__name__
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return "class"
    return ", ".join(parameter(p) for p in parameters)


def parameter(p: inspect.Parameter) -> str:
    """A parameter without its type; defaults that are functions by name alone."""
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**", p.KEYWORD_ONLY: "*, "}.get(p.kind, "")
    if p.default is p.empty:
        return star + p.name
    default = getattr(p.default, "__name__", None) or repr(p.default)
    return f"{star}{p.name}={default}"


def columns(form: Any) -> list[str]:
    """Of a table of opinions."""
    import pandas as pd

    table = slencodings.fuse_table(
        pd.DataFrame(CROWD), item="item", annotator="annotator", label="label", form=form
    )
    return list(table.columns)


def outputs() -> dict[str, list[str]]:
    """The columns of what each verb writes, by the words that ask for it."""
    import pyarrow.parquet as pq

    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("crowd.csv").write_text("".join(LARGER.splitlines(keepends=True)[:49]))
        head, *rows = Path("crowd.csv").read_text().splitlines()
        teams = [f"{row},{'a' if ',ann,' in row or ',bob,' in row else 'b'}" for row in rows]
        Path("teams.csv").write_text("\n".join([f"{head},team", *teams]))
        Path("X.csv").write_text("item,x\n" + "".join(f"i{n:02},{n % 2}\n" for n in range(12)))
        for words in VERBS:
            assert run(f"{words} -o out.csv".split()) == 0, words
            with open("out.csv", newline="") as file:
                found[f"sle {words}"] = next(csv.reader(file))
            for beside in ("predicted.csv", "targets.csv"):
                if Path(beside).exists():
                    with open(beside, newline="") as file:
                        found[f"sle {words}, {beside}"] = next(csv.reader(file))
                    Path(beside).unlink()
        for words in STORING:
            assert run(words.split()) == 0, words
        found["sle forget"] = pq.read_schema("store.parquet").names
    return found


def run(words: list[str]) -> int:
    """Run the command in this process, without a word."""
    before = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["sle", *words]
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = before[0]
        signal.signal(signal.SIGTERM, before[1])


def files() -> dict[str, Any]:
    """The form of every file that is stored for later."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        return described(Path(folder))


def command() -> dict[str, dict[str, Any]]:
    """The verbs of `sle`, each with its arguments and options and their defaults."""
    group: Any = typer.main.get_command(app)
    return {
        name: {
            opt: "needed" if param.required else param.default
            for param in verb.params
            for opt in (*param.opts, *param.secondary_opts)
        }
        for name, verb in sorted(group.commands.items())
    }


def as_text() -> str:
    """The snapshot as it is kept."""
    return json.dumps(face(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(as_text(), encoding="utf-8")

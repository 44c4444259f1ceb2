"""What is public: names, signatures, columns, options, exit codes, formats of files.

`PYTHONPATH=src:tests python tests/public_face.py` writes it into tests/data/public.json, and
`test_public_face.py` keeps both the same: what changes here is said in the changelog.
"""

import contextlib
import csv
import dataclasses
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
MODULES += ("metrics", "panel", "plot", "torch", "triage", "trust")
CROWD = {"item": ["p", "p"], "annotator": ["a", "b"], "label": ["no", "yes"]}
MODEL = "crowd.csv --features X.csv --model m.safetensors"
# Everything that writes a table with columns of its own.
VERBS = [
    *(
        f"encode crowd.csv --confidence 1 --weigh stated --form {form}"
        for form in get_args(choices.FileForm)
    ),
    "encode crowd.csv --reading truth",
    "compare crowd.csv --bootstrap 0 --method MACE",
    "reliability crowd.csv",
    "reliability crowd.csv --all",
    "triage crowd.csv",
    "panel crowd.csv --models dan --folds 2 --bootstrap 0 --targets targets.csv",
    f"train {MODEL} --predictions predicted.csv --epochs 1",
    f"evaluate {MODEL}",
]


def face() -> dict[str, Any]:
    """All of it, as JSON has it."""
    names = {name: getattr(slencodings, name) for name in slencodings.__all__}
    for module in MODULES:
        found = import_module(f"slencodings.{module}")
        listed = getattr(found, "__all__", None) or own_names(found)
        names |= {f"{module}.{name}": getattr(found, name) for name in listed}
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


def shape(value: Any) -> str | list[str]:
    """Parameters and defaults of a function, fields of a value."""
    if inspect.isclass(value):
        if dataclasses.is_dataclass(value):
            return [field.name for field in dataclasses.fields(value)]
        if fields := getattr(value, "_fields", None):
            return list(fields)
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
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("crowd.csv").write_text("".join(LARGER.splitlines(keepends=True)[:49]))
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


def command() -> dict[str, list[str]]:
    """The verbs of `sle`, each with its arguments and options."""
    group: Any = typer.main.get_command(app)
    return {
        name: sorted(opt for param in verb.params for opt in (*param.opts, *param.secondary_opts))
        for name, verb in sorted(group.commands.items())
    }


def as_text() -> str:
    """The snapshot as it is kept."""
    return json.dumps(face(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(as_text(), encoding="utf-8")

"""Messages of the library as the command line says them: parameters become options."""

from __future__ import annotations

import ast
import csv
import inspect
import io
import re
import shlex
from typing import Any, Literal, cast, get_args, get_origin

# What a message may put behind a parameter: a word, a list, two ends, a number, or just `...`.
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_GIVEN = rf"""{_TEXT}|\[(?:{_TEXT}|[^\]'"])*\]|\([^)]*\)|True|False|-?\d+(?:\.\d+)?|\.\.\."""

# What was needed where typer says that it did not come.
_NEEDED = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than_equal": "a number of at most {le:g}",
}


def in_options(message: str, command: Any) -> str:
    """A library message with the parameters that a command has spelled as its options.

    `missing` becomes --missing, missing='drop' --missing drop, labels=['a', 'b'] --labels a,b,
    confidence_scale=(1, 5) --confidence-scale 1-5, again=True --again, sort=False --no-sort, and
    labels=[...] shows what the help says of it, --labels A,B,... What is offered besides, and is
    not among the words that the option takes here, is left out.
    """
    given = [p for p in command.params if p.param_type_name == "option"]
    options = {max(p.opts, key=len)[2:].replace("-", "_"): p for p in given}
    options |= {p.name: p for p in given}
    if "annotator" in options:  # of which a wide table has several
        options["annotators"] = options["annotator"]
    names = "|".join(options)

    def as_typed(found: re.Match[str]) -> str:
        option = options[found[1]]
        name = max(option.opts, key=len)
        if found[2] == "False":
            return option.secondary_opts[0] + found[3] if option.secondary_opts else found[0]
        try:
            given = _typed(ast.literal_eval(found[2]), option) if found[2] else ""
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return found[0]  # Words of the data, which only look like a parameter.
        typed = f"{name} {given}".rstrip()
        return typed if typed.endswith("...") else typed + found[3]

    signature = inspect.signature(command.callback, eval_str=True).parameters

    def if_taken(found: re.Match[str]) -> str:
        kind = get_args(signature[options[found[1]].name].annotation)[0]
        return "" if get_origin(kind) is Literal and found[2] not in get_args(kind) else found[0]

    message = re.sub(rf", ({names})='([^']*)' to [^.,]*", if_taken, message)
    message = re.sub(rf"`({names})`()()", as_typed, message)
    return re.sub(rf"\b({names})=({_GIVEN})(\.?)", as_typed, message)


def with_what_came(error: Any) -> str:
    """typer's words for wrong usage; where a value is no such number, with the value."""
    # Of newer typers; those before say it themselves.
    for wrong in getattr(error.__cause__, "errors", list[Any])():
        if wrong["type"] == "value_error":  # It says itself what was needed and what came.
            return str(wrong["ctx"]["error"])
        needed = _NEEDED.get(wrong["type"], "").format(**wrong.get("ctx", {}))
        needed = f"{needed} is needed" if needed else wrong["msg"]
        return f"{needed}; {wrong['input']!r} came."
    return error.message


def spelled(parameter: str) -> str:
    """A parameter as an option."""
    return "--" + parameter.replace("_", "-")


def _typed(value: Any, option: Any) -> str:
    """A value of Python as it is typed after an option."""
    if value is True:
        return ""
    if value in (..., [...]):
        return option.metavar
    if isinstance(value, tuple):
        return "-".join(f"{end:g}" for end in cast("tuple[float, ...]", value))
    if not isinstance(value, list):
        return shlex.quote(str(value))
    typed = ["..." if word is ... else str(word) for word in cast("list[Any]", value)]
    # What has a comma itself stands in double quotes, as `words` reads it.
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(typed)
    return shlex.quote(line.getvalue())

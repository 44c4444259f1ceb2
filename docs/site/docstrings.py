"""The docstrings of this package as mkdocstrings reads them: what griffe cannot know of itself."""

import re
from typing import Any

import griffe

# `name : shape and meaning`, and what goes on below it: griffe would take that for a type.
NAMED = re.compile(r"^(\w+(?:, \w+)*) : (.*)$", re.MULTILINE)
SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w+\n-{3,}\n|\Z)", re.DOTALL | re.M)
# Paragraphs may begin with formulas: lines such as `b = (1 - u) y`, which are set as they are.
START = r"(?![A-Z][a-z]+ |[a-z]{4,} (?![=~]))[\w.'()|\[\], ]{1,24} [=~] \S"
FORMULA = re.compile(rf"(?<=\n\n){START}.*\n(?:{START}(?!.*\. [A-Z]).*\n)*(?:(?=\S)|\n)")


def plain(text: str) -> str:
    """A docstring that NumPy-style readers and Markdown understand as it was meant."""
    text = SECTION.sub(lambda found: NAMED.sub(r"\1\n    \2", found[0]), text)
    return FORMULA.sub(
        lambda found: re.sub("(?m)^(?=.)", "    ", found[0].rstrip()) + "\n\n", text + "\n"
    )


class Docstrings(griffe.Extension):
    """Rewrites every docstring once the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the modules, classes and functions; aliases lead to what is visited anyway."""
        rooms: list[Any] = [pkg]
        while rooms:
            room = rooms.pop()
            if room.docstring:
                room.docstring.value = plain(room.docstring.value)
            rooms += [each for each in room.members.values() if not each.is_alias]
        for package in [m for m in pkg.modules.values() if m.is_subpackage]:
            show_functions(package)


def show_functions(package: griffe.Module) -> None:
    """Let `aggregate.sle` be the function, as it is when imported, and not the file it is in."""
    public = {str(name): package.members[str(name)] for name in package.exports or ()}
    for each in public.values():
        if each.is_alias:
            each.resolve_target()  # while the files can still be found
    for name, each in public.items():
        if not each.is_alias and each.is_module and name in each.members:
            package.members[name] = griffe.Alias(name, each.members[name], parent=package)

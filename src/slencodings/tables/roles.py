"""Which column of a table plays which role: as it was named, or found by its usual name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from slencodings.choices import Duplicates, Format, Missing

# The roles that columns play.
ROLES = ("item", "annotator", "label", "confidence", "uncertainty", "reliability")
# The usual names of columns, the likeliest first; compared without case and punctuation.
USUAL_NAMES = {
    "item": "item task example unit instance sample document doc post image id uid uuid guid idx "
    "file path url uri sentence question text comment tweet message utterance",
    "annotator": "annotator worker rater coder labeler labeller judge reviewer evaluator assessor "
    "expert participant respondent subject contributor crowdworker turker annotatedby labeledby "
    "labelledby reviewedby ratedby user email emailaddress useremail annotatoremail workeremail",
    "label": "label answer response annotation judgment judgement choice vote class category "
    "rating labels target tag verdict decision grade code",
    "confidence": "confidence confidencescore confidencelevel confidencerating conf certainty "
    "sureness sure howsure howconfident howsureareyou howconfidentareyou howcertainareyou",
    "uncertainty": "uncertainty doubt unsure",
    "reliability": "reliability trust trustscore skill",
}
NUMBERS = ("confidence", "uncertainty", "reliability")


@dataclass(frozen=True)
class Reading:
    """How rows are read: which column plays which role, and what becomes of what is missing.

    Attributes
    ----------
    item, label, annotator, uncertainty, confidence, reliability : as in `fuse_table`; of files,
        those left out are found by name
    confidence_scale : as in `fuse_table`, (0, 1) if not said; of files also "calibrated"
    base_rate : K columns, or one of lists, where base rates are given by row
    labels, missing, duplicates : as in `fuse_table`
    ordered : whether labels stand in an order that means something
    format, question, encoding, sheet : of files, if their names and content do not tell; see
        `sle encode --help`
    multi : of files, what parts several labels in a cell, each then a yes or no
    merge_case : of files, whether labels that differ in case and spaces alone are one
    keep : columns of files whose value in an item's first row goes with its opinion
    """

    item: str | None = None
    label: str | Sequence[str] | None = None
    annotator: str | None = None
    confidence: Any = None
    uncertainty: Any = None
    reliability: Any = None
    confidence_scale: Any = None
    base_rate: str | Sequence[str] | None = None
    labels: Sequence[Any] | None = None
    ordered: bool = False
    missing: Missing = "error"
    duplicates: Duplicates = "all"
    format: Format | None = None
    question: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    multi: str | None = None
    merge_case: bool = False
    keep: Sequence[str] = ()

    @property
    def named(self) -> str:
        """By which word all possible labels were named."""
        return "ordered" if self.ordered else "labels"

    @property
    def columns(self) -> dict[str, Any]:
        """The column, columns or number for each role that is played."""
        return {role: spec for role in ROLES if (spec := getattr(self, role)) is not None}

    @property
    def wanted(self) -> list[tuple[str, Any]]:
        """The roles that columns play, each with its column; there must be item and label."""
        played: dict[str, Any] = {"item": self.item, "label": self.label} | self.columns
        played["base_rate"] = self.base_rate or []
        return [
            (role, name)
            for role, spec in played.items()
            if role not in NUMBERS or isinstance(spec, str)
            for name in _several(one_or_several(spec))
        ]


def one_or_several(spec: Any) -> Any:
    """One name, or a list of several."""
    if isinstance(spec, str) or not isinstance(spec, Iterable):
        return cast("Any", spec)
    return list(cast("Iterable[Any]", spec))


def _several(names: Any) -> list[Any]:
    return cast("list[Any]", names) if isinstance(names, list) else [names]


def in_order(labels: Sequence[Any] | None, ordered: Sequence[Any] | None) -> Sequence[Any] | None:
    """The possible labels, given as such or from lowest to highest; not as both."""
    if ordered is None:
        return labels
    if labels is not None:
        raise ValueError(
            "`ordered` names all possible labels, from lowest to highest; "
            f"{len(labels)} came as `labels` too. Leave those out."
        )
    return ordered


def find_columns(names: Sequence[str]) -> dict[str, str]:
    """Guess which column plays which role by its name.

    >>> find_columns(["Task ID", "WorkerId", "answer", "notes"])
    {'item': 'Task ID', 'annotator': 'WorkerId', 'label': 'answer'}
    """
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(names)}
    found: dict[str, str] = {}
    for role, usual in USUAL_NAMES.items():
        forms = [w + end for w in usual.split() for end in ("", "id", "name")]
        match = next((plain[form] for form in forms if form in plain), None)
        if match is not None:
            found[role] = match
    return found


def _ask_for(absent: list[str], names: Sequence[str]) -> str:
    """What to type where no column looks like these roles."""
    first = "".join(names[:1])
    hint = " If each annotator has a column: format='wide'." if "item" not in absent else ""
    if first == "Timestamp":  # As forms begin, which may have a column for each item.
        hint = " If each column is an item: format='google-forms'."
    if first.startswith("sep="):
        hint = " Or delete the first line, which only tells Excel what separates cells."
    them = "it" if len(absent) == 1 else "them"
    options = " and ".join(f"{role}='COLUMN'" for role in absent)
    return (
        f"no column looks like the {' or the '.join(absent)}; the columns are {listed(names)}. "
        f"Name {them}: {options}.{hint}"
    )


def choose_columns(
    names: Sequence[str],
    reading: Reading,
    *,
    learned: bool = False,
    used: Sequence[str] = (),
    say: Callable[[str, str], None] = lambda what, text: None,
) -> Reading:
    """The reading with a column, columns or a number for each role: as given, the rest by name.

    What was chosen is said, and which columns are not `used` by anybody. Where worth is `learned`,
    a column of reliability that nobody asked for is not chosen.
    """
    given = {role: _meant(role, spec, names) for role, spec in reading.columns.items()}
    taken = [name for spec in given.values() for name in columns_of(spec)]
    for name in taken:
        if taken.count(name) > 1:
            roles = [f"`{role}`" for role, spec in given.items() if name in columns_of(spec)]
            raise ValueError(
                f"a column can be one thing; {name!r} came as {' and '.join(roles)}. "
                f"The columns are {listed(names)}."
            )
    found = find_columns([name for name in names if name not in taken])
    if given.keys() & {"confidence", "uncertainty"}:
        found = {r: name for r, name in found.items() if r not in ("confidence", "uncertainty")}
    elif "confidence" in found:
        found.pop("uncertainty", None)
    left = found.pop("reliability", None) if learned and "reliability" not in given else None
    chosen = found | given
    if absent := [role for role in ("item", "label") if role not in chosen]:
        raise ValueError(_ask_for(absent, names))
    reading = replace(reading, **chosen)
    check_names(names, reading.wanted)
    played = reading.columns.items()
    say("columns", ", ".join(f"{r} = {', '.join(columns_of(spec)) or spec}" for r, spec in played))
    taken = [left, *used, *(name for _, name in reading.wanted)]
    if unused := [name for name in names if name not in taken]:
        say("note", f"not used: {listed(unused)}")
    if left is not None:
        say(
            "note",
            f"column {left!r} is not used: what annotators are worth is learned; "
            f"reliability={left!r} uses it",
        )
    return reading


def listed(names: Sequence[str]) -> str:
    """Some names of columns; a file of another kind may have thousands, or a very long one."""
    shown = [repr(name if len(name) <= 60 else name[:60] + "...") for name in names[:20]]
    return ", ".join(shown) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _meant(role: str, spec: Any, names: Sequence[str]) -> Any:
    """The name of a column where there is one; else a number for all, or names with commas."""
    if not isinstance(spec, str) or spec in names:
        return spec
    if role == "label" and "," in spec:
        return [name.strip() for name in spec.split(",")]
    with suppress(ValueError):
        return float(spec) if role in NUMBERS else spec
    return spec


def columns_of(spec: Any) -> list[str]:
    """The columns that a role is read from: none if it is a number."""
    return (
        [spec]
        if isinstance(spec, str)
        else cast("list[str]", spec if isinstance(spec, list) else [])
    )


def check_names(names: Sequence[Any], wanted: Sequence[tuple[str, Any]]) -> None:
    """Every wanted column is there, and no two columns differ by case alone."""
    # pandas may name columns by numbers, too; nobody can want those.
    names = [name for name in names if isinstance(name, str)]
    for role, name in wanted:
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"`{role}` must be the name of a column, as text; {name!r} came. If the columns "
                "have no such names, rename them first."
            )
        if name not in names:
            near = nearest(name, names)
            hint = f" Did you mean {role}={near!r}?" if near else ""
            raise ValueError(
                f"there is no column {name!r} for `{role}`; the columns are {listed(names)}.{hint}"
                if names
                else f"there is no column {name!r} for `{role}`; the table has no columns named by "
                "text."
            )
    if pair := twins(names):
        raise ValueError(
            "column names must differ by more than case, which some engines ignore; "
            f"{pair[0]!r} and {pair[1]!r} came. Rename one of them."
        )


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that is written nearly so, in whatever case; None if none is.

    >>> nearest("Lable", ["item", "label"]), nearest("foo", ["item", "label"])
    ('label', None)
    """
    folded = {other.casefold(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.casefold(), list(folded), 1)
    return folded[near[0]] if near else None


def twins(names: Sequence[str]) -> tuple[str, str] | None:
    """Two names that differ by case at most."""
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            return seen[name.casefold()], name
        seen[name.casefold()] = name
    return None

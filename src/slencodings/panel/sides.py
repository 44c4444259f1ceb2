"""Who is a person and who is a model, and which models are of one family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, some


def choose_people(
    annotations: Annotations, *, people: Any = None, models: Any = None
) -> NDArray[np.bool_]:
    """Who of the annotators is a person, as a mask (M,).

    Parameters
    ----------
    people, models : either of the two: names or patterns such as "gpt*", or a mask (M,)

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [1, 1, 1], "who": ["ann", "gpt-4o", "gpt-5"], "label": ["a", "a", "b"]}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> choose_people(crowd, models=["gpt*"])
    array([ True, False, False])
    """
    if (people is None) == (models is None):
        raise ValueError(
            "a panel needs either `people` or `models`, so that the others are known; "
            f"{'both' if people is not None else 'neither'} came. "
            "For example models=['gpt*', 'llama*']."
        )
    name, given = ("people", people) if models is None else ("models", models)
    names = [str(annotator) for annotator in annotations.annotators.tolist()]
    mask = np.asarray(given)
    if mask.dtype != bool or mask.shape != (len(names),):
        mask = _matching(name, [given] if isinstance(given, str) else list(given), names)
    is_person = mask if models is None else ~mask
    answered = np.bincount(annotations.annotator, minlength=len(names)) > 0
    if not np.any(is_person & answered) or not np.any(~is_person & answered):
        side = "person" if not np.any(is_person & answered) else "model"
        raise ValueError(
            f"a panel has people and models; by `{name}` there is no {side} among the "
            f"{len(names)} annotators, first {names[0]!r}."
        )
    return is_person


def _matching(parameter: str, patterns: Iterable[Any], names: Sequence[str]) -> NDArray[np.bool_]:
    """Whom one of the patterns names, (M,); each has to name somebody."""
    mask = np.zeros(len(names), dtype=bool)
    for pattern in map(str, patterns):
        named = [name == pattern or fnmatchcase(name, pattern) for name in names]
        if not any(named):
            raise ValueError(
                f"`{parameter}` must name annotators; nobody is called {pattern!r}. "
                f"They are {some(names)}."
            )
        mask |= named
    return mask


def family(name: Any) -> str:
    """Of which family a model is, by the letters with which its name begins.

    Examples
    --------
    >>> [family(name) for name in ("gpt-4o-mini", "gemini_pro", "openai/gpt-5", "7b")]
    ['gpt', 'gemini', 'gpt', '7b']
    """
    text = str(name).rsplit("/", 1)[-1]
    letters = re.match(r"[^\W\d_]+", text)
    return letters[0].lower() if letters else text


def once_each(annotations: Annotations) -> tuple[Annotations, int]:
    """One source, one annotation (`Annotations.averaged`), and how many went into others."""
    merged = annotations.averaged()
    return merged, len(annotations.item) - len(merged.item)

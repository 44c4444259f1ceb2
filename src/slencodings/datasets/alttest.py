"""Five tasks that people and language models answered (Calderon, Reichart and Dror 2025)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.download import pinned, read
from slencodings.datasets.local import coded, find

_REPOSITORY = "nitaytech/AltTest", "cc1d1f40fefa847ac7c45959e49132110f2932a2"
# Of the people's answers and the models': bytes and sha256.
_FILES = {
    "10k_prompts": (
        (92_592, "9380386323d5d82fd3be6b454497fa5fbcb59b5dfb061287fb3664e1f8a814b2"),
        (243_822, "31fba0fdb37d50159331b4fc38eb5fa1fb0c038188cbd122ea88c533afa22ab5"),
    ),
    "cebab_stars": (
        (69_336, "c8005bb4beebc0f61e30f66ae3ae225bddb691c68645c453a23363004da13dd0"),
        (134_640, "63b80b13cddad15f4accbc865332b38276cd4bf978ac0fec0e70cd8c6578a658"),
    ),
    "lesion": (
        (103_843, "a3bd4a7213d57d6ead4d103ad19fffac0962ab7b5023fa0626cd7f0ac94b1b07"),
        (69_705, "ac0f9d7e6483f1665a5e38a4c9c32e519dd228f1d1ae6a65c55ec222e474fb52"),
    ),
    "mtbench": (
        (13_547, "b4435d1878cec02169b57050bf6b40585c9d3661a95f2be1a023dafb58b45f6d"),
        (40_156, "6c77d271a09f3cff2dcb05dda859358434e3c38e6141316b94d6feaff843e995"),
    ),
    "wax": (
        (125_526, "d92dbfa23a4dcc828d2f40325bfaf3605acedb9bf7f82ef985d449f94a1bcedc"),
        (134_791, "b5d5dfa2e58e17ab3c6f633f4554b46fb27d9bd6c8cf8abc6bb46814af6384af"),
    ),
}


class AltTest(NamedTuple):
    """What people and models answered.

    Attributes
    ----------
    annotations : Annotations
    people : (M,), who is a person
    """

    annotations: Annotations
    people: NDArray[np.bool_]


def alttest(name: str, folder: str | Path | None = None, *, download: bool = False) -> AltTest:
    """One of the tasks of the alternative annotator test.

    Parameters
    ----------
    name : "10k_prompts" (how good a prompt is, 1 to 5), "cebab_stars" (stars of a review, 1 to 5),
        "lesion" (how a skin lesion looks, 0 to 6), "mtbench" (which of two answers is better) or
        "wax" (how two words are related)
    folder : holds <name>/human_annotations.json and <name>/llm_annotations.json; left out, it is
        SLENCODINGS_DATA/alttest, the cache, or ../shared/datasets/alttest beside the checkout
    download : fetch what is missing from github.com into the folder or the cache; the repository
        states no licence

    Examples
    --------
    >>> alttest("wax", "no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'alttest' needs the file wax/human_annotations.json; ...
    """
    if name not in _FILES:
        raise ValueError(f"`name` must be one of {', '.join(_FILES)}; {name!r} came.")
    paths = [f"{name}/{who}_annotations.json" for who in ("human", "llm")]
    files = [
        pinned(_REPOSITORY, f"data/{path}", *known, name=path)
        for path, known in zip(paths, _FILES[name], strict=True)
    ]
    home = find("alttest", folder, files, download=download)
    people, models = (json.loads(read(home, file)) for file in files)
    by_annotator: dict[str, dict[str, Any]] = people | models
    rows = [(item, who, y) for who, answers in by_annotator.items() for item, y in answers.items()]
    item, who, answers = zip(*rows, strict=True)
    labels = sorted(set(answers))
    place = {label: k for k, label in enumerate(labels)}
    y = np.asarray([place[label] for label in answers], dtype=np.intp)
    crowd = coded(item, who, y, labels, items=sorted(set(item)))
    return AltTest(crowd, np.asarray([m in people for m in crowd.annotators.tolist()]))

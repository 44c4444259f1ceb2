"""The names of what we write about other files, which readers of folders must not take for data."""

from __future__ import annotations

# About a file, beside it: targets.csv.meta.json.
BESIDE = ".meta.json"
# About the files of a folder, in it. Others skip names with an underscore, too.
ABOUT = "_slencodings.json"


def tells_about_others(name: str) -> bool:
    """Whether a file of this name says how others were made.

    >>> tells_about_others("targets.csv.meta.json"), tells_about_others("targets.json")
    (True, False)
    """
    return name == ABOUT or name.endswith(BESIDE)

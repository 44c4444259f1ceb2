"""What tests of reports share: two methods to compare instead of many, and hostile names."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from crowds import named_crowd

from slencodings.annotations import Annotations

COMPARED = importlib.import_module("slencodings.report.summarise")
HOSTILE = [
    "<script>document.title = 'broken'</script>",
    "</script><script>document.title = 'broken'</script>",
    "<!--<script>",
    "\"'><img src=x onerror=\"document.title='broken'\">",
    "&lt;b&gt; &amp; ]]>",
    "\u202eright to left\u202c",
    "שלום עולם",
    "😀👩‍👩‍👧 emoji",
    "line\u2028break\u2029\x00\n\ttab",
    "x" * 10_000,
    "",
    "{{constructor.constructor('document.title=1')()}}",
    "datum['x'] = `${1}`",
]


def quick(a):
    """Two methods that take no time."""
    return ["soft votes", "SLE, full trust"]


@pytest.fixture(autouse=True)
def two_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests compare but two methods, as that takes most of the time."""
    monkeypatch.setattr(COMPARED, "well_known", quick)


def hostile() -> Annotations:
    """A crowd whose every name tries to be more than a name."""
    H = len(HOSTILE)
    said = named_crowd(n=H, per=4, people=H, labels=3)
    names = np.asarray(HOSTILE, dtype=object)
    return replace(said, items=names, annotators=names, labels=names[:3])

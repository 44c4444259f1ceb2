"""One page to look at: what a crowd said, item by item and person by person.

`summarise` collects plain numbers and text, `render` makes one file of them that needs no other.
"""

from slencodings.report.pairs import render_pairs, summarise_pairs
from slencodings.report.render import render
from slencodings.report.summarise import summarise

__all__ = ["render", "render_pairs", "summarise", "summarise_pairs"]

"""What a page calls the likeliest label of an item: what is true, or else the likeliest vote."""

from __future__ import annotations

from typing import NamedTuple

from slencodings.report.summary import Glance


class Leading(NamedTuple):
    """Words for the likeliest label and its probability, by what these are of.

    Attributes
    ----------
    head : over a column
    is_said : what it is, with the label to follow
    likely : how likely it is that a label is it, behind a share
    leads : what items have it as
    right : what annotators are who gave it
    why_not : why nothing is said of what is true; empty where it is
    """

    head: str
    is_said: str
    likely: str
    leads: str
    right: str
    why_not: str = ""


_TRUE = Leading(
    head="Likely true",
    is_said="Likeliest true is",
    likely="likely to be true",
    leads="likeliest true",
    right="right",
)
_VOTE = Leading(
    head="Likeliest vote",
    is_said="The likeliest vote is",
    likely="likely to be the next vote",
    leads="likeliest vote",
    right="with the likeliest vote",
)


def leading(crowd: Glance) -> Leading:
    """The words for a crowd: where who is right was not learned, nothing is called true."""
    if crowd["truth"]:
        return _TRUE
    why_not = {
        "given": "Who is right was not asked, as annotations count by the reliability that came "
        "with the data",
        "alike": "Who is right could not be learned, as no item has two annotations",
        "learned": "Who is right was not learned: what each annotator says where each of "
        f"{crowd['labels']:,} labels is true is too much to learn",
    }
    return _VOTE._replace(why_not=why_not[crowd["source"]])

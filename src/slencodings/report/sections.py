"""The sections of a report in words, each from its part of a summary."""

from __future__ import annotations

from typing import Any

from slencodings.annotations import by_annotators, counted, plainly
from slencodings.report.labels import MOST_DRAWN
from slencodings.report.leading import leading
from slencodings.report.markup import Markup, tag
from slencodings.report.opening import opening
from slencodings.report.pieces import (
    between,
    definitions,
    figure,
    heat_key,
    kind_table,
    notes,
    number,
    page_header,
    page_sections,
    square,
    table,
    to_item,
)
from slencodings.report.sections_at_a_glance import at_a_glance
from slencodings.report.sections_of_people import annotators
from slencodings.report.summary import LabelShares, Summary

NAMES = {
    "glance": "At a glance",
    "items": "Items",
    "annotators": "Annotators",
    "labels": "Labels",
    "compared": "Encodings compared",
    "next": "What to annotate next",
    "made": "How it was made",
}

_MORE_ENCODINGS = "knows more encodings, and scores against gold labels."


def header(found: Summary) -> Markup:
    """The title, and links to the sections."""
    crowd = found["crowd"]
    lead = (
        f"{counted(crowd['annotations'], 'annotation')} of {counted(crowd['items'], 'item')}"
        f"{by_annotators(crowd['annotators'])}, with {counted(crowd['labels'], 'label')}"
    )
    return page_header(found["title"] or "A crowd and its opinions", lead, opening(found), NAMES)


def page_footer(pictures: list[str]) -> Markup:
    """What the page loads from elsewhere, if anything."""
    places = ", ".join("files beside it" if place == "file:" else place for place in pictures)
    loaded = f"but its pictures, from {places}" if pictures else "nothing is loaded from anywhere"
    text = f"Made with slencodings. Everything is in this one file; {loaded}."
    return tag("footer", tag("p", text.replace("; but", ", but")))


def sections(found: Summary, drawn: set[str]) -> Markup:
    """All sections, with places for the charts that are drawn."""
    made = (at_a_glance, _items, annotators, _labels, _compared, _next, _made)
    return page_sections(NAMES, (section(found, drawn) for section in made))


def _items(found: Summary, drawn: set[str]) -> list[Any]:
    items, names, truth = found["items"], found["labels"]["names"], found["crowd"]["truth"]
    if len(names) <= 7:
        parts = [(name, f"label-{k}") for k, name in enumerate(names)]
    else:
        parts = [
            ("likeliest", "label-0"),
            ("second", "label-1"),
            ("third", "label-2"),
            ("other labels", "rest"),
        ]
    key = [tag("li", tag("i", data_colour=colour), tag("bdi", name)) for name, colour in parts]
    key.append(tag("li", tag("i", class_="gap"), "doubt"))
    return [
        tag("p", "Four things are told of each item, which are not the same:"),
        definitions(_four(found), "four"),
        tag("p", items["listed"], class_="note"),
        tag("ul", key, class_="key", aria_label="Colours of the bars"),
        tag("div", id="items-table"),
        tag(
            "p",
            f"“Hangs on one annotation” are items whose likeliest {'true ' * truth}label would be "
            "another without one of their annotations; what is known of the others stays as it is.",
            class_="note",
        ),
    ]


def _four(found: Summary) -> dict[str, str]:
    """What is told of each item, a line each."""
    words = leading(found["crowd"])
    likeliest = (
        "The label that the next person would say most probably, and how probable that is. "
        f"{words.why_not}, so it need not be true."
        if words.why_not
        else "The label that is likeliest right, and how probable that is: those count more who "
        "are right more often, by what they confuse."
    )
    return {
        words.head: likeliest,
        "People would say": "How the next votes would be spread over the labels: the coloured "
        "parts of the bar.",
        "Doubt": "How much is not known of what people would say: 1 without annotations, and less "
        "with every one, whatever it says. The hatched part of the bar.",
        "Conflict": "How far the votes contradict each other: 0 where all say the same, 1 where "
        "every label has as much.",
    }


def _labels(found: Summary, drawn: set[str]) -> list[Any]:
    """Which labels are confused, where the items lie, and how often each was given."""
    labels = found["labels"]
    cut = f" The {MOST_DRAWN} most frequent are drawn." if len(labels["names"]) > MOST_DRAWN else ""
    often = _how_often(labels, drawn, cut, leading(found["crowd"]).leads)
    return [
        _confused(labels, drawn, cut),
        tag("div", _triangle(labels, drawn), often, class_="two"),
        [kind_table(part, drawn) for part in labels["kinds"]],
    ]


def _confused(labels: LabelShares, drawn: set[str], cut: str) -> Any:
    names, confused = labels["names"], labels["confused"]
    if confused is None:
        return tag(
            "p",
            "No item was annotated by two people, so nothing tells which labels are confused.",
            class_="note",
        )
    pairs = [
        [names[j], names[k], f"{p['times']:,.0f}", f"{p['share']:.0%}"]
        for p in confused["pairs"]
        for j, k in [p["labels"]]
    ]
    most = table(["Label", "and", "Times", "Share"], pairs, names=["and"])
    return tag(
        "div",
        figure(
            drawn,
            "confused",
            "Which labels are confused",
            "Where one says the label on the left, how often does another say the one on "
            "top? A strong colour off the diagonal is a pair to explain better in the "
            "guidelines." + cut,
            square([names[k] for k in confused["labels"]], confused["share"], "One says"),
            heat_key(confused["share"]),
        ),
        tag("div", tag("h3", "Most confused"), most)
        if pairs
        else tag("p", "Nobody contradicted anybody."),
        class_="two",
    )


def _how_often(labels: LabelShares, drawn: set[str], cut: str, leads: str) -> Any:
    names, given, lead = labels["names"], labels["given"], labels["leading"]
    total, items = sum(given) or 1, sum(lead) or 1
    shares = [
        [names[k], f"{given[k] / total:.1%}", f"{lead[k] / items:.1%}"] for k in labels["drawn"]
    ]
    return figure(
        drawn,
        "shares",
        "How often each label was given",
        f"A label that is given often and seldom {leads} is mostly a minority view." + cut,
        table(["Label", "Of all annotations", f"Of all items: {leads}"], shares),
    )


def _triangle(labels: LabelShares, drawn: set[str]) -> Any:
    points = labels["points"]
    if points is None:
        return None
    two = len(labels["names"]) == 2
    what = (
        "Each dot is one or more items, by what people would say. The lower corners are full "
        "belief in one label; the higher up, the more doubt."
        if two
        else "Each dot is one or more items, by what people would say. Dots in a corner are "
        "clear; dots on a side lie between two labels."
    )
    if points["drawn"] < points["of"]:
        what += f" {points['drawn']:,} of {points['of']:,} items, drawn at random."
    return figure(
        drawn,
        "triangle",
        "The items between two labels and not knowing" if two else "The items between three labels",
        what,
    )


def _compared(found: Summary, drawn: set[str]) -> list[Any]:
    compared = found["compared"]
    if compared["why_not"]:
        return [tag("p", compared["why_not"])]
    lot = ", a sample," if compared["sampled"] else ""
    rows = [
        [
            row["method"] + " *" * row["best"],
            number(row["votes"]),
            "" if row["votes_low"] is None else between(row["votes_low"], row["votes_high"]),
        ]
        for row in compared["rows"]
    ]
    impossible = [
        f"{row['method']} called a vote impossible that was given: its loss is infinite, and is "
        "not drawn."
        for row in compared["rows"]
        if row["votes"] is None
    ]
    return [
        tag(
            "p",
            "Which way of turning annotations into targets fits this crowd? Each predicts "
            "every annotation from the others on its item, having learned on other items only; "
            f"here {compared['scored']:,} annotations{lot} of {compared['items']:,} items, in "
            f"{compared['folds']} folds. No gold labels are needed.",
        ),
        figure(
            drawn,
            "compared",
            "How well held-out votes are predicted",
            " ".join(compared["lessons"]),
            table(["Encoding", "Log-loss", "95% interval"], rows),
        ),
        notes(compared["notes"] + impossible),
        tag("p", tag("code", "sle compare"), f" {_MORE_ENCODINGS}", class_="note"),
    ]


def _next(found: Summary, drawn: set[str]) -> list[Any]:
    """What to annotate and by whom, and what to decide."""
    todo, items, why = found["next"], found["items"], found["crowd"]["why"]
    rows = items["rows"]
    parts: list[Any] = [tag("p", " ".join(todo["plan"]))]
    if todo["few"]:
        heads = ["Item", "Why"] + ["Ask any of"] * todo["named"]
        cells = [
            [to_item(items, row["row"]), rows[row["row"]]["reason"]]
            + [", ".join(map(plainly, row["ask"])) or "somebody new"] * todo["named"]
            for row in todo["few"]
        ]
        parts += [
            tag("h3", "Annotate these next"),
            tag(
                "p",
                f"{_of(len(cells), why['few'])} with too few opinions, those first where more "
                "are expected to mend most labels. Nobody is asked twice about an item, and nobody "
                "at chance. Collect a part, make this page again, go on.",
            ),
            table(heads, cells, names=["Ask any of"]),
        ]
    if todo["conflict"]:
        cells = [
            [to_item(items, row["row"]), f"{row['conflict']:.2f}", rows[row["row"]]["reason"]]
            for row in todo["conflict"]
        ]
        parts += [
            tag("h3", "Decide these"),
            tag(
                "p",
                f"{_of(len(cells), why['conflict'])} in conflict, the sharpest first. Read them "
                "together: is the item unclear, or the guideline?",
            ),
            table(["Item", "Conflict", "Why"], cells),
        ]
    if not todo["few"] and not todo["conflict"]:
        parts.append(tag("p", "Nothing is open: every item is settled."))
    plan = tag("code", "sle triage --budget N")
    parts.append(tag("p", plan, " plans for a budget and lists every item.", class_="note"))
    return parts


def _of(listed: int, total: int) -> str:
    return counted(total, "item") if listed == total else f"{listed:,} of {total:,} items"


def _made(found: Summary, drawn: set[str]) -> list[Any]:
    words = {
        "Opinion": "Belief in each label and uncertainty, which together make 1.",
        **_four(found),
        "Weight": "How much an annotation counts for what people would say, where not knowing "
        "counts 1. Weights add up.",
    }
    crowd = found["crowd"]
    made = found["made"] | {
        "settled": f"{counted(crowd['least_votes'], 'annotation')} or more, and a label that is "
        f"{crowd['least_probability']:.0%} or more {leading(crowd).likely}",
        "in conflict": f"not settled, and conflict above {crowd['conflict']:g}",
        "too few opinions": "neither",
    }
    return [definitions(made, "made"), tag("h3", "Words"), definitions(words, "words")]

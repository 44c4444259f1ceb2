"""The sections of a report in words, each from its part of a summary."""

from __future__ import annotations

from typing import Any

from slencodings.annotations import by_annotators
from slencodings.report.charts import KINDS
from slencodings.report.markup import Markup, join, tag
from slencodings.report.pieces import figure, notes, number, table
from slencodings.report.sections_of_labels import labels
from slencodings.report.sections_of_people import annotators
from slencodings.report.summary import Glance, Kind, Summary

NAMES = {
    "glance": "At a glance",
    "items": "Items",
    "annotators": "Annotators",
    "labels": "Labels",
    "compared": "Encodings compared",
    "next": "What to annotate next",
    "made": "How it was made",
}


def page_header(found: Summary) -> Markup:
    """The title, and links to the sections."""
    crowd = found["crowd"]
    links = [tag("li", tag("a", text, href=f"#{name}")) for name, text in NAMES.items()]
    return join(
        [
            tag(
                "header",
                tag("h1", found["title"] or "A crowd and its opinions", dir="auto"),
                tag(
                    "p",
                    f"{crowd['annotations']:,} annotations of {crowd['items']:,} items"
                    f"{by_annotators(crowd['annotators'])}, with {crowd['labels']:,} labels",
                    class_="lead",
                ),
            ),
            tag("nav", tag("ul", links), aria_label="Sections"),
        ]
    )


def page_sections(found: Summary, drawn: set[str]) -> Markup:
    """All sections, with places for the charts that are drawn."""
    made = (_glance, _items, annotators, labels, _compared, _next, _made)
    return join(
        tag(
            "section",
            tag("h2", text, id=f"{name}-title"),
            section(found, drawn),
            id=name,
            aria_labelledby=f"{name}-title",
        )
        for (name, text), section in zip(NAMES.items(), made, strict=True)
    )


def _glance(found: Summary, drawn: set[str]) -> list[Any]:
    crowd = found["crowd"]
    n, per, alpha = crowd["items"], crowd["per_item"], crowd["alpha"]
    least, most = per["least"], per["most"]
    spread = f"{least:,} each" if least == most else f"from {least:,} to {most:,}"
    tiles: list[tuple[str, str, str]] = [
        ("Items", f"{n:,}", ""),
        ("Annotations", f"{crowd['annotations']:,}", ""),
        (
            "Annotators",
            f"{crowd['annotators']:,}" if crowd["annotators"] else "–",
            "" if crowd["annotators"] else "no column names them",
        ),
        ("Annotations per item", f"{per['mean']:g}", spread),
        (
            "Agreement (alpha)",
            f"{alpha[0]:.2f}" if alpha else "–",
            f"95%: {alpha[1]:.2f} to {alpha[2]:.2f}" if alpha else "no item has two annotations",
        ),
        ("Mean uncertainty", f"{crowd['uncertainty']:.2f}", "0 is sure, 1 knows nothing"),
    ]
    why = crowd["why"]
    share: dict[Kind, str] = {kind: f"{k / n:.0%}" if n else "–" for kind, k in why.items()}
    advice: dict[Kind, tuple[str, str]] = {
        "few": (
            "have too few opinions",
            f"Uncertainty is above {crowd['target']:g}. More annotations help here.",
        ),
        "conflict": (
            "are in conflict",
            "Enough was said, and people disagree. More votes would confirm the split; "
            "look at the guidelines, or ask an expert.",
        ),
        "settled": ("are settled", "Enough was said, and it agrees well enough to train on."),
    }
    return [
        tag(
            "dl",
            [
                tag(
                    "div", tag("dt", head), tag("dd", value, tag("small", below) if below else None)
                )
                for head, value, below in tiles
            ],
            class_="tiles",
        ),
        tag(
            "ul",
            [
                tag(
                    "li",
                    tag("strong", f"{why[kind]:,} items ({share[kind]}) {text}"),
                    what,
                    class_=kind,
                )
                for kind, (text, what) in advice.items()
            ],
            class_="open",
        ),
        [tag("p", sentence) for sentence in _about_crowd(crowd)],
        figure(
            drawn,
            "uncertainty",
            "How much is known of the items",
            "Each bar counts items. Further left, more is known.",
            table(["State", "Items"], [[KINDS[k], f"{v:,}"] for k, v in why.items()]),
        ),
    ]


def _about_crowd(crowd: Glance) -> list[str]:
    """Agreement and trust in a few sentences."""
    sentences: list[str] = []
    if crowd["alpha"]:
        a = crowd["alpha"][0]
        level = (
            "which is usually taken as reliable"
            if a >= 0.8
            else "enough for tentative conclusions by the usual rule"
            if a >= 0.667
            else "less than the .67 that is usually asked of data with one true label each; where "
            "people may rightly disagree, it tells how much they do"
        )
        sentences.append(
            f"Krippendorff's alpha is {a:.2f}, {level}. 1 is perfect agreement, 0 is chance."
        )
    losses = crowd["losses"]
    if losses is not None:
        after = losses.get("held_out", losses["learned"])
        held = "held-out votes" if "held_out" in losses else "the votes themselves"
        sentences.append(
            "How far to trust whom, and what stated confidence is worth, was learned from the "
            "crowd: an annotation counts by how well it tells what others say. It predicts "
            f"{held} at a log-loss of {after:.3f}, where plain votes have {losses['votes']:.3f} "
            "(lower is better)."
        )
    elif crowd["trust"] == "given":
        sentences.append("Annotators count by the reliability that came with the data.")
    else:
        sentences.append(
            "No two annotations are of the same item, so there is nothing to learn trust from and "
            "all people count alike. One annotation that is sure of itself settles an item then; "
            "a column of reliability would make it count for less."
        )
    return sentences


def _items(found: Summary, drawn: set[str]) -> list[Any]:
    items, names = found["items"], found["labels"]["names"]
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
    key.append(tag("li", tag("i", class_="gap"), "not known (uncertainty)"))
    return [
        tag(
            "p",
            "What the crowd believes about each item. The coloured part of a bar is what was "
            "said, weighed by whom to trust; the hatched gap is what is not known yet.",
        ),
        tag("p", items["listed"], class_="note"),
        tag("ul", key, class_="key", aria_label="Colours of the bars"),
        tag("div", id="items-table"),
        tag(
            "p",
            "“Hangs on one annotation” are items whose likeliest label would be another "
            "without one of their annotations; trust in the others stays as it is.",
            class_="note",
        ),
    ]


def _compared(found: Summary, drawn: set[str]) -> list[Any]:
    compared = found["compared"]
    if compared["why_not"]:
        return [tag("p", compared["why_not"])]
    of = "a sample of " if compared["sampled"] else ""
    rows = [
        [
            row["method"] + " *" * row["best"],
            number(row["votes"]),
            ""
            if row["votes_low"] is None
            else f"{row['votes_low']:.3f} to {row['votes_high']:.3f}",
        ]
        for row in compared["rows"]
    ]
    endless = [row["method"] for row in compared["rows"] if row["votes"] is None]
    impossible = [
        f"{name} called a vote impossible that was given: its loss is infinite, and is not drawn."
        for name in endless
    ]
    return [
        tag(
            "p",
            "Which way of turning annotations into targets fits this crowd? Each predicts "
            "every annotation from the others on its item, having learned on other items only; "
            f"here on {of}{compared['items']:,} items and {compared['scored']:,} annotations, in "
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
        tag(
            "p",
            tag("code", "sle compare"),
            " knows more encodings, and scores against gold labels.",
            class_="note",
        ),
    ]


def _next(found: Summary, drawn: set[str]) -> list[Any]:
    todo = found["next"]
    parts: list[Any] = [tag("p", sentence) for sentence in _about_next(found)]
    if todo["few"]:
        heads = ["Item", "Uncertainty", "Annotations needed"] + ["Ask"] * todo["named"]
        rows = [
            [
                row["item"],
                f"{row['uncertainty']:.3f}",
                "never" if row["needed"] is None else f"{row['needed']:,}",
            ]
            + [", ".join(row["ask"]) or "somebody new"] * todo["named"]
            for row in todo["few"]
        ]
        parts += [
            tag("h3", "Annotate these next"),
            tag("p", "Where one more annotation is expected to help the label most."),
            table(heads, rows),
        ]
    if todo["conflict"]:
        parts += [
            tag("h3", "Decide these"),
            tag(
                "p",
                "Enough people looked, and they disagree most sharply here. Read them "
                "together: is the item unclear, or the guideline?",
            ),
            table(
                ["Item", "Conflict", "Uncertainty"],
                [
                    [row["item"], f"{row['conflict']:.2f}", f"{row['uncertainty']:.3f}"]
                    for row in todo["conflict"]
                ],
            ),
        ]
    if not todo["few"] and not todo["conflict"]:
        parts.append(tag("p", "Nothing is open: every item is settled."))
    parts.append(
        tag(
            "p",
            tag("code", "sle triage --budget N"),
            " plans for a budget and lists every item.",
            class_="note",
        )
    )
    return parts


def _about_next(found: Summary) -> list[str]:
    """How many annotations are missing, in a sentence or two."""
    crowd, todo = found["crowd"], found["next"]
    few = crowd["why"]["few"]
    if not few:
        return [f"No item has too few opinions: uncertainty is {crowd['target']:g} or less."]
    missing = (
        f"{few:,} items have too few opinions. About {todo['needed']:,} more annotations by a "
        f"typical annotator would bring them to an uncertainty of {crowd['target']:g}."
    )
    if todo["never"]:
        missing += f" No number of them would for {todo['never']:,} items."
    return [
        missing,
        "Nobody knows what people will say: collect a part, make this page again, go on.",
    ]


def _made(found: Summary, drawn: set[str]) -> list[Any]:
    words = {
        "Opinion": "Belief in each label and uncertainty, which together make 1.",
        "Uncertainty": "How much is not known. Every annotation lowers it, whatever it says.",
        "Probability": "Belief, and the share of uncertainty that the label has beforehand.",
        "Conflict": "Dissonance: how evenly belief is spread over labels that contradict each "
        "other, from 0 to 1.",
        "Weight": "An annotation is worth 2 c / (1 - c) pseudo-counts of its label, where c is "
        "reliability times certainty. Fusing adds them up.",
    }
    crowd = found["crowd"]
    made = found["made"] | {
        "too few opinions": f"uncertainty above {crowd['target']:g}",
        "conflict": f"dissonance above {crowd['conflict']:g}",
    }
    return [
        tag(
            "dl", [[tag("dt", key), tag("dd", value)] for key, value in made.items()], class_="made"
        ),
        tag("h3", "Words"),
        tag(
            "dl",
            [[tag("dt", key), tag("dd", value)] for key, value in words.items()],
            class_="words",
        ),
    ]

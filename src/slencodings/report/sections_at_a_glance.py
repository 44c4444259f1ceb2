"""The section that says at a glance how a crowd is doing."""

from __future__ import annotations

from typing import Any

from slencodings.annotations import counted
from slencodings.report.charts import KINDS
from slencodings.report.leading import leading
from slencodings.report.markup import tag
from slencodings.report.pieces import about, figure, number, table, tiles
from slencodings.report.summary import Glance, Kind, Summary

# Confidence that is nearer than this to how often it is right is about right.
_CLOSE = 0.03
_TOO = {True: "so it is too sure.", False: "so it is less sure than it could be."}


def at_a_glance(found: Summary, drawn: set[str]) -> list[Any]:
    """Sizes, agreement, and how open the items are."""
    crowd = found["crowd"]
    why = crowd["why"]
    title, caption = "How probably the labels are true", "the likeliest label is surer to be right"
    if not crowd["truth"]:
        title, caption = "How probable the likeliest votes are", "it is surer what is said next"
    return [
        tiles(_tiles(crowd)),
        _open(crowd),
        [tag("p", sentence) for sentence in _sentences(crowd)],
        tag(
            "div",
            figure(
                drawn,
                "probabilities",
                title,
                f"Each bar counts items. Further right, {caption}.",
            ),
            figure(
                drawn,
                "doubts",
                "How much doubt is left",
                "Each bar counts items. Further left, more is known of what people would say.",
                table(["State", "Items"], [[KINDS[k], f"{v:,}"] for k, v in why.items()]),
            ),
            class_="two",
        ),
    ]


def _tiles(crowd: Glance) -> list[tuple[str, str, str]]:
    """What it is, how much, and what to know of it."""
    per, alpha, people = crowd["per_item"], crowd["alpha"], crowd["annotators"]
    least, most = per["least"], per["most"]
    shown = [
        (
            "Items",
            f"{crowd['items']:,}",
            "a yes or no to each label of each" if crowd["questions"] else "",
        ),
        ("Annotations", f"{crowd['annotations']:,}", ""),
        ("Annotators", f"{people:,}" if people else "–", "" if people else "no column names them"),
        (
            "Annotations per item",
            f"{per['mean']:g}",
            f"{least:,} each" if least == most else f"from {least:,} to {most:,}",
        ),
        (
            "Agreement (alpha)",
            f"{alpha[0]:.2f}" if alpha else "–",
            ("ordinal; " if crowd["ordered"] else "") + f"95%: {alpha[1]:.2f} to {alpha[2]:.2f}"
            if alpha
            else "no item has two annotations",
        ),
        ("Mean doubt", f"{crowd['uncertainty']:.2f}", "of what people would say; 1 knows nothing"),
    ]
    if crowd["wrong"] is not None:
        shown.append(
            ("Expected errors", about(crowd["wrong"]), "if each item gets its likeliest true label")
        )
    if scored := crowd["scored"]:
        right = f"95%: {scored['right_low']:.1%} to {scored['right_high']:.1%}"
        shown.append(("Right by gold", f"{scored['right']:.1%}", right))
        below = f"of gold, on {counted(scored['items'], 'item')}; lower is better"
        shown.append(("Log-loss", number(scored["log_loss"]), below))
    return shown


def _open(crowd: Glance) -> Any:
    """How many items are open, and what to do about them."""
    n, why, likely = crowd["items"], crowd["why"], leading(crowd).likely
    advice: dict[Kind, tuple[str, str]] = {
        "few": (
            "has too few opinions" if why["few"] == 1 else "have too few opinions",
            f"Fewer than {counted(crowd['least_votes'], 'annotation')}, or no label is "
            f"{crowd['least_probability']:.0%} {likely}. More annotations help here.",
        ),
        "conflict": (
            "is in conflict" if why["conflict"] == 1 else "are in conflict",
            "People contradict each other, and no label is likely enough. More votes may confirm "
            "the split; look at the guidelines, or ask an expert.",
        ),
        "settled": (
            "is settled" if why["settled"] == 1 else "are settled",
            f"Some label is {crowd['least_probability']:.0%} or more {likely}, by "
            f"{counted(crowd['least_votes'], 'annotation')} or more.",
        ),
    }
    return tag(
        "ul",
        [
            tag(
                "li",
                tag(
                    "strong",
                    tag("a", counted(why[kind], "item"), href=f"#items-{kind}"),
                    f" ({why[kind] / max(n, 1):.0%}) {text}",
                ),
                what,
                class_=kind,
            )
            for kind, (text, what) in advice.items()
        ],
        class_="open",
    )


def _sentences(crowd: Glance) -> list[str]:
    """Agreement, and where the weights of annotations come from."""
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
            f"Krippendorff's {'ordinal ' * crowd['ordered']}alpha is {a:.2f}, {level}. It is about "
            "two single people: 1 is perfect agreement, 0 is chance. Several together can settle "
            "what two do not."
        )
    if scored := crowd["scored"]:
        over = scored["sure"] - scored["right"]
        how_sure = "about as often as it is." if abs(over) < _CLOSE else _TOO[over > 0]
        itself = f" The page takes itself to be right for {scored['sure']:.1%}, {how_sure}"
        sentences.append(
            f"Gold labels are known of {counted(scored['items'], 'item')}: the "
            f"{'likeliest true label' if crowd['truth'] else 'likeliest vote'} is right for "
            f"{scored['right']:.1%} of them, the label with most votes for "
            f"{scored['votes_right']:.1%}.{itself if crowd['truth'] else ''}"
        )
    if crowd["truth"]:
        learned = "Who is right how often, and what annotations are worth, was learned from"
        return [*sentences, f"{learned} the crowd itself."]
    weights = {
        "learned": " What annotations are worth was learned from the crowd itself.",
        "given": "",
        "alike": " Every annotation counts the same.",
    }[crowd["source"]]
    votes = "So this page tells what people would say, and nothing of what is true."
    return [*sentences, f"{leading(crowd).why_not}. {votes}{weights}"]

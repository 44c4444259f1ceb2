"""A crowd that judged pairs, as one page: the order of options, the judges, what to ask next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from slencodings.aggregate import BradleyTerry, bradley_terry, krippendorff_alpha
from slencodings.aggregate.bradley_terry import davidson_chances
from slencodings.annotations import counted, plainly
from slencodings.annotators import Roster, describe_judges
from slencodings.evaluation import Comparison, compare_pairs
from slencodings.evaluation.text import lessons
from slencodings.files.preferences import ScoredOption, score_rows
from slencodings.kinds.pairs import LABELS, Pairs
from slencodings.report.markup import Markup, tag
from slencodings.report.names import NAME_LETTERS, shown
from slencodings.report.opening import to_look_at
from slencodings.report.pieces import (
    about,
    between,
    definitions,
    figure,
    heat_key,
    notes,
    page_header,
    page_sections,
    square,
    table,
    tiles,
)
from slencodings.report.render import assemble
from slencodings.report.vega import Spec, dot, dots, heat, square_of
from slencodings.triage import Triage, triage_pairs
from slencodings.triage.triage import OpenItem

Progress = Callable[[str, int, int], None]

# Options whose chances against each other are drawn, twos that are listed, and resamples.
MOST_DRAWN, _MOST_LISTED, _RESAMPLES = 15, 25, 300
# Options in the chart of scores; more are in the table below it.
_MOST_RANKED = 40
_FOLDS = 5
# Errors, of all pairs, that comparing two again and again must mend to be named.
_LEAST_MENDED = 5e-4
_SECTIONS = {
    "glance": "At a glance",
    "order": "The order of options",
    "judges": "Judges",
    "compared": "Methods compared",
    "next": "What to compare next",
    "made": "How it was made",
}


class PairsSummary(NamedTuple):
    """All that a report says of pairs; `judges` and `compared` are why not where they are text."""

    title: str
    pairs: Pairs
    found: BradleyTerry
    scores: list[ScoredOption]
    alpha: float | None
    judges: Roster | str
    compared: Comparison | str
    todo: Triage
    made: dict[str, str]


def summarise_pairs(
    pairs: Pairs,
    *,
    seed: int = 0,
    name: str = "",
    made: dict[str, str] | None = None,
    progress: Progress = lambda what, done, total: None,
    **limits: Any,
) -> PairsSummary:
    """Collect what there is to see of a crowd that judged pairs, for `render_pairs`.

    `limits` are `least_votes`, `least_probability` and `conflict`, as in `triage_pairs`.
    """
    from slencodings import __version__

    a = pairs.annotations
    found = bradley_terry(pairs, rng=seed)
    crowd = pairs.unplaced.annotations
    shared = bool(np.any(np.bincount(crowd.item, minlength=1) > 1))
    judges: Roster | str = "No two judges can be told apart, so nobody can be held against others."
    if a.named and len(a.annotators) > 1:
        judges = describe_judges(
            pairs, found=found, rng=seed, progress=lambda n, of: progress("judges", n, of)
        )
    compared: Comparison | str = (
        f"Methods are compared on judgments that are held out, and {len(a.item)} are too few."
    )
    if len(a.item) >= 2 * _FOLDS:
        compared = compare_pairs(
            pairs,
            folds=_FOLDS,
            bootstrap=_RESAMPLES,
            seed=seed,
            progress=lambda n, of, _: progress("comparing", n, of),
        )
    return PairsSummary(
        title=shown([name], 80)[0] if name else "",
        pairs=pairs,
        found=found,
        scores=score_rows(pairs, found),
        alpha=float(krippendorff_alpha(crowd).alpha) if shared else None,
        judges=judges,
        compared=compared,
        todo=triage_pairs(pairs, found=found, **limits),
        made={"slencodings": __version__, "seed": str(seed), **(made or {})},
    )


def render_pairs(found: PairsSummary) -> str:
    """One page of what `summarise_pairs` found, as `render` makes of other crowds.

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": list("abab"), "right": list("baba"), "won": list("aaab")}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="won")
    >>> page = render_pairs(summarise_pairs(pairs))
    >>> page[:15], "The order of options" in page
    ('<!doctype html>', True)
    """
    drawn = {name: spec for name, spec in _charts(found).items() if spec is not None}
    made = (section(found, set(drawn)) for section in (_glance, _order, _judges, _compared, _next))
    sections = page_sections(_SECTIONS, [*made, definitions(found.made, "made")])
    return assemble(
        title=f"{found.title} – report" if found.title else "Report of pairs",
        header=_header(found),
        sections=sections,
        # Nothing here is drawn from data by a script but the charts.
        values={
            "items": {"rows": [], "fields": []},
            "annotators": [],
            "leading": {},
            "labels": [],
            "short": [],
        },
        drawn=drawn,
        pictures=[],
    )


def _charts(found: PairsSummary) -> dict[str, Spec | None]:
    ranked = [
        {"name": name, "value": row["score"], "low": row["low"], "high": row["high"]}
        for name, row in zip(_option_names(found), found.scores[:_MOST_RANKED], strict=False)
    ]
    zero: Spec = {"zero": False}
    judges = compared = None
    if isinstance(found.judges, Roster):
        rows = [row for row in found.judges.to_rows() if row["discrimination"] is not None]
        named = zip(_texts(row["annotator"] for row in rows), rows[:_MOST_RANKED], strict=False)
        known = [dot(name, row, "discrimination") for name, row in named]
        title = "tells apart; 0 is guessing"
        judges = dots(known, "judge", title, {"zero": True}, 22) if known else None
    if isinstance(found.compared, Comparison):
        losses = [dot(row["method"], row, "votes") for row in found.compared.rows]
        compared = dots(losses, "method", "log-loss of held-out judgments", zero, 22)
    return {
        "ranking": dots(ranked, "option", "score; the mean of all is 0", zero, 22),
        "wins": _wins(found),
        "discrimination": judges,
        "compared": compared,
    }


def _chances(found: PairsSummary) -> list[list[float | None]]:
    """How often the row would win against the column, a tie counting half; the best first."""
    s = np.asarray([row["score"] for row in found.scores[:MOST_DRAWN]])
    left, tie, _ = np.moveaxis(davidson_chances(s[:, None] - s[None], found.found.log_tie), -1, 0)
    P = left + tie / 2
    return [
        [None if i == j else round(float(P[i, j]), 4) for j in range(len(s))] for i in range(len(s))
    ]


def _wins(found: PairsSummary) -> Spec | None:
    names = _option_names(found)[:MOST_DRAWN]
    off_diagonal = [x for x in square_of(_chances(found)) if x["row"] != x["column"]]
    return heat(off_diagonal, names, "how often", "wins against") if len(names) > 1 else None


def _option_names(found: PairsSummary) -> list[str]:
    return _texts(row["option"] for row in found.scores)


def _texts(names: Any) -> list[str]:
    return shown(list(names), NAME_LETTERS)


def _header(found: PairsSummary) -> Markup:
    a, options = found.pairs.annotations, len(found.pairs.options)
    judges = f" by {counted(len(a.annotators), 'judge')}" if a.named else ""
    lead = f"{counted(len(a.item), 'judgment')} of {counted(options, 'option')}{judges}"
    opening = (_leader(found), _whom(found), _todo(found))
    return page_header(found.title or "Pairs and who judged them", lead, opening, _SECTIONS)


def _leader(found: PairsSummary) -> list[Any]:
    """Who is best, and how surely."""
    names = _option_names(found)
    if len(names) < 2:
        return [tag("a", "One option", href="#order"), " has no order."]
    first, second = found.scores[:2]
    sure = first["low"] > second["high"]
    return [
        tag("a", tag("bdi", names[0], dir="auto"), href="#order"),
        " comes first, ahead of " if sure else " comes first, not for sure ahead of ",
        tag("bdi", names[1], dir="auto"),
        f": of {counted(len(found.todo.items), 'pair')} of options ",
        f"{about(found.todo.errors)} are expected to be in the wrong order.",
    ]


def _whom(found: PairsSummary) -> list[Any]:
    if isinstance(found.judges, str):
        return [tag("a", "Judges", href="#judges"), f": {found.judges}"]
    look = [row for _, row in to_look_at(found.judges.to_rows())]
    if not look:
        return [tag("a", "No judge", href="#judges"), " stands out as one to look at."]
    named = _texts(row["annotator"] for row in look[:5])
    verdicts = [
        f"{plainly(name)} ({row['verdict']})" for name, row in zip(named, look, strict=False)
    ]
    more = f" and {len(look) - 5:,} more" if len(look) > 5 else ""
    return ["Look at ", tag("a", counted(len(look), "judge"), href="#judges"), ": ",
            tag("bdi", ", ".join(verdicts) + more, dir="auto"), "."]  # fmt: skip


def _worthwhile(found: PairsSummary) -> list[OpenItem]:
    """What is planned, but for what would hardly mend anything."""
    return [row for row in found.todo.to_rows() if row["mends"] >= _LEAST_MENDED]


def _todo(found: PairsSummary) -> list[Any]:
    rows = _worthwhile(found)
    if not rows:
        return [tag("a", "Nothing", href="#next"), " that could be asked would change the order."]
    first = tag("bdi", _texts([rows[0]["item"]])[0], dir="auto")
    return ["Compare ", tag("a", first, href="#next"), " next."]


def _glance(found: PairsSummary, drawn: set[str]) -> list[Any]:
    a, todo = found.pairs.annotations, found.todo
    ties = float(np.mean(a.vectors[:, LABELS.index("tie")]))
    left = 1 / (1 + float(np.exp(-np.mean(found.found.side))))
    judges = f"{len(a.annotators):,}" if a.named else "–"
    shown_as_tiles = [
        ("Options", f"{len(found.pairs.options):,}", ""),
        ("Judgments", f"{len(a.item):,}", f"{ties:.0%} of them ties"),
        ("Judges", judges, "" if a.named else "no column names them"),
        ("Left wins", f"{left:.0%}", "among equals, ties aside"),
        (
            "Agreement (alpha)",
            "–" if found.alpha is None else f"{found.alpha:.2f}",
            "no two judged the same" if found.alpha is None else "ordinal, a tie in between",
        ),
        ("Wrong order", about(todo.errors), f"of {counted(len(todo.items), 'pair')}"),
    ]
    judged = (
        "Judges differ in how well they tell options apart, which is taken into account."
        if found.found.judge_spread
        else "Held-out judgments are predicted no better if judges may differ, so all count alike."
    )
    model = (
        "Scores come from Bradley and Terry's model with ties; which side is favoured is learned "
    )
    return [tiles(shown_as_tiles), tag("p", f"{model}and taken out. {judged}")]


def _order(found: PairsSummary, drawn: set[str]) -> list[Any]:
    names, n = _option_names(found), len(found.scores)
    rows = [
        [name, f"{row['score']:.2f}", between(row["low"], row["high"], 2), f"{row['judgments']:,}"]
        for name, row in zip(names, found.scores, strict=True)
    ]
    cut = f" The first {_MOST_RANKED} of {n:,} are drawn." if n > _MOST_RANKED else ""
    some = f" The first {MOST_DRAWN} are drawn." if n > MOST_DRAWN else ""
    chances = _chances(found)
    return [
        tag(
            "div",
            figure(
                drawn,
                "ranking",
                "Scores, and where they lie for sure",
                "The best first. A score that is 1 higher wins 73 of 100 that are no ties; the "
                "lines hold the truth in 95 of 100." + cut,
                table(["Option", "Score", "95% interval", "Judgments"], rows),
            ),
            figure(
                drawn,
                "wins",
                "Who wins against whom",
                "How often the option on the left would be taken for the better than the one on "
                "top, a tie counting half." + some,
                square(names[:MOST_DRAWN], chances, "How often"),
                heat_key(chances),
            ),
            class_="two",
        )
    ]


def _judges(found: PairsSummary, drawn: set[str]) -> list[Any]:
    if isinstance(found.judges, str):
        return [tag("p", found.judges)]
    rows = found.judges.to_rows()
    cells = [
        [
            name,
            row["verdict"],
            _with_interval(row, "discrimination"),
            "–" if row["left_wins"] is None else f"{row['left_wins']:.0%}",
            "–" if row["ties"] is None else f"{row['ties']:.0%}",
            _with_interval(row, "agreement"),
            f"{row['annotations']:,}",
        ]
        for name, row in zip(_texts(row["annotator"] for row in rows), rows, strict=True)
    ]
    heads = ["Judge", "Verdict", "Tells apart", "Left wins", "Ties", "Agreement", "Judgments"]
    return [
        tag("p", "Each judge is held against scores that were learned without them: 1 tells "
            "options apart as the median judge does, 0 is guessing, below 0 is against the others. "
            "Left wins is among equals; agreement is with others on the same two, wherever they "
            "stood. 95% intervals follow the numbers."),
        figure(drawn, "discrimination", "How well judges tell options apart",
               "The worst first. A wide line means too few judgments to tell."),
        table(heads, cells),
        notes(found.judges.notes),
    ]  # fmt: skip


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return "–" if value is None else f"{value:.2f} ({between(low, high, 2)})"


def _compared(found: PairsSummary, drawn: set[str]) -> list[Any]:
    if isinstance(found.compared, str):
        return [tag("p", found.compared)]
    rows = [
        [
            row["method"] + " *" * row["best"],
            f"{row['votes']:.3f}",
            between(row["votes_low"], row["votes_high"]),
            f"{row['new_pairs']:.3f}" if "new_pairs" in row else "–",
        ]
        for row in found.compared.rows
    ]
    return [
        tag("p", "Which way of predicting who wins fits these judges? Each judgment is predicted "
            f"from the others, in {found.compared.about.folds} folds; for new pairs, all "
            "judgments of two options are held out together."),
        figure(drawn, "compared", "How well held-out judgments are predicted",
               " ".join(lessons(found.compared.rows)),
               table(["Method", "Log-loss", "95% interval", "New pairs"], rows)),
        notes(found.compared.notes),
    ]  # fmt: skip


def _next(found: PairsSummary, drawn: set[str]) -> list[Any]:
    rows = _worthwhile(found)[:_MOST_LISTED]
    parts: list[Any] = [tag("p", " ".join(found.todo.summary().splitlines()[1:]))]
    if rows:
        names = _texts(row["item"] for row in rows)
        cells = [
            [name, f"{row['planned']:,}",
             ", ".join(map(plainly, row["annotators"])) or "somebody new", row["reason"]]
            for name, row in zip(names, rows, strict=True)
        ]  # fmt: skip
        parts.append(table(["Compare", "Times", "By", "Why"], cells, names=["By"]))
    command = tag("code", "sle triage --pairwise LEFT,RIGHT,WINNER --budget N")
    return [*parts, tag("p", command, " plans for a budget and lists all twos.", class_="note")]

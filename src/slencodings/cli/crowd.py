"""The verbs that look at a whole crowd."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from slencodings.cli.command import prices
from slencodings.cli.messages import spelled
from slencodings.cli.on_a_crowd import Found, Read, echo, on_a_crowd, show

if TYPE_CHECKING:
    from slencodings.files.crowd import ReadCrowd
    from slencodings.files.write import AnyRow
    from slencodings.kinds.pairs import Pairs
    from slencodings.triage.status import Limits
    from slencodings.trust.weighed import Weighed


@on_a_crowd
def compare(
    read: Read,
    *,
    pairwise: str | None = None,
    gold: str | None = None,
    scored: str | None = None,
    methods: list[str] | None = None,
    folds: int = 5,
    bootstrap: int = 1000,
    max_annotations: int = 200_000,
    seed: int | None = None,
) -> Found:
    """Show which encoding fits this crowd, on votes that were held out.

    Voting, models of annotators and SLE each predict every annotation from the others on its item,
    with all that they learn taken from other items. With --gold, also how right they are. With
    --pairwise, shares of wins and Bradley-Terry's models predict judgments of pairs.
    """
    from slencodings.evaluation import compare as compared
    from slencodings.evaluation import compare_pairs
    from slencodings.evaluation.text import SPARE, columns, head, lessons

    def tell(done: int, total: int, name: str) -> None:
        read.progress("comparing", done, total, "fits")

    if pairwise is not None:
        pairs = read.pairs(pairwise, {"--gold": gold, "--scored": scored})
        score = partial(compare_pairs, pairs)
    else:
        crowd = read.crowd(gold=gold, scored=scored)
        score = partial(
            compared,
            crowd.annotations,
            gold=crowd.truth,
            scored=crowd.scored,
            sets=crowd.sets,
            max_annotations=max_annotations,
        )
    found = score(
        methods=methods or None, folds=folds, bootstrap=bootstrap, seed=seed or 0, progress=tell
    )
    for note in found.notes:
        read.say("note", note)

    def shown() -> None:
        echo(head(found.about) + "\n")
        show(*columns(found.rows), SPARE)
        echo("\n" + "\n".join(lessons(found.rows)))

    return Found(found.rows, found.about._asdict() | {"notes": found.notes}, shown)


@on_a_crowd
def reliability(
    read: Read,
    *,
    pairwise: str | None = None,
    scored: str | None = None,
    time: str | None = None,
    sort: str = "verdict",
    all: bool = False,
    groups: int = 20,
    seed: int | None = None,
) -> Found:
    """Show whom to trust: a verdict on each annotator and why, the worst first.

    How often they are right above chance, whether they are as sure as they should be, and what
    they confuse. No gold labels are needed: what is true is learned from the crowd. With
    --pairwise, how well each judge tells options apart, and which side they favour.
    """
    from slencodings.annotators import describe_annotators, describe_judges
    from slencodings.annotators.estimates import ESTIMATES

    def tell(done: int, total: int) -> None:
        read.progress("estimating", done, total, "")

    if pairwise is not None:
        not_of_pairs = {
            "--scored": scored,
            "--time": time,
            "--all": all,
            "--sort": sort != "verdict",
        }
        judges = describe_judges(read.pairs(pairwise, not_of_pairs), rng=seed or 0, progress=tell)
        about: AnyRow = {"notes": judges.notes, "seed": seed or 0}
        return Found(judges.to_rows(), about, lambda: echo(str(judges)))
    crowd = read.crowd(scored=scored, time=time or False)
    # Of labels in an order kappa weighs steps, which plain agreement does not see.
    usual = ("agreement", "kappa") if crowd.annotations.ordered else ("agreement",)
    roster = describe_annotators(
        crowd.annotations,
        scored=crowd.scored,
        time=crowd.times,
        estimates=ESTIMATES if all else usual,
        sort=sort,
        groups=groups,
        rng=seed or 0,
        progress=tell,
    )
    option = spelled("confidence_scale")
    in_options = [note.replace("`confidence_scale`", option) for note in roster.notes]
    roster = replace(roster, notes=in_options)
    levels = [level._asdict() for level in roster.levels]
    about: AnyRow = {"notes": roster.notes, "levels": levels, "seed": seed or 0}
    return Found(roster.to_rows(), about, lambda: echo(str(roster)))


def _weigh(read: Read, crowd: ReadCrowd, seed: int | None) -> Weighed:
    """What the annotations of a crowd are worth: by their reliability, or learned."""
    from slencodings.trust import weigh

    return weigh(
        crowd.annotations,
        scored=crowd.scored,
        seed=seed or 0,
        progress=lambda done, total: read.progress("learning", done, total, ""),
    )


@on_a_crowd
def groups(
    read: Read,
    *,
    group: str,
    scored: str | None = None,
    limit: int = 20,
    seed: int | None = None,
) -> Found:
    """Compare groups of annotators: how far they differ for sure, and about which items.

    Groups differ as far as answers of two of them differ more often than answers within one. A row
    for each item and two groups, those first whose opinions conflict most.
    """
    from slencodings.annotators import compare_groups

    crowd = read.crowd(scored=scored, group=group)
    weighed = _weigh(read, crowd, seed)
    found = compare_groups(crowd.annotations, crowd.group or [], crowd=weighed.crowd)
    rows = found.to_rows()
    about: AnyRow = {
        "groups": dict(zip(found.names, found.annotators, strict=True)),
        "pairs": [pair._asdict() for pair in found.pairs],
        "advice": found.in_words(),
        "seed": seed or 0,
    }

    def shown() -> None:
        sizes = zip(found.names, found.annotators, strict=True)
        echo("Annotators: " + ", ".join(f"{name} {n:,}" for name, n in sizes) + "\n")
        echo("\n".join(found.in_words()))
        if rows:
            echo("\nWhat divides them most (1: both sure, and of nothing in common)")
            show(
                ["item", "conflict", "group", "says", "group", "says"],
                [
                    [
                        str(row["item"]),
                        f"{row['conflict']:.2f}",
                        str(row["left"]),
                        f"{row['left_says']} ({row['left_probability']:.0%})",
                        str(row["right"]),
                        f"{row['right_says']} ({row['right_probability']:.0%})",
                    ]
                    for row in rows[:limit]
                ],
            )

    return Found(rows, about, shown)


@on_a_crowd
def triage(
    read: Read,
    *,
    pairwise: str | None = None,
    budget: float = 100,
    capacity: int | None = None,
    costs: str | None = None,
    least_votes: int = 2,
    least_probability: float = 0.9,
    conflict: float = 0.25,
    scored: str | None = None,
    limit: int = 20,
    seed: int | None = None,
) -> Found:
    """Say what is settled and why not, what to annotate next and by whom, and what that mends.

    What is true and who is right are learned from the crowd; --reliability COLUMN is taken instead.
    With --pairwise, which two to compare next for the order of all.
    """
    from slencodings.triage import triage as sorted_out
    from slencodings.triage import triage_pairs
    from slencodings.triage.status import Limits

    price_of = None if costs is None else prices(costs)
    limits = Limits(least_votes, least_probability, conflict)._asdict()
    if pairwise is not None:
        from slencodings.aggregate import bradley_terry

        pairs = read.pairs(pairwise, {"--scored": scored})
        plan = partial(triage_pairs, pairs, found=bradley_terry(pairs, rng=seed or 0))
    else:
        crowd = read.crowd(scored=scored)
        weighed = _weigh(read, crowd, seed)
        if weighed.source == "alike":
            alike = "no item has two annotations to learn from; each annotation is one count"
            read.say("note", alike)
        plan = partial(sorted_out, crowd.annotations, weighed=weighed)
    found = plan(budget=budget, capacity=capacity, costs=price_of, **limits)
    about: AnyRow = {
        **limits,
        "budget": budget,
        "spent": found.spent,
        "errors": found.errors,
        "errors_after": found.errors_after,
        "next_mends": found.next_mends,
        "seed": seed or 0,
    }

    def shown() -> None:
        echo(found.summary() + "\n")
        show(*found.table(limit), ("why", "mends", "by whom"))
        if (more := int((found.planned > 0).sum()) - limit) > 0:
            echo(f"\n{more:,} more planned; -o plan.csv has them all, --limit shows more.")

    return Found(found.to_rows(), about, shown)


@on_a_crowd
def report(
    read: Read,
    *,
    output: str,
    pairwise: str | None = None,
    text: str | None = None,
    show: list[str] | None = None,
    gold: str | None = None,
    time: str | None = None,
    scored: str | None = None,
    least_votes: int = 2,
    least_probability: float = 0.9,
    conflict: float = 0.25,
    seed: int | None = None,
) -> Found:
    """Make one page to look at: what is known, whom to look at, what to do next.

    It is one file that opens from disk, needs no network and prints well. What is true and who is
    right are learned from the crowd; --reliability COLUMN is taken instead. With --pairwise, the
    order of options.
    """
    from slencodings.report.render import chart_library, check_page, write_page
    from slencodings.triage.status import Limits

    check_page(output, read.source)
    chart_library()

    def tell(what: str, done: int, total: int) -> None:
        read.progress(what, done, total, "steps")

    page = _Page(
        limits=Limits(least_votes, least_probability, conflict),
        seed=seed or 0,
        name=", ".join("standard input" if name == "-" else name for name in read.source),
        noted=read.noted,
        progress=tell,
    )
    if pairwise is not None:
        of_crowds = {"--text": text, "--show": show, "--gold": gold, "--time": time}
        draw = _page_of_pairs(page, read.pairs(pairwise, of_crowds | {"--scored": scored}))
    else:
        crowd = read.crowd(
            gold=gold,
            show=[*([text] if text else []), *(show or [])],
            scored=scored,
            time=time or True,
            sources=None if scored is None else (),
        )
        draw = _page_of_crowd(page, crowd, text, show or [])
    read.progress("drawing", 0, None, "")
    written = write_page(draw(), output)
    read.say("wrote", f"{output}: a page of {written}, to open in a browser")
    return Found([], {}, lambda: None)


class _Page(NamedTuple):
    """What all pages have: what is settled, and what people were told while it was read."""

    limits: Limits
    seed: int
    name: str
    noted: list[str]
    progress: Callable[[str, int, int], None]

    def made(self) -> dict[str, str]:
        """How it was made, once all is read."""
        noted = {"noted while reading": ". ".join(self.noted)} if self.noted else {}
        return {"command": shlex.join(["sle", *sys.argv[1:]]), **noted}


def _page_of_pairs(page: _Page, pairs: Pairs) -> Callable[[], str]:
    """What draws a page of options that were compared."""
    from slencodings.report import render_pairs, summarise_pairs

    found = summarise_pairs(
        pairs,
        **page.limits._asdict(),
        seed=page.seed,
        name=page.name,
        made=page.made(),
        progress=page.progress,
    )
    return partial(render_pairs, found)


def _page_of_crowd(
    page: _Page, crowd: ReadCrowd, text: str | None, show: list[str]
) -> Callable[[], str]:
    """What draws a page of items, with the fields of each that are to be seen."""
    from slencodings.report import render, summarise

    found = summarise(
        crowd.annotations,
        text=(text, crowd.fields[text]) if text else None,
        fields={name: crowd.fields[name] for name in show},
        gold=crowd.truth,
        scored=crowd.scored,
        times=crowd.times,
        sources=crowd.confidence(),
        sets=crowd.sets,
        questions=crowd.questions,
        **page.limits._asdict(),
        seed=page.seed,
        name=page.name,
        made=page.made(),
        progress=page.progress,
    )
    return partial(render, found)

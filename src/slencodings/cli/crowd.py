"""The verbs that look at a whole crowd, and what they share: its options, and their rows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from slencodings.cli import options as o
from slencodings.cli.terminal import echo, show
from slencodings.progress import Progress, Say, notes

if TYPE_CHECKING:
    from slencodings.files.crowd import Crowd
    from slencodings.files.write import Row
    from slencodings.kinds.pairs import Pairs
    from slencodings.tables.roles import Reading


class Found(NamedTuple):
    """What a verb found: rows for a file, how they were made, and how to show them to people."""

    rows: Sequence[Row]
    about: Row
    show: Callable[[], None]


class Read(NamedTuple):
    """Reads the crowd when called, and what to tell people."""

    source: list[str]
    crowd: Callable[..., Crowd]
    pairs: Callable[[list[str]], Pairs]
    say: Say
    progress: Progress

    def __call__(
        self,
        gold: str | None = None,
        show: Sequence[str] = (),
        scored: str | None = None,
        group: str | None = None,
        time: str | bool = False,
        sources: Sequence[str] | None = None,
        learned: bool = True,
    ) -> Crowd:
        """What the file tells, as `read_crowd` does."""
        return self.crowd(
            gold=gold,
            show=show,
            scored=scored,
            group=group,
            time=time,
            sources=sources,
            learned=learned,
        )


def _pairs(read: Read, columns: str, others: Mapping[str, object]) -> Pairs:
    """The pairs of a file; refuses options that make no sense of pairs."""
    for option, value in others.items():
        if value:
            raise typer.BadParameter(
                "it is not for `--pairwise`. Leave one of them out.", param_hint=option
            )
    return read.pairs(o.words(columns) or [])


def _options(
    source: o.In,
    output: o.RowsOut = None,
    csv_style: o.Style = "plain",
    *,
    reading: Reading,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """The options of all verbs, for `on_a_crowd`."""


def on_a_crowd(verb: Callable[..., Found]) -> Callable[..., None]:
    """A command from a verb: with the options by which a crowd is read, and its rows written.

    A verb that has an `output` of its own writes that itself.
    """
    _, *own = o.parameters(verb)
    names = {p.name for p in own}
    names |= {"csv_style"} if "output" in names else set[str]()
    *shared, quiet, verbose = (p for p in o.parameters(_options) if p.name not in names)

    def run(source: list[str], reading: Reading, quiet: bool, verbose: bool, **given: Any) -> None:
        from slencodings.annotations import counted
        from slencodings.files.crowd import read_crowd
        from slencodings.files.pairs import read_pairs
        from slencodings.files.write import check_rows_target, write_rows

        output = None if "output" in names else given.pop("output")
        style = given.pop("csv_style", "plain")
        if output is not None:
            check_rows_target(output, source, style)
        with notes(quiet) as (say, progress):
            crowd = partial(read_crowd, source, reading, say=say, progress=progress)
            pairs = partial(read_pairs, source, reading=reading, say=say)
            found = verb(Read(source, crowd, pairs, say, progress), **given)
            if output is not None:
                write_rows(found.rows, output, found.about, style)
                if output != "-":
                    say("wrote", f"{output}: {counted(len(found.rows), 'row')}")
        if output is None:
            found.show()

    return o.as_command(verb, run, [*shared, *own, quiet, verbose])


@on_a_crowd
def compare(
    read: Read,
    *,
    pairwise: o.Pairwise = None,
    gold: o.Gold = None,
    scored: o.Scored = None,
    methods: o.Methods = None,
    folds: o.Folds = 5,
    bootstrap: o.Bootstrap = 1000,
    seed: o.Seed = None,
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

    settings: Any = {"folds": folds, "bootstrap": bootstrap, "seed": seed or 0, "progress": tell}
    if pairwise is not None:
        pairs = _pairs(read, pairwise, {"--gold": gold, "--scored": scored})
        found = compare_pairs(pairs, methods=methods or None, **settings)
    else:
        crowd = read(gold, scored=scored)
        found = compared(
            crowd.annotations,
            gold=crowd.truth,
            scored=crowd.scored,
            sets=crowd.sets,
            methods=methods or None,
            **settings,
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
    pairwise: o.Pairwise = None,
    scored: o.Scored = None,
    time: o.Time = None,
    sort: o.SortBy = "verdict",
    all: o.AllEstimates = False,
    groups: o.Groups = 20,
    seed: o.Seed = None,
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
        others = {"--scored": scored, "--time": time, "--all": all, "--sort": sort != "verdict"}
        judges = describe_judges(_pairs(read, pairwise, others), rng=seed or 0, progress=tell)
        told: Row = {"notes": judges.notes, "seed": seed or 0}
        return Found(judges.to_rows(), told, lambda: echo(str(judges)))
    crowd = read(scored=scored, time=time or False)
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
    levels = [level._asdict() for level in roster.levels]
    about: Row = {"notes": roster.notes, "levels": levels, "seed": seed or 0}
    return Found(roster.to_rows(), about, lambda: echo(str(roster)))


@on_a_crowd
def groups(
    read: Read,
    *,
    group: o.Group,
    scored: o.Scored = None,
    limit: o.Limit = 20,
    seed: o.Seed = None,
) -> Found:
    """Compare groups of annotators: how far they differ for sure, and about which items.

    Groups differ as far as answers of two of them differ more often than answers within one. A row
    for each item and two groups, those first whose opinions conflict most.
    """
    from slencodings.annotators import compare_groups
    from slencodings.trust import weigh

    crowd = read(scored=scored, group=group)
    weighed = weigh(
        crowd.annotations,
        scored=crowd.scored,
        seed=seed or 0,
        progress=lambda done, total: read.progress("learning", done, total, ""),
    )
    found = compare_groups(crowd.annotations, crowd.group or [], crowd=weighed.crowd)
    rows = found.to_rows()
    about: Row = {
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
    pairwise: o.Pairwise = None,
    budget: o.Budget = 100,
    capacity: o.Capacity = None,
    costs: o.Costs = None,
    least_votes: o.LeastVotes = 2,
    least_probability: o.LeastProbability = 0.9,
    conflict: o.LeastConflict = 0.25,
    scored: o.Scored = None,
    limit: o.Limit = 20,
    seed: o.Seed = None,
) -> Found:
    """Say what is settled and why not, what to annotate next and by whom, and what that mends.

    What is true and who is right are learned from the crowd; --reliability COLUMN is taken instead.
    With --pairwise, which two to compare next for the order of all.
    """
    from slencodings.triage import triage as sorted_out
    from slencodings.triage import triage_pairs
    from slencodings.trust import weigh

    settings: Any = {
        "budget": budget,
        "capacity": capacity,
        "costs": None if costs is None else o.prices(costs),
        "least_votes": least_votes,
        "least_probability": least_probability,
        "conflict": conflict,
    }
    if pairwise is not None:
        from slencodings.aggregate import bradley_terry

        pairs = _pairs(read, pairwise, {"--scored": scored})
        found = triage_pairs(pairs, found=bradley_terry(pairs, rng=seed or 0), **settings)
    else:
        crowd = read(scored=scored)
        weighed = weigh(
            crowd.annotations,
            scored=crowd.scored,
            seed=seed or 0,
            progress=lambda done, total: read.progress("learning", done, total, ""),
        )
        if weighed.source == "alike":
            alike = "no item has two annotations to learn from; each annotation is one count"
            read.say("note", alike)
        found = sorted_out(crowd.annotations, weighed=weighed, **settings)
    about: Row = {
        "least_votes": least_votes,
        "least_probability": least_probability,
        "conflict": conflict,
        "budget": budget,
        "spent": found.spent,
        "errors": found.errors,
        "errors_after": found.errors_after,
        "next_mends": found.next_mends,
        "seed": seed or 0,
    }

    def shown() -> None:
        echo(found.summary() + "\n")
        show(*found.table(limit), ("mends", "by whom"))

    return Found(found.to_rows(), about, shown)


@on_a_crowd
def report(
    read: Read,
    *,
    output: o.PageOut,
    text: o.ItemText = None,
    show: o.ItemFields = None,
    gold: o.Gold = None,
    time: o.PageTime = None,
    scored: o.Scored = None,
    least_votes: o.LeastVotes = 2,
    least_probability: o.LeastProbability = 0.9,
    conflict: o.LeastConflict = 0.25,
    seed: o.Seed = None,
) -> Found:
    """Make one page to look at: what is known, whom to look at, what to do next.

    It is one file that opens from disk, needs no network and prints well. Without a column of
    reliability, who is right is learned from the crowd.
    """
    from slencodings.report.page import make_page

    make_page(
        read,
        output,
        text=text,
        show=show or [],
        gold=gold,
        time=time,
        scored=scored,
        command=shlex.join(["sle", *sys.argv[1:]]),
        least_votes=least_votes,
        least_probability=least_probability,
        conflict=conflict,
        seed=seed or 0,
    )
    return Found([], {}, lambda: None)

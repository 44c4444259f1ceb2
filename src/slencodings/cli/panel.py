"""The verb that asks whether models are worth having beside people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slencodings.choices import Alignment
from slencodings.cli.command import prices, words
from slencodings.cli.on_a_crowd import Found, Read, echo, on_a_crowd, show

if TYPE_CHECKING:
    from slencodings.files.crowd import ReadCrowd


@on_a_crowd
def panel(
    read: Read,
    *,
    scored: str | None = None,
    models: str | None = None,
    costs: str | None = None,
    targets: str | None = None,
    sources: str | None = None,
    alignment: Alignment = "accuracy",
    epsilon: float = 0.2,
    folds: int = 5,
    bootstrap: int = 1000,
    seed: int | None = None,
) -> Found:
    """Say whether language models are worth having beside people, and which.

    People's votes on held-out items are predicted by people alone and with models. Also: what each
    model adds, how many effective votes they have, whether one may stand in for a person, and
    beside how many people they help.
    """
    from slencodings.files.rows import check_rows_target
    from slencodings.panel import describe_panel
    from slencodings.panel.rows import advice, head, tables

    price_of = None if costs is None else prices(costs)
    if targets is not None:
        check_rows_target(targets, read.source, "plain")
    crowd, people = _sides(read, scored, models, words(sources) or [])
    found = describe_panel(
        crowd.annotations,
        people=people,
        costs=price_of,
        alignment=alignment,
        epsilon=epsilon,
        sources=crowd.confidence(),
        folds=folds,
        bootstrap=bootstrap,
        seed=seed or 0,
        progress=lambda done, total: read.progress("comparing", done, total, "fits"),
    )
    if targets is not None:
        _write_targets(read, crowd, people, targets, folds=folds, seed=seed or 0)

    def shown() -> None:
        echo("\n".join(advice(found)))
        echo("\n" + head(found))
        for title, (heads, cells) in tables(found):
            echo(f"\n{title}")
            show(heads, cells, ("family", "answers", "votes", "interval", "its interval"))

    about = found.about._asdict() | {"advice": advice(found), "share": found.share}
    return Found(found.to_rows(), about, shown)


def _sides(
    read: Read, people: str | None, models: str | None, sources: list[str]
) -> tuple[ReadCrowd, Any]:
    """The crowd and who of it is a person, (M,)."""
    import numpy as np

    if (people is None) == (models is None):
        raise ValueError(
            "a panel needs either `scored` or `models`, so that the others are known; "
            f"{'both' if people is not None else 'neither'} came. For example "
            "models=['gpt*', 'llama*'] or, where a column says who is a person, "
            "scored='kind=person'."
        )

    def say(what: str, text: str) -> None:
        if what != "scored":  # The votes predicted are people's, and the answer counts them.
            read.say(what, text)

    try:
        crowd = read.crowd(scored=models if people is None else people, sources=sources, say=say)
    except ValueError as error:
        # One parser reads both; what it says is about the option that was typed.
        message = str(error)
        raise ValueError(message if people else message.replace("`scored`", "`models`")) from None
    chosen = set(crowd.scored or [])
    named = np.asarray([name in chosen for name in crowd.annotations.annotators.tolist()])
    return crowd, named if models is None else ~named


def _write_targets(
    read: Read, crowd: ReadCrowd, people: Any, target: str, *, folds: int, seed: int
) -> None:
    """A row for each item: what people would say, by people alone and with models."""
    from slencodings.annotations import counted
    from slencodings.files.rows import write_rows
    from slencodings.panel import learn_panel

    a = crowd.annotations
    learned = learn_panel(
        a,
        people=people,
        folds=folds,
        seed=seed,
        progress=lambda done, total: read.progress("learning", done, total, "fits"),
    )
    with_models, alone = learned.votes(a), learned.votes_of_people(a)
    rows: list[dict[str, object]] = []
    for i, item in enumerate(a.items.tolist()):
        row: dict[str, object] = {"item": item}
        for name, opinion in (("", with_models), ("people_", alone)):
            row[f"{name}uncertainty"] = float(opinion.uncertainty[i])
            chances = opinion.probability[i].tolist()
            row |= {
                f"{name}probability_{label}": p
                for label, p in zip(a.labels.tolist(), chances, strict=True)
            }
        rows.append(row)
    write_rows(rows, target, {"share": learned.share, "gain": learned.gain, "seed": seed})
    share = f"{learned.share:.0%} of each target by people with models, the rest by people alone"
    read.say("wrote", f"{target}: {counted(len(rows), 'item')}, {share}")

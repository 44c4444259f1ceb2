"""The story of the library, told on the terminal with the embedded crowd."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from slencodings.annotators import describe_annotators
from slencodings.datasets import DigitsCrowd, crowd_table, digits_crowd
from slencodings.evaluation import compare
from slencodings.evaluation.rows import Row
from slencodings.opinion import Opinion
from slencodings.progress import Progress
from slencodings.trust import Crowd, learn_crowd

Say: TypeAlias = Callable[[str], None]
_LEARNED = "learned crowd"
_METHODS = ["majority vote", "soft votes", "SLE, one count each", _LEARNED]
# Images on which encodings are compared: enough to learn from, and too few.
_MANY, _FEW = 600, 24


def tell(seed: int, save: str | None = None, say: Say = print) -> None:
    """Show the crowd and one hard image, and answer three questions; all of it is computed."""
    if save is not None:
        _check_name(save)
    crowd = digits_crowd(rng=seed)
    a = crowd.annotations
    per_item = len(a.item) // len(a.items)
    say(
        f"{len(a.items):,} handwritten digits, read by {len(a.annotators)} people, "
        f"{per_item} of them each: {len(a.item):,} annotations.\n"
        f"The images are real; the people are simulated (seed {seed}), so we know how reliable "
        "they are."
    )
    learned = learn_crowd(a, rng=seed)
    votes = learned.votes(a)
    _one_image(crowd, votes, _hardest(votes), say)
    many, few = (_compared(crowd, size, seed) for size in (_MANY, _FEW))
    say(f"\n1. What would people say? (votes held out, on {_MANY} of the images)\n")
    say(_table_of_scores(many, {"log-loss of votes": "votes", "several together": "joint"}))
    say("\n2. What is true? (against what was written)\n")
    say(
        _table_of_scores(
            many, {"right": "accuracy", "log-loss of truth": "truth", "too sure": "too_sure"}
        )
    )
    say("\n3. Whom to trust?\n")
    say(_worst_and_best(crowd, learned))
    say("\nDoes it pay to learn whom to trust, if votes are to be predicted?")
    say(f"  On {_MANY} images: {_verdict(many)}")
    say(f"  On {_FEW} images: {_verdict(few)}")
    name = shlex.quote(save) if save is not None else "crowd.csv"
    if save is not None:
        _save(crowd, Path(save))
        say(f"\nThe crowd is in {save}. Now type:")
    else:
        say(
            "\nThe same on a table of your own, or on this crowd after `sle demo --save crowd.csv`:"
        )
    say(f"  sle encode {name} -o targets.parquet")
    say(f"  sle reliability {name}")


def _compared(crowd: DigitsCrowd, size: int, seed: int) -> list[Row]:
    """How well encodings do on so many of the images."""
    a = crowd.annotations.rows(crowd.annotations.item < size)
    some = replace(a, items=a.items[:size])
    gold = crowd.gold[:size]
    return compare(some, gold=gold, methods=_METHODS, folds=3, bootstrap=300, seed=seed).rows


def _table_of_scores(rows: list[Row], columns: Mapping[str, str]) -> str:
    """The methods and some of their scores; in what tells no doubt as if certain."""
    lines = [f"  {'':22}" + "".join(f"{head:>19}" for head in columns)]
    for row in rows:
        values: list[Any] = [row.get(name) for name in columns.values()]
        cells = "".join(f"{'-' if x is None else f'{x:.3f}':>19}" for x in values)
        lines.append(f"  {row['method']:22}{cells}")
    return "\n".join(lines)


def _verdict(rows: list[Row]) -> str:
    """Whether learning who is worth what predicts votes better than counting, for sure."""
    (learned,), plain = (
        [row for row in rows if (row["method"] == _LEARNED) == wanted] for wanted in (True, False)
    )
    best = min(plain, key=lambda row: row["votes"])
    losses = f"{_LEARNED} {learned['votes']:.3f}, {best['method']} {best['votes']:.3f}"
    if learned["best"]:
        return f"yes, for sure ({losses})."
    if best["best"]:
        return f"no, for sure ({losses}): count votes."
    return f"not told apart ({losses}): count votes."


def _worst_and_best(crowd: DigitsCrowd, learned: Crowd) -> str:
    """The worst and the best by what was learned, and how good they are."""
    from scipy.stats import spearmanr

    rows = describe_annotators(crowd.annotations, crowd=learned).to_rows()
    true = dict(zip(crowd.annotations.annotators.tolist(), crowd.reliability.tolist(), strict=True))
    lines = [f"  {'':8}{'verdict':>18}{'above chance':>14}{'in truth reliable':>19}"]
    for row in (*rows[:3], *rows[-3:]):
        above, name = row["above_chance"], row["annotator"]
        lines.append(f"  {name:8}{row['verdict']:>18}{above:>14.2f}{true[name]:>19.2f}")
    pairs = [(row["above_chance"], true[row["annotator"]]) for row in rows]
    order = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    return "\n".join([*lines, f"  Rank correlation with true reliability: {order:.2f}."])


def make_report(
    seed: int,
    page: str,
    progress: Progress = lambda what, done, total, unit: None,
    say: Say = print,
) -> None:
    """Write the page about the crowd, and say where it is."""
    from slencodings.report import render, summarise
    from slencodings.report.render import chart_library, write_page

    try:
        chart_library()
    except ImportError as error:
        say(f"\nThere would be a page to look at, but {error}")
        return
    found = summarise(
        digits_crowd(rng=seed).annotations,
        seed=seed,
        name="Handwritten digits, read by simulated people",
        made={"command": f"sle demo --seed {seed}"},
        progress=lambda what, done, total: progress(what, done, total, "steps"),
    )
    size, where = write_page(render(found), page), Path(page).resolve()
    say(f"\nA page about this crowd, {size}, to open in a browser: {where}")
    say("Of a crowd of yours: sle report crowd.csv -o report.html")


def _hardest(target: Opinion) -> int:
    """The image whose two likeliest readings are closest."""
    best = np.sort(target.belief, axis=-1)
    return int(np.argmin((best[:, -1] - best[:, -2]) / best[:, -1]))


def _one_image(crowd: DigitsCrowd, target: Opinion, i: int, say: Say) -> None:
    a = crowd.annotations
    shades = _shades()
    say(f"\nAn image that people read differently, {a.items[i]}:\n")
    picture = [
        "".join(shades[round(x * (len(shades) - 1))] * 2 for x in row)
        for row in crowd.X[i].reshape(8, 8)
    ]
    notes = ["annotator  says  sure  reliable"] + [
        f"{a.annotators[a.annotator[q]]:<10} {a.labels[a.y[q]]:>4} "
        f"{1 - a.uncertainty[q]:>5.1f} {crowd.reliability[a.annotator[q]]:>9.2f}"
        for q in np.flatnonzero(a.item == i)
    ]
    for k in range(max(len(picture), len(notes))):
        left = picture[k] if k < len(picture) else ""
        say(f"  {left:18} {notes[k] if k < len(notes) else ''}".rstrip())
    say("\nWhat the next person would say, by what was learned of the crowd:\n")
    one = target.rows(i)
    for k in np.argsort(-one.belief)[:3]:
        say(f"  belief in {a.labels[k]}   {one.belief[k]:.2f} {_bar(one.belief[k])}")
    say(f"  uncertainty   {one.uncertainty:.2f} {_bar(one.uncertainty)}")
    say(f"  (it was written as {crowd.gold[i]})")


def _check_name(save: str) -> None:
    from slencodings.files.write import check_target

    if Path(save).suffix.lower() != ".csv":
        raise ValueError(f"the demo crowd is saved as CSV; {save!r} came. Name it crowd.csv.")
    check_target(save, "-")


def _save(crowd: DigitsCrowd, path: Path) -> None:
    from slencodings.files.write import replacing

    table = crowd_table(crowd.annotations, crowd.reliability)
    with replacing(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))


def _shades() -> str:
    """Five shades that the terminal can show."""
    try:
        "░▒▓█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return " .:*#"
    return " ░▒▓█"


def _bar(share: float) -> str:
    return _shades()[-1] * round(30 * share)

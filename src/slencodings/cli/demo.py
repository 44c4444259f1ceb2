"""The story of the library, told on the terminal with the embedded crowd."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings import aggregate, confidence
from slencodings.annotations import Annotations
from slencodings.choices import Objective
from slencodings.confidence import Calibration
from slencodings.datasets import DigitsCrowd, crowd_table, digits_crowd
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.progress import Progress

Say: TypeAlias = Callable[[str], None]
_TRAINED_ON = 1200


class Reading(NamedTuple):
    """How well one way to read the crowd does against what was written."""

    name: str
    accuracy: float
    loss: float
    uncertainty: float | None


def tell(seed: int, save: str | None = None, say: Say = print) -> None:
    """Show the crowd, one hard image, what confidence is worth, and who reads best."""
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
    earned = confidence.calibrate(a)
    calibrated = replace(a, uncertainty=earned(a.confidence))
    target = aggregate.sle(calibrated, reliability=crowd.reliability)
    _one_image(crowd, target, _hardest(target), say)
    say("\nWhat a stated confidence is worth, by how often others said the same:\n")
    say(_indented(str(earned)))
    say("\nWho reads the digits best? (against what was written; lower loss is better)\n")
    say(f"  {'':34} {'accuracy':>9} {'log-loss':>9} {'uncertainty':>12}")
    readings = _contest(crowd, target)
    for name, accuracy, loss, doubt in readings:
        shown = "none" if doubt is None else f"{doubt:.3f}"
        say(f"  {name:34} {accuracy:>9.3f} {loss:>9.3f} {shown:>12}")
    say("\n" + "\n".join(_lessons(readings, earned)))
    _train(crowd, calibrated, seed, say)
    name = shlex.quote(save) if save is not None else "crowd.csv"
    if save is not None:
        _save(crowd, Path(save))
        say(f"\nThe crowd is in {save}. Now type:")
    else:
        say(
            "\nThe same on a table of your own, or on this crowd after `sle demo --save crowd.csv`:"
        )
    say(f"  sle encode {name} -o targets.parquet")
    say(f"  sle compare {name}")


def make_report(
    seed: int,
    page: str,
    progress: Progress = lambda what, done, total, unit: None,
    say: Say = print,
) -> None:
    """Write the page about the crowd, and say where it is."""
    from slencodings.report import render, summarise
    from slencodings.report.page import write_page
    from slencodings.report.render import chart_library

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
    say("\nTheir opinions, discounted by reliability and fused into one:\n")
    one = target.rows(i)
    for k in np.argsort(-one.belief)[:3]:
        say(f"  belief in {a.labels[k]}   {one.belief[k]:.2f} {_bar(one.belief[k])}")
    say(f"  uncertainty   {one.uncertainty:.2f} {_bar(one.uncertainty)}")
    say(f"  (it was written as {crowd.gold[i]})")


def _contest(crowd: DigitsCrowd, target: Opinion) -> list[Reading]:
    a = crowd.annotations
    stated = aggregate.sle(a, reliability=crowd.reliability)
    ways: list[tuple[str, Floats, Any]] = [
        ("majority vote", aggregate.majority_vote(a).probability, None),
        ("soft vote", aggregate.soft_vote(a).probability, None),
        ("SLE, confidence as stated", stated.probability, stated.uncertainty),
        ("SLE, confidence as earned", target.probability, target.uncertainty),
    ]
    return [
        Reading(
            name,
            _accuracy(p, crowd.gold),
            _log_loss(p, crowd.gold),
            None if u is None else float(np.asarray(u).mean()),
        )
        for name, p, u in ways
    ]


def _train(crowd: DigitsCrowd, calibrated: Annotations, seed: int, say: Say) -> None:
    """Train a small network on each target, and ask it about images that it has not seen."""
    try:
        from slencodings.torch import SLEClassifier
    except ImportError:
        say("\nWith PyTorch (pip install 'slencodings[torch]') a network learns from this crowd.")
        return
    order = np.random.default_rng(seed).permutation(len(crowd.gold))
    train, test = order[:_TRAINED_ON], order[_TRAINED_ON:]
    a, one_hot = crowd.annotations, np.eye(len(crowd.annotations.labels))
    opinion = aggregate.sle(calibrated, reliability=crowd.reliability)
    targets: list[tuple[str, Objective, Any]] = [
        ("majority vote", "cross_entropy", aggregate.majority_vote(a).probability[train]),
        ("soft vote", "cross_entropy", aggregate.soft_vote(a).probability[train]),
        ("SLE, confidence as earned", "reverse_kl", opinion.rows(train)),
        ("what was written (gold)", "cross_entropy", one_hot[crowd.gold[train]]),
    ]
    say(
        f"\nA small network learns from {len(train):,} images and reads {len(test):,} others. "
        "Trained on:\n"
    )
    say(f"  {'':34} {'accuracy':>9} {'log-loss':>9} {'uncertainty':>12}")
    for name, objective, target in targets:
        model = SLEClassifier(
            objective=objective, labels=a.labels.tolist(), max_epochs=30, random_state=seed
        )
        guess = model.fit(crowd.X[train], target).predict_opinion(crowd.X[test])
        p, gold = guess.probability, crowd.gold[test]
        doubt = f"{np.mean(guess.uncertainty):.3f}" if objective == "reverse_kl" else "none"
        say(f"  {name:34} {_accuracy(p, gold):>9.3f} {_log_loss(p, gold):>9.3f} {doubt:>12}")


def _lessons(readings: list[Reading], earned: Calibration) -> list[str]:
    """What the numbers above say, whatever they are."""
    most = max(r.accuracy for r in readings)
    least = min(r.loss for r in readings)
    best = " and ".join(r.name for r in readings if r.accuracy == most)
    close = " and ".join(r.name for r in readings if r.loss == least)
    hopeless = " and ".join(r.name for r in readings if r.loss == float("inf"))
    low, high = earned.to_rows()[0], earned.to_rows()[-1]
    lines = [
        f"Right most often: {best}, {most:.1%} of the images.",
        f"Lowest log-loss: {close}, {least:.3f}.",
        f"Those who called themselves {high['level']:g} sure agreed with {high['agreement']:.0%} "
        f"of the others, those who said {low['level']:g} with {low['agreement']:.0%}.",
    ]
    if hopeless:
        lines.append(f"A loss is infinite where what was written got no chance at all: {hopeless}.")
    return [*lines, "Votes do not say how sure they are of an image; opinions do."]


def _accuracy(probability: Floats, gold: Codes) -> float:
    hits: NDArray[np.bool_] = probability.argmax(axis=-1) == gold
    return float(np.mean(hits))


def _log_loss(probability: Floats, gold: Codes) -> float:
    """Mean log-loss; infinite as soon as something that happened was called impossible."""
    p = probability[np.arange(len(gold)), gold]
    return float("inf") if np.any(p == 0) else float(-np.mean(np.log(p)))


def _check_name(save: str) -> None:
    from slencodings.files.encode import check_target

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


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())

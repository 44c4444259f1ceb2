"""Plots: what is drawn is what the numbers are, and the pictures stay as they were looked at.

`python tests/test_plot.py` makes the pictures in tests/images and docs/figures/plot-*.png again.
"""

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from strategies import assert_close, present

from slencodings import Opinion, describe_annotators, discount, encode, from_table, metrics, plot
from slencodings.confidence import calibrate

matplotlib = pytest.importorskip("matplotlib", reason="pip install 'slencodings[plot]'")
mpltern = pytest.importorskip("mpltern", reason="pip install 'slencodings[plot]'")

IMAGES = Path(__file__).parent / "images"
DOCUMENT = Path(__file__).parents[1] / "docs" / "report.md"
DPI = 60

THREE = encode(np.asarray([0.7, 0.2, 0.1]), 0.2)
TWO = encode(np.asarray([0.8, 0.2]), 0.4, base_rate=np.asarray([0.3, 0.7]))
SAID = encode(np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), [0.4, 0.6, 0.5, 0.3])
NAMES = ["ann", "bob", "cyd", "dan"]
MANY = encode(np.random.default_rng(2).dirichlet([0.5] * 4, 5), [0.0, 0.2, 0.5, 0.9, 1.0])


def roster_rows() -> list[dict[str, Any]]:
    rows = []
    for i, who in enumerate([*NAMES, "eve"]):
        x = None if who == "eve" else 0.9 - 0.25 * i
        ends = (None, None) if x is None or who == "dan" else (x - 0.15 + 0.02 * i, x + 0.05)
        rows.append({"annotator": who, "shared_items": 200 - 47 * i, "stated": 0.8 - 0.1 * i})
        rows[-1] |= {"kappa": x, "kappa_low": ends[0], "kappa_high": ends[1]}
        rows[-1] |= {"earned": None if x is None else x - 0.25 * i}
    return rows


def compared_rows() -> list[dict[str, Any]]:
    rows = [("SLE, learned", 1.51, 0.0), ("MACE", 1.54, -0.01), ("soft votes", 1.7, 0.1)]
    found: list[dict[str, Any]] = [
        {"method": name, "votes": x, "votes_low": x - 0.05, "votes_high": x + 0.07,
         "behind": x - 1.51, "behind_low": behind, "behind_high": 0.3}
        for name, x, behind in rows
    ]  # fmt: skip
    row = {"method": "majority vote", "votes": np.inf, "votes_low": None, "votes_high": None}
    return [*found, row | {"behind": np.inf, "behind_low": None, "behind_high": None}]


def predicted() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(3), 500)
    y = np.eye(3)[[rng.choice(3, p=p) for p in q]]
    return y, q**2.5 / np.sum(q**2.5, axis=1, keepdims=True)


def levels() -> Any:
    rng = np.random.default_rng(4)
    sure = rng.integers(0, 5, 400) / 4
    right = rng.random(400) < 0.5 + 0.4 * sure
    said = {"item": np.arange(400) // 2, "label": np.where(right, 0, 1), "sure": sure}
    return calibrate(from_table(said, item="item", label="label", confidence="sure"))


PICTURES: dict[str, Callable[..., Any]] = {
    "simplex": lambda **k: plot.simplex(THREE, labels=["cat", "dog", "eel"], **k),
    "simplex-dogmatic": lambda **k: plot.simplex(encode(np.asarray([0.7, 0.2, 0.1])), **k),
    "simplex-vacuous": lambda **k: plot.simplex(encode(np.asarray([0.7, 0.2, 0.1]), 1.0), **k),
    "triangle": lambda **k: plot.triangle(TWO, labels=["yes", "no"], **k),
    "triangle-limits": lambda **k: plot.triangle(
        encode(np.asarray([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), [0.0, 1.0, 0.5]),
        labels=["yes", "no"], names=NAMES[:3], **k,
    ),
    "triangle-path": lambda **k: plot.triangle(
        SAID, labels=["yes", "no"], names=NAMES, path=True, **k
    ),
    "bars": lambda **k: plot.bars(MANY, labels=["cat", "dog", "eel", "fox"], **k),
    "change": lambda **k: plot.change(
        SAID, discount(SAID, [0.3, 0.9, 0.0, 1.0]), labels=["yes", "no"], names=NAMES, **k
    ),
    "reliability": lambda **k: plot.reliability(roster_rows(), **k),
    "comparison": lambda **k: plot.comparison(compared_rows(), **k),
    "calibration": lambda **k: plot.calibration(*predicted(), name="a model", **k),
    "confidence-levels": lambda **k: plot.confidence(levels(), **k),
    "confidence-annotators": lambda **k: plot.confidence(roster_rows(), **k),
}  # fmt: skip


def projection(name: str) -> str | None:
    return "ternary" if name.startswith(("simplex", "triangle")) else None


def texts_of(ax: Any) -> list[Any]:
    found = set(ax.figure.findobj(matplotlib.text.Text))
    for axis in (ax.xaxis, ax.yaxis):  # Ticks out of view are there, but not drawn.
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            found -= set() if low <= tick.get_loc() <= high else {tick.label1, tick.label2}
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def save_without_text(name: str, path: Path) -> None:
    """Letters differ from machine to machine, so words are tested as such."""
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        ax = PICTURES[name]()
        present(ax.get_figure()).canvas.figure.draw_without_rendering()
        for text in texts_of(ax):
            text.set_alpha(0)
        ax.figure.savefig(path, dpi=DPI)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stay_as_they_were_looked_at(name: str, tmp_path: Path) -> None:
    from matplotlib.testing.compare import compare_images

    save_without_text(name, tmp_path / "now.png")
    assert compare_images(str(IMAGES / f"{name}.png"), str(tmp_path / "now.png"), tol=4) is None


def test_another_opinion_is_another_picture(tmp_path: Path, monkeypatch: Any) -> None:
    from matplotlib.testing.compare import compare_images

    other = encode(np.asarray([0.6, 0.3, 0.1]), 0.2)
    monkeypatch.setitem(PICTURES, "simplex", lambda: plot.simplex(other))
    save_without_text("simplex", tmp_path / "now.png")
    assert compare_images(str(IMAGES / "simplex.png"), str(tmp_path / "now.png"), tol=4) is not None


@pytest.mark.parametrize("name", PICTURES)
def test_no_words_lie_on_one_another_or_outside(name: str) -> None:
    ax = PICTURES[name]()
    ax.figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(ax)]
    assert len(boxes) > 3
    width, height = ax.figure.bbox.size
    for (a, first), (b, second) in itertools.combinations(boxes, 2):
        assert not first.padded(-0.5).overlaps(second.padded(-0.5)), (a, b)
    for word, box in boxes:
        assert box.x0 >= -1, word
        assert box.y0 >= -1, word
        assert box.x1 <= width + 1, word
        assert box.y1 <= height + 1, word


@pytest.mark.parametrize("name", PICTURES)
def test_an_axes_that_came_is_drawn_on_and_returned(name: str) -> None:
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    one, other = Figure().subplots(1, 2, subplot_kw={"projection": projection(name)})
    assert PICTURES[name](ax=one) is one
    assert one.get_lines() or one.patches
    assert not other.get_lines()
    assert not other.patches
    assert PICTURES[name]().figure is not one.figure
    assert plt.get_fignums() == []


def assert_at(ax: Any, line: Any, *places: Any) -> None:
    """The line goes through these places in the triangle: top, left, right."""
    assert_close(line.get_xydata(), ax.transProjection.transform(np.asarray(places, dtype=float)))


def line_of(ax: Any, colour: str, marker: str) -> Any:
    lines = [x for x in ax.get_lines() if x.get_marker() == marker]
    (line,) = [x for x in lines if colour in (x.get_markerfacecolor(), x.get_color())]
    return line


INK, BLUE, GREY = "#222222", "#0072B2", "#767676"


def test_a_simplex_shows_probability_and_base_rate() -> None:
    opinion = encode(np.asarray([0.7, 0.2, 0.1]), 0.5, base_rate=np.asarray([0.5, 0.3, 0.2]))
    ax = plot.simplex(opinion, labels=["cat", "dog", "eel"])
    assert_at(ax, line_of(ax, INK, "o"), [0.6, 0.25, 0.15])
    assert_at(ax, line_of(ax, "white", "o"), [0.5, 0.3, 0.2])
    assert [text.get_text() for text in ax.texts] == ["cat", "dog", "eel"]


@pytest.mark.parametrize(
    ("y", "u", "W"),
    [
        ([0.7, 0.2, 0.1], 0.2, 3.0),
        ([0.4, 0.3, 0.3], 0.9, 3.0),
        ([0.0, 1.0, 0.0], 0.3, 2.0),  # infinite at an edge
        ([0.5, 0.3, 0.2], 0.003, 3.0),
        ([0.9, 0.05, 0.05], 0.01, 2.0),
        ([0.2, 0.3, 0.5], 1.0, 2.0),
    ],
)
def test_regions_hold_what_they_say(y: list[float], u: float, W: float) -> None:
    from matplotlib.path import Path as Outline

    ax: Any = plot.simplex(encode(np.asarray(y), u), prior_weight=W)
    alpha = W * np.asarray(y) * (1 - u) / u + W / 3
    drawn = np.random.default_rng(0).dirichlet(alpha, 20_000)
    points = ax.transProjection.transform(drawn)
    filled = next(c for c in ax.collections if getattr(c, "filled", False))
    held = []
    for path in filled.get_paths()[::-1]:
        # Inside of an odd number of its outlines: a region may have a hole.
        times = sum(Outline(p).contains_points(points).astype(int) for p in path.to_polygons())
        held.append(np.mean(times % 2 == 1))
    np.testing.assert_allclose(np.cumsum(held), [0.5, 0.8, 0.95], atol=0.02)


def test_certainty_is_a_point_and_ignorance_is_flat() -> None:
    certain = plot.simplex(encode(np.asarray([0.7, 0.2, 0.1])))
    assert not certain.collections
    assert not certain.patches
    assert_at(certain, line_of(certain, INK, "o"), [0.7, 0.2, 0.1])
    ignorant: Any = plot.simplex(encode(np.asarray([0.7, 0.2, 0.1]), 1.0))
    assert not ignorant.collections
    (whole,) = ignorant.patches
    corners = ignorant.transProjection.transform(np.eye(3))
    assert_close(whole.get_xy()[:3], corners)
    nearly = plot.simplex(encode(np.asarray([0.7, 0.2, 0.1]), 1e-9))
    assert not nearly.collections  # narrower than a dot


def test_a_projector_leads_to_the_projected_probability() -> None:
    ax = plot.triangle(TWO, labels=["yes", "no"])
    director, projector = (x for x in ax.get_lines() if x.get_linestyle() in (":", "--"))
    assert_at(ax, projector, [0.4, 0.12, 0.48], [0, 0.4, 0.6])
    assert_at(ax, director, [1, 0, 0], [0, 0.7, 0.3])
    assert_at(ax, line_of(ax, INK, "o"), [0.4, 0.12, 0.48])
    assert [t.get_text() for t in ax.texts] == ["uncertainty", "no", "yes", "0.60"]
    slopes = [np.diff(x.get_xydata(), axis=0)[0] for x in (director, projector)]
    assert_close(slopes[0][0] * slopes[1][1], slopes[0][1] * slopes[1][0])


def test_certain_and_vacuous_opinions_are_at_the_base_and_the_top() -> None:
    ax = PICTURES["triangle-limits"]()
    dots = [x for x in ax.get_lines() if x.get_markerfacecolor() == INK and x.get_marker() == "o"]
    for dot, place in zip(dots, ([0, 0, 1], [1, 0, 0], [0.5, 0.5, 0]), strict=True):
        assert_at(ax, dot, place)


def test_a_path_goes_through_what_is_fused_so_far() -> None:
    ax = PICTURES["triangle-path"]()
    b, u = [Fraction(0), Fraction(0)], Fraction(1)
    places = [(u, b[1], b[0])]
    for c, v in (((6, 0), 4), ((4, 0), 6), ((0, 5), 5), ((7, 0), 3)):  # tenths; Eq. 3 in turn
        c, v = [Fraction(x, 10) for x in c], Fraction(v, 10)
        d = u + v - u * v
        b, u = [(x * v + y * u) / d for x, y in zip(b, c, strict=True)], u * v / d
        places.append((u, b[1], b[0]))
    assert_at(ax, line_of(ax, BLUE, "o"), *places)
    assert_at(ax, line_of(ax, INK, "o"), places[-1])
    said = [[0.4, 0, 0.6], [0.6, 0, 0.4], [0.5, 0.5, 0], [0.3, 0, 0.7]]
    rings = next(x for x in ax.get_lines() if x.get_markeredgecolor() == "#E69F00")
    assert_at(ax, rings, *said)


def widths(ax: Any) -> np.ndarray:
    """(parts, rows), each part of the bars in turn."""
    return np.asarray([[bar.get_width() for bar in part] for part in ax.containers])


def test_bars_are_belief_and_the_gap_is_uncertainty() -> None:
    ax = plot.bars(MANY, labels=["cat", "dog", "eel", "fox"])
    found = widths(ax)
    assert_close(found, np.vstack([MANY.belief.T, MANY.uncertainty]))
    lefts = np.asarray([[bar.get_x() for bar in part] for part in ax.containers])
    assert_close(lefts[1:], np.cumsum(found, axis=0)[:-1])
    shown = [text.get_text() for text in present(ax.get_legend()).get_texts()]
    assert shown == ["cat", "dog", "eel", "fox", "uncertainty"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "1", "2", "3", "4"]
    assert ax.yaxis_inverted()  # the first is on top


def test_labels_beyond_the_colours_are_one_part() -> None:
    b = np.diag(np.arange(1, 11)) / 10.0
    ax = plot.bars(Opinion(b, 1 - b.sum(1), np.full((10, 10), 0.1)), labels=list("abcdefghij"))
    shown = [text.get_text() for text in present(ax.get_legend()).get_texts()]
    assert shown == [*"efghij", "4 other labels", "uncertainty"]
    assert_close(widths(ax).sum(axis=0), np.ones(10))
    assert_close(widths(ax)[6], np.asarray([0.1, 0.2, 0.3, 0.4, *[0.0] * 6]))


def test_a_change_is_two_bars_for_each() -> None:
    after = discount(SAID, [0.3, 0.9, 0.0, 1.0])
    found = widths(plot.change(SAID, after, moments=("as said", "$now$")))
    assert_close(found[:, :4], np.vstack([SAID.belief.T, SAID.uncertainty]))
    assert_close(found[:, 4:], np.vstack([after.belief.T, after.uncertainty]))


def test_arrays_of_other_libraries_are_drawn() -> None:
    class Tensor:
        """As PyTorch's, which must be detached first, and may be of a type that NumPy has not."""

        def __init__(self, values: Any) -> None:
            self.values = np.asarray(values)

        def detach(self) -> Any:
            return self

        def cpu(self) -> Any:
            return self

        def double(self) -> np.ndarray:
            return self.values

    tensors = Opinion(Tensor([0.6, 0.3]), Tensor(0.1), Tensor([0.5, 0.5]))
    assert_close(widths(plot.bars(tensors))[:, 0], np.asarray([0.6, 0.3, 0.1]))


def ends(ax: Any) -> dict[int, tuple[float, float]]:
    lines = [x for x in ax.get_lines() if x.get_linestyle() == "-" and len(x.get_xdata()) == 2]
    return {int(x.get_ydata()[0]): tuple(x.get_xdata()) for x in lines if x.get_ydata()[0] % 1 == 0}


def dots(ax: Any) -> dict[int, float]:
    lines = [x for x in ax.get_lines() if x.get_marker() == "o"]
    return {int(np.asarray(x.get_ydata())[0]): float(x.get_xdata()[0]) for x in lines}


def test_reliability_is_drawn_with_what_is_known() -> None:
    ax, rows = plot.reliability(roster_rows()), roster_rows()
    assert dots(ax) == {y: row["kappa"] for y, row in enumerate(rows[:4])}
    intervals = {y: x for y, x in ends(ax).items() if x[0] != x[1]}
    assert intervals == {y: (r["kappa_low"], r["kappa_high"]) for y, r in enumerate(rows[:3])}
    rings = [x for x in ax.get_lines() if x.get_markerfacecolor() == "white"]
    assert [int(np.asarray(x.get_ydata())[0]) for x in rings] == [3]  # dan has no interval
    words = [text.get_text() for text in ax.texts]
    assert words == ["200", "153", "106", "59", "unknown", "12", "shared items"]
    assert [t.get_text() for t in ax.get_yticklabels()] == [*NAMES, "eve"]


def test_a_roster_is_drawn_as_it_is_and_many_without_their_middle() -> None:
    rng = np.random.default_rng(0)
    said = {"item": np.repeat(np.arange(30), 8), "who": np.tile(np.arange(8), 30)}
    said["label"] = rng.integers(0, 2, 240)
    annotations = from_table(said, item="item", annotator="who", label="label")
    roster = describe_annotators(annotations, estimates=["agreement", "kappa"], groups=0)
    found = dots(plot.reliability(roster))
    assert list(found.values()) == roster.columns["above_chance"]
    few = plot.reliability(roster, estimate="kappa", most=4)
    kappa = roster.columns["kappa"]
    assert dots(few) == {0: kappa[0], 1: kappa[1], 3: kappa[6], 4: kappa[7]}
    assert few.get_yticklabels()[2].get_text() == "… 4 more …"
    assert few.get_xlim()[0] < min(x for x in kappa)


def test_methods_are_drawn_best_first_and_infinite_ones_are_named() -> None:
    ax = plot.comparison(compared_rows()[::-1])
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        *("SLE, learned", "MACE", "soft votes", "majority vote")
    ]
    assert dots(ax) == {0: 1.51, 1: 1.54, 2: 1.7}
    colours = [x.get_markeredgecolor() for x in ax.get_lines() if x.get_marker() == "o"]
    assert colours == [BLUE, BLUE, "#a6a6a6"]
    assert [text.get_text() for text in ax.texts] == ["infinite →"]
    gold = [{"method": m, "accuracy": a, "accuracy_low": 0, "accuracy_high": 1} for m, a in
            (("x", 0.5), ("y", None), ("z", 0.7))]  # fmt: skip
    ax = plot.comparison(gold, score="accuracy")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["z", "x", "y"]
    assert [text.get_text() for text in ax.texts] == ["unknown"]
    assert ax.get_xlabel() == "accuracy on known items (higher is better)"


def test_a_calibration_curve_has_the_error_of_the_metric() -> None:
    truth, prediction = predicted()
    ax = plot.calibration(truth, prediction, bins=7)
    (line,) = [x for x in ax.get_lines() if x.get_gid() == "slencodings curve"]
    said, right = np.transpose(line.get_xydata())
    top = prediction.max(axis=1)
    n = np.asarray([np.sum((top > j / 7) & (top <= (j + 1) / 7)) for j in range(7)])
    n = n[n > 0]
    error = metrics.calibration_error(truth, prediction, bins=7)
    assert_close(np.sum(n * np.abs(said - right)) / n.sum(), np.asarray(error))
    assert present(ax.get_legend()).get_texts()[0].get_text() == f"prediction, error {error:.3f}"
    # Wilson's ends solve (p - share)^2 = z^2 p (1 - p) / n.
    segments = np.asarray(cast(LineCollection, ax.collections[0]).get_segments())
    for p in segments[:, :, 1].T:
        room = 1.959963984540054**2 * p * (1 - p) / n
        assert_close((p - right) ** 2, room, tol=1e-9)


def test_several_curves_share_an_axes() -> None:
    truth, prediction = predicted()
    ax = plot.calibration(truth, prediction, name="_hidden_")
    opinion = encode(prediction, 0.5)
    assert plot.calibration(truth, opinion, name="doubted", ax=ax) is ax
    names = [text.get_text().split(",")[0] for text in present(ax.get_legend()).get_texts()]
    assert names == ["_hidden_", "doubted"]
    assert len({x.get_color() for x in ax.get_lines() if x.get_gid() != "diagonal"}) == 2
    assert sum(x.get_gid() == "diagonal" for x in ax.get_lines()) == 1


def test_confidence_is_drawn_against_what_it_earned() -> None:
    found = levels()
    ax = plot.confidence(found)
    places = np.stack([found.level, 1 - found.uncertainty], axis=-1)
    assert_close(np.asarray(ax.collections[0].get_offsets()), places)
    rows = roster_rows()
    ax = plot.confidence(rows)
    places = np.asarray([[row["stated"], row["earned"]] for row in rows[:4]])
    assert_close(np.asarray(ax.collections[0].get_offsets()), places)
    assert {text.get_text() for text in ax.texts} == set(NAMES)
    assert [t.get_text() for t in plot.confidence(rows, most=1).texts] == ["dan"]
    scores = [row | {"stated": 5 * row["stated"]} for row in rows]
    assert not [x for x in plot.confidence(scores).get_lines() if x.get_gid() == "diagonal"]


def test_names_that_have_no_room_are_left_out() -> None:
    crowd = [{"annotator": f"annotator {i}", "stated": 0.5, "earned": 0.5} for i in range(9)]
    crowd += [{"annotator": "alone", "stated": 0.9, "earned": 0.1}]
    words = [text.get_text() for text in plot.confidence(crowd).texts]
    assert words[0] == "alone"
    assert 1 < len(words) <= 5


HOSTILE = ["$x_1$", "_hidden", "two\nlines", r"\frac{1}{", "x" * 10_000]
SHOWN = ["$x_1$", "_hidden", "two lines", r"\frac{1}{"]


def called(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    return [row | {column: name} for row, name in zip(rows, HOSTILE, strict=False)]


def test_text_of_data_is_no_formula_and_stays_short() -> None:
    drawn = [
        plot.bars(encode(np.eye(5), 0.1), labels=HOSTILE, names=HOSTILE),
        plot.change(*[encode(np.eye(5), 0.1)] * 2, labels=HOSTILE, names=HOSTILE),
        plot.simplex(THREE, labels=HOSTILE[:3]),
        plot.triangle(SAID, labels=HOSTILE[:2], names=HOSTILE[:4]),
        plot.reliability(called(roster_rows(), "annotator")),
        plot.comparison(called(compared_rows(), "method")),
        plot.calibration(*predicted(), name=HOSTILE[0]),
        plot.confidence(called(roster_rows(), "annotator")),
    ]
    for ax in drawn:
        present(ax.get_figure()).canvas.figure.draw_without_rendering()
        texts = [t for t in texts_of(ax) if t.get_text().strip("0123456789.")]
        from_data = [t for t in texts if any(w[:6] in t.get_text() for w in HOSTILE)]
        assert from_data
        assert not any(text.get_parse_math() for text in from_data)
        assert max(len(text.get_text()) for text in texts) < 60
    words = {t.get_text() for t in texts_of(drawn[0])}
    assert set(SHOWN) <= words
    assert f"{'x' * 13}…{'x' * 14}" in words


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no opinion": (
        lambda: plot.bars(cast(Any, [0.5, 0.5])), TypeError, "must be an Opinion; list came",
    ),
    "a bad opinion": (
        lambda: plot.bars(Opinion(np.ones(2), np.asarray(1.0), np.ones(2) / 2)),
        ValueError, "must sum to 1; 1 of 1 opinions do not",
    ),
    "a table of opinions": (
        lambda: plot.bars(encode(np.zeros((2, 2, 2)) + 0.5)),
        ValueError, r"one opinion or a row of them, \(N,\); shape \(2, 2\) came",
    ),
    "none": (lambda: plot.bars(encode(np.zeros((0, 2)))), ValueError, r"shape \(0,\) came"),
    "four labels": (
        lambda: plot.simplex(encode(np.eye(4)[0])),
        ValueError, r"over 3 labels; 4 came. Draw bars\(opinion\) instead",
    ),
    "three of two": (
        lambda: plot.triangle(THREE), ValueError, r"over 2 labels; 3 came. Draw simplex",
    ),
    "two at once": (
        lambda: plot.simplex(encode(np.eye(3))), ValueError, "shows one opinion; 3 came",
    ),
    "ruled out": (
        lambda: plot.simplex(encode(np.eye(3)[0], 0.5, base_rate=np.asarray([0.5, 0.5, 0.0]))),
        ValueError, r"label 2 \(from 0\) has neither",
    ),
    "no weight": (
        lambda: plot.simplex(THREE, prior_weight=0),
        ValueError, "`prior_weight` must be a positive number; 0 came",
    ),
    "two base rates": (
        lambda: plot.triangle(encode(np.eye(2), base_rate=np.eye(2)), path=True),
        ValueError, "a path needs one base rate; 2 came",
    ),
    "too few labels": (
        lambda: plot.bars(MANY, labels=["cat"]), ValueError, "`labels` must name each of the 4; 1",
    ),
    "too many names": (
        lambda: plot.bars(THREE, names=["a", "b"]),
        ValueError, "`names` must name each of the 1; 2 came",
    ),
    "other items": (
        lambda: plot.change(SAID, MANY), ValueError, r"shapes \(4, 2\) and \(5, 4\) came",
    ),
    "one moment": (
        lambda: plot.change(SAID, SAID, moments=cast(Any, "ab")),
        ValueError,
        "two words .* 'ab' came",
    ),
    "no axes": (lambda: plot.bars(SAID, ax=[1]), TypeError, "one axes of matplotlib; list came"),
    "a flat axes": (
        lambda: plot.simplex(THREE, ax=plot.bars(SAID)),
        ValueError, r"a ternary one here; a rectilinear .*projection='ternary'",
    ),
    "a triangular axes": (
        lambda: plot.bars(SAID, ax=plot.simplex(THREE)),
        ValueError, r"a rectilinear one here; a ternary one came.*add_subplot\(\)",
    ),
    "no roster": (lambda: plot.reliability(3), TypeError, "what describe_annotators.*int came"),
    "nobody": (lambda: plot.reliability([]), TypeError, "list came, and it is empty"),
    "no such estimate": (
        lambda: plot.reliability(roster_rows(), estimate="skill"),
        ValueError, "here kappa; 'skill' was wanted, and 5 of 5 rows lack",
    ),
    "one annotator": (
        lambda: plot.reliability(roster_rows(), most=1), ValueError, "at least 2; 1 came",
    ),
    "rows of another": (
        lambda: plot.comparison(roster_rows()), ValueError, "rows of compare have 'method'",
    ),
    "no items": (
        lambda: plot.calibration(np.zeros((0, 2)), np.zeros((0, 2))),
        ValueError, "a curve needs items; none came",
    ),
    "other shapes": (
        lambda: plot.calibration(np.eye(2), np.eye(3)), ValueError, "shape",
    ),
    "no confidence": (lambda: plot.confidence([{"a": 1}]), TypeError, "confidence.calibrate"),
    "nobody stated any": (
        lambda: plot.confidence([r | {"stated": None} for r in roster_rows()]),
        ValueError, "nobody of the 5 annotators stated confidence",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case: str) -> None:
    draw, kind, words = WRONG[case]
    with pytest.raises(kind, match=f"(?s){words}"):
        draw()


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_matplotlib_is_loaded_only_to_draw() -> None:
    code = "import slencodings.plot, sys; print('matplotlib' in sys.modules)"
    assert run(code) == "False\n"


def test_without_the_extra_it_is_said_what_to_install() -> None:
    code = """
import sys; sys.modules["mpltern"] = None
import numpy as np, slencodings as sle
from slencodings import plot
try:
    plot.simplex(sle.encode(np.eye(3)[0]))
except ImportError as error:
    print(error)
"""
    words = r"mpltern is missing. Type: pip install 'slencodings\[plot\]'"
    assert re.search(words, run(code))


BLOCK = re.compile(
    r"```python\n((?:(?!```).)*)```\n+!\[[^\]]*\]\((figures/plot-[\w-]+\.png)\)", re.DOTALL
)


def test_every_figure_of_the_document_is_drawn_by_the_block_before_it() -> None:
    text = DOCUMENT.read_text()
    drawn = BLOCK.findall(text)
    assert len(drawn) == text.count("](figures/plot-") >= 6
    for code, figure in drawn:
        assert re.search(r"^ax = ", code, re.MULTILINE), figure
        assert (DOCUMENT.parent / figure).exists()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name in PICTURES:
        save_without_text(name, IMAGES / f"{name}.png")
    for code, figure in BLOCK.findall(DOCUMENT.read_text()):
        room: dict[str, Any] = {}
        exec(code, room)
        room["ax"].figure.savefig(DOCUMENT.parent / figure, dpi=110)


if __name__ == "__main__":
    main()

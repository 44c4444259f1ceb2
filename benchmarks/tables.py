"""Tables and the figure, made from rows alone."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import aggregate, encode, growth, start, train
from benchmarks.turns import Comparison, Row, by_turn, exponent, limits, ratios, with_spread
from experiments.figures import BLUE, GREEN, GREY, ORANGE, PINK, SKY, STYLE
from experiments.tables import Table, markdown

LIGHT = "#bbbbbb"
Size = dict[str, int | None]
SIZE = ("rows", "labels", "per_item", "annotators")
DRAWN = dict(
    zip(
        (*growth.ENGINES, *growth.METHODS, *growth.VERBS),
        (
            (BLUE, "o", "-"),
            (ORANGE, "^", "-"),
            (GREEN, "s", "--"),
            (PINK, "D", "--"),
            (GREY, "v", "--"),
            (BLUE, "o", ":"),
            (ORANGE, "^", ":"),
            (GREEN, "s", ":"),
            (PINK, "D", ":"),
            (GREY, "v", ":"),
        ),
        strict=True,
    )
)


def parts(rows: list[Row], name: str) -> dict[str, str]:
    """What stands between the marks of the document, by name."""
    of = {question: [row for row in rows if row["question"] == question] for question in QUESTIONS}
    made = {"about": about(rows, name)}
    made |= {part: _text(table(of[part.split(",")[0]])) for part, table in TABLES.items()}
    made["growth"] = "\n\n".join(_text(sweep_table(of["growth"], sweep)) for sweep in growth.SWEEPS)
    return made


def _together(packages: list[str]) -> str:
    """The packages of several environments, each once with all of its versions."""
    versions = dict[str, list[str]]()
    for package in dict.fromkeys(x for text in packages for x in text.split(", ")):
        name, _, version = package.rpartition(" ")
        versions.setdefault(name, []).append(version)
    return ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in versions.items())


def about(rows: list[Row], name: str) -> str:
    """Where, when and with what the rows were measured."""
    dates = sorted(row["date"] for row in rows)
    machines = dict.fromkeys(
        f"{row['machine']}, {row['cores']} cores, Python {row['python']}" for row in rows
    )
    packages = sorted({row["versions"] for row in rows}, key=lambda text: (-len(text), text))
    ours, peers = (
        [text for text in packages if ("slencodings " in text) == own] for own in (True, False)
    )
    when = f"{dates[0]} to {dates[-1]} UTC" if rows else "never"
    return (
        f"`benchmarks/rows/{name}`: {len(rows):,} runs, {when}; {'; '.join(machines)}. "
        f"{_together(ours)}{'. Peers: ' * bool(ours and peers)}{'; '.join(peers)}."
        f"{_by_version(rows)}"
    )


def _by_version(rows: list[Row]) -> str:
    """How many runs of each question are of which version of ours, where there are several."""
    found = defaultdict[str, Counter[str]](Counter)
    for row in rows:
        if version := re.search(r"slencodings ([\d.]+)", row["versions"]):
            found[version[1]][row["question"]] += 1
    told = (
        f"{version} in {', '.join(f'{n:,} of {name}' for name, n in sorted(runs.items()))}"
        for version, runs in sorted(found.items())
    )
    return f" Runs by version: {'; '.join(told)}." if len(found) > 1 else ""


def _text(table: Table) -> str:
    return markdown(table) if table[1] else "Not measured yet: `make bench-full` does."


# -- tables ------------------------------------------------------------------------------------


def engines(rows: list[Row]) -> Table:
    """Every engine against its own group-by, on tables of the usual sizes."""
    heads = ["case", "rows", "seconds", "compared with", "times as slow", "at most"]
    heads += ["times the memory", "at most"]
    cells = []
    for one in encode.COMPARED:
        for size in _sizes(rows, one.case):
            if size["rows"] == encode.MOST:
                continue
            memory = _ratio(rows, one, size, "megabytes")
            cells.append(
                [
                    *(one.case, f"{size['rows']:,}", _median(rows, one.case, size), one.floor),
                    *_limited(_ratio(rows, one, size), one.slow, size, one),
                    *(_limited(memory, one.memory, size, one) if one.memory else ("", "")),
                ]
            )
    return heads, cells


def largest(rows: list[Row]) -> Table:
    """The largest table: seconds, and memory in all."""
    heads = [f"{encode.MOST:,} rows", "seconds", "compared with", "times as slow", "at most"]
    heads += ["peak GB", "at most"]
    cells = []
    for one in encode.LARGE:
        for size in _sizes(rows, one.case):
            if size["rows"] != encode.MOST:
                continue
            peaks = by_turn(rows, one.case, "megabytes", **size)
            gigabytes = [peak / 1000 for peak in peaks.values()]
            most = one.megabytes / 1000 if one.megabytes else None
            cells.append(
                [
                    *(one.case, _median(rows, one.case, size), one.floor),
                    *_limited(_ratio(rows, one, size), one.slow, size, one),
                    *_limited(gigabytes, most, size, one),
                ]
            )
    return heads, cells


def sweep_table(rows: list[Row], sweep: growth.Sweep) -> Table:
    """Seconds at each size, and the exponent; what is not swept is as in the middle."""
    sizes = sorted({size for case in sweep.cases for size in swept(rows, sweep, case)})
    heads = [sweep.words, *(f"{size:,}" for size in sizes), "exponent"]
    heads += ["bytes per further annotation"] if sweep.column == "rows" else []
    cells = []
    for case in sweep.cases:
        found = swept(rows, sweep, case)
        if not found:
            continue
        medians = {size: statistics.median(by.values()) for size, by in found.items()}
        cells.append([case, *(_short(medians[n]) if n in medians else "" for n in sizes)])
        cells[-1].append(with_spread(exponents(rows, sweep, case)))
        if sweep.column == "rows":
            cells[-1].append(_bytes(swept(rows, sweep, case, "megabytes")))
    return heads, cells


def swept(
    rows: list[Row], sweep: growth.Sweep, case: str, what: str = "seconds"
) -> dict[int, dict[int, float]]:
    """What a case took by turn, at each size of a sweep."""
    fixed = {name: value for name, value in sweep.fixed.items() if name != sweep.column}
    sizes = sorted({row[sweep.column] for row in rows if row["case"] == case})
    found = {n: by_turn(rows, case, what, **fixed, **{sweep.column: n}) for n in sizes}
    return {n: by for n, by in found.items() if by}


def exponents(rows: list[Row], sweep: growth.Sweep, case: str) -> list[float]:
    """One of each turn, over the upper decades; none of a turn that has one size there."""
    found = {n: by for n, by in swept(rows, sweep, case).items() if n <= sweep.until}
    turns = sorted({turn for by in found.values() for turn in by})
    given = []
    for turn in turns:
        seconds = {n: by[turn] for n, by in found.items() if turn in by}
        if len([n for n in seconds if n >= max(seconds) / 10**sweep.decades]) > 1:
            given.append(exponent(list(seconds), list(seconds.values()), sweep.decades))
    return given


def _bytes(peaks: dict[int, dict[int, float]]) -> str:
    """By which the peak grows from the last but one size to the last."""
    if len(peaks) < 2:
        return ""
    (n, low), (m, high) = list(peaks.items())[-2:]
    more = statistics.median(high.values()) - statistics.median(low.values())
    return f"{more * 1e6 / (m - n):,.0f}"


def speed(rows: list[Row]) -> Table:
    """Our methods against their peers, from codes and from the table."""
    heads = ["case", "annotations", "seconds", "from the table", "compared with", "seconds"]
    heads += ["times as fast", "at least", "from the table"]
    cells = []
    for one in aggregate.COMPARED:
        for size in _sizes(rows, one.case):
            ours, theirs = (by_turn(rows, case, **size) for case in (one.case, one.floor))
            whole, their_whole = (
                _whole(rows, case, size) for case in (one.case + aggregate.TABLE, one.floor)
            )
            fast = ratios(theirs, ours)
            cells.append(
                [
                    *(one.case, _crowd(size), _median(rows, one.case, size)),
                    _short(statistics.median(whole.values())) if whole else "",
                    *(
                        one.floor,
                        _median(rows, one.floor, size) or _notes(rows, one.floor, size),
                    ),
                    *_limited(fast, one.fast, size, one, least=True, digits=1),
                    with_spread(ratios(their_whole, whole), 1),
                ]
            )
    return heads, cells


def results(rows: list[Row]) -> Table:
    """How far the results are apart, and the memory of both."""
    heads = ["case", "annotations", "largest difference", "megabytes", "from the table", "theirs"]
    cells = []
    for one in aggregate.COMPARED:
        for size in _sizes(rows, one.case):
            names = one.case, one.case + aggregate.TABLE, one.floor
            megabytes = [_median(rows, case, size, "megabytes") for case in names]
            cells.append([one.case, _crowd(size), _notes(rows, one.case, size), *megabytes])
    return heads, cells


def training(rows: list[Row]) -> Table:
    heads = ["case", "milliseconds", "compared with", "times as slow", "at most"]
    return heads, _milliseconds(rows, train.COMPARED)


def starting(rows: list[Row]) -> Table:
    heads = ["case", "milliseconds", "megabytes", "compared with", "times as slow", "at most"]
    cells = _milliseconds(rows, start.COMPARED)
    for cell in cells:
        peaks = by_turn(rows, cell[0], "megabytes").values()
        cell.insert(2, f"{statistics.median(peaks):,.0f}" if peaks else "")
    return heads, cells


def _milliseconds(rows: list[Row], compared: Iterable[Comparison]) -> list[list[str]]:
    return [
        [
            one.case,
            _short(1e3 * statistics.median(by_turn(rows, one.case, **size).values())),
            one.floor,
            *_limited(_ratio(rows, one, size), one.slow, size, one),
        ]
        for one in compared
        for size in _sizes(rows, one.case)
    ]


QUESTIONS = ("encode", "growth", "aggregate", "train", "start")
TABLES = {
    "encode": engines,
    "encode, large": largest,
    "aggregate": speed,
    "aggregate, results": results,
    "train": training,
    "start": starting,
}


def _sizes(rows: list[Row], case: str) -> list[Size]:
    """The sizes that a case was measured at, the smallest first."""
    found = {
        tuple(row[name] for name in SIZE)
        for row in rows
        if row["case"] == case and row["seconds"] is not None
    }
    return [dict(zip(SIZE, size, strict=True)) for size in sorted(found, key=str)]


def _ratio(rows: list[Row], one: Comparison, size: Size, what: str = "seconds") -> list[float]:
    case, floor = (by_turn(rows, name, what, **size) for name in (one.case, one.floor))
    return ratios(case, floor)


def _median(rows: list[Row], case: str, size: Size, what: str = "seconds") -> str:
    found = by_turn(rows, case, what, **size).values()
    return _short(statistics.median(found)) if found else ""


def _short(x: float) -> str:
    """Three digits that count."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def _whole(rows: list[Row], case: str, size: Size) -> dict[int, float]:
    """Seconds of loading and of the method, by turn."""
    method, loading = (by_turn(rows, case, what, **size) for what in ("seconds", "loading"))
    return {turn: method[turn] + loading[turn] for turn in method}


def _notes(rows: list[Row], case: str, size: Size) -> str:
    found = by_turn(rows, case, "note", **size).values()
    return "; ".join(dict.fromkeys(map(str, found)))


def _crowd(size: Size) -> str:
    return f"{size['rows']:,} of {size['annotators']:,} annotators"


def _limited(
    values: Sequence[float],
    limit: float | None,
    size: Size,
    one: Comparison,
    *,
    least: bool = False,
    digits: int = 2,
) -> tuple[str, str]:
    """With its spread, and the limit if it is meant here; bold where the median misses it."""
    text = with_spread(values, digits)
    if not values or limit is None or (size["rows"] or 0) < one.at:
        return text, ""
    middle = statistics.median(values)
    missed = middle < limit if least else middle > limit
    return f"**{text}**" if missed else text, f"{limit:g}"


# -- the figure --------------------------------------------------------------------------------


def figure(rows: list[Row]) -> Figure:
    """Each engine against its own group-by."""
    with plt.rc_context(STYLE):
        fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
        _engines(ax, [row for row in rows if row["question"] == "encode"])
    return fig


def growth_figure(rows: list[Row]) -> Figure:
    """Seconds against annotations, labels and annotators, with their exponents."""
    rows = [row for row in rows if row["question"] == "growth"]
    columns = {"rows": "annotations", "labels": "labels", "annotators": "annotators"}
    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(1, 3, figsize=(15, 5), sharey=True, layout="constrained")
        for ax, (column, words) in zip(axes, columns.items(), strict=True):
            _growth(ax, rows, column, words)
        axes[0].set_ylabel("seconds ↓")
    return fig


def _engines(ax: Axes, rows: list[Row]) -> None:
    """Of each engine the largest of the usual tables."""
    drawn: list[tuple[str, list[float], str]] = []
    for one in encode.COMPARED:
        engine = one.case.removesuffix(" fuse_table")
        usual = [size for size in _sizes(rows, one.case) if size["rows"] != encode.MOST]
        if usual and one.floor in (f"{engine} GROUP BY", "duckdb COPY of GROUP BY"):
            size = max(usual, key=lambda size: size["rows"])
            drawn.append((engine, _ratio(rows, one, size), f"{size['rows']:,}"))
    for y, (engine, values, _) in enumerate(reversed(drawn)):
        low, high = limits(values)
        middle = statistics.median(values)
        ax.barh(y, middle, color=LIGHT if engine.startswith("sle encode") else SKY, height=0.6)
        ax.plot([low, high], [y, y], color="black", lw=1)
        ax.annotate(f" {middle:.2f}", (high, y), va="center", fontsize=8)
    ax.set_yticks(range(len(drawn)), [engine for engine, _, _ in reversed(drawn)])
    ax.axvline(1, color="black", lw=1)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("times the engine's own GROUP BY ↓; line: spread over turns")
    sizes = " or ".join(dict.fromkeys(size for _, _, size in drawn))
    ax.set_title(f"fuse_table and sle encode, {sizes} rows", fontsize=10)


def _growth(ax: Axes, rows: list[Row], column: str, words: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel=words)
    ends: list[tuple[float, float, str, str]] = []
    for sweep in (sweep for sweep in growth.SWEEPS if sweep.column == column):
        for case in sweep.cases:
            found = swept(rows, sweep, case)
            if not found:
                continue
            colour, sign, line = DRAWN[case]
            y = [statistics.median(by.values()) for by in found.values()]
            ax.plot(list(found), y, line, color=colour, marker=sign)
            powers = exponents(rows, sweep, case)
            power = f", n^{statistics.median(powers):.2f}" if powers else ""
            ends.append((max(found), y[-1], case.partition(",")[0] + power, colour))
    # Names beside the ends of their curves, moved apart where they would meet.
    last = 0.0
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        last = max(y, last * 1.6)
        place = (1.03, last)
        ax.annotate(
            name,
            (x, y),
            xytext=place,
            textcoords=ax.get_yaxis_transform(),
            color=colour,
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5},
        )

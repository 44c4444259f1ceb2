"""Tables of trained networks, made from rows: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence, Set

import polars as pl

from experiments import data, rates, real, rounds, texts, uses
from experiments.tables import PUBLISHED, Table, bold, markdown, means_by

# What is shown of a trained network: the metric, its head, whether more is better, the place of
# the paper's number in `published.toml`.
SHOWN = (
    ("micro_f1", "F1 micro", True, 0),
    ("macro_f1", "F1 macro", True, None),
    ("jsd_root", "JSD", False, 1),
    ("nes", "NES", True, 2),
    ("vote_log_loss", "votes", False, None),
)


def all_of_table2(rows: pl.DataFrame) -> dict[str, str]:
    """In Markdown: a table for every data set, by its usual plan, and one of all other plans."""
    parts, shown = {}, []
    for name in rows["setting"].unique():
        mine, before = usual(rows.filter(setting=name), data.PLANS[name])
        shown.append(mine)
        if mine.is_empty():
            continue
        plan = data.PLANS[name].in_words(kl=True)
        how = f"{', '.join(mine['encoder'].unique().sort())}; {plan}."
        parts[name] = f"{how}\n\n{markdown(table2(mine, name, before))}"
    rest = rows.join(pl.concat(shown), on=["setting", *_MADE_BY], how="anti")
    return parts | {
        "against CE": markdown(against_ce(pl.concat(shown))),
        "other plans": markdown(other_plans(rest)),
    }


def against_ce(rows: pl.DataFrame) -> Table:
    """SLE (crowd) beside CE on every data set, by the seeds that both have; the better is bold."""
    kept = rows.filter(
        ((pl.col("method") == "SLE (crowd)") & pl.col("plan").str.ends_with("KL normalized"))
        | (pl.col("method") == "CE")
    )
    cells = []
    for name in data.PLANS:
        mine = kept.filter(setting=name)
        seeds = [set(mine.filter(method=m)["seed"]) for m in ("SLE (crowd)", "CE")]
        both = seeds[0] & seeds[1]
        if not both:
            continue
        means = means_by(mine.filter(pl.col("seed").is_in(both)), "method", "metric")
        truth = "gold" if ("CE", "micro_f1_gold") in means else "crowd"
        row = [name, str(len(both))]
        for metric, _, up, _ in SHOWN:
            key = f"{metric}_{truth}" if "f1" in metric else metric
            ours, usual = (round(means[m, key], 3) for m in ("SLE (crowd)", "CE"))
            better = ours != usual and (ours > usual) == up
            worse = ours != usual and not better
            row.append(f"{bold(f'{ours:.3f}', better)} / {bold(f'{usual:.3f}', worse)}")
        cells.append(row)
    heads = [f"{head} {'↑' if up else '↓'}" for _, head, up, _ in SHOWN]
    return ["data set", "seeds", *heads], cells


# What rows of one data set are told apart by.
_MADE_BY = ["method", "encoder", "plan"]


def usual(rows: pl.DataFrame, plan: data.Plan) -> tuple[pl.DataFrame, set[str]]:
    """Rows of a data set by its usual plan; methods that have only rows of before, and those rows.

    Before, the KL was as it is printed, and trust was learned otherwise.
    """
    mine = rows.filter(pl.col("encoder").is_in([data.IMAGE_NETWORK, texts.MINILM]))
    now = [plan.in_words(kl=kl) for kl in (True, False)]
    current = mine.filter(pl.col("plan").is_in(now))
    marks = (", KL as printed", ", trust of before", ", KL as printed, trust of before")
    before = pl.col("plan").is_in([now[1] + mark for mark in marks])
    older = mine.filter(before & ~pl.col("method").is_in(current["method"].unique()))
    return pl.concat([current, older]), set(older["method"])


def other_plans(rows: pl.DataFrame) -> Table:
    """Means over seeds of networks that were trained otherwise."""
    found = rows.group_by("setting", *_MADE_BY, "metric").agg(
        mean=pl.col("value").mean(), seeds=pl.col("seed").n_unique()
    )
    means = {row[:-2]: row[-2:] for row in found.iter_rows()}
    cells = []
    for setting, method, encoder, plan in sorted({key[:-1] for key in means}):
        key = setting, method, encoder, plan
        truth = "gold" if (*key, "micro_f1_gold") in means else "crowd"
        row = [setting, method, encoder, plan, str(means[*key, "nes"][1])]
        for metric, *_ in SHOWN:
            name = f"{metric}_{truth}" if "f1" in metric else metric
            row.append(f"{means[*key, name][0]:.3f}")
        cells.append(row)
    heads = [f"{head} {'↑' if up else '↓'}" for _, head, up, _ in SHOWN]
    return ["data set", "method", "encoder", "plan", "seeds", *heads], cells


def table2(rows: pl.DataFrame, dataset: str, before: Set[str] = frozenset()) -> Table:
    """Mean and spread over seeds, ours and the paper's. Bold: best; °: not told apart from it.

    Two methods are told apart where their means differ by more than twice the root of the sum of
    their variances over seeds, each divided by its number of seeds. † is beside methods `before`,
    and who has fewer seeds than others says so.
    """
    mine = rows.filter(setting=dataset)
    truth = "gold" if (mine["metric"] == "micro_f1_gold").any() else "crowd"
    found = mine.group_by("method", "metric").agg(
        mean=pl.col("value").mean(),
        spread=pl.col("value").std().fill_null(0),
        n=pl.len(),
    )
    means = {row[:2]: row[2:] for row in found.iter_rows()}
    methods = [m for m in real.METHODS if (m, "nes") in means]
    paper = PUBLISHED["table2"].get(dataset)
    seeds = {m: means[m, "nes"][2] for m in methods}
    most = max(seeds.values())
    names = [m + " †" * (m in before) + _few_seeds(seeds[m], most) for m in methods]
    heads, columns = ["method"], [names]
    for metric, head, up, place in SHOWN:
        key = f"{metric}_{truth}" if "f1" in metric else metric
        heads.append(f"{head} {'↑' if up else '↓'}")
        columns.append(_marked([means[m, key] for m in methods], up))
        if paper is not None and place is not None:
            heads.append("paper")
            columns.append([_published(paper, m, place) for m in methods])
    return heads, [list(row) for row in zip(*columns, strict=True)]


def _few_seeds(n: int, most: int) -> str:
    return f" ({n} seed{'s' * (n > 1)})" if n < most else ""


def _published(paper: dict[str, list[float]], method: str, place: int) -> str:
    return f"{paper[method][place]:.3f}" if method in paper else ""


def _marked(found: list[tuple[float, float, int]], up: bool) -> list[str]:
    """Means with spreads; the best is bold, those that are not told apart from it have a sign.

    Who has fewer seeds than others is no best: it may be luck.
    """
    most = max(n for *_, n in found)
    best = (max if up else min)((x for x in found if x[2] == most), key=lambda x: x[0])
    cells = []
    for mean, spread, n in found:
        text = _with_spread(mean, spread if n > 1 else None)
        limit = 2 * (spread**2 / n + best[1] ** 2 / best[2]) ** 0.5
        near = n > 1 and abs(mean - best[0]) <= limit
        first = mean == best[0] and n == most
        cells.append(bold(text, first) + ("°" if near and not first else ""))
    return cells


# The metric of rounds, its head, whether more is better.
ROUNDS = (
    ("targets", "right targets", True),
    ("network", "network right on new items", True),
    ("log-loss", "its log-loss of gold", False),
    ("vote log-loss", "of votes", False),
    ("heard log-loss", "of votes, by what people say where a label is true", False),
)


def rounds_table(rows: pl.DataFrame, setting: str) -> Table:
    """What is made of few annotations an item, mean over seeds; the best of each number is bold.

    Who has fewer seeds than the others says so, and who has none is left out.
    """
    mine = rows.filter(setting=setting)
    means = means_by(mine, "annotations", "method", "metric")
    seeds = mine.group_by("annotations", "method").agg(pl.col("seed").n_unique())
    count = {row[:2]: row[2] for row in seeds.iter_rows()}
    there = [kind for kind in ROUNDS if any(key[2] == kind[0] for key in means)]
    cells = []
    for n in sorted({key[0] for key in means}, key=lambda n: (n == rounds.ALL, len(n), n)):
        for method in (m for m in rounds.METHODS if (n, m) in count):
            row = [n, method + _few_seeds(count[n, method], max(count.values()))]
            for metric, _, up in there:
                every = [v for key, v in means.items() if key[0] == n and key[2] == metric]
                value = means.get((n, method, metric))
                if value is None:
                    row.append("")
                    continue
                best = max(every) if up else min(every)
                # Nobody is best alone.
                row.append(bold(f"{value:.3f}", len(every) > 1 and abs(value - best) < 5e-4))
            cells.append(row)
    return ["annotations an item", "learned by", *(head for _, head, _ in there)], cells


# The metric of uses, its head, whether more is better; of the last there is no better.
USES = (
    ("votes", "votes ↓", False),
    ("votes together", "votes together ↓", False),
    ("JSD", "JSD ↓", False),
    ("accuracy", "accuracy ↑", True),
    ("F1 macro", "F1 macro ↑", True),
    ("calibration, votes", "calibration, votes ↓", False),
    ("calibration, gold", "calibration, gold ↓", False),
    ("errors by probability", "errors by P ↑", True),
    ("errors by doubt", "errors by doubt ↑", True),
    ("risk by probability", "risk by P ↓", False),
    ("risk by doubt", "risk by doubt ↓", False),
    ("strange by probability", "strange by P ↑", True),
    ("strange by doubt", "strange by doubt ↑", True),
    ("coverage of 90 %", "coverage of 90 %", None),
)


# What errors and strange inputs are looked for by.
WAYS = {"probability": "1 - max P", "noise": "noise", "information": "information", "doubt": "u"}


def all_of_uses(rows: pl.DataFrame) -> dict[str, Table]:
    """What networks are good for; and doubt and coverage by how much there is to learn from."""
    of_texts = {f"uses {name}": uses_table(rows, (name,)) for name in uses.CROWDS}
    return {name: table for name, table in of_texts.items() if table[1]} | {
        "uses": uses_table(rows),
        "ways": ways_table(rows),
        "doubt": growth_table(rows, "doubt"),
        "covered": growth_table(rows, "coverage of 90 %"),
    }


def uses_table(rows: pl.DataFrame, settings: Sequence[str] = uses.USUAL) -> Table:
    """What networks are good for, mean over the seeds that all have; the best number is bold."""
    kept = _complete(rows.filter(pl.col("setting").is_in(settings)), len(settings))
    means = means_by(kept, "method", "metric")
    methods = [m for m in uses.METHODS if (m, "votes") in means]
    there = [kind for kind in USES if any(key[1] == kind[0] for key in means)]
    cells = []
    for method in methods:
        row = [method]
        for metric, _, up in there:
            every = [means[m, metric] for m in methods if (m, metric) in means]
            value = means.get((method, metric))
            best = None if up is None else max(every) if up else min(every)
            near = value is not None and best is not None and abs(value - best) < 5e-4
            row.append("" if value is None else bold(f"{value:.3f}", near))
        cells.append(row)
    seeds = kept["seed"].n_unique()
    return [f"learned by ({seeds} seed{'s' * (seeds > 1)})", *(head for _, head, _ in there)], cells


def ways_table(rows: pl.DataFrame) -> Table:
    """How well errors and strange inputs are found, by what; the best of a network is bold."""
    kept = _complete(rows.filter(pl.col("setting").is_in(uses.USUAL)), 2)
    means = means_by(kept, "method", "metric")
    cells = []
    for method in uses.DOUBTING:
        row = [method]
        for what in ("errors", "strange"):
            found = [means.get((method, f"{what} by {way}")) for way in WAYS]
            best = max((x for x in found if x is not None), default=None)
            row += ["" if x is None else bold(f"{x:.3f}", x == best) for x in found]
        cells.append(row)
    heads = [f"{what}: {way}" for what in ("errors", "strange") for way in WAYS.values()]
    return ["learned by", *heads], cells


def _complete(rows: pl.DataFrame, settings: int) -> pl.DataFrame:
    """The rows of seeds with which all methods were tried in so many settings."""
    jobs = rows.select("seed", "setting", "method").unique().group_by("seed").len()
    whole = jobs.filter(pl.col("len") == settings * len(uses.METHODS))
    return rows.filter(pl.col("seed").is_in(whole["seed"].to_list()))


def growth_table(rows: pl.DataFrame, metric: str) -> Table:
    """One number by how many items there are, and by how many annotations on each.

    Mean ± standard deviation over the seeds that every network was tried with everywhere.
    """
    asked = pl.col("setting").is_in((uses.USUAL[0], *uses.OTHERS))
    doubting = rows.filter(asked, pl.col("method").is_in(uses.DOUBTING), metric=metric)
    count = doubting.group_by("seed").len()
    columns = len(uses.ITEMS) + len(uses.ANNOTATIONS) - 1
    # The usual numbers of items and annotations are one setting.
    whole = count.filter(pl.col("len") == columns * len(uses.DOUBTING))["seed"].to_list()
    each_seed = doubting.filter(pl.col("seed").is_in(whole)).group_by("method", "setting")
    found = each_seed.agg(mean=pl.col("value").mean(), spread=pl.col("value").std())
    cell = {row[:2]: _with_spread(*row[2:]) for row in found.iter_rows()}
    items = {n: "all digits" if n == uses.USUAL_ITEMS else f"{n} items" for n in uses.ITEMS}
    each = {
        n: "all digits" if n == uses.USUAL_ANNOTATIONS else f"{n} annotations"
        for n in uses.ANNOTATIONS
    }
    settings = (*items.values(), *each.values())
    cells = [[m, *(cell.get((m, setting), "") for setting in settings)] for m in uses.DOUBTING]
    heads = [*(f"{n:,} items" for n in items), *(f"{n} each" for n in each)]
    return [f"learned by ({len(whole)} seed{'s' * (len(whole) != 1)})", *heads], cells


def _with_spread(mean: float, spread: float | None) -> str:
    """A mean, and how far single runs lie from it; one run has no spread."""
    return f"{mean:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def rates_table(rows: pl.DataFrame) -> Table:
    """Accuracy by loss and learning rate, mean over seeds; the best of each rate is bold.

    A rate is shown once every loss was tried with all seeds.
    """
    means = means_by(rows, "method", "setting")
    done = (
        rows.group_by("setting")
        .agg(pl.len())
        .filter(pl.col("len") == len(rates.LOSSES) * rates.SEEDS)
    )
    shown = [rate for rate in rates.RATES if f"{rate:g}" in done["setting"]]
    cells = []
    for loss in rates.LOSSES:
        row = [loss]
        for rate in shown:
            value, best = means[loss, f"{rate:g}"], max(means[x, f"{rate:g}"] for x in rates.LOSSES)
            row.append(bold(f"{value:.3f}", abs(value - best) < 5e-4))
        cells.append(row)
    return ["loss", *(f"rate {rate:g}" for rate in shown)], cells

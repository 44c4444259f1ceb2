"""Score every method on the same held-out votes, and call one best only if it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.em import check_count
from slencodings.annotations import Annotations, counted
from slencodings.evaluation.learner import Encoding, Learner, Method
from slencodings.evaluation.measure import as_truth, measure, measure_gold
from slencodings.evaluation.methods import left_out, methods_for, pooled
from slencodings.evaluation.part import all_of, drawn
from slencodings.evaluation.pool import NAME as POOL
from slencodings.evaluation.pool import ChosenPool, choose_by_fold, pairs, pool, pool_targets
from slencodings.evaluation.predicted import SCORES, HeldOut, Predicted, halves, predict, score
from slencodings.evaluation.rows import ComparedOn, Row
from slencodings.evaluation.sets import check_sets, score_held_out
from slencodings.evaluation.text import as_text
from slencodings.opinion import Codes, Floats
from slencodings.trust.learn_crowd import MOST_LABELS, scored_annotators


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same held-out votes of one crowd.

    Attributes
    ----------
    rows : one `Row` each, best first. `votes`, `direct`, `own` are mean log-losses of held-out
        votes by anybody, the same not through the crowd's habits, and by this annotator, each with
        `_low` and `_high`. `behind` is `votes` less those of the first row on the same items, also
        with `_low` and `_high`. `joint` is the mean log-loss of half of the votes on an item, all
        together and from the other half: it judges how sure a method is as well. One that tells no
        doubt, so that `doubts` is false, is scored as if certain of its probabilities;
        `joint_behind` is to `joint` what `behind` is to `votes`. `best`, `best_own` and
        `best_joint` say whether all paired intervals are above 0, even half as wide again as they
        are, since other folds would move the scores as well.
        `own` is None if there are not several annotators to tell apart, `joint` if labels are soft.
        `brier` and `agreement` of what `votes` predicts; where labels are ordered also `ranked`,
        the ranked probability score, `steps` from its median to the vote and `wasserstein`, how
        many steps all of it has to be moved to the vote; `uncertainty`, the mean over items;
        `seconds` of a fit, without what a method before it had learned already; `converged`.
        With gold: `accuracy` (labels that tie count in parts), `_low`, `_high`, `macro_f1`;
        `truth`, the mean log-loss of the gold labels, with `_low`, `_high` and `best_truth`;
        `too_sure`, the mean probability of the likeliest label less accuracy; `truth_steps` where
        labels are ordered; with a soft truth `jsd` (root) and `nes`. With sets: `jaccard`,
        `exact_match` and `masi` of what each annotator chose of an item and what is likelier than
        not by the others. Of pairs: `new_pairs`, the log-loss of judgments of two options that
        never met before, with `_low`, `_high` and `best_new_pairs`
    notes : what people should know besides, a sentence each
    about : sizes, folds, resamples and seed
    """

    rows: list[Row]
    notes: list[str]
    about: ComparedOn

    def __str__(self) -> str:
        return as_text(self.rows, self.notes, self.about)


def compare(
    annotations: Annotations,
    *,
    reliability: Any = None,
    gold: Any = None,
    scored: Any = None,
    sets: Any = None,
    methods: Sequence[str] | None = None,
    folds: int = 5,
    bootstrap: int = 1000,
    max_annotations: int = 200_000,
    seed: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Comparison:
    """Compare voting, models of annotators and SLE by how well they predict votes not shown.

    Items are dealt into folds. What a method learns, it learns on the other folds; then each
    annotation is predicted from the others on its item, and half of the annotations of an item
    together from the other half. Methods that infer a truth are scored directly, and through the
    crowd's habits: what people say where the truth is k, learned by EM. "pool of methods" averages
    what a few of them predict, chosen on items that are neither learned from nor scored.

    Parameters
    ----------
    reliability : as in `aggregate.sle`, for the row "SLE, given reliability"; what came with the
        annotations when absent
    gold : mapping from item to label, codes (N,) with -1 for unknown, or a soft truth (N, K) with
        NaN for unknown
    scored : whose votes are predicted, everybody's when absent, as in `learn_crowd`: the others
        help to predict them, and are not counted themselves
    sets : where items are yes or no questions, the item that each is about, (N,), such as
        `MultiLabel.asked_of`: then whole sets of labels are scored, too
    methods : the rows to compute; all that suit the crowd when absent
    folds, bootstrap, seed : items are dealt and resampled so often, by a generator of this seed
    max_annotations : of more, about so many are compared on, all those of items that are drawn
    progress : called with fits done, fits in all and the method

    Examples
    --------
    >>> from slencodings.datasets import digits_crowd
    >>> crowd = digits_crowd(rng=0)
    >>> found = compare(crowd.annotations, gold=crowd.gold, methods=["soft votes", "SLE, kappa"])
    >>> [(row["method"], round(row["votes"], 1), row["best"]) for row in found.rows]
    [('SLE, kappa', 1.7, True), ('soft votes', 1.7, False)]
    """
    check_count("max_annotations", max_annotations)
    rng = np.random.default_rng(seed)
    a, notes = first_of_each(annotations, reliability)
    part = all_of(a, as_truth(a, gold), None if sets is None else check_sets(a, sets))
    if len(a.item) > max_annotations:
        part, note = drawn(part, max_annotations, rng)
        notes.append(note)
    a, truth, of, asked = part
    plan = _planned(a, methods)
    if methods is None and (names := left_out(a)):
        notes.append(_too_many_labels(a, names))
    fold = _deal(a, folds, rng, asked)
    mask = None if scored is None else scored_annotators(a, scored)
    everything = HeldOut(a, halves(a, rng), mask)
    n_folds = int(fold.max()) + 1
    total = (n_folds + 1) * len(plan.fitted) + len(pairs(n_folds)) * len(plan.pooled)
    tell = counting(progress, total)
    chosen = choose_by_fold(plan.pooled, everything, fold, tell)
    yes = None if of is None else np.full((len(plan.rows), len(a.item)), np.nan)
    sums = _sums(plan, chosen, everything, fold, tell, yes)
    targets, seconds = _targets(plan, chosen, everything, tell)
    notes += _notes_on(targets)
    counts = everything.counts * (fold >= 0)
    kept = {"own": len(a.annotators) > 1, "joint": not a.soft, "ordered": a.ordered}
    rows = measure(targets, seconds, sums, counts, bootstrap, rng, **kept)
    if of is not None and yes is not None:
        _score_sets(rows, yes, everything, of)
    if truth is not None:
        measure_gold(rows, list(targets.values()), truth, bootstrap, rng, ordered=a.ordered)
    about = ComparedOn.of(
        a,
        scored=int(counts[0].sum()),
        scored_annotators=None if mask is None else int(mask.sum()),
        folds=n_folds,
        bootstrap=bootstrap,
        seed=seed,
    )
    return Comparison(sorted(rows, key=lambda row: row["votes"]), notes, about)


def counting(progress: Callable[[int, int, str], None], total: int) -> Callable[[str], None]:
    """What tells that the next fit of so many begins, of which method."""
    done = count()
    return lambda name: progress(next(done), total, name)


def _notes_on(targets: Mapping[str, Encoding]) -> list[str]:
    """What each method has to say of what it made of the crowd."""
    notes = list[str]()
    for name, target in targets.items():
        notes += [f"{name}: {note}" for note in target.notes]
        notes += [] if target.converged else [f"{name} did not converge"]
    return notes


def _score_sets(rows: list[Row], yes: Floats, everything: HeldOut, sets: Codes) -> None:
    """Score whole sets of labels by the chances that each answer was yes, (rows, R)."""
    for row, chance in zip(rows, yes, strict=True):
        found = score_held_out(chance, everything.annotations, sets, everything.counted)
        row["jaccard"], row["exact_match"], row["masi"] = found[:3]


class _Plan(NamedTuple):
    """The names of the rows, what is fitted for them, and those of it that are pooled, if any."""

    rows: list[str]
    fitted: dict[str, Method]
    pooled: dict[str, Method]


def _planned(a: Annotations, wanted: Sequence[str] | None) -> _Plan:
    known = methods_for(a)
    hint = (
        " Some need annotators, confidence or reliability, which this crowd may not have, and some "
        f"at most {MOST_LABELS} labels."
    )
    rows = chosen_names([*known, POOL], wanted, hint=hint)
    members = pooled(a) if POOL in rows else []
    fitted = {name: known[name] for name in known if name in rows or name in members}
    return _Plan(rows, fitted, {name: known[name] for name in members})


def _too_many_labels(a: Annotations, names: Sequence[str]) -> str:
    return (
        f"left out are {', '.join(names)}, which learn what each of "
        f"{counted(len(a.annotators), 'annotator')} says where each of "
        f"{counted(len(a.labels), 'label')} is true"
    )


def _sums(
    plan: _Plan,
    chosen: ChosenPool,
    everything: HeldOut,
    fold: Codes,
    tell: Callable[[str], None],
    yes: Floats | None = None,
) -> Floats:
    """The scores of each row, added up by item, (rows, S, N); each fold is learned from once.

    The chance of the last label is put into `yes`, (rows, R), if that is there.
    """
    a = everything.annotations
    sums = np.zeros((len(plan.rows), len(SCORES), len(a.items)))

    def take(row: int, predicted: Predicted, test: HeldOut, f: int) -> None:
        sums[row] += score(predicted, test)
        if yes is not None:
            yes[row, fold[a.item] == f] = predicted.votes[:, -1]

    for f in range(int(fold.max()) + 1):
        learner = Learner(a.rows((fold != f)[a.item]), everything.scored, chosen.learners[f])
        test = everything.items(fold == f)
        members: list[Predicted] = []
        for name, method in plan.fitted.items():
            tell(name)
            predicted = predict(method(learner), learner.annotations, test)
            members += [predicted] if name in plan.pooled else []
            if name in plan.rows:
                take(plan.rows.index(name), predicted, test, f)
        if members:
            take(plan.rows.index(POOL), pool(members, chosen.weights[f]), test, f)
    return sums


def _targets(
    plan: _Plan, chosen: ChosenPool, everything: HeldOut, tell: Callable[[str], None]
) -> tuple[dict[str, Encoding], list[float]]:
    """What each row makes of the whole crowd, and how many seconds that took."""
    learner = Learner(everything.annotations, everything.scored)
    targets: dict[str, Encoding] = {}
    seconds: dict[str, float] = {}
    for name, method in plan.fitted.items():
        tell(name)
        start = time.perf_counter()
        targets[name] = method(learner).target
        seconds[name] = time.perf_counter() - start
    if plan.pooled:
        targets[POOL] = pool_targets({name: targets[name] for name in plan.pooled}, chosen.weights)
        seconds[POOL] = sum(seconds[name] for name in plan.pooled)
    return {name: targets[name] for name in plan.rows}, [seconds[name] for name in plan.rows]


def first_of_each(
    annotations: Annotations, reliability: Any = None
) -> tuple[Annotations, list[str]]:
    """The annotations to compare on, with all that was stated of them.

    An annotator's first word on an item only, or they would be among the others who predict them.
    """
    a = annotations.completed(reliability)
    if len(a.annotators) <= 1:
        return a, ["annotators are not told apart, so nothing is learned about them"]
    _, first = np.unique(a.item * len(a.annotators) + a.annotator, return_index=True)
    repeated = len(a.item) - len(first)
    if not repeated:
        return a, []
    repeat, are = ("repeats", "is") if repeated == 1 else ("repeat", "are")
    many = counted(repeated, "annotation")
    kept = a.rows(np.sort(first))
    return kept, [f"{many} {repeat} an (item, annotator) pair and {are} left out"]


def chosen_names(
    known: Sequence[str], wanted: Sequence[str] | None, *, what: str = "`methods`", hint: str = ""
) -> list[str]:
    """The methods that are wanted, however they are capitalised; all that are known if none is."""
    if wanted is None:
        return list(known)
    folded = {name.casefold(): name for name in known}
    wrong = [name for name in wanted if name.casefold() not in folded]
    if wrong or not wanted:
        raise ValueError(
            f"{what} must be some of {', '.join(map(repr, known))}; "
            f"{wrong[0] if wrong else wanted!r} came.{hint}"
        )
    return list(dict.fromkeys(folded[name.casefold()] for name in wanted))


def _deal(
    a: Annotations,
    folds: int,
    rng: np.random.Generator,
    asked: NDArray[np.bool_] | bool = True,
) -> Codes:
    """A fold for each item asked for that has several annotations; -1 for others, which train."""
    shared = np.flatnonzero((np.bincount(a.item, minlength=len(a.items)) > 1) & asked)
    if folds < 2 or len(shared) < 2:
        few = "Have a second annotator answer some items; `sle triage` says which."
        raise ValueError(
            "methods are compared on held-out items, so at least two folds and two items with "
            f"several annotations are needed; folds={folds} and {len(shared)} such items came. "
            f"{few if len(shared) < 2 else 'Take folds=5.'}"
        )
    fold = np.full(len(a.items), -1)
    fold[rng.permutation(shared)] = np.arange(len(shared)) % min(folds, len(shared))
    return fold

"""`sle train` and `sle evaluate`: networks on the opinions of a crowd."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from slencodings.choices import TrainingObjective, WeighedBy
from slencodings.cli.on_a_crowd import Found, Read, on_a_crowd

if TYPE_CHECKING:
    from slencodings.annotations import Annotations
    from slencodings.evaluation.scores import Scores
    from slencodings.torch import SLEClassifier


@on_a_crowd
def train(
    read: Read,
    *,
    features: str,
    model: str,
    feature_item: str | None = None,
    text: str | None = None,
    encoder: str | None = None,
    predictions: str | None = None,
    gold: str | None = None,
    weigh: WeighedBy = "learned",
    objective: TrainingObjective = "reverse_kl",
    epochs: int = 100,
    rounds: int = 1,
    test: float = 0.2,
    seed: int | None = None,
) -> Found:
    """Train a model on the opinions of a crowd, and score it on items it has not seen."""
    from slencodings.annotations import counted
    from slencodings.cli import models
    from slencodings.files.rows import check_rows_target, write_rows

    models.check_model_place(model, *read.source, features)
    if predictions is not None:
        check_rows_target(predictions, read.source)
    embed = models.text_encoder(encoder, text)
    crowd = read.crowd(gold=gold, learned=weigh == "learned")
    a = crowd.annotations
    X, there, questions = models.features_of(
        crowd, features, feature_item=feature_item, text=text, embed=embed
    )
    if not there.all():
        read.say("note", f"{counted(int((~there).sum()), 'item')} without features left out")
    given = _weights(read, a, objective, weigh)
    trained, unseen = models.train(
        a, X, there, test=test, gold=crowd.truth, sets=crowd.sets, seed=seed or 0,
        objective=objective, max_epochs=epochs, reliability=given, rounds=rounds,
        verbose=sys.stderr.isatty(),
    )  # fmt: skip
    trained.text_encoder_, trained.questions_ = encoder, questions
    trained.save(model)
    read.say("wrote", f"{model}: {objective}, {counted(len(trained.history_), 'epoch')}")
    if rounds > 1:
        chosen, tried = trained.rounds_.chosen, len(trained.rounds_.losses)
        what = "what people would say" if chosen == 1 else "what is true"
        read.say("note", f"round {chosen} of {tried} is taken, by held-out votes; it says {what}")
    if predictions is not None:
        names = a.items[there].tolist()
        rows = models.opinion_rows(trained, names, X[there], unseen[there])
        write_rows(rows, predictions, {})
        read.say("wrote", f"{predictions}: {counted(len(names), 'opinion')}")
    about = {"model": model, "objective": objective, "seed": seed or 0, "test": test}
    if not unseen.any():
        return Found([about], about, lambda: None)
    row = models.score(trained, a, X, unseen, gold=crowd.truth, sets=crowd.sets)
    return Found([about | row], about, lambda: _show_row(row))


def _weights(
    read: Read, a: Annotations, objective: TrainingObjective, weigh: WeighedBy
) -> str | None:
    """How annotations count in targets; as stated, the reliability of each annotation does."""
    to_opinions = objective in ("reverse_kl", "forward_kl")
    given = "learned" if weigh == "learned" and to_opinions else None
    if a.reliability is not None and (given or not to_opinions):
        why = "what annotators are worth is learned; --weigh stated uses it"
        plain = f"{objective} learns from plain votes; reliability is not used"
        read.say("note", f"reliability is not used: {why}" if to_opinions else plain)
    return given


@on_a_crowd
def evaluate(
    read: Read,
    *,
    features: str,
    model: str,
    feature_item: str | None = None,
    text: str | None = None,
    encoder: str | None = None,
    predictions: str | None = None,
    gold: str | None = None,
) -> Found:
    """Score a trained model's opinions against a crowd it has not seen, and against gold."""
    from slencodings.cli import models
    from slencodings.files.rows import check_rows_target, write_rows

    if predictions is not None:
        check_rows_target(predictions, read.source)
    crowd = read.crowd(gold=gold)
    a = crowd.annotations
    trained = models.load(model)
    embed = models.text_encoder(encoder or _named(trained, model), text)
    asked = getattr(trained, "questions_", None)
    X, there, _ = models.features_of(
        crowd, features, asked=asked, feature_item=feature_item, text=text, embed=embed
    )
    seen = int(trained.has_seen(a.items[there].tolist()).sum())
    if seen:
        read.say(
            "warning",
            f"{seen:,} of {int(there.sum()):,} items have the names of items that the model was "
            "trained on; scores on those say nothing about new ones",
        )
    row = models.score(trained, a, X, there, gold=crowd.truth, sets=crowd.sets)
    if predictions is not None:
        write_rows(models.opinion_rows(trained, a.items[there].tolist(), X[there]), predictions, {})
    about = {"model": model}
    return Found([about | row], about, lambda: _show_row(row))


def _named(trained: SLEClassifier, path: str) -> str | None:
    """The encoder that a model names, if such a name may be taken from a file."""
    from slencodings.torch.texts import named_in_file

    return named_in_file(getattr(trained, "text_encoder_", None), path)


# What figures mean, for people; `sle.evaluate` has the formulas.
_MEANING = {
    "items": "items scored",
    "items_crowd": "of them with votes",
    "items_gold": "of them with gold labels",
    "votes": "votes on them",
    "micro_f1": "share of labels right",
    "macro_f1": "the same, each label counting alike",
    "cross_entropy": "log-loss: 0 is perfect, lower is better",
    "brier": "squared error of probabilities: lower is better",
    "ece": "how far stated probabilities are from shares right",
    "ranked": "squared error of chances of at least k, added up: lower is better",
    "steps": "mean steps between the median and what is right: lower is better",
    "auroc_errors": "does uncertainty find the errors? .5 is chance, 1 always",
    "auroc_errors_crowd_probability": "the same by 1 - max P, against most votes",
    "auroc_errors_gold_probability": "the same by 1 - max P, against gold",
    "wasserstein": "steps by which probability has to be moved to be the crowd's shares",
    "jsd": "distance from the crowd's shares: 0 the same, .69 nothing shared",
    "jsd_root": "mean of its root",
    "nes": "are the same items disputed? 1 is just as much",
    "nec": "does doubt rise and fall with the crowd's? 1 always",
    "vote_log_loss": "log-loss of each vote: lower is better",
    "vote_log_loss_dirichlet": "the same, of an item's votes together",
    "coverage": "share of votes' counts within the interval of that size",
    "uncertainty": "mean of what is not known",
    "dissonance": "mean of what conflicts",
    "set_exact_match": "share of whole sets right",
    "set_jaccard": "how much sets share: higher is better",
    "set_masi": "the same, less where sets only overlap",
    "set_hamming": "share of labels wrong: lower is better",
    "set_micro_f1": "F1 of all labels together",
    "set_macro_f1": "mean F1 of labels",
}


def _show_row(row: Scores) -> None:
    """A row of figures with what they mean; what is not defined is left out."""
    for name, value in row.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            typer.echo(f"{name:<32} {shown:>10}  {_meaning(name)}".rstrip())


def _meaning(name: str) -> str:
    """What is said of the longest beginning of a name, and what it is held against."""
    if name in _MEANING:
        return _MEANING[name]
    known = [key for key in _MEANING if name.startswith(f"{key}_")]
    if not known:
        return ""
    of_labels = name.startswith(("micro_f1", "macro_f1", "auroc_errors"))
    of_sets = "each set that was chosen" if name.startswith("set_") else "the shares of votes"
    crowd = "most votes" if of_labels else of_sets
    meaning = _MEANING[max(known, key=len)]
    if "_gold" in name:
        return f"{meaning}, against gold"
    return f"{meaning}, against {crowd}" if "_crowd" in name else meaning

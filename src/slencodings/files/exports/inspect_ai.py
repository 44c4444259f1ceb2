"""Inspect: logs of evaluations, .eval (a zip file) or .json, one model or grader each."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader
from slencodings.files.exports.fields import as_object, first, identity, list_in, object_in
from slencodings.files.exports.judges import FAILED, as_label
from slencodings.files.exports.record import Exported, Name, Object

# What its graders give for no answer.
NO_ANSWER = "N"


def _dialect(record: Object) -> str | None:
    if {"eval", "samples"} <= record.keys() and isinstance(record["eval"], dict):
        return "inspect json"
    if {"id", "epoch", "scores"} <= record.keys() and ("target" in record or "input" in record):
        return "inspect eval"
    return None


def _answers(export: Exported) -> Iterator[Answer]:
    """A scorer is a question, and the model that graded is the annotator."""
    for where, _, record, _ in export.records:
        if "samples" in record:
            spec = object_in(record, "eval", where)
            for n, sample in enumerate(list_in(record, "samples", where), 1):
                at = f"{where}, sample {n}"
                yield from _sample(as_object(sample, "a sample", at), at, spec, export)
        elif "scores" in record:
            yield from _sample(record, where, {}, export)


def _sample(sample: Object, where: str, spec: Object, export: Exported) -> Iterator[Answer]:
    name = identity(sample.get(export.item or "id"), export.item or "id", where)
    output = object_in(sample, "output", where)
    for scorer, given in object_in(sample, "scores", where).items():
        score = as_object(given, f"the score {scorer!r}", where)
        label = _label(score, where)
        graded = object_in(score, "metadata", where)
        judge = first(graded.get("model"), output.get("model"), spec.get("model"), scorer)
        who, failed = identity(judge, "a model", where), bool(label is None or sample.get("error"))
        export.left_out[FAILED] += failed
        given = () if label is None or failed else (label,)
        yield Answer((where, scorer), scorer, name, who, given, failed=failed)


def _label(score: Object, where: str) -> Name | None:
    """The grade; nothing where Inspect says why there is none."""
    metadata = object_in(score, "metadata", where)
    if score.get("reason") or metadata.get("unscored_reason") or score.get("value") == NO_ANSWER:
        return None
    value = score.get("value")
    return None if isinstance(value, dict | list) else as_label(value, where)


READER = Reader(
    [{"eval", "samples"}, {"id", "epoch", "scores"}, {"version", "status", "eval"}],
    _dialect,
    _answers,
)

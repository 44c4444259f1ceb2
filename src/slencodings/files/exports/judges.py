"""Answers of language models as JSONL: a judge, an item, an answer, and how sure it was.

What readers of judges share stands here too: scores to labels, and confidence to numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

from slencodings.files.exports.answers import BY_TOKENS, Answer, Reader
from slencodings.files.exports.fields import first, identity, is_nothing, is_number
from slencodings.files.exports.record import Exported, Json, Name, Object, shown

ANSWERS = ("answer", "verdict", "score")
# What the tokens of an answer tell of confidence.
LOGARITHMS = ("logprob", "logprobs")
TOKENS = "token confidence"
FAILED = "failed or refused answers"


def _dialect(record: Object) -> str | None:
    named = "judge" in record and "item" in record
    return "judges jsonl" if named and any(name in record for name in ANSWERS) else None


def _answers(export: Exported) -> Iterator[Answer]:
    """A judge is an annotator; what has no answer, or says that it failed, is no vote."""
    item = export.item or "item"
    for where, _, record, _ in export.records:
        name = identity(record.get(item), item, where)
        judge = identity(record.get("judge"), "judge", where)
        given = first(*map(record.get, ANSWERS))
        label = as_label(given, where)
        if label is None or record.get("error") or record.get("refusal"):
            export.left_out[FAILED] += 1
            yield Answer(where, "answer", name, judge, (), failed=True)
            continue
        yield Answer(where, "answer", name, judge, (label,))
        yield from sureness(record, where, name, judge)


def as_label(value: Json, where: str) -> Name | None:
    """A label from an answer or a score; None where there is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_nothing(value):
        return None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int | float):
        # 4.0 and 4 are the same score.
        return int(value) if float(value).is_integer() else value
    raise ValueError(
        f"{where}: an answer must be text, a number or true or false; {shown(value)} came. "
        "Write one record for each question that was asked."
    )


def sureness(record: Object, where: str, item: Name, judge: Name) -> Iterator[Answer]:
    """How sure a judge was of the answer in the same record: as stated, and by its tokens."""
    stated = record.get("confidence")
    if not is_nothing(stated):
        if not is_number(stated):
            raise ValueError(
                f"{where}: 'confidence' must be a number; {shown(stated)} came. "
                "Map words to numbers first."
            )
        yield Answer(where, "confidence", item, judge, (stated,), kind="confidence")
    tokens = first(*map(record.get, LOGARITHMS))
    if tokens is not None:
        chance = (probability(tokens, where),)
        # It is read if it is asked for: what models say and what their tokens tell differ.
        yield Answer(where, TOKENS, item, judge, chance, kind=BY_TOKENS)


def probability(tokens: Json, where: str) -> float:
    """How likely an answer was by the logarithms of its tokens' probabilities, which add up.

    >>> round(probability([{"token": "ye", "logprob": -0.1}, {"logprob": -0.2}], "here"), 3)
    0.741
    """
    if isinstance(tokens, dict):
        tokens = tokens.get("content", tokens.get("token_logprobs", tokens.get("logprob")))
    each = tokens if isinstance(tokens, list) else [tokens]
    logs = [x.get("logprob") if isinstance(x, dict) else x for x in each]
    bad = [x for x in logs if not isinstance(x, int | float) or isinstance(x, bool) or x > 1e-6]
    if bad or not logs:
        raise ValueError(
            f"{where}: log-probabilities must be numbers of at most 0, one or a list of them; "
            f"{shown(bad[0] if bad else tokens)} came. Take the logarithm of probabilities."
        )
    return math.exp(min(sum(cast("list[float]", logs)), 0.0))


READER = Reader([{"judge", "item", name} for name in ANSWERS], _dialect, _answers)

"""Which question of an export is read, and what its answers become."""

from pathlib import Path
from typing import Any

import pytest
from exporting import votes

from slencodings.files.exports import read_export

ARGILLA = Path(__file__).parent / "exports" / "argilla-v2.json"


def test_several_questions_are_listed_with_what_to_type():
    with pytest.raises(
        ValueError,
        match=r"argilla-v2.json \(argilla v2\) has 2 questions: 'label', 'rating'. "
        r"Say which one: question='label'",
    ):
        read_export(ARGILLA)
    # Of two columns the one is meant about which people differ, not a task's own text.
    with pytest.raises(ValueError, match=r"'text', 'topic'. Say which one: question='topic'"):
        read_export(ARGILLA.with_name("label-studio.csv"))
    many = {f"q{i}": {"value": "x"} for i in range(30)}
    record = {"id": "1", "fields": {}, "responses": [{"user_id": "u", "values": many}]}
    with pytest.raises(ValueError, match=r"has 30 questions: .*'q19' and 10 more. Say"):
        read_export([record])
    with pytest.raises(
        ValueError, match=r"no question 'labl'; there are 'label', 'rating'. .*'QUESTION=LABEL'"
    ):
        read_export(ARGILLA, question="labl")


def choices(*labels: Any, name: str = "topic", kind: str = "choices") -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": kind, "value": {kind: list(labels)}}


def stars(n: Any, name: str = "stars") -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "rating", "value": {"rating": n}}


def task(n: int, *results: Any, by: Any = 1, **more: Any) -> dict[str, Any]:
    annotation = {"id": n, "completed_by": by, "result": list(results)}
    return {"id": n, "data": {"text": f"text {n}"}, "annotations": [annotation], **more}


def test_several_labels_at_once_are_a_yes_or_no_for_each():
    tasks = [task(1, choices("a", "b")), task(2, choices("b"), by=2), task(3, choices("c"))]
    export = read_export(tasks)
    chosen = {1: "ab", 2: "b", 3: "c"}
    by = {1: 1, 2: 2, 3: 1}
    expected = [
        (f"{i} / {x}", by[i], "yes" if x in chosen[i] else "no") for i in chosen for x in "abc"
    ]
    assert votes(export) == sorted(expected, key=str)
    assert export.columns["question"] == [*"abc"] * 3
    assert export.notes == ("'topic' has several labels at once: a yes or no for each of 3",)


def test_one_label_at_a_time_keeps_the_items():
    tasks = [task(1, choices("a", "b")), task(2, choices("b"))]
    export = read_export(tasks, question="topic=a")
    assert votes(export) == [(1, 1, "yes"), (2, 1, "no")]
    assert export.notes == ("yes or no to 'a'",)


def test_only_those_who_could_choose_a_label_say_no_to_it():
    def decision(h: int, label: str, answer: str) -> dict[str, Any]:
        return {"_input_hash": h, "label": label, "answer": answer, "_session_id": "ann"}

    tasks = [decision(1, "A", "accept"), decision(1, "B", "reject"), decision(2, "A", "reject")]
    assert votes(read_export(tasks)) == [
        ("1 / A", "ann", "yes"),
        ("1 / B", "ann", "no"),
        ("2 / A", "ann", "no"),
    ]
    assert votes(read_export(tasks, question="label=B")) == [(1, "ann", "no")]


def test_labels_that_nobody_chose_are_known_where_the_tool_tells_the_options():
    options = [{"id": x, "text": x} for x in "AB"]
    tell = {"_input_hash": 1, "answer": "accept", "options": options}
    export = read_export([tell | {"accept": [], "config": {"choice_style": "multiple"}}])
    assert votes(export) == [("1 / A", None, "no"), ("1 / B", None, "no")]


def test_items_and_labels_that_run_together_are_refused():
    tasks = [
        task(1, choices("b / c", "d")) | {"id": "a"},
        task(2, choices("c")) | {"id": "a / b"},
    ]
    with pytest.raises(ValueError, match=r"cannot be told apart .* question='topic=b / c'"):
        read_export(tasks)


def test_more_rows_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("slencodings.files.exports.answers.MOST_ROWS", 5)
    tasks = [task(n, choices("a", "b")) for n in range(3)]
    with pytest.raises(
        ValueError, match=r"3 answers to 'topic' about 2 labels make 6 rows, more than 5. .*topic=a"
    ):
        read_export(tasks)


def test_confidence_is_the_answer_of_the_same_annotation():
    tasks = [
        task(1, choices("a"), stars(5, "certainty")),
        task(2, choices("b"), by=2),
        task(3, stars(1, "certainty")),
    ]
    export = read_export(tasks)
    assert export.columns["label"] == ["a", "b"]
    assert export.columns["confidence"] == [5, None]
    assert export.notes[-1] == "confidence is the answer to 'certainty'"
    named = [task(1, choices("a"), stars(2, "how sure?"))]
    assert read_export(named, confidence="how sure?").columns["confidence"] == [2]


def test_confidence_goes_with_every_yes_and_no():
    export = read_export([task(1, choices("a", "b"), stars(3, "confidence"))])
    assert export.columns["confidence"] == [3, 3]


def test_confidence_can_itself_be_the_question():
    tasks = [task(1, choices("a"), stars(5, "confidence"))]
    assert read_export(tasks, question="confidence").columns["label"] == [5]
    assert read_export([task(1, stars(5, "confidence"))]).columns["label"] == [5]


def test_confidence_in_words_is_not_taken_by_itself():
    tasks = [task(1, choices("a"), choices("high", name="confidence"))]
    assert "confidence" not in read_export(tasks, question="topic").columns
    with pytest.raises(ValueError, match=r"answered with numbers; 'high' came for 'confidence'"):
        read_export(tasks, question="topic", confidence="confidence")
    with pytest.raises(ValueError, match=r"no question 'sure' for `confidence`; there are 'topic'"):
        read_export(tasks, confidence="sure")
    with pytest.raises(ValueError, match=r"'stars' is confidence, which cannot be fused"):
        read_export([task(1, stars(1))], confidence="stars", question="stars")


def test_spans_and_free_text_are_refused_and_otherwise_passed_over():
    span = {
        "from_name": "ner",
        "type": "labels",
        "value": {"start": 0, "end": 2, "labels": ["PER"]},
    }
    about_a_span = {
        "from_name": "kind",
        "type": "choices",
        "value": {"start": 0, "end": 2, "choices": ["x"]},
    }
    comment = {"from_name": "why", "type": "textarea", "value": {"text": ["because"]}}
    with pytest.raises(
        ValueError,
        match=r"must have a question with labels to choose from, or a rating; 'ner' is spans, "
        r"'kind' is spans, 'why' is free text. Spans, masks, free text and rankings cannot be "
        r"fused: make each part, such as a token or a region, an item",
    ):
        read_export([task(1, span, about_a_span, comment)])
    export = read_export([task(1, span, comment, choices("a"))])
    assert export.columns["label"] == ["a"]
    assert export.notes == ("questions without labels not used: 'ner' (spans), 'why' (free text)",)
    with pytest.raises(ValueError, match=r"'why' is free text.*Questions with labels: 'topic'"):
        read_export([task(1, comment, choices("a"))], question="why")


@pytest.mark.parametrize(
    "texts",
    [["x" * 201], ["two\nlines"], [f"text {n}" for n in range(101)]],
    ids=["long", "lines", "different"],
)
def test_text_that_cannot_be_a_label_is_free_text(texts: list[str]):
    tasks = [
        {"id": str(n), "fields": {}, "responses": {"q": [{"value": text, "user_id": "u"}]}}
        for n, text in enumerate(texts)
    ]
    with pytest.raises(ValueError, match="'q' is free text"):
        read_export(tasks)


def test_many_labels_that_come_again_are_labels():
    answers = [{"value": f"label {n % 101}", "user_id": str(n)} for n in range(203)]
    export = read_export([{"id": "1", "fields": {}, "responses": {"q": answers}}])
    assert len(set(export.columns["label"])) == 101


def test_no_annotations_are_an_error_that_counts_what_was_left_out():
    skipped = task(1, choices("a"))
    skipped["annotations"][0]["was_cancelled"] = True
    with pytest.raises(ValueError, match=r"has no annotations \(1 skipped annotation left out\)"):
        read_export([skipped])


def test_identities_of_two_types_become_text_unless_they_would_merge():
    tasks = [task(1, choices("a"), by=1), task(2, choices("a"), by={"email": "b@x", "id": 2})]
    assert read_export(tasks).columns["annotator"] == ["1", "b@x"]
    clash = [task(1, choices("a"), by=1), task(2, choices("a"), by="1")]
    with pytest.raises(ValueError, match=r"annotator must be named in one way; both 1 and '1'"):
        read_export(clash)


def test_numbers_too_large_for_a_column_become_text():
    tasks = [task(1, choices("a")) | {"id": 2**70}]
    assert read_export(tasks).columns["item"] == [str(2**70)]
    assert read_export([task(1, stars(2.5)), task(2, stars(4))]).columns["label"] == [2.5, 4.0]
    mixed = [task(1, choices(True)), task(2, choices("a"))]
    assert read_export(mixed).columns["label"] == ["true", "a"]


def test_no_label_does_not_make_a_question_one_of_several_labels():
    tasks = [task(1, choices("a")), task(2, choices())]
    export = read_export(tasks)
    assert votes(export) == [(1, 1, "a")]
    assert export.notes == ("1 answer without a label left out",)
    with pytest.raises(ValueError, match=r"has no annotations \(1 answer without a label"):
        read_export([task(2, choices())])
    export = read_export([*tasks, task(3, choices("a", "b"))], question="topic=a")
    assert votes(export) == [(1, 1, "yes"), (2, 1, "no"), (3, 1, "yes")]


def test_confidence_in_a_table_of_text_is_a_number():
    rows = [
        {"HITId": "h", "WorkerId": w, "Answer.q": "a", "Answer.confidence": c}
        for w, c in (("u", "4"), ("v", "2.5"), ("w", ""))
    ]
    assert read_export(rows).columns["confidence"] == [4, 2.5, None]
    with pytest.raises(ValueError, match="has 2 questions: 'q', 'confidence'"):
        read_export([*rows, rows[0] | {"Answer.confidence": "high"}])

"""The dialects of each tool, and what each refuses."""

from typing import Any

import pytest
from exporting import assert_refused, said

from slencodings.files.exports import read_export

# Label Studio


def task(n: int = 1, result: Any = (), by: Any = 1, **more: Any) -> dict[str, Any]:
    annotation = {"id": n, "completed_by": by, "result": list(result)}
    return {"id": n, "data": {"text": f"text {n}"}, "annotations": [annotation], **more}


def result(kind: str, **value: Any) -> dict[str, Any]:
    return {"from_name": "q", "to_name": "t", "type": kind, "value": value}


@pytest.mark.parametrize(
    ("results", "labels"),
    [
        ([result("choices", choices=["a"])], ["a"]),
        ([result("rating", rating=4)], [4]),
        ([result("number", number=2.5)], [2.5]),
        ([result("pairwise", selected="left")], ["left"]),
        ([result("taxonomy", taxonomy=[["Animal", "Cat"]])], ["Animal / Cat"]),
        ([result("choices", choices=["a"]), result("choices", choices=["b"])], ["yes", "yes"]),
    ],
)
def test_controls_of_label_studio_that_hold_labels_are_read(results: Any, labels: list[Any]):
    assert read_export([task(1, results)]).columns["label"] == labels


@pytest.mark.parametrize(
    ("results", "kind"),
    [
        ([result("rectanglelabels", x=1, rectanglelabels=["a"])], "spans"),
        ([result("brushlabels", brushlabels=["a"])], "spans"),
        ([{"type": "relation", "from_id": "x", "to_id": "y"}], "spans"),
        ([result("ranker", ranker=["a", "b"])], "a ranking"),
    ],
)
def test_controls_of_label_studio_that_mark_regions_are_not(results: Any, kind: str):
    assert_refused(f"is {kind}", [task(1, results)])


def test_tasks_of_old_label_studio_have_completions():
    old = {"id": 1, "data": {}, "completions": [{"id": 5, "result": [result("rating", rating=1)]}]}
    assert said([old]) == [(1, None, 1)]
    old["completions"][0]["skipped"] = True
    assert_refused("no annotations .1 skipped", [old])


def test_items_of_label_studio_may_be_named_by_their_data():
    tasks = [task(1, [result("rating", rating=1)])]
    assert said(tasks, item="text") == [("text 1", 1, 1)]
    assert_refused(
        r"record 1: the data must have 'txt' for `item`; it has \['text'\]", tasks, item="txt"
    )


def test_what_label_studio_refuses():
    one = result("rating", rating=1)
    both = [task(1, [one], project=4), task(2, [one], project=5)]
    assert_refused(
        r"one project; 4 \(the records.*record 1\) and 5 \(.*record 2\) came. Export each", both
    )
    assert_refused(
        r"record 2: annotation 1 came before, in .*record 1", [task(1, [one]), task(1, [one])]
    )
    assert_refused(
        r"record 2 is no task of Label Studio: it has no data", [task(1, [one]), {"id": 2}]
    )
    assert_refused(
        r"a task's id must be text or a whole number; None", [task(1, [one]) | {"id": None}]
    )
    ids = task(1, [one]) | {"annotations": [17]}
    assert_refused(
        r"an annotation must be an object; 17 came. Export the annotations in full", [ids]
    )
    assert_refused(r"a result must be an object; 'x' came", [task(1, ["x"])])
    assert_refused(
        r"'predictions' must be a list; 'x' came. Is this an export of another version",
        [task(1, [one], predictions="x")],
    )
    assert_refused(
        r"a label of 'q' must be text or a number; \{'a': 1\} came",
        [task(1, [result("choices", choices=[{"a": 1}])])],
    )
    assert_refused(
        r"an annotator's name must be text or a whole number; \[1\] came", [task(1, [one], by=[1])]
    )


def flat(n: int, **more: Any) -> dict[str, Any]:
    about = {"annotator": 1, "annotation_id": n, "created_at": "t", "lead_time": 1.5}
    return {"text": "hello", "id": 1, **more, **about}


def test_answers_of_json_min_stand_between_the_id_and_the_annotator():
    assert said([flat(1, q="yes")]) == [(1, 1, "yes")]
    assert said([flat(1, q={"choices": ["a", "b"]})], question="q=b") == [(1, 1, "yes")]
    assert said([flat(1, q=[{"number": 3}]), flat(2)]) == [(1, 1, 3)]
    assert said([flat(1, q="yes")], item="text") == [("hello", 1, "yes")]


def test_what_json_min_refuses():
    assert_refused(r"record 2: annotation 1 came before", [flat(1, q="a"), flat(1, q="b")])
    assert_refused(
        r"'q' is spans", [flat(1, q=[{"start": 1, "end": 2, "labels": ["PER"], "text": "x"}])]
    )
    assert_refused(r"'q' is free text", [flat(1, q=[{"text": ["a", "b"]}])])
    assert_refused(
        r"nothing must be text or a whole number; None .*item='COLUMN'",
        [flat(1, q="a")],
        item="nothing",
    )
    assert_refused(r"a label of 'q' must be text or a number", [flat(1, q=["a", {"b": 1}])])


# Argilla


def record(**more: Any) -> dict[str, Any]:
    return {"id": "r", "fields": {"text": "hello"}, "metadata": {"doc": 9}, **more}


def test_argilla_s_flat_records_and_rows_and_old_records_are_read():
    users = {"q.responses": ["a", "b"], "q.responses.users": ["u", "v"]}
    status = {"q.responses.status": ["submitted", "draft"]}
    assert said([{"id": "1", **users, **status}]) == [("1", "u", "a")]
    assert said([{"id": "1", **users}]) == [("1", "u", "a"), ("1", "v", "b")]
    rows = [{"user_id": "u", "value": 3, "status": "submitted"}]
    assert said([{"external_id": "x", "stars": rows}]) == [("x", "u", 3)]
    old = {"id": 5, "annotation": "spam", "annotation_agent": "ann", "prediction": None}
    assert said([old, old | {"id": 6, "annotation": None}]) == [(5, "ann", "spam")]
    by_id = {"k1": {"fields": {}, "responses": {"q": [{"value": "a", "user_id": "u"}]}}}
    assert said(by_id) == [("k1", "u", "a")]


def test_items_of_argilla_may_be_named_by_a_field_or_metadata():
    records = [record(responses={"q": [{"value": "a", "user_id": "u"}]})]
    assert said(records, item="text") == [("hello", "u", "a")]
    assert said(records, item="doc") == [(9, "u", "a")]
    assert_refused(r"no 'x' for `item`; the fields are \['doc', 'text'\]", records, item="x")


def test_what_argilla_refuses():
    assert_refused(
        r"'q' is a ranking", [record(responses={"q": [{"value": [{"rank": 1, "value": "a"}]}]})]
    )
    assert_refused(
        r"'q' is spans", [record(responses={"q": [{"value": [{"start": 1, "label": "a"}]}]})]
    )
    assert_refused(r"a response must be an object; 3 came", [record(responses={"q": [3]})])
    assert_refused(r"'q' must be a list; 'x' came", [record(responses={"q": "x"})])
    assert_refused(
        r"'q.responses' must have one value for each user; 1 values and 2 users",
        [{"id": "1", "q.responses": ["a"], "q.responses.users": ["u", "v"]}],
    )
    anonymous = {"fields": {}, "responses": {"q": [{"value": "a"}]}}
    assert_refused(
        r"a record's id must be text or a whole number; None came. Name a field", [anonymous]
    )


# Prodigy


def decision(**more: Any) -> dict[str, Any]:
    return {"_input_hash": 1, "_session_id": "ann", "answer": "accept", "meta": {"doc": 9}, **more}


def test_choices_of_prodigy_are_read():
    assert said([decision(accept=["a"])]) == [(1, "ann", "a")]
    assert said([decision(accept=["a"])], item="doc") == [(9, "ann", "a")]
    both = [decision(options=["a", "b"], accept=["a"], config={"choice_style": "multiple"})]
    assert said(both) == [("1 / a", "ann", "yes"), ("1 / b", "ann", "no")]
    rejected = [decision(accept=["a"]), decision(accept=["b"], answer="reject")]
    notes = read_export(rejected).notes
    assert notes == ("1 rejected task with options left out",)


def test_what_prodigy_refuses():
    assert_refused(r"'ner_manual' is spans", [decision(_view_id="ner_manual", spans=[])])
    assert_refused(r"'free text' is free text", [decision(user_input="hm")])
    assert_refused(
        r"an option must have an id; \{'id': None\} came", [decision(options=[{"id": None}])]
    )
    assert_refused(
        r"_input_hash must be text or a whole number; None came. Export with db-out",
        [decision(accept=["a"], _input_hash=None)],
    )


# doccano


def test_old_doccano_tells_who_said_what():
    said_by = [{"label": 3, "user": 1}, {"label": 4, "user": 2}]
    assert said([{"id": 1, "text": "t", "annotations": said_by}]) == [(1, 1, 3), (1, 2, 4)]
    marked = [{"label": 3, "user": 1, "start_offset": 0}]
    assert_refused(r"'label' is spans", [{"id": 1, "text": "t", "annotations": marked}])
    assert_refused(
        r"an annotation must be an object; 3 came",
        [{"id": 1, "text": "t", "annotations": [*said_by, 3]}],
    )


def test_tables_without_a_mark_of_doccano_are_read_if_they_are_asked_for():
    rows = [{"id": "1", "text": "t", "label": "pos"}]
    assert said(rows, format="doccano") == [("1", None, "pos")]
    assert said([{"id": 1, "text": "t", "cats": ["a"], "entities": []}]) == [(1, None, "a")]
    assert said([{"id": 1, "text": "t", "label": ["a"]}], item="text") == [("t", None, "a")]


def test_what_doccano_refuses():
    assert_refused(r"'label' is spans", [{"id": 1, "text": "t", "label": [[0, 2, "PER"]]}])
    assert_refused(r"'entities' is spans", [{"id": 1, "text": "t", "entities": [], "Comments": []}])
    assert_refused(
        r"record 2: 'label' must be a list of labels; 3 came. Is this a table of another",
        [{"id": 1, "text": "t", "label": ["a"]}, {"id": 2, "text": "t", "label": 3}],
    )
    assert_refused(
        r"id must be text or a whole number; \[\] came", [{"id": [], "text": "t", "label": ["a"]}]
    )


# Potato


def instance(labels: Any, n: int = 1, **more: Any) -> dict[str, Any]:
    return {"instance_id": n, "user_id": "ann", "labels": labels, **more}


def test_schemas_of_potato_are_answered_by_names_or_by_values():
    assert said([instance({"s": {"yes": "yes", "no": False}})]) == [(1, "ann", "yes")]
    assert said([instance({"s": {"labels": {"yes": True}}})]) == [(1, "ann", "yes")]
    sliders = [instance({"s": {"slider": "42"}}), instance({"s": {"slider": "7"}}, 2)]
    assert said(sliders) == [(1, "ann", 42), (2, "ann", 7)]
    assert said([instance({"s": "happy"}), instance({"s": ""}, 2)]) == [(1, "ann", "happy")]
    both = [instance({"s": {"a": "true", "b": "true"}})]
    assert said(both) == [("1 / a", "ann", "yes"), ("1 / b", "ann", "yes")]
    old = [{"instance_id": "1", "user": "ann", "s:::yes": "1", "s:::no": ""}]
    assert said(old) == [("1", "ann", "yes")]
    state = {"user_id": "ann", "instance_id_to_label_to_value": {"i": {"s": {"yes": True}}}}
    assert said(state) == [("i", "ann", "yes")]


def test_what_potato_refuses():
    assert_refused(r"'s' is free text", [instance({"s": {"text_box": "hm"}})])
    assert_refused(r"'ner' is spans", [instance({}, spans={"ner": [{"start": 0}]})])
    assert_refused(r"'box' is spans", [instance({"box": {"x": [1]}})])
    assert_refused(
        r"nothing of an item but its id; 'text' came", [instance({"s": "a"})], item="text"
    )
    state = {"user_id": "ann", "instance_id_to_label_to_value": {"i": [["yes", True]]}}
    assert_refused(r"a pair of a label and its value; \['yes', True\] came for item 'i'", [state])
    state["instance_id_to_label_to_value"] = {"i": 3}
    assert_refused(r"answers about 'i' must be a list or an object; 3 came", [state])


# LeWiDi


def disputed(annotations: Any, annotators: Any = "A,B", **more: Any) -> dict[str, Any]:
    given = {"annotation task": "t", "annotations": annotations, "annotators": annotators}
    return {"k": given | more}


def test_both_dialects_of_lewidi_say_the_same():
    assert said(disputed("1,-2")) == said(disputed({"A": "1", "B": -2}))
    assert said(disputed("1,-2")) == [("k", "A", 1), ("k", "B", -2)]
    assert said(disputed("x,1")) == [("k", "A", "x"), ("k", "B", "1")]
    hidden = read_export(disputed({"A": "", "B": "0"}))
    assert hidden.columns["label"] == [0]
    assert hidden.notes == ("1 annotation without a label left out",)


def test_tasks_of_lewidi_are_questions():
    records = disputed("1,0") | {"m": disputed("0,1")["k"] | {"annotation task": "u"}}
    assert_refused(r"has 2 questions: 't', 'u'", records)
    assert said(records, question="u") == [("m", "A", 0), ("m", "B", 1)]


def test_what_lewidi_refuses():
    assert_refused(
        r"an annotation for each annotator; 3 annotations and 2 annotators", disputed("1,0,1")
    )
    assert_refused(r"known by their key alone; 'text' came", disputed("1,0"), item="text")
    assert_refused(r"must be text \(2023\) or an object \(2025\); \[1, 0\] came", disputed([1, 0]))
    assert_refused(
        r"'annotation task' and 'annotators' must be text; 't' and 3", disputed("1,0", 3)
    )
    assert_refused(r"an item's key must be text or a whole number; None", [disputed("1,0")["k"]])


# Platforms


def hit(**more: Any) -> dict[str, Any]:
    return {"HITId": "H", "WorkerId": "W", "AssignmentStatus": "Approved", "Input.u": "x", **more}


def test_forms_of_mturk_are_read():
    form = '[{"kind": {"label": "cat"}, "note": "fine"}]'
    rows = [hit(**{"Answer.taskAnswers": form})]
    assert said(rows, question="kind") == [("H", "W", "cat")]
    several = [hit(**{"Answer.taskAnswers": '{"kind": {"labels": ["a", "b"]}}'})]
    assert said(several, question="kind=a") == [("H", "W", "yes")]
    nested = [hit(**{"Answer.taskAnswers": '[{"kind": {"x": 1}}]'})]
    assert said(nested) == [("H", "W", '{"x": 1}')]
    assert said([hit(**{"Answer.q": "a"})], item="Input.u") == [("x", "W", "a")]
    blank = read_export([hit(**{"Answer.q": "a"}), hit(**{"Answer.q": "{}"})])
    assert blank.notes == ("1 assignment without answers left out",)


def test_what_platforms_refuse():
    assert_refused(
        r"'Answer.taskAnswers' must be JSON; '\[{' came", [hit(**{"Answer.taskAnswers": "[{"})]
    )
    assert_refused(
        r"'Answer.taskAnswers' must hold objects; 3 came", [hit(**{"Answer.taskAnswers": "3"})]
    )
    assert_refused(
        r"'x' must be text or a whole number; None came. The columns are 'HITId'",
        [hit(**{"Answer.q": "a"})],
        item="x",
    )


def test_tasks_of_toloka_are_known_by_their_id_or_their_only_input():
    row = {"INPUT:image": "1.jpg", "OUTPUT:result": "cat", "ASSIGNMENT:worker_id": "w"}
    assert said([row]) == [("1.jpg", "w", "cat")]
    assert said([row | {"ASSIGNMENT:task_id": "t"}]) == [("t", "w", "cat")]
    assert_refused(r"'ASSIGNMENT:task_id' must be text", [row | {"INPUT:other": "x"}])
    performed = [{"task": "t", "performer": "w", "label": "cat"}]
    assert said(performed) == [("t", "w", "cat")]


# Formats


def test_a_format_that_is_not_there_or_not_this_one_is_refused(tmp_path: Any):
    assert_refused(r"`format` must be one of label-studio, .*several; 'xml' came", [], format="xml")
    assert_refused(
        r"must be an export of argilla; it looks like prodigy jsonl. Say format='prodigy'",
        [decision(accept=["a"])],
        format="argilla",
    )
    assert_refused(
        r"must be an export of argilla; its first record has 'a'. Known are label-studio",
        [{"a": 1}],
        format="argilla",
    )
    (tmp_path / "x.csv").write_text("item,label\n1,a\n")
    match = r"x.csv must be an export of a tool that is known; .*needs no format: sle encode FILE"
    assert_refused(match, tmp_path / "x.csv")


def test_two_tools_in_one_file_are_refused():
    mixed = [decision(accept=["a"]), task(1, [result("rating", rating=1)])]
    assert_refused(
        r"record 2 is of another kind: label-studio json. Export each to its own file", mixed
    )
    assert_refused(r"record 2 is of another kind: it has 'x'", [decision(accept=["a"]), {"x": 1}])


@pytest.mark.parametrize(
    ("records", "question"),
    [
        ([{**task(1, [result("choices", choices=["a"])])}], None),
        ([{**flat(1, q="yes")}], "q"),
        ([decision(options=[{"id": "a"}], accept=["a"])], None),
        ([{"INPUT:image": "1", "OUTPUT:q": "a", "ASSIGNMENT:worker_id": "w"}], None),
        (
            [
                {
                    "id": "s",
                    "traceId": "t",
                    "name": "q",
                    "value": 1,
                    "dataType": "NUMERIC",
                    "source": "EVAL",
                }
            ],
            None,
        ),
    ],
    ids=["label-studio json", "label-studio json-min", "prodigy", "toloka", "langfuse"],
)
def test_tools_that_tell_when_an_answer_was_given_bring_its_time(
    records: list[dict[str, Any]], question: str | None
):
    when = {"created_at", "_timestamp", "ASSIGNMENT:submitted", "timestamp"}

    def times(value: Any) -> list[Any] | None:
        (record,) = records
        about = record["annotations"][0] if "annotations" in record else record
        about |= dict.fromkeys(when, value)
        if value is None:
            for name in when:
                del about[name]
        return read_export(records, question=question).columns.get("time")

    assert times("2026-11-16T10:30:00Z") == ["2026-11-16T10:30:00Z"]
    assert times(1794825000) == ["1794825000"]
    for nothing in ("", None, ["2026"]):
        assert times(nothing) is None

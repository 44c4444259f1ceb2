"""Exports with language models among the annotators: Inspect, Langfuse, Phoenix, plain JSONL."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from running import Sle

from slencodings import from_table
from slencodings.files.exports import read_export, recognise


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


JUDGES = [
    {"judge": "gpt", "item": 1, "answer": "good", "confidence": 0.95, "logprob": -0.5},
    {"judge": "gpt", "item": 2, "answer": "bad", "confidence": 0.9, "logprobs": [-0.1, -0.2]},
    {"judge": "llama", "item": 1, "answer": "good", "confidence": 0.5},
    {"judge": "llama", "item": 2, "answer": None, "error": "no JSON"},
    {"judge": "llama", "item": 3, "answer": "bad", "refusal": True},
]


def test_answers_of_judges_are_annotations_and_failures_are_no_votes(tmp_path: Path):
    path = lines(tmp_path / "judges.jsonl", JUDGES)
    assert recognise(path) == "judges"
    found = read_export(path)
    assert found.columns == {
        "item": [1, 2, 1, 3],
        "annotator": ["gpt", "gpt", "llama", "llama"],
        "label": ["good", "bad", "good", None],
        "confidence": [0.95, 0.9, 0.5, None],
        "token confidence": pytest.approx([0.6065306597, 0.7408182207, None, None]),
    }
    assert "2 failed or refused answers left out" in found.notes
    assert "1 item without any other answer kept: nothing is known of them" in found.notes


def test_an_item_whose_answers_all_failed_has_a_vacuous_opinion(tmp_path: Path, sle: Sle):
    path = lines(tmp_path / "judges.jsonl", JUDGES)
    out = tmp_path / "out.jsonl"
    run = sle("encode", str(path), "--weigh", "stated", "-o", str(out))
    assert run.code == 0, run.err
    rows = {row["item"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert list(rows) == [1, 2, 3]
    assert rows[3]["uncertainty"] == 1
    assert rows[3]["belief_good"] == rows[3]["belief_bad"] == 0
    assert rows[2]["belief_bad"] > 0  # the failed answer of another judge took nothing away


def test_a_file_of_failures_alone_is_refused(tmp_path: Path):
    path = lines(tmp_path / "judges.jsonl", JUDGES[3:])
    with pytest.raises(ValueError, match="must have a question with labels"):
        read_export(path)


def test_confidence_is_read_from_tokens_if_that_is_asked_for(tmp_path: Path):
    path = lines(tmp_path / "judges.jsonl", JUDGES[:2])
    found = read_export(path, confidence="token confidence")
    assert found.columns["confidence"] == pytest.approx([0.6065306597, 0.7408182207])
    # What an interface of models gives for each token is read as well.
    content = {"content": [{"token": "bad", "logprob": -0.25}, {"token": ".", "logprob": -0.25}]}
    path = lines(tmp_path / "judges.jsonl", [JUDGES[1] | {"logprobs": content}])
    found = read_export(path, confidence="token confidence")
    assert found.columns["confidence"] == pytest.approx([0.6065306597])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"answer": {"a": 1}}, "record 1: an answer must be text, a number or true or false"),
        ({"judge": None}, "record 1: judge must be text or a whole number; None came"),
        ({"item": ""}, "record 1: item must be text or a whole number"),
        ({"confidence": "high"}, "'confidence' must be a number; 'high' came"),
        ({"logprob": 0.9}, "log-probabilities must be numbers of at most 0.*; 0.9 came"),
        ({"logprob": None, "logprobs": []}, r"log-probabilities must be numbers.*\[\] came"),
        ({"logprob": "x"}, "log-probabilities must be numbers of at most 0.*; 'x' came"),
    ],
)
def test_what_no_judge_can_have_said_is_refused(tmp_path: Path, wrong: Any, words: str):
    path = lines(tmp_path / "judges.jsonl", [JUDGES[0] | wrong])
    with pytest.raises(ValueError, match=words):
        read_export(path)


def test_scores_may_be_numbers_or_yes_and_no(tmp_path: Path):
    rows = [{"judge": "a", "item": i, "score": x} for i, x in enumerate([4, 4.0, 2.0])]
    assert read_export(lines(tmp_path / "a.jsonl", rows)).columns["label"] == [4, 4, 2]
    rows = [{"judge": "a", "item": i, "verdict": x} for i, x in enumerate([True, False])]
    assert read_export(lines(tmp_path / "b.jsonl", rows)).columns["label"] == ["yes", "no"]


def sample(name: int, value: Any, model: str = "gpt-4o", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "epoch": 1,
        "input": "Is it right?",
        "target": "yes",
        "output": {"model": model, "choices": []},
        "scores": {"grader": {"value": value, "answer": "yes"} | more},
    }


SAMPLES = [
    sample(1, "C"),
    sample(2, "I"),
    sample(3, "N"),
    sample(4, "I", reason="grader_failed"),
    sample(5, float("nan")),
    sample(6, "C", metadata={"model": "claude"}),
]


def test_an_inspect_log_is_read_the_same_from_json_and_from_its_zip(tmp_path: Path):
    spec = {"task": "t", "model": "openai/gpt-4o"}
    log = {"version": 2, "status": "success", "eval": spec, "samples": SAMPLES}
    (tmp_path / "log.json").write_text(json.dumps(log))
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        header = {"version": 2, "status": "success", "eval": spec}
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": spec}))
        archive.writestr("summaries.json", json.dumps(SAMPLES))
        for one in SAMPLES:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    plain, packed = (read_export(tmp_path / name) for name in ("log.json", "log.eval"))
    assert plain.tool == "inspect json"
    assert packed.tool == "inspect eval"
    assert plain.columns == packed.columns
    assert plain.columns == {
        "item": [1, 2, 6, 3, 4, 5],
        "annotator": ["gpt-4o", "gpt-4o", "claude", "gpt-4o", "gpt-4o", "gpt-4o"],
        "label": ["C", "I", "C", None, None, None],
    }
    assert plain.notes == packed.notes
    assert plain.notes == (
        "3 failed or refused answers left out",
        "3 items without any other answer kept: nothing is known of them",
    )


def score(trace: str, value: Any, word: str | None = None, **more: Any) -> dict[str, Any]:
    kind = "NUMERIC" if word is None else "CATEGORICAL"
    row = {"id": trace, "traceId": trace, "name": "tone", "value": value, "dataType": kind}
    return row | {"source": "EVAL", "stringValue": word} | more


def test_langfuse_scores_are_by_people_and_by_evaluators(tmp_path: Path):
    rows = [
        score("t1", 1, "kind", source="ANNOTATION", authorUserId="ann"),
        score("t1", 0, "rude", metadata={"model": "gpt-4o", "confidence": 0.8}),
        score("t2", 0, "rude"),
        score("t3", None, ""),
    ]
    expected = {
        "item": ["t1", "t1", "t2", "t3"],
        "annotator": ["ann", "gpt-4o", "eval:tone", None],
        "label": ["kind", "rude", "rude", None],
        "confidence": [None, 0.8, None, None],
    }
    path = lines(tmp_path / "scores.jsonl", rows)
    assert recognise(path) == "langfuse"
    found = read_export(path)
    assert found.columns == expected
    assert found.notes[0] == "1 failed or refused answer left out"
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": rows, "meta": {"page": 1}}))
    assert read_export(page).columns == expected


def test_langfuse_numbers_and_its_csv_are_read_and_free_text_is_not(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_text(
        "id,trace_id,name,value,string_value,data_type,source,author_user_id\n"
        "1,t1,stars,4,,NUMERIC,ANNOTATION,ann\n2,t2,stars,5,,NUMERIC,ANNOTATION,bob\n"
    )
    found = read_export(path)
    assert found.columns == {"item": ["t1", "t2"], "annotator": ["ann", "bob"], "label": [4, 5]}
    path = lines(tmp_path / "text.jsonl", [score("t1", 0, "because", dataType="TEXT")])
    with pytest.raises(ValueError, match="'tone' is free text"):
        read_export(path)


def annotation(span: str, label: Any, kind: str = "LLM", **more: Any) -> dict[str, Any]:
    row = {"span_id": span, "name": "tone", "annotator_kind": kind, "result": {"label": label}}
    return row | more


def test_phoenix_annotations_are_by_people_and_by_models(tmp_path: Path):
    rows = [
        annotation("s1", "kind", "HUMAN", user_id="u1"),
        annotation("s1", "rude", identifier="gpt-4o", metadata={"confidence": 0.7}),
        annotation("s2", None, result={"score": 1.0, "explanation": "fine"}),
        annotation("s3", None),
    ]
    path = lines(tmp_path / "spans.jsonl", rows)
    assert recognise(path) == "phoenix"
    found = read_export(path)
    assert found.columns == {
        "item": ["s1", "s1", "s2", "s3"],
        "annotator": ["u1", "gpt-4o", "llm:tone", None],
        "label": ["kind", "rude", "1", None],
        "confidence": [None, 0.7, None, None],
    }
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": rows, "next_cursor": None}))
    assert read_export(page).columns == found.columns
    path = tmp_path / "table.csv"
    path.write_text(
        "span_id,annotation_name,annotator_kind,result.label,result.score,user_id\n"
        "s1,tone,HUMAN,kind,1,u1\ns2,tone,HUMAN,rude,0,u1\n"
    )
    assert read_export(path).columns["label"] == ["kind", "rude"]


def test_a_judge_asked_several_times_stays_one_annotator(tmp_path: Path):
    rows = [{"judge": "a", "item": i, "answer": x} for i in (1, 2) for x in ("x", "y", "x")]
    found = read_export(lines(tmp_path / "a.jsonl", rows))
    crowd = from_table(found.columns, item="item", annotator="annotator", label="label")
    assert len(crowd.item) == 6
    assert crowd.annotators.tolist() == ["a"]

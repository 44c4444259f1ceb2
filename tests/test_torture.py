"""The laws that `make torture` looks at for an hour, for a moment; and that it would tell."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from torture import again, exports, fuzz, kills, laws, tables
from torture.readers import READERS, Reader, refused

from slencodings.cli.main import app


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a turn tells what it did."""
    monkeypatch.setenv("SLENCODINGS_TOLD", str(tmp_path / "told"))
    return tmp_path / "told"


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_every_small_law_holds(law):
    for seed in range(30):
        law(np.random.default_rng(seed))


@pytest.mark.usefixtures("told")
def test_a_table_and_some_exports_hold():
    tables.every_engine_fuses_as_arrays_do(np.random.default_rng(0))
    for seed in range(30):
        exports.wrong_values_are_read_or_refused(np.random.default_rng(seed))


@pytest.mark.parametrize("kind", kills.COMMANDS)
def test_the_commands_that_are_killed_have_the_options_they_are_given(kind: str):
    verb, *words = kills.COMMANDS[kind].words(0)
    group: Any = typer.main.get_command(app)
    known = {option for parameter in group.commands[verb].params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


QUICK = [name for name in READERS if "safetensors" not in name]


# Ibis sets an option of pandas that will go.
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@pytest.mark.parametrize("name", QUICK)
def test_every_reader_reads_what_it_is_begun_with_and_refuses_half_of_it(name: str, tmp_path: Path):
    reader = READERS[name]
    data = reader.seeds()[0]
    # The first export asks which of its questions is meant.
    assert refused(reader, data, tmp_path) is None or name.startswith("export")
    said = refused(reader, data[: len(data) // 2], tmp_path)
    assert said is None or len(said) > 20


def test_what_is_neither_read_nor_refused_in_words_is_told_once(told: Path, tmp_path: Path):
    reader = Reader("x.csv", lambda path: json.loads(path.read_text()), lambda: [b"1"])
    one = fuzz.watched("x.csv", lambda data: refused(reader, data, tmp_path), tmp_path)
    for data in (b"1", b"{", b"["):
        one(data)
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    assert len(lines) == 1
    assert "JSONDecodeError" in lines[0]["failure"]
    assert [path.read_bytes() for path in tmp_path.glob("fuzzed-*")] == [b"{"]


def test_a_log_of_all_that_a_turn_prints_keeps_what_it_tells(tmp_path: Path):
    code = "import sys; from torture import fail; say = sys.stderr.write; say('begin\\n'); "
    code += "fail('found'); say('end\\n' * 20); fail('again')"
    log = tmp_path / "log"
    environment = {k: v for k, v in os.environ.items() if k != "SLENCODINGS_TOLD"}
    with log.open("wb") as out:
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            stdout=out,
            stderr=out,
            env=environment | {"PYTHONPATH": str(Path(__file__).parent)},
        )
    lines = log.read_text().splitlines()
    assert [lines[0], lines[1], lines[-1]] == [
        "begin",
        '{"failure": "found"}',
        '{"failure": "again"}',
    ]


def test_json_is_changed_in_one_place_and_stays_json():
    rng = random.Random(0)
    data = b'{"a": [1, {"b": "x"}]}\n{"a": [2, {"b": "y"}]}'
    found = {fuzz.changed(data, rng) for _ in range(50)}
    assert len(found) > 20
    for new in found:
        assert new is not None
        assert sum(line in data.splitlines() for line in new.splitlines()) >= 1
        assert all(isinstance(json.loads(line), dict) for line in new.splitlines())
    assert fuzz.changed(b"no json", rng) is fuzz.changed(b"7", rng) is None


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fuzzed.json"
    path.write_text('{"a.csv": 30, "b.csv": 40, "a.jsonl": 20, "export": 45}')
    monkeypatch.setattr(fuzz, "FUZZED", path)
    return path


def test_the_seconds_of_every_reader_are_kept():
    assert set(json.loads(fuzz.FUZZED.read_text())) == set(READERS)


def test_each_format_has_had_the_hour_that_security_tells():
    had = fuzz.by_format(json.loads(fuzz.FUZZED.read_text()))
    assert {name for name, seconds in had.items() if seconds < 3600} == {"db"}
    told = (Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8")
    assert len(had) == 9
    assert "so far minutes for SQLite" in told


def test_the_least_fuzzed_reader_comes_first_that_nobody_is_at(ledger: Path, tmp_path: Path):
    with fuzz.least_fuzzed(tmp_path) as first, fuzz.least_fuzzed(tmp_path) as second:
        assert first == ("a.jsonl", 65)  # 70 for both of CSV
        assert second == ("export", 65)
    with fuzz.least_fuzzed(tmp_path) as again:
        assert again == first
    fuzz.keep("a.jsonl", 6.4)
    assert json.loads(ledger.read_text())["a.jsonl"] == 26
    with fuzz.least_fuzzed(tmp_path) as then:
        assert then == ("a.csv", 70)


def test_readers_are_fuzzed_until_each_format_has_had_its_time(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    runs: list[tuple[str, float, int]] = []

    def run(name: str, seconds: float, seed: int, _: Path) -> int:
        runs.append((name, seconds, seed))
        fuzz.keep(name, 7)
        return len(runs) == 2

    monkeypatch.setattr(fuzz, "fuzz", run)
    assert fuzz.fuzz_each(80, 5, tmp_path) == 1
    assert runs == [
        ("a.jsonl", 16, 5),
        ("a.csv", 11, 6),
        ("a.jsonl", 9, 7),
        ("a.csv", 4, 8),
        ("a.jsonl", 2, 9),
    ]
    assert min(fuzz.by_format(json.loads(ledger.read_text())).values()) >= 80


def test_examples_are_counted_and_what_fails_is_told_with_its_numbers(told: Path):
    looked = []

    def odd(rng: np.random.Generator) -> None:
        looked.append(number := rng.integers(10))
        assert number, "nothing at all"

    again("examples", odd, 7, time.monotonic() + 60)
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    failures = [line["failure"] for line in lines if "failure" in line]
    assert sum(line.get("examples", 0) for line in lines) == len(looked)
    assert len(failures) == looked.count(0) == 5
    assert f"odd(np.random.default_rng([7, {looked.index(0)}]))" in failures[0]
    assert "nothing at all" in failures[0]


def test_what_was_reached_is_kept_and_gone_on_from(ledger: Path, tmp_path: Path):
    corpus, packed = tmp_path / "corpus", tmp_path / "corpus.tar.xz"
    for name in ("a.jsonl", "failed"):
        (corpus / name).mkdir(parents=True)
        (corpus / name / "one").write_bytes(b"{\x00")
    assert fuzz.pack(corpus, packed) == 1  # what failed is kept where it is told
    before = packed.read_bytes()
    assert fuzz.pack(tmp_path / "none", packed) == 1
    assert packed.read_bytes() == before
    (corpus / "a.jsonl" / "two").write_bytes(b"")
    assert fuzz.pack(corpus, packed) == 2
    into = tmp_path / "new"
    into.mkdir()
    fuzz.unpack("a.jsonl", into, packed)
    assert {path.name: path.read_bytes() for path in into.iterdir()} == {
        "one": b"{\x00",
        "two": b"",
    }
    fuzz.unpack("a", into, tmp_path / "none.tar.xz")
    assert len(list(into.iterdir())) == 2

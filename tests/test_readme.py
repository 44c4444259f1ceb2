"""Commands in the documents: whoever types them gets what is shown.

Those of the README run in order, in an empty folder.
"""

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from running import Sle

from slencodings.datasets import crowd_table, digits_crowd

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = re.compile(r"^\$ (.*(?:\n> .*|(?<=\\)\n.*)*)\n((?:[^$].*\n)*)", re.MULTILINE)


def typed(text: str) -> list[tuple[str, str]]:
    """The commands of a document, and what is shown below each."""
    return [
        (command.replace("\n> ", "\n"), shown)
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        for command, shown in LINES.findall(block)
    ]


TYPED = typed(README)
ELSEWHERE = {
    r"pip install|make ": "installs: `.ci/run` and whoever clones it do that",
    r"s3://": "needs a bucket: test_sources.py serves one",
    r"--master": "needs a cluster: test_spark.py starts one",
    # The demo takes half a minute; test_demo.py saves its crowd. Here are its first images.
    r"sle demo --save crowd\.csv": "told by test_demo.py",
}


def reason(command: str) -> str | None:
    return next((why for what, why in ELSEWHERE.items() if re.match(rf".*({what})", command)), None)


def save_crowd(images: int) -> None:
    """What `sle demo --save crowd.csv` writes, of the first images."""
    crowd = digits_crowd(rng=0)
    table = crowd_table(crowd.annotations, crowd.reliability)
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    with Path("crowd.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(row for row in rows if row[0] < f"digit-{images:04}")


def run(command: str, sle: Sle) -> str:
    """What is said on standard error by a command that works."""
    words = shlex.split(command, comments=True)
    if words[0] == "sle":
        code, _, said = sle(*words[1:])
        assert code == 0, (command, said)
        return said
    python = f"{shlex.quote(sys.executable)} "
    subprocess.run(["bash", "-c", re.sub("^python ", python, command)], check=True)
    return ""


@pytest.mark.slow
def test_every_command_runs_in_the_order_of_the_text(sle):
    save_crowd(330)
    commands = [command for command, _ in TYPED if reason(command) is None]
    assert len(commands) >= 14
    for command in commands:
        if command.startswith("sle report"):
            save_crowd(100)  # Two days were made of it; what looks at all of it needs no more.
        run(command, sle)
    made = {"targets.parquet", "targets.csv", "evidence.parquet", "report.html"}
    assert made | {"model.safetensors"} <= {path.name for path in Path().iterdir()}


@pytest.mark.parametrize("name", ["README.md", "docs/targets.md", "docs/trust.md"])
def test_what_is_shown_below_a_command_is_what_it_says(name, sle):
    text = (ROOT / name).read_text(encoding="utf-8")
    own = re.search(r"```text\n(post,worker,.*?)```", text, re.DOTALL)
    if own:
        Path("crowd.csv").write_text(own[1])
    else:
        save_crowd(1797)
    sessions = [(command, shown) for command, shown in typed(text) if shown]
    assert len(sessions) == 1
    for command, shown in sessions:
        assert run(command, sle) == shown


def test_the_front_door_is_short():
    assert len(README.splitlines()) < 150


def test_every_document_with_a_session_is_read():
    shown = [p.name for p in ROOT.glob("docs/*.md") if any(s for _, s in typed(p.read_text()))]
    assert sorted(shown) == ["targets.md", "trust.md"]


@pytest.mark.parametrize("what", ELSEWHERE)
def test_a_command_that_needs_more_than_a_folder_is_run_elsewhere(what):
    why = ELSEWHERE[what]
    assert any(reason(command) == why for command, _ in TYPED)
    others = re.findall(r"test_\w+\.py|\.ci/run", why)
    assert others
    assert all((ROOT / other).exists() or (ROOT / "tests" / other).exists() for other in others)


def test_the_rule_gives_the_numbers_of_its_table():
    rule = re.search(r"`c = ([\d.]+) × reliability × \(1 - uncertainty\)`", README)
    assert rule, "the README says how certain an annotation is"
    said = [("cat", 0.9, 0.9), ("cat", 0.6, 0.5), ("dog", 0.75, 0.8)]  # p1: reliability, sure
    counts = {"cat": 0.0, "dog": 0.0}
    for label, reliability, sure in said:
        c = float(rule[1]) * reliability * sure
        counts[label] += 2 * c / (1 - c)
    total = sum(counts.values()) + 2
    shown = [f"{x:.2f}" for x in (counts["cat"] / total, counts["dog"] / total, 2 / total)]
    assert re.search(rf"^0 +p1 +{' +'.join(shown)} ", README, re.MULTILINE), shown

"""What people look for in a repository: citation, workflows, templates, scripts, types."""

import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
import yaml

import slencodings

ROOT = Path(__file__).parents[1]
CONSUMER = ROOT / "tests" / "consumer" / "uses_the_public_face.py"
YAML = [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]


def script(name):
    """A script of ours as a module, also where its name has no ending."""
    loader = SourceFileLoader(re.sub(r"\W", "_", name), str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(ROOT / "scripts"))  # where those that are run find each other
    try:
        loader.exec_module(module)
    finally:
        sys.path.pop(0)
        sys.dont_write_bytecode = before
    return module


def test_what_people_look_for_is_there():
    of_github = {str(path.relative_to(ROOT / ".github")) for path in ROOT.glob(".github/**/*.*")}
    forms = {f"ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "config", "idea")}
    flows = {f"workflows/{name}.yml" for name in ("audit", "docs", "release", "tests")}
    assert of_github == forms | flows | {"dependabot.yml", "pull_request_template.md"}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("CODE_OF_CONDUCT.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        assert f"]({name})" in readme
        assert len((ROOT / name).read_text(encoding="utf-8")) > 500


def test_the_readme_names_sizes_that_the_document_has():
    told = re.search(
        r"The plain install takes .*?\[sizes\]", (ROOT / "README.md").read_text(), re.S
    )
    assert told is not None
    sizes = set(re.findall(r"\d[\d,]*\d", told[0]))
    assert len(sizes) >= 5
    measured = (ROOT / "docs" / "benchmarks.md").read_text().partition("## How large")[2]
    assert sizes <= set(re.findall(r"\b\d[\d,]*\b", measured))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_every_yaml_file_is_yaml(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize(
    "path", [*ROOT.glob(".github/workflows/*.yml")], ids=lambda path: path.name
)
def test_workflows_have_few_rights_name_versions_of_actions_and_run_what_is_there(path):
    text = path.read_text(encoding="utf-8")
    flow = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as true.
    assert flow[True]
    assert flow["permissions"] == {"contents": "read"}
    for name, job in flow["jobs"].items():
        if "uses" in job:  # another workflow of ours
            assert (ROOT / job["uses"]).is_file(), name
            continue
        assert "runs-on" in job, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            # By version, which dependabot keeps new, and not by the sha of a commit.
            assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", step.get("uses", "a/b@v1")), step
            # What comes from outside is passed by the environment, never pasted into a shell.
            assert "${{" not in step.get("run", ""), step
    for used in re.findall(r"\b(?:scripts|\.ci)/[\w.-]+", text):
        assert (ROOT / used).exists(), used


def test_nothing_is_published_that_was_not_tested_and_audits_are_weekly():
    flows = {path.stem: yaml.safe_load(path.read_text()) for path in YAML if "flows" in str(path)}
    jobs = flows["release"]["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["build"]["needs"] == "tests"
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert "workflow_call" in flows["tests"][True]
    assert any(
        "bash .ci/run" in step.get("run", "")
        for step in flows["tests"]["jobs"]["everything"]["steps"]
    )
    assert flows["audit"][True]["schedule"]
    assert "scripts/audit" in flows["audit"]["jobs"]["audit"]["steps"][-1]["run"]


def test_the_lowest_versions_of_every_extra_are_tried_by_a_workflow():
    lowest, needed = script("lowest.py"), script("needed.py")
    project = tomllib.loads(lowest.PROJECT.read_text())["project"]
    extras = project["optional-dependencies"].keys() - needed.OWN
    assert lowest.TESTS.keys() == {"base", *extras}
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    sets = flow["jobs"]["lowest"]["strategy"]["matrix"]["extras"]
    always = {"report", "tables"}  # which scripts/lowest takes by itself
    assert {*" ".join(sets).split(), *always} == extras


def test_workflows_try_and_audit_every_extra_by_itself():
    needed = script("needed.py")
    extras = set(needed.every_extra())
    flows = ROOT / ".github" / "workflows"
    (tried,) = re.findall(r"run: scripts/packages (.*)", (flows / "tests.yml").read_text())
    assert set(tried.split()) == {*extras, "all"}
    (audited,) = re.findall(r"run: scripts/audit (.*)", (flows / "audit.yml").read_text())
    assert set(audited.split(",")) == extras
    wheel = script("try-wheel")
    assert wheel.asked([]) == [[], *([extra] for extra in sorted(extras)), sorted(extras)]


@pytest.mark.slow
def test_what_a_workflow_needs_is_not_skipped():
    flow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    (needed,) = re.findall('SLENCODINGS_NEEDS: "(.*)"', flow)
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    for reason in needed.split("|"):
        assert re.search(f"reason=.*{reason}", tests), reason
    # Elsewhere this file skips "a folder".
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "name_of_a_file_tells"]
    here = os.environ | {"SLENCODINGS_NEEDS": "a folder"}
    run += ["tests/test_exports.py"]
    done = subprocess.run(run, cwd=ROOT, env=here, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"^FAILED .*tells_nothing\[\w+\]", done.stdout, re.MULTILINE), done.stdout


def test_trusted_publishing_has_the_right_to_say_who_it_is_and_keeps_no_token():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert yaml.safe_load(text)["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


def test_the_citation_has_this_version_and_the_licence():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == slencodings.__version__
    assert cited["license"] == "MIT"
    assert cited["cff-version"] == "1.2.0"
    listed = script("paper").references((ROOT / "paper" / "paper.bib").read_text())["vasilakes"]
    (reference,) = cited["references"]
    assert str(reference["year"]) == listed["year"]
    assert reference["identifiers"] == [{"type": "other", "value": f"arXiv:{listed['eprint']}"}]
    families = [name["family-names"] for name in reference["authors"]]
    assert families == [name.split(",")[0] for name in listed["author"].split(" and ")]


@pytest.fixture
def release(tmp_path):
    """A folder in which all agrees, and the check of it."""
    files = {
        "src/slencodings/__init__.py": '__version__ = "1.2.0"\n',
        "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-01-31\n\n- new\n",
        "CITATION.cff": "version: 1.2.0\ndate-released: 2026-01-31\n",
        "README.md": "[changes](CHANGELOG.md)\n",
        "paper/paper.md": "---\ndate: 31 January 2026\n---\n",
        "tests/written/1.2.0/store.parquet": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path, script("release").problems


def test_a_release_whose_version_stands_everywhere_may_go(release):
    folder, problems = release
    assert problems(folder, "v1.2.0") == problems(folder, None) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("CHANGELOG.md", "## 1.2.0", "## 1.1.0", "newest heading is 1.1.0; __version__ is 1.2.0"),
        ("CHANGELOG.md", " - 2026-01-31", "", "needs the heading '## 1.2.0 - YEAR-MONTH-DAY'"),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n- x\n", "has lines under 'Unreleased'"),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n### Added\n", "under 'Unreleased'"),
        ("CITATION.cff", "1.2.0", "1.1.0", "CITATION.cff says version 1.1.0; __version__ is 1.2.0"),
        (
            "CITATION.cff",
            "01-31",
            "01-30",
            "date-released 2026-01-30; CHANGELOG.md says 2026-01-31",
        ),
        ("paper/paper.md", "31", "30", "says date 30 January 2026; CHANGELOG.md says 31 January"),
        (
            "src/slencodings/__init__.py",
            "1.2.0",
            "1.3.0",
            "tests/written/1.3.0 has no files; tests/",
        ),
        ("README.md", "CHANGELOG", "CHANGES", "links to CHANGES.md, which is not there"),
        ("src/slencodings/__init__.py", "1.2.0", "1.3.0", "CITATION.cff says version 1.2.0"),
    ],
)
def test_what_does_not_agree_stops_a_release(release, name, old, new, says):
    folder, problems = release
    path = folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    assert any(says in line for line in problems(folder, None)), problems(folder, None)


def test_this_version_could_be_released():
    version = slencodings.__version__
    assert script("release").problems(ROOT, f"v{version}") == []


def test_what_a_registry_shows_needs_no_clone():
    published, url = script("published"), "https://host/owner/name"
    text = published.readme((ROOT / "README.md").read_text(encoding="utf-8"), url, "v1.2.3")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 40
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"({url}/raw/v1.2.3/docs/figures/first.png)" in text
    assert "\n$ pip install 'slencodings[demo]' pandas" in text
    for of_a_clone in ("'.[", "clone", "pip install .`", "make test"):
        assert of_a_clone not in text
    project = published.project((ROOT / "pyproject.toml").read_text(), url, "v1.2.3")
    urls = tomllib.loads(project)["project"]["urls"]
    assert urls["Changelog"] == f"{url}/blob/v1.2.3/CHANGELOG.md"
    flow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert 0 < flow.find("scripts/published") < flow.find("scripts/packages")


def test_another_tag_stops_a_release(release):
    folder, problems = release
    assert problems(folder, "v1.2") == ["the tag is v1.2; it must be v1.2.0."]


def test_the_lowest_versions_are_those_of_the_project():
    made = script("lowest.py").lowest(["tables", "demo"])
    assert "numpy==2.0" in made
    assert any(line.startswith("dask[dataframe,distributed]==") for line in made)
    assert all("==" in line and ">" not in line and "slencodings" not in line for line in made)
    lowest = script("lowest.py")
    found = lowest.tests([*lowest.TESTS])
    assert len(found) == len(set(found)) > len(lowest.TESTS)
    assert all((ROOT / path).is_file() for path in found)


def test_an_install_brings_what_is_asked_for_in_turn_and_sizes_name_every_extra():
    needed = script("needed.py")
    base = needed.needed(needed.requirements())
    assert {"numpy", "duckdb", "typer", "rich"} <= base.keys()  # typer asks for rich
    assert not base.keys() & {"pandas", "torch", "pytest"}
    drawn = needed.needed(needed.requirements(["demo"]))  # which asks for slencodings[report]
    assert {"scikit-learn", "vl-convert-python"} <= drawn.keys()
    assert base.keys() < drawn.keys()
    assert 0.1 < needed.megabytes([base["typer"]]) < needed.megabytes(base.values())
    project = tomllib.loads(needed.PROJECT.read_text())["project"]
    extras = project["optional-dependencies"].keys() - needed.OWN
    (head,) = re.findall(
        r"^\| base \|.*$", (ROOT / "docs" / "benchmarks.md").read_text(), re.MULTILINE
    )
    assert set(head.strip("| ").split(" | ")) == {"base", "all", *extras}


def test_sizes_in_the_document_are_those_of_what_is_installed_without_bytecode():
    needed = script("needed.py")
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = re.search(r"^(\| base \|.*)\n\|-.*\n(.*)$", text, re.MULTILINE)
    assert rows is not None
    names, sizes = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows.groups())
    said = {
        n: float(x.removesuffix(" MB").replace(",", "")) for n, x in zip(names, sizes, strict=True)
    }
    for name in ("base", "excel", "plot", "report", "demo"):  # which are the same on every machine
        packages = needed.needed(needed.requirements([] if name == "base" else [name])).values()
        assert needed.megabytes(packages) == pytest.approx(said[name], rel=0.1)


def test_bytecode_does_not_count(tmp_path):
    class Package:
        files = ("a.py", "__pycache__/a.cpython-311.pyc")

        def locate_file(self, file):
            return tmp_path / file

    (tmp_path / "__pycache__").mkdir()
    for file in Package.files:
        (tmp_path / file).write_bytes(b"x" * 2**20)
    assert script("needed.py").megabytes([Package()]) == pytest.approx(1, rel=0.01)


def test_the_list_of_what_is_installed_is_sorted_and_has_numpy_once():
    found = json.loads(json.dumps(script("sbom.py").sbom()))
    names = [component["name"] for component in found["components"]]
    assert found["bomFormat"] == "CycloneDX"
    assert names == sorted(names)
    assert names.count("numpy") == 1
    assert all(c["purl"] == f"pkg:pypi/{c['name']}@{c['version']}" for c in found["components"])


def test_all_that_the_base_brings_is_locked():
    needed, sbom = script("needed.py"), script("sbom.py")
    lock = sbom.LOCK.read_text(encoding="utf-8")
    locked = {line.split("==")[0] for line in lock.splitlines()}
    assert needed.needed(needed.requirements([])).keys() - {"slencodings"} <= locked
    newer = [("numpy", "99.0"), ("slencodings", "99.0"), ("pandas", "2.0")]
    assert sbom.unlocked(newer, lock) == ["numpy==99.0", "pandas==2.0"]


def test_what_a_consumer_writes_runs():
    runpy.run_path(str(CONSUMER))


@pytest.mark.slow
def test_the_public_face_is_typed_under_strict_rules(tmp_path):
    """As if it were installed: another project, which knows the package by its py.typed alone."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "slencodings").symlink_to(ROOT / "src" / "slencodings")
    (tmp_path / "uses.py").write_text(CONSUMER.read_text())
    settings = {"typeCheckingMode": "strict", "extraPaths": ["site"], "include": ["uses.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(pyright, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


# Classes of which an attribute is given no type, or whose bases, scikit-learn's, have none.
UNTYPED = ("torch.SLEClassifier", "torch.classifier.SLEClassifier", "evaluation.learner.Learner")
UNTYPED += ("torch.OpinionHead", "torch.head.OpinionHead")


@pytest.mark.slow
def test_every_public_name_has_a_type_but_for_those_that_are_known(tmp_path):
    """What pyright finds of all modules but those of the command, which nobody imports."""
    pyright = [sys.executable, "-m", "pyright", "--verifytypes", "slencodings", "--ignoreexternal"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PATH": path}
    done = subprocess.run(
        [*pyright, "--outputjson"], capture_output=True, text=True, cwd=tmp_path, env=here
    )
    found = json.loads(done.stdout)["typeCompleteness"]
    assert found["exportedSymbolCounts"]["withKnownType"] > 3_000
    wrong = [
        symbol["name"].removeprefix("slencodings.")
        for symbol in found["symbols"]
        if symbol["isExported"] and (not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"])
    ]
    assert [name for name in wrong if not name.startswith(("cli.", *UNTYPED))] == []


def test_types_are_shipped():
    assert (ROOT / "src" / "slencodings" / "py.typed").exists()


def test_the_paper_becomes_a_page_with_its_references():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    about = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= about.keys()
    for name in ("Summary", "Statement of need", "State of the field", "Design", "References"):
        assert f"\n# {name}\n" in body
    page = script("paper").page()
    assert page.count("<h1>") == 7
    assert page.count("<img") == page.count("data:image/png;base64,") == 1
    links, places = (re.findall(rf'{how}="#?(\w+)"', page) for how in ("href", "<li id"))
    assert {*links} == {*places}
    assert len(places) == 10
    assert (
        '(<a href="#vasilakes">Vasilakes et al., 2025</a>; <a href="#josang2016">Jøsang, ' in page
    )
    assert "<math><mi>W</mi><mi>c</mi><mo>/</mo><mo>(</mo><mn>1</mn><mo>-</mo><mi>c</mi>" in page
    assert "arXiv:2502.12225" in page
    for left in ("[@", "$", "{", "``"):
        assert left not in re.sub("<style>.*</style>", "", page), left


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[@glad]", "[@sad]", "cited and not listed, or listed and not cited: glad, sad"),
        (
            "$c$",
            "$\\sqrt{c}$",
            "only letters, numbers and signs are set in formulas; .* came",
        ),
    ],
)
def test_a_paper_that_cannot_be_set_is_refused(tmp_path, old, new, says):
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "paper.md").write_text(text.replace(old, new), encoding="utf-8")
    (tmp_path / "paper.bib").write_bytes((ROOT / "paper" / "paper.bib").read_bytes())
    with pytest.raises(SystemExit, match=says):
        script("paper").page(tmp_path / "paper.md")


def test_no_name_that_begins_with_an_underscore_is_imported_by_experiments_and_benchmarks():
    for path in [*ROOT.glob("experiments/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"^ *from slencodings\S* import (.*)$", text, re.MULTILINE):
            hidden = [name for name in names.strip("( )").split(", ") if re.match(r"_[^_]", name)]
            assert not hidden, (path, hidden)


@pytest.mark.slow
def test_the_source_package_has_all_that_it_promises_and_no_tests(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    subprocess.run([*build, "--directory", tmp_path], check=True, cwd=ROOT, capture_output=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames()}
    parts = {name.split("/")[0] for name in inside}
    needed = {"src", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "pyproject.toml"}
    assert needed <= parts <= needed | {"PKG-INFO", ".gitignore"}
    assert "src/slencodings/py.typed" in inside

"""Downloads: whole and checked, or not there. A server on this machine stands for the origin."""

import hashlib
import re
import sys
from http.client import IncompleteRead
from pathlib import Path
from urllib.error import URLError

import pytest
from serving import site

from slencodings import datasets
from slencodings.datasets import download, local
from slencodings.datasets.download import File, Origin, cache, fetch, read, there, unchanged

__all__ = ["site"]

BODY = bytes(range(256)) * 1000


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def served(site, body=BODY, name="a.bin", pin=None):
    """A file at the site, kept as it comes."""
    site.files[f"/{name}"] = body
    return unchanged(name, Origin(f"{site.url}/{name}", name, len(body), pin or sha256(body)))


def upper(data):
    """What is kept of a source: letters that stay what they are the second time."""
    return data.decode("ascii").split("|")[0].upper().encode("ascii")


def distilled(site, body=b"abc|secret", name="b.txt"):
    site.files[f"/{name}"] = body
    source = Origin(f"{site.url}/{name}", f"raw/{name}", len(body))
    return File(name, 3, sha256(b"ABC"), (source,), upper, upper)


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_file_is_fetched_once_and_is_what_was_served(site, tmp_path):
    file = served(site)
    assert not there(tmp_path, file)
    fetch([file], tmp_path / "new" / "folder")
    assert read(tmp_path / "new" / "folder", file) == BODY
    fetch([file], tmp_path / "new" / "folder")
    assert site.asked == [("/a.bin", None)]
    assert names(tmp_path) == ["new/folder/a.bin"]


def test_a_broken_connection_is_gone_on_with(site, tmp_path):
    file = served(site)
    site.cuts = [1000, 500]
    fetch([file], tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == [None, "bytes=1000-", "bytes=1500-"]
    assert names(tmp_path) == ["a.bin"]


def test_the_next_call_goes_on_where_the_last_one_gave_up(site, tmp_path):
    file = served(site)
    site.cuts = [700, 0, 0, 0]
    with pytest.raises(ConnectionError, match=r"broke after 700 of 256,000 bytes\. The first 700 "):
        fetch([file], tmp_path)
    assert names(tmp_path) == ["a.bin.part"]
    assert not there(tmp_path, file)
    site.asked.clear()
    fetch([file], tmp_path)
    assert site.asked == [("/a.bin", "bytes=700-")]
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert names(tmp_path) == ["a.bin"]


def test_a_server_that_cannot_go_on_starts_over(site, tmp_path):
    file = served(site)
    site.ranges, site.cuts = False, [1000]
    fetch([file], tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == [None, "bytes=1000-"]


def test_the_rest_of_another_file_is_started_over(site, tmp_path):
    file = served(site)
    (tmp_path / "a.bin.part").write_bytes(b"x" * (len(BODY) + 5))
    fetch([file], tmp_path)
    assert [asked for _, asked in site.asked] == ["bytes=256005-", None]
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_a_whole_part_is_not_fetched_again(site, tmp_path):
    file = served(site)
    (tmp_path / "a.bin.part").write_bytes(BODY)
    fetch([file], tmp_path)
    assert site.asked == []
    assert names(tmp_path) == ["a.bin"]


def test_bytes_with_another_sha256_are_refused_and_not_kept(site, tmp_path):
    file = served(site, pin="0" * 64)
    with pytest.raises(ValueError, match=r"/a\.bin is not the file that was published") as error:
        fetch([file], tmp_path)
    for part in ("0" * 64, sha256(BODY), "256,000 bytes", str(tmp_path / "a.bin"), site.url):
        assert part in str(error.value)
    assert names(tmp_path) == []


def test_a_missing_page_says_so_at_once(site, tmp_path):
    file = served(site)
    site.files.clear()
    with pytest.raises(
        ConnectionError, match=r"could not be fetched: 404 Not Found\. Try"
    ) as error:
        fetch([file], tmp_path)
    assert f"save it as {tmp_path / 'a.bin'}" in str(error.value)
    assert len(site.asked) == 1
    assert names(tmp_path) == []


def test_offline_there_is_one_clear_message(site, tmp_path):
    file = served(site)
    site.close()
    try:
        with pytest.raises(
            ConnectionError, match=r"a\.bin could not be fetched: .*refused"
        ) as error:
            fetch([file], tmp_path)
        assert "Try again when you are online, or fetch it by hand" in str(error.value)
    finally:
        site.__init__()  # the fixture closes it again


@pytest.mark.parametrize(
    "error", [TimeoutError("timed out"), URLError("no such host"), IncompleteRead(b"")], ids=repr
)
def test_whatever_the_network_does_the_message_is_the_same(site, tmp_path, monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(download, "urlopen", broken)
    with pytest.raises(ConnectionError, match=r"a\.bin could not be fetched: .*\. Try again when"):
        fetch([served(site)], tmp_path)
    assert not there(tmp_path, served(site))


def test_a_disk_that_fails_leaves_no_file_under_the_name(site, tmp_path, monkeypatch):
    file = served(site)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            fetch([file], tmp_path)
    assert names(tmp_path) == ["a.bin.part"]
    fetch([file], tmp_path)
    assert len(site.asked) == 1
    assert names(tmp_path) == ["a.bin"]


def test_a_kill_half_way_leaves_no_file_under_the_name(site, tmp_path, monkeypatch):
    file = served(site)

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(Killed):
            fetch([file], tmp_path)
    assert not there(tmp_path, file)
    fetch([file], tmp_path)
    assert read(tmp_path, file) == BODY


def test_what_is_not_kept_of_a_source_never_reaches_the_disk(site, tmp_path, monkeypatch):
    file = distilled(site)
    site.cuts = [5]
    opened = []
    whole = Path.open

    def watched(path, mode="r", *rest, **more):
        opened.append((path.name, mode))
        return whole(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", watched)
    fetch([file], tmp_path)
    assert (tmp_path / "b.txt").read_bytes() == b"ABC"
    assert not [name for name, mode in opened if name.endswith(".part")]
    assert [asked for _, asked in site.asked] == [None, "bytes=5-"]
    assert names(tmp_path) == ["b.txt"]


def test_a_source_that_fails_in_memory_keeps_nothing(site, tmp_path):
    file = distilled(site)
    site.cuts = [5, 0, 0, 0]
    with pytest.raises(ConnectionError, match=r"broke after 5 of 10 bytes\. Try again") as error:
        fetch([file], tmp_path)
    assert "kept" not in str(error.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("body", [b"abd|secret", b"\xff"])
def test_a_source_whose_content_differs_is_refused(site, tmp_path, body):
    file = distilled(site, body)
    with pytest.raises(
        ValueError, match=r"b\.txt is cut or altered: its content needed 3 bytes"
    ) as e:
        fetch([file], tmp_path)
    assert str(e.value).startswith(f"{site.url}/b.txt")
    assert "Nothing of it was kept. Try again" in str(e.value)
    assert names(tmp_path) == []


def test_a_source_is_fetched_once_for_all_that_is_made_of_it(site, tmp_path):
    file = distilled(site)
    fetch([file, file._replace(path="c.txt")], tmp_path)
    assert names(tmp_path) == ["b.txt", "c.txt"]
    assert len(site.asked) == 1


def test_a_folder_with_the_original_needs_no_download(site, tmp_path):
    file = distilled(site)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "b.txt").write_bytes(b"abc|more")
    assert there(tmp_path, file)
    assert read(tmp_path, file) == b"ABC"
    (tmp_path / "raw" / "b.txt").write_bytes(b"\xff")
    with pytest.raises(
        ValueError, match=r"raw/b\.txt is cut or altered: .* cannot be read \(.ascii"
    ):
        read(tmp_path, file)
    assert site.asked == []


@pytest.mark.parametrize(
    ("harm", "found"),
    [(BODY[:-1], "255,999 bytes"), (BODY[:-1] + b"x", "256,000 bytes"), (b"", "0 bytes")],
    ids=["cut", "altered", "empty"],
)
def test_a_local_file_is_checked_when_it_is_read(site, tmp_path, harm, found):
    file = served(site)
    (tmp_path / "a.bin").write_bytes(harm)
    with pytest.raises(
        ValueError, match=r"a\.bin is cut or altered: needed 256,000 bytes"
    ) as error:
        read(tmp_path, file)
    for part in (str(tmp_path / "a.bin"), sha256(BODY), f"{found} with sha256 {sha256(harm)}"):
        assert part in str(error.value)
    assert f"It comes from {site.url}/a.bin: delete it and pass download=True" in str(error.value)


def test_a_file_that_cannot_be_read_at_all_says_why(site, tmp_path):
    file = distilled(site)
    (tmp_path / "b.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"found 1 bytes that cannot be read \(.ascii.* codec"):
        read(tmp_path, file)


# Where the files go


def test_nothing_is_fetched_unless_asked_for(site, tmp_path, monkeypatch):
    monkeypatch.setenv("SLENCODINGS_CACHE", str(tmp_path / "cache"))
    file = served(site)
    with pytest.raises(FileNotFoundError, match=r"'toy' needs the file a\.bin; looked in") as error:
        local.find("toy", None, [file])
    offer = f"pass download=True to fetch 1 file (about 0.3 MB) from {site.url[7:]} into "
    assert f"{offer}{tmp_path / 'cache' / 'toy'}." in str(error.value)
    assert site.asked == []
    assert names(tmp_path) == []


def test_a_download_goes_to_the_cache_and_is_found_there_later(site, tmp_path, monkeypatch):
    monkeypatch.setenv("SLENCODINGS_CACHE", str(tmp_path / "cache"))
    file, more = served(site), distilled(site)
    home = local.find("toy", None, [file], extra=[more], download=True)
    assert home == tmp_path / "cache" / "toy"
    assert names(home) == ["a.bin", "b.txt"]
    site.asked.clear()
    assert local.find("toy", None, [file]) == home
    assert local.find("toy", None, [file], extra=[more], download=True) == home
    assert site.asked == []


def test_a_download_fills_the_folder_that_is_given(site, tmp_path):
    file, more = served(site), distilled(site)
    (tmp_path / "a.bin").write_bytes(BODY)
    assert local.find("toy", tmp_path, [file, more], download=True) == tmp_path
    assert site.asked == [("/b.txt", None)]
    assert names(tmp_path) == ["a.bin", "b.txt"]


def test_the_file_that_is_named_is_the_one_that_is_missing(site, tmp_path):
    file, more = served(site), distilled(site)
    (tmp_path / "a.bin").write_bytes(BODY)
    with pytest.raises(FileNotFoundError, match=r"needs the file b\.txt; looked in"):
        local.find("toy", tmp_path, [file, more])


def test_the_cache_is_where_the_platform_has_it(monkeypatch):
    monkeypatch.setenv("SLENCODINGS_CACHE", "/elsewhere")
    assert cache() == Path("/elsewhere")
    monkeypatch.delenv("SLENCODINGS_CACHE")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    places = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}
    for platform, place in places.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache() == Path.home() / place / "slencodings"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache() == Path("/xdg/slencodings")


# What people see


def test_a_download_is_quiet_in_a_pipe(site, tmp_path, capfd):
    fetch([served(site)], tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_download_tells_how_far_it_is(site, tmp_path):
    seen = []
    file = served(site)
    source = file.sources[0]
    download._bytes(source, tmp_path, tmp_path, lambda *told: seen.append(told))
    assert seen[-1] == ("a.bin", 0.256, 0.256, "MB")
    assert [done for _, done, _, _ in seen] == sorted(done for _, done, _, _ in seen)
    assert len(seen) > 1


@pytest.mark.parametrize("one", datasets.published(), ids=lambda one: one.loader)
def test_what_is_listed_before_a_download_is_what_the_loader_would_fetch(one, tmp_path):
    name, _, argument = one.loader.removesuffix(")").partition("(")
    words = [argument.strip("'")] if argument else []
    with pytest.raises(FileNotFoundError) as missing:
        getattr(datasets, name)(*words, folder=tmp_path / "empty")
    fetched = (
        rf"to fetch \d+ files? \(about {one.megabytes:.1f} MB\) from {re.escape(one.origin)} into"
    )
    assert re.search(fetched, str(missing.value)), missing.value


def test_every_loader_is_listed():
    listed = {one.loader.partition("(")[0] for one in datasets.published()}
    made = {"annotate", "crowd_table", "digits_crowd", "lattice", "published", "simulated_panel"}
    functions = {name for name in datasets.__all__ if name.islower()} - made - {"synthetic"}
    assert listed == functions

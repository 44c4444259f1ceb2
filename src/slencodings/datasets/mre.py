"""MRE: does the sentence say that one term causes (or treats) the other? By crowd and expert."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.datasets.download import File, github, pinned, read
from slencodings.datasets.local import coded, csv_rows, find
from slencodings.opinion import Codes

_ORIGIN = ("CrowdTruth/Medical-Relation-Extraction", "585c158864f91d7e7666f70d3b705294186e1378")
_GOLD = {
    "cause": pinned(
        _ORIGIN,
        "ground_truth_cause.csv",
        1_276_992,
        "31fad88e48b0a778db6b8d594d9575e687372710e3b2d2da003a33a3e5c67429",
    ),
    "treat": pinned(
        _ORIGIN,
        "ground_truth_treat.csv",
        1_340_010,
        "ba65cd29e7dac7ce87e6d131c840efd8fec9011903f06bfa78b8fc19199539c3",
    ),
}
_KEPT = ("sent_id", "_worker_id", "relations")


def _without_addresses(data: bytes) -> bytes:
    """Who said what about which sentence; the original also says where each worker sat.

    What is dropped, the IP address first of all, is never written to a disk.
    """
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, _KEPT, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: row[name] for name in _KEPT} for row in csv_rows(data))
    return out.getvalue().encode("utf-8")


def _batch(number: int, pin: str) -> File:
    path = f"raw/RelEx/RelEx_batch_{number:02}.csv"
    size, sha256 = pin.split()
    # The original is larger than what is kept of it, and its size was not recorded.
    source = github(*_ORIGIN, path, 500_000)
    return File(path, int(size), sha256, (source,), _without_addresses, _without_addresses)


# No expert is written NA in one file and left empty in the other.
_EXPERT = {"1": 1, "-1": 0}
_TICKED = {"cause": "[CAUSES]", "treat": "[TREATS]"}


class MRE(NamedTuple):
    """Medical sentences with two terms, what the crowd saw in them, and what an expert did.

    Attributes
    ----------
    X : list of N sentences
    annotations : Annotations; 1 where the relation is among those that the annotator ticked
    gold : int array (N,), what the expert said
    terms : list of N pairs, the two terms in the sentence
    """

    X: list[str]
    annotations: Annotations
    gold: Codes
    terms: list[tuple[str, str]]


def mre(
    folder: str | Path | None = None,
    *,
    relation: Literal["cause", "treat"] = "cause",
    download: bool = False,
) -> MRE:
    """Medical relation extraction (Dumitrache et al. 2018), the sentences that an expert judged.

    Parameters
    ----------
    folder : holds ground_truth_{cause,treat}.csv and raw/RelEx; left out, it is
        SLENCODINGS_DATA/mre, the cache, or ../shared/datasets/mre beside the checkout
    relation : "cause" or "treat"
    download : fetch what is missing from github.com into the folder or the cache, without the
        columns that locate the workers

    Examples
    --------
    >>> mre("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'mre' needs the file ground_truth_cause.csv; ...
    """
    if relation not in _TICKED:
        raise ValueError(f"`relation` must be cause or treat; {relation!r} came.")
    home = find("mre", folder, [_GOLD[relation], *_BATCHES], download=download)
    judged = {
        int(row["SID"]): row
        for row in csv_rows(read(home, _GOLD[relation]))
        if row["expert"] in _EXPERT
    }
    # A sentence is "904916-FS1" in most batches and 904916 in the others.
    votes = [
        (int(row["sent_id"].split("-")[0]), int(row["_worker_id"]), row["relations"].split())
        for file in _BATCHES
        for row in csv_rows(read(home, file))
    ]
    votes = [vote for vote in votes if vote[0] in judged]
    items = sorted({sentence for sentence, _, _ in votes})
    crowd = coded(
        [sentence for sentence, _, _ in votes],
        [who for _, who, _ in votes],
        np.asarray([_TICKED[relation] in ticked for _, _, ticked in votes], dtype=np.intp),
        [0, 1],
        items=items,
    )
    its = [judged[sentence] for sentence in items]
    gold = np.asarray([_EXPERT[row["expert"]] for row in its], dtype=np.intp)
    terms = [(row["term1"], row["term2"]) for row in its]
    return MRE([row["sentence"] for row in its], crowd, gold, terms)


# What is kept of each batch: bytes and sha256.
_PINS = """
24979 100c8be11983e3fe96296f2d4a7b0fb05ac2dab1fe6e0bee64e822ffdd70128d
24418 9a4d4a4410b5a7b3b11f480cec28da0976a0ab955df30c844e867f2be638bea1
24844 db54239598f622a9bc96bc2ad4af0439f3c6407652b466db039176cb64907f54
24318 2f8442aec7c2c78ef4a232f5f792cf07c8e3895558b4373ad5dc8bfbf695c6ba
24779 4ed4d09f790847f0003fde3bb1e00797a11f814f46b974a39e674e1cc1e9b25a
25768 2b880cca30cde712dded20cbfa9e91ab8355dd1057a0a53db39fa3a077de9c4e
22118 1252d1e845962fb943774089ae204c768630d5f211aaa9d5ff164077f701aa7d
19475 dcd8714e5837971efb40e47d59176e0cf0f2a1c175cdd526808e22ebf8839faf
34186 cdca589b3440948761628cb3bbbb57f7ab0664a3e00bcc60cebd0d10a01dac76
50800 9e860187a47b0e7f7e54a9572cec7f113ac2714ca2664a3dd161efe6dba69aa8
47777 4fa54111981ba3ee6a85dc28eac92406a166f5c8f4a64d4643d7f13a79e00a74
48652 4a5a1575b69d85220e19bcaacdfb736a5ad7b8fabc4907a09788d6ba4b5b865b
53362 313ec001ae8d7951c9a00ce76154de4727a82184f0ea25484f5f62142b19c8b6
52789 6c41186f42588ca840e072324aa1586c32244b383287aba3c8ce9cdd8d6ecfe5
48367 97f5b519c36c7105d9ca7dc27770323405c1abf049236af0d97c2553327647ec
22892 c9a0f0945df6ee76d2e800d13721f9ac760cd6a79cc930a38ffb6cb83a0d0860
26846 3fafd573ec873cedce15cfaccb2a92a9585516424b8633dc6fdefbfb8b147ec5
27240 50316d8680fbc08d6c45315c5dd637702643f2a386622786bb1ad1a425aaf83e
27143 053a168078d55ee09b3a3a19e7ba7378b2c3a2b0448d5fe12d741368913a0b99
28086 d93da1f28b0d49f6aa5a787625a5e2b2d9862aca2b8278c69ce000ef23d68878
26042 9bcf6d34c2619bd85e212d3835507ce2aae2c4b5cf1d5e2d2e3130b9f6b37ddd
21238 e26a85b6dac8ba60ea268e303a8b98054ed271f1a2ee83bb0d470ebd7cd9f67e
42295 8c9762227f5c765db9a42124b69e577d766d85bad66a4afa44a02cc8013e04df
37647 1f81fe7a42185b3564ab60cfe011ac3d0e4d506f54e0896d2616f729bcd7e404
37936 409167a917acfb57d5ab079708fc8c7953ccc99d6ab259a02bef957ef8a64b2e
44426 441a507cebbedcd8871fcf83f6ee9ed7e4eabf5d2ca58257136a5b6dcbeff0f3
44195 40b64e5fe356fc26668c1c735a364c5e9ca87c16562fccb242a21e54c9b6916c
39741 a139ca36d390dc3e834b5ff3a8fa678e8c729e10fd0cb3951439243cba4374c3
41637 87d16f49f8e8149d6a6b39510497eda1a829dcc34acfb0aa75d3fdd6e24bcaaa
46791 88b4a6632912b6150fa195ceae0c5bfc8b6280bfae9c144b8b4e6ca9b149e7db
40219 cfcdd0763ed5069d53f4a2ec3fe4b0caf2879adc8d43cb55a07e439b31451779
40428 1c0eda951a1bfa0462799901fbcf0ec9b5ea66bd2c6a8088e48177ca47a6077f
37534 f6d97847f9ac75309f40ff51edf04f474aa47bd1daed7a1b7187b867bea6287c
43835 e47702b7f13ce92acb2f58babb729bb1322e6e9137889e594eb2b15be452d861
44500 1b590a76c4c77bf87ff6328a76ad905ad09a03701b042f75fed1ee916664dcf9
37779 61f1b630ffb58b755445aea856057a5d21b3e8f2642cc31befe67ca82600e17a
43778 9de6931cb8c054864755b679f9767bc72bdb699dd0dd4b23bdca78c96e40d0d5
42185 8be2393928417d6f8217c2b839c42f0879b38dd9364964ffbefd630808d7cad4
45591 720b9340bf404fe5ce4b268604559b287c0392a0ad17e8d90868ddcc2084179c
45701 649f592bba727fef65fab2b64f98c3f1032a50d211db9dffe23723985cea4c83
47500 e22238dd8a1c02a1bf807a879cd970c833bcfd523a7b72078301010295f7f864
35250 3c8762cfaa8cdb324714cb1dc92f9552dd4485cc56f70089ddcc9989a48a8b21
41281 2d0d93daa252d2156deafb8162468a939e28c21412d6d6c60016adf8ff204893
46141 ef344eaeb4ead89cb68f2243838b6762501c434217b462d658b4baeb64c38c82
45360 05d6e9399cd837a8255e6b082774b9b303b153a76f9e723425f17e0f656f9c85
43970 de33b3b9e657181e1a679bd3c21b1e19ce80b52199d2eb958fd11843d893d406
"""
_BATCHES = [_batch(n, pin) for n, pin in enumerate(_PINS.split("\n")[1:-1], 1)]

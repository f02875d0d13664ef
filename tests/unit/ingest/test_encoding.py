"""Encodings: read right or refused, never read wrong."""

import codecs
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import UnreadableFile
from pipelines.ingest.files import decode

HANS = "最近总是睡不着，一想到明天的会议就心慌，不知道该怎么办才好。"
HANT = "最近總是睡不著，一想到明天的會議就心慌，不知道該怎麼辦才好。"
ENGLISH = "I cannot sleep; I think of tomorrow's meeting all night."


def test_matrix() -> None:
    for text, written, read in (
        (HANS, "utf-8", "utf-8"),
        (HANS, "utf-8-sig", "utf-8-sig"),
        (HANS, "utf-32", "utf-32"),
        (HANS, "gb18030", "gb18030"),
        (HANS, "utf-16-le", "utf-16-le"),
        (HANT, "big5", "big5hkscs"),
        (HANT, "utf-16-be", "utf-16-be"),
        (ENGLISH, "utf-16-le", "utf-16-le"),
        ("", "ascii", "utf-8"),
    ):
        assert decode(text.encode(written), where="f") == (text, read), written


def test_refused() -> None:
    for data, says in (
        (HANS.encode() + b"\xe6\x88" + HANS.encode(), "UTF-8 with a damaged byte; byte 90 "),
        (codecs.BOM_UTF8 + b"ok\xff", "not utf-8-sig, as stated; byte 5 "),
        (HANS.encode("gb18030")[:-1], "not gb18030, as stated; byte 58 "),
        ("Il a été déçu à Noël.".encode("latin-1"), "no other encoding stands out"),
        ("こんにちは、世界。ありがとう。".encode("shift_jis"), "no other encoding stands out"),
        ("龘".encode("gb18030"), "no other encoding stands out"),  # too little to tell
    ):
        with pytest.raises(UnreadableFile, match=says) as caught:
            decode(data, where="f.csv")
        assert ("f.csv" in str(caught.value), "iconv" in caught.value.hint) == (True, True)


def test_marked_or_stated() -> None:
    assert decode(codecs.BOM_UTF16_BE + HANS.encode("utf-16-be"), where="f") == (HANS, "utf-16")
    assert decode(codecs.BOM_UTF8 + HANS.encode(), where="f", stated="UTF-8")[0] == HANS
    assert decode(HANS.encode("big5", "ignore"), where="f", stated="big5")[1] == "big5"
    for data, stated, says in ((b"\xff\xff", "gb18030", "not gb18030"), (b"x", "klingon", "no encoding 'klingon'")):
        with pytest.raises(UnreadableFile, match=says):
            decode(data, where="f", stated=stated)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        text, encoding = decode(data, where="f")
    except UnreadableFile:
        return
    assert text == data.decode(encoding)


def test_real_texts_are_never_read_wrong(shared: Path) -> None:
    table = (shared / "zh_qa/medical_qa_gb18030.csv").read_bytes().decode("gb18030")
    hans = [row[2] for row in csv.reader(io.StringIO(table))][1:]
    article = json.loads((shared / "zh_hant/DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    hant = [paragraph["context"] for one in article for paragraph in one["paragraphs"]]
    read = refused = 0
    for texts, encodings in ((hans, ("gb18030", "utf-16-le")), (hant, ("big5", "gb18030", "utf-16-be"))):
        for text in texts:
            for encoding in encodings:
                data = text.encode(encoding, "ignore")
                try:
                    assert decode(data, where="f")[0] == data.decode(encoding)
                    read += 1
                except UnreadableFile:
                    refused += 1
    assert read > 4000
    assert refused < 0.01 * read

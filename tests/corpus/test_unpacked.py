"""Packed files: the same bytes as before they were packed, and one clear error for what is damaged."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_texts import PACKERS, read

from bertkit.corpus.unpacked import Unpacked
from bertkit.errors import DataError

PACKED = pytest.mark.parametrize(("ending", "pack"), PACKERS.items(), ids=PACKERS)
TEXT = ("Some line of text, é, 中文.\n" * 40_000).encode()


def unpack(data: bytes, name: str, block: int = 1 << 16) -> bytes:
    stream = Unpacked(io.BytesIO(data), name)
    out = b"".join(iter(lambda: stream.read(block), b""))
    assert stream.given == len(out)
    assert stream.taken == len(data)
    return out


@PACKED
@settings(deadline=None, max_examples=40)
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 50))
def test_streams_behind_one_another_are_one_file(
    ending: str, pack: Callable[[bytes], bytes], parts: list[bytes], block: int, looked: int
) -> None:
    data = b"".join(map(pack, parts))
    assert unpack(data, f"a{ending}", block) == b"".join(parts)
    stream = Unpacked(io.BytesIO(data), "whatever its name")
    assert stream.peek(looked) == b"".join(parts)[:looked]
    assert b"".join(iter(lambda: stream.read(block), b"")) == b"".join(parts)


@PACKED
def test_a_file_that_is_cut_off(ending: str, pack: Callable[[bytes], bytes]) -> None:
    data = pack(TEXT)
    for cut in (len(data) - 1, len(data) // 2, 12):
        with pytest.raises(DataError, match=rf"cut off.*a\.txt{ending}, up to byte offset {cut}, behind \d+ unpacked") as caught:
            unpack(data[:cut], f"a.txt{ending}")
        assert caught.value.exit_code == 3
    with pytest.raises(DataError, match="is empty"):
        unpack(b"", f"a.txt{ending}")


@PACKED
def test_a_file_that_is_damaged(ending: str, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DataError, match=rf"damaged.*a{ending}, up to byte offset"):
        unpack(pack(TEXT) + b"no packed data", f"a{ending}")
    with pytest.raises(DataError, match="does not begin so"):
        unpack(b"plain text", f"a{ending}")


@PACKED
def test_a_bad_byte_is_located_in_the_unpacked_text(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:  # C01
    path = tmp_path / f"b.txt{ending}"
    path.write_bytes(pack(b"ok line\nresum\xe9 x\nlast line\n"))
    with pytest.raises(DataError, match=r"line 2, byte offset 13 of the unpacked text, byte 0xE9"):
        read(path)
    assert read(path, encoding_errors="replace") == [["ok line", "resum\ufffd x", "last line"]]


def test_zeros_behind_gzip_are_padding() -> None:
    packed = PACKERS[".gz"](b"a") + bytes(700) + PACKERS[".gz"](b"b") + bytes(3)
    assert unpack(packed, "a.gz") == b"ab"


def test_a_frame_of_zstd_without_content() -> None:
    packed = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + PACKERS[".zst"](b"text")
    assert unpack(packed, "a.zst") == b"text"


def test_a_highly_packed_file_is_unpacked_in_blocks() -> None:
    for ending, pack in PACKERS.items():
        stream = Unpacked(io.BytesIO(pack(bytes(30_000_000))), f"a{ending}")
        sizes = [len(data) for data in iter(partial(stream.read, 1 << 20), b"")]
        assert sum(sizes) == 30_000_000
        assert max(sizes) <= 1 << 20

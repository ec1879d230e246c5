"""What a file that is no UTF-8 text probably is, by its first bytes."""

from __future__ import annotations

_LOOKS_LIKE = {
    b"\xff\xfe": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\xfe\xff": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\x1f\x8b": "It looks like a gzip file: unpack it first.",
    b"PK": "It looks like a zip file: unpack it first.",
}


def looks_like(start: bytes) -> str | None:
    """What to do with a file that begins so; None where its first bytes say nothing."""
    return next((words for magic, words in _LOOKS_LIKE.items() if start.startswith(magic)), None)

"""What a file that is no UTF-8 text probably is, by its first bytes."""

from __future__ import annotations

_LOOKS_LIKE = {
    b"\xff\xfe": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\xfe\xff": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\x1f\x8b": "It looks like a gzip file: unpack it first.",
    b"PK": "It looks like a zip file: unpack it first.",
}


_LOOK = 65_536  # bytes


def looks_like(start: bytes) -> str | None:
    """What to do with a file that begins so, or holds these lines; None where the bytes say nothing."""
    magic = next((words for magic, words in _LOOKS_LIKE.items() if start.startswith(magic)), None)
    if magic is None and _is_gb2312(start[:_LOOK]):
        return "It looks like Chinese in GB18030 (GBK, GB2312): convert it with `iconv -f GB18030 -t UTF-8`."
    return magic


def _is_gb2312(raw: bytes) -> bool:
    """Is it Chinese in two high bytes a character? Big5's second is often low; Korean, in the same bytes, has no 的 nor ，."""
    text = raw.decode("gb18030", "ignore")
    foreign = [c for c in text if c > "\x7f"]
    common = sum(len(c.encode("gb2312", "ignore")) == 2 for c in foreign)
    return (
        ("的" in text or "，" in text) and common >= 0.9 * len(foreign) and 2 * common >= 0.9 * sum(byte > 0x7F for byte in raw)
    )

"""A paragraph in, its sentences out: rules for English and Chinese, mixed text included.

The rules are few and ours because a store depends on them: what a library's next version would cut elsewhere would
change every store and every run made from one. A sentence is a slice of the paragraph, so nothing is ever lost.
"""

from __future__ import annotations

import re

SENTENCES_VERSION = 1
"""Raised whenever a paragraph would be cut otherwise: stores of before are then built anew."""

_CLOSERS = "\"'’”»)\\]}）」』】〉》〕〗＂＇"
_OPENERS = "\"'‘“«([{（「『【〈《〔〖¿¡*-–—"
# It matches at every mark and takes the whole run: a line of a million dots is one match, not a square of attempts.
_MARKS = re.compile(rf"[.!?…。！？；｡؟।۔]++[{_CLOSERS}]*+")
_WIDE = re.compile("[。！？；｡]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff]")
_NEXT = re.compile(rf"\s*[{re.escape(_OPENERS)}]*+\s?(\S)(\w*)")
_LAST_WORD = re.compile(r"([^\s(\[{\"'“‘«—–-]*)$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]$")
_CONTINUING = frozenset("，、,;；：:）)」』”’")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# A name, a number or the rest of the phrase follows these: they end no sentence.
_BOUND = _words(
    """mr mrs ms messrs mx dr prof rev fr sr st ste mt ft gen col lt maj capt cpt cmdr adm sgt cpl pvt brig gov sen rep pres hon
    amb supt insp det pte vs v cf viz e.g i.e eg ie ca c approx esp incl nos vol vols fig figs eq eqs sec ch chap pp ed eds trans
    art op bros messrs mlle mme herr sra dept univ"""
)
# These may end one: only a word that commonly begins a sentence then parts it.
_OPEN = _words(
    """etc inc ltd co corp jr bc ad ph.d m.d b.a m.a b.sc m.sc a.m p.m u.s u.k u.n e.u u.s.a d.c b.c a.d no est al p jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd mass calif conn ill ind wash va tenn pa ont
    min max avg assn intl sq km cm mm kg lb lbs oz hr hrs mi"""
)
_STARTERS = _words(
    """the a an he she it they we you i this that these those there here in on at by for from with after before during since
    until when while where as if although though however but and or so yet his her its their our my your one two some many most
    all both each several other another no not according also then later today despite because although who what why how to of
    following under over through between among upon once meanwhile moreover furthermore additionally first second third"""
)


def split_sentences(paragraph: str) -> list[str]:
    """Cuts a paragraph into sentences, each without white space at its ends; a blank paragraph gives none."""
    sentences: list[str] = []
    start = 0
    for mark in _MARKS.finditer(paragraph):
        if _parts(paragraph, mark, start):
            sentence = paragraph[start : mark.end()].strip()
            if sentence:
                sentences.append(sentence)
            start = mark.end()
    rest = paragraph[start:].strip()
    if rest:
        sentences.append(rest)
    return sentences


def _parts(text: str, mark: re.Match[str], start: int) -> bool:
    """Does a sentence end at this mark?"""
    marks, end = mark.group(), mark.end()
    if end == len(text):
        return False  # the end of the paragraph ends it anyway
    spaced = text[end].isspace()
    if _WIDE.search(marks) or (marks.startswith("……") and not spaced):
        return text[end] not in _CONTINUING  # a quotation that the sentence carries on after: 「好。」，他说
    if not spaced:  # a narrow mark before a Chinese character: 你好!他说, but not 3.14万 or 第3.节
        return marks[0] in "!?" and _HAN.match(text, mark.start() - 1) is not None and _HAN.match(text, end) is not None
    following = _NEXT.match(text, end)
    if following is None:
        return False
    first, rest = following.groups()
    if first.islower() or first in _CONTINUING:
        return False
    if marks[0] == "." and not marks.startswith(".."):
        return _full_stop(text[max(start, mark.start() - 24) : mark.start()], first + rest)
    return True


def _full_stop(before: str, following: str) -> bool:
    """Is the dot behind ``before`` a full stop, or does it belong to an abbreviation or an initial?"""
    match = _LAST_WORD.search(before)
    word = match.group(1) if match else ""
    low = word.lower()
    if not low:
        return bool(before.strip())
    if low in _BOUND:
        return False
    if low in _OPEN or _INITIALS.match(word):
        return following.lower() in _STARTERS and following != "I." and not (len(word) == 1 and following.lower() == "a")
    # A list's number (1. Wash the rice) belongs to what follows it; a year or a figure at a sentence's end does not.
    return not (word.isdigit() and len(word) <= 2 and word == before.strip())

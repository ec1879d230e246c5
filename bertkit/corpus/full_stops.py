"""Is a dot a full stop, or does it belong to an abbreviation, an initial or a number?

The lists are English. An abbreviation that they lack is taken for a word, so that its sentence is cut in two; a word that they
have wrongly is taken for an abbreviation, so that two sentences stay one.
"""

from __future__ import annotations

import re


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# A name, a number or the rest of the phrase follows these: they end no sentence.
BOUND = _words(
    """mr mrs ms messrs mx dr prof rev fr ste mt gen col lt maj capt cpt cmdr adm sgt cpl pvt brig gov sen rep pres hon
    amb supt insp det pte vs v cf viz e.g i.e eg ie ca c approx esp incl nos vol vols fig figs eq eqs ch chap pp ed eds trans
    art op mlle mme herr sra dept univ pg rs"""
)
# These may end one: only a word that commonly begins a sentence then parts it.
OPEN = _words(
    """etc inc ltd co corp bros jr sr st ft sec bc ad ph.d m.d b.a m.a b.sc m.sc a.m p.m u.s u.k u.n e.u u.s.a d.c b.c a.d no
    est al p jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd mass calif conn wash
    tenn ill ind va pa ont min max avg assn intl sq km cm mm kg lb lbs oz hr hrs mi lit mag bull proc natl acad sci biol
    chem phys appl microbiol biotechnol hist biogr cor deut exod ezek isa"""
)
# Words that begin sentences and are hardly ever names. Most were counted on English Wikipedia: common behind a full stop, rare
# behind an initial, seldom in capitals elsewhere.
STARTERS = _words(
    """a about above according accordingly across additional additionally after afterward afterwards again against all almost
    along also alternatively although always among an and another any anyone apart approximately are around as aside at
    based because before beginning behind below beneath besides between beyond both but by can certain certainly clearly
    common consequently conversely could critics currently depending despite did different do does due during each early
    eight either elsewhere especially even eventually every everyone everything examples far finally first five following
    for formerly four fourth from further furthermore generally given had half has have having he hence her here his
    historically how however i if in indeed initially inside instead is it its just large later let like likewise local
    major many meanwhile members modern more moreover most much my near nearly neither never nevertheless next nine no
    nobody none nonetheless not notable note nothing now of often on once one only or originally other others our outside
    over overall part particularly people perhaps please presently previously prior rather recent recently regardless same
    second see seven several she shortly should similar similarly since six so some someone something sometimes soon
    specifically starting still students subsequently such ten that the their then there thereafter therefore these they
    third this those though three through throughout thus to today together toward towards traditionally two typically
    under unfortunately unless unlike until upon using usually various was we well were what when whenever where whereas
    wherever whether which while who whose why with within without would yes yet you your"""
)

# Spelt in small letters these are words after all, unless a number follows: works of art. Smith painted, but art. 5.
_PLAIN = _words("art bull fig no mass wash ill sun sat wed")
# A capital behind these is no initial of a name: World War I. Due to it, the Serie A. Juventus won, Type C. Others.
_NUMBERED = re.compile(
    r"(?<!\w)(?i:war|part|vol|volume|book|chapter|appendix|article|section|table|figure|exhibit|type|class|grade|group"
    r"|division|league|serie|level|stage|phase|plan|schedule|vitamin|hepatitis|influenza|wing|zone|category) [A-Z]$"
)
_CAPITALS = frozenset("VC")  # in capitals a number or an initial, not "versus" or "circa": Pius V. was a Dominican
_LAST_WORD = re.compile(r"([^\s(\[{\"'“‘«—–-]*)$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]$")


def is_full_stop(before: str, following: str) -> bool:
    """Does the dot between ``before`` (of its sentence, the last words at least) and the word ``following`` end a sentence?"""
    match = _LAST_WORD.search(before)
    word = match.group(1) if match else ""
    low = word.lower()
    if not low:
        return bool(before.strip())  # behind a quotation, which is no abbreviation: the film "Dr. No". Lee accepted
    if word in _PLAIN and not following[0].isdigit():
        return True
    if low in BOUND and word not in _CAPITALS:
        return False
    if low in OPEN or _INITIALS.match(word):
        if following.lower() in STARTERS:
            return following != "I." and not (len(word) == 1 and following.lower() == "a")
        return len(word) == 1 and _NUMBERED.search(before) is not None
    # A list's number (1. Wash the rice) belongs to what follows it; a year or a figure at a sentence's end does not.
    return not (word.isdigit() and len(word) <= 2 and word == before.strip())

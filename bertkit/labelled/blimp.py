"""BLiMP's sets: pairs of sentences of which one is grammatical (Warstadt et al. 2020), a JSON object a line.

The files are those of https://github.com/alexwarstadt/blimp, ``data/NAME.jsonl``, 67 of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import DataError, MissingError, UsageError, nearest
from bertkit.labelled.files import lines_of, no_character, read_utf8
from bertkit.labelled.rows import Place

_NAMES = """
    adjunct_island anaphor_gender_agreement anaphor_number_agreement animate_subject_passive animate_subject_trans causative
    complex_NP_island coordinate_structure_constraint_complex_left_branch coordinate_structure_constraint_object_extraction
    determiner_noun_agreement_1 determiner_noun_agreement_2 determiner_noun_agreement_irregular_1
    determiner_noun_agreement_irregular_2 determiner_noun_agreement_with_adj_2
    determiner_noun_agreement_with_adj_irregular_1 determiner_noun_agreement_with_adj_irregular_2
    determiner_noun_agreement_with_adjective_1 distractor_agreement_relational_noun distractor_agreement_relative_clause
    drop_argument ellipsis_n_bar_1 ellipsis_n_bar_2 existential_there_object_raising existential_there_quantifiers_1
    existential_there_quantifiers_2 existential_there_subject_raising expletive_it_object_raising inchoative intransitive
    irregular_past_participle_adjectives irregular_past_participle_verbs irregular_plural_subject_verb_agreement_1
    irregular_plural_subject_verb_agreement_2 left_branch_island_echo_question left_branch_island_simple_question
    matrix_question_npi_licensor_present npi_present_1 npi_present_2 only_npi_licensor_present only_npi_scope passive_1
    passive_2 principle_A_c_command principle_A_case_1 principle_A_case_2 principle_A_domain_1 principle_A_domain_2
    principle_A_domain_3 principle_A_reconstruction regular_plural_subject_verb_agreement_1
    regular_plural_subject_verb_agreement_2 sentential_negation_npi_licensor_present sentential_negation_npi_scope
    sentential_subject_island superlative_quantifiers_1 superlative_quantifiers_2 tough_vs_raising_1 tough_vs_raising_2
    transitive wh_island wh_questions_object_gap wh_questions_subject_gap wh_questions_subject_gap_long_distance
    wh_vs_that_no_gap wh_vs_that_no_gap_long_distance wh_vs_that_with_gap wh_vs_that_with_gap_long_distance
"""
SETS = tuple(_NAMES.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """A minimal pair.

    Attributes:
        id: The set's name and the pair's own id, ``adjunct_island/0``.
        set: The set's name (``UID``).
        term: Its phenomenon (``linguistics_term``).
        good: The grammatical sentence.
        bad: The other one.
        place: Where the pair stands.
    """

    id: str
    set: str
    term: str
    good: str
    bad: str
    place: Place


def read_blimp(folder: Path, *, limit: int | None = None) -> dict[str, list[SentencePair]]:
    """The pairs of each set that lies in a folder, by its name, in the order of the names.

    Args:
        folder: With NAME.jsonl for each set.
        limit: The first so many pairs of each set alone.

    Raises:
        MissingError: The folder, or every one of the sets, is not there (exit 4).
        UsageError: A file is named otherwise than any set (exit 2).
        DataError: A file holds something else (exit 3), with the line.
    """
    if not folder.is_dir():
        what = "This is a file" if folder.exists() else "There is no such folder"
        raise MissingError(f"{what}; BLiMP's sets lie in a folder.", where=str(folder), hint="Give the folder of its NAME.jsonl.")
    files = sorted(path for path in folder.glob("*.jsonl") if not path.name.startswith("."))
    for path in files:
        if path.stem not in SETS:
            raise UsageError(
                f"{path.name} is none of BLiMP's {len(SETS)} sets.{nearest(path.stem, SETS)}",
                where=str(path),
                hint="Each set is a file of its own name, such as adjunct_island.jsonl; move others away.",
            )
    if not files:
        raise MissingError(
            "None of BLiMP's sets lies here.",
            where=str(folder),
            hint=f"They are {len(SETS)} files such as adjunct_island.jsonl: github.com/alexwarstadt/blimp, its folder data.",
        )
    return {path.stem: _read(path, limit) for path in files}


def _read(path: Path, limit: int | None) -> list[SentencePair]:
    pairs: list[SentencePair] = []
    for number, line in enumerate(lines_of(read_utf8(path)), start=1):
        if line.strip():
            pairs.append(_pair(line, path, number))
        if len(pairs) == limit:
            break
    if not pairs:
        raise DataError("The file is empty.", where=str(path))
    return pairs


def _pair(line: str, path: Path, number: int) -> SentencePair:
    place = Place(str(path), number)
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The line is no JSON: {error}.", where=str(place)) from error
    fields = ("sentence_good", "sentence_bad", "UID", "linguistics_term")
    if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in fields):
        raise DataError(f"The line is no pair of BLiMP's: it needs the texts {', '.join(fields)}.", where=str(place))
    for name in fields:
        if (fault := no_character(record[name])) is not None:
            raise DataError(f"{name} holds {fault}.", where=str(place))
    if record["UID"] != path.stem:
        raise DataError(f"The pair is of the set {record['UID']!r}, and the file is {path.stem}'s.", where=str(place))
    return SentencePair(
        id=f"{path.stem}/{record.get('pairID', number - 1)}",
        set=path.stem,
        term=record["linguistics_term"],
        good=record["sentence_good"],
        bad=record["sentence_bad"],
        place=place,
    )

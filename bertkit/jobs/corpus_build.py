"""``bertkit corpus build``: text in, a token store out, in the cache or in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from bertkit.corpus.build import BuildReport, build_store
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.documents import open_corpus
from bertkit.errors import UsageError
from bertkit.jobs.building import build_workers, stores_folder, tell, with_rate
from bertkit.jobs.console import Console
from bertkit.jobs.corpus_cache import size_of
from bertkit.jobs.corpus_vocabulary import vocabulary_of
from bertkit.jobs.outcome import Outcome
from bertkit.settings.tools import CorpusBuildSettings


def build_corpus(settings: CorpusBuildSettings, console: Console) -> Outcome:
    """Builds the store of a text, or finds that it is there.

    Raises:
        BertkitError: As :func:`bertkit.corpus.build.build_store`.
    """
    shard = settings.shard_numbers()
    if shard is not None and (settings.output is None or settings.tokenizer.path is None):
        raise UsageError(
            "A shard needs a folder that all shards share, and one vocabulary for all of them.",
            where="--shard",
            hint="bertkit tokenizer train FILE -o VOCAB; then, for i = 1 to n: bertkit corpus build FILE --tokenizer VOCAB "
            "--output DIR --shard i/n",
        )
    corpus = open_corpus(settings.paths, settings.corpus, once=True)
    wordpiece = vocabulary_of(corpus, settings.corpus, settings.tokenizer, console)
    folder = Path(settings.output) if settings.output is not None else None
    if folder is not None and shard is not None:
        folder = folder / f"shard-{shard[0]:0{len(str(shard[1]))}}-of-{shard[1]}"
    with console.progress("Reading the text", safe=True) as update:
        store, report = build_store(
            corpus,
            wordpiece,
            settings.corpus,
            cache=stores_folder() if folder is None else None,
            folder=folder,
            workers=build_workers(corpus.text_bytes) if settings.workers is None else settings.workers,
            words=segmenter_of(settings.corpus.words),
            shard=shard,
            progress=with_rate(update),
            told=lambda forecast: tell(forecast, console),
        )
    assert store.folder is not None
    size = sum(path.stat().st_size for path in store.folder.iterdir() if path.is_file())
    _tell(console, store.folder, report, size)
    return Outcome(
        state="already finished" if report.reused else "finished",
        output=store.folder,
        extra={
            "counts": report.as_dict(),
            "fingerprint": store.fingerprint,
            "bytes": size,
            "vocabulary": {"size": wordpiece.size, "lowercase": wordpiece.lowercase, "fingerprint": wordpiece.fingerprint},
        },
    )


def _tell(console: Console, folder: Path, report: BuildReport, size: int) -> None:
    if report.reused:
        console.say("Nothing had to be done: the store of this text, vocabulary and settings is there.")
    rows = [
        ("store", str(folder)),
        ("documents", f"{report.documents:,}"),
        ("sentences", f"{report.sentences:,}"),
        ("tokens", f"{report.tokens:,}"),
        ("unknown", f"{100 * report.unknown_tokens / max(1, report.tokens):.2f} %"),
        ("size", f"{size_of(size)} ({size / max(1, report.tokens):.2f} bytes a token)"),
    ]
    for name, value in rows:
        console.result(f"{name:<10} {value}")

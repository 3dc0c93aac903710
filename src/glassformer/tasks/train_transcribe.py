"""From recordings to a finished model directory: check, prepare, train, choose, save."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from glassformer import config
from glassformer.data.audio import Series, is_vectors, read_sound, read_vectors
from glassformer.data.audio_store import AudioStore, write_audio_store
from glassformer.data.counted import counted
from glassformer.data.features import FeatureSettings, automatic_features
from glassformer.data.files import alone_in, write_text
from glassformer.data.lines import text_hash
from glassformer.data.recordings import Recording, RecordingFiles, read_recordings, recordings_fingerprint
from glassformer.data.recordings_check import (
    VECTORS_A_SECOND,
    RecordingReport,
    check_recordings,
    explain_recordings,
)
from glassformer.data.split import default_number
from glassformer.data.store import TokenStore, write_store
from glassformer.data.tokenizer import Tokenizer, TokenizerKind, automatic_size, load_tokenizer, train_tokenizer
from glassformer.errors import UserError, require
from glassformer.model import choose_device
from glassformer.sizes import full_name, load_size_data
from glassformer.tasks.built_in import find_model
from glassformer.tasks.model_dir import save_model
from glassformer.tasks.run import Run, check_folder, check_start, identity_of
from glassformer.tasks.transcribe import (
    RecordingData,
    TranscribeJob,
    TranscribeRecipe,
    TranscriptSettings,
    automatic_transcribe_size,
)
from glassformer.tasks.transcribe_model import load_start, make_model
from glassformer.train.machine import keep_memory
from glassformer.train.report import Report

# Hours that a training hears by default; less data is heard more often, but not more than so many times.
HOURS, MOST_EPOCHS, LEAST_STEPS = 100, 150, 1500
KINDS = ("char", "bpe", "word")


@dataclass(frozen=True)
class SpeechFiles:
    train: RecordingFiles
    valid: RecordingFiles | None  # None: hold some of the training recordings out


def train_transcribe(
    files: SpeechFiles,
    recipe: TranscribeRecipe,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    tensorboard: bool = False,
) -> bool:
    """Train in the folder `out`; False if the run was stopped before its end and can be taken up."""
    began = time.monotonic()
    keep_memory()
    check_folder(out, resume)
    _check_recipe(recipe, device)
    found = check_recordings(files.train, files.valid)
    with alone_in(out):
        return _train(files, found, recipe, device, Run(out, resume, Report(out, quiet, tensorboard), began))


def _train(files: SpeechFiles, found: RecordingReport, recipe: TranscribeRecipe, device: str, run: Run) -> bool:
    say, out = run.report.say, run.out
    say(explain_recordings(found))
    recipe = _resolve(recipe, found)
    assert recipe.features is not None
    identity = identity_of(
        recipe, (recordings_fingerprint(f) if f is not None else None for f in (files.train, files.valid))
    )
    data = _prepare(files, found, recipe, run, identity)
    model = make_model(recipe, data.train.tokenizer.vocab_size).to(choose_device(device))
    kind = recipe.size if recipe.start is None else f"as {recipe.start}"
    run.say_model(kind, model, f", {counted(len(data.train.tokens), 'recording')} to learn from")
    job = TranscribeJob(model, data.train, data.valid, recipe, recipe.features)
    if job.parts is not None:
        say(f"Cut at pauses between words, they are {counted(sum(map(len, job.parts)), 'part')}.")
    n_steps = len(job.plan_epoch(0)) / recipe.train.n_batches  # of an epoch
    epochs = min(MOST_EPOCHS, max(1.0, HOURS * 3600 / found.seconds))
    finished = run.train(job, recipe, identity, max(LEAST_STEPS, round(epochs * n_steps)))
    if finished is None:
        return False
    finished.about.update(
        recordings=found.n_recordings,
        features=config.to_data(recipe.features),
        ctc=recipe.ctc,
        longest=round(min(recipe.max_seconds, found.longest), 2),
        alphabet=found.alphabet,
    )
    shown = {key: value for key, value in finished.about.items() if key not in ("features", "alphabet")}
    what, use = f"A speech recogniser trained by Glassformer; size {recipe.size}.", "transcribe MODEL FILE.wav"
    run.write_card(what, use, replace(finished, about=shown))
    save_model(out, "transcribe", model, data.train.tokenizer, about=finished.about)
    run.end(finished, use)
    return True


def _check_recipe(recipe: TranscribeRecipe, device: str) -> None:
    """What can be refused before the data is read."""
    choose_device(device)
    if recipe.start is not None:
        find_model(recipe.start)
        shaped = recipe.size != "auto" or bool(recipe.model) or recipe.features is not None
        check_start(recipe.start, shaped or recipe.tokenizer != TranscriptSettings())
    elif recipe.size != "auto":
        load_size_data(full_name(recipe.size, "transcribe"))
    require(
        recipe.start is not None or not recipe.augment.crossed,
        "augment.crossed needs a model to start from, which knows where the words of a recording are.",
        "Train without it first; then once more with it and --from that model.",
    )
    kind = recipe.tokenizer.kind
    require(
        kind in KINDS or Path(kind).is_file(),
        f"There is no tokenizer {kind!r}.",
        f"Choose {', '.join(KINDS)}, or give a tokenizer.json.",
    )


def _resolve(recipe: TranscribeRecipe, found: RecordingReport) -> TranscribeRecipe:
    features = recipe.features
    if recipe.start is not None:
        start = load_start(recipe.start)
        features = start.features
        require(
            start.knows_ctc or not recipe.augment.crossed,
            f"augment.crossed asks CTC where the words are, and {recipe.start} was trained without it.",
            "Leave it out, or start from a model that was trained with ctc above 0.",
        )
    elif features is None:
        vectors = FeatureSettings(kind="vectors", n_features=max(1, found.width))
        features = vectors if found.width else automatic_features(found.rate)
    fits = features.n_features == found.width if found.width else features.kind != "vectors"
    require(
        fits and (features.kind == "vectors") == bool(found.width),
        f"The model reads {features.kind} of {features.n_features} numbers, but the files hold "
        f"{f'vectors of {found.width}' if found.width else 'sound'}.",
        "Leave out the features' settings.",
    )
    require(
        features.kind == "vectors" or not recipe.augment.throat,
        "augment.throat is for vectors that are cepstral numbers; here is sound.",
        "Leave it out: augment.speeds does the same for sound.",
    )
    require(
        features.kind != "vectors" or bool(recipe.augment.throat) or not recipe.augment.crossed,
        "augment.crossed cuts recordings where they are quiet, which only sound and cepstral numbers tell.",
        "Leave it out; or, if the vectors are MFCC, set augment.throat=0.1.",
    )
    size = automatic_transcribe_size(found.seconds) if recipe.size == "auto" and recipe.start is None else recipe.size
    return replace(recipe, size=size, features=features)


@dataclass(frozen=True)
class Prepared:
    train: RecordingData
    valid: RecordingData


def _prepare(files: SpeechFiles, found: RecordingReport, recipe: TranscribeRecipe, run: Run, identity: str) -> Prepared:
    """Samples and tokens on disk; what an earlier start of the same run made is used again."""
    out, folder, say = run.out, run.data, run.report.say
    if run.is_prepared(identity, recipe):
        tokenizer = load_tokenizer(out / "tokenizer.json")
        parts = [
            RecordingData(AudioStore(folder / name), TokenStore(folder / name), tokenizer)
            for name in ("train", "valid")
        ]
        return Prepared(*parts)
    train, valid = _divide(files, found)
    if recipe.start is not None:
        tokenizer = load_start(recipe.start).tokenizer
    else:
        tokenizer = _make_tokenizer([item.text for item in train], recipe)
    write_text(out / "tokenizer.json", tokenizer.to_json())
    train_data = _write(train, tokenizer, recipe, folder / "train", "to learn from")
    valid_data = _write(valid, tokenizer, recipe, folder / "valid", "to validate on")
    n_left_out = len(train) - len(train_data.tokens), len(valid) - len(valid_data.tokens)
    if any(n_left_out):
        say(
            f"Left out: {counted(n_left_out[0], 'recording')} to learn from and {n_left_out[1]:,} to validate on, "
            f"{_limits(recipe)}."
        )
    say(f"Vocabulary: {tokenizer.vocab_size:,} tokens. Validation: {counted(len(valid_data.tokens), 'recording')}.")
    run.prepared(identity)
    return Prepared(train_data, valid_data)


def _make_tokenizer(texts: list[str], recipe: TranscribeRecipe) -> Tokenizer:
    settings = recipe.tokenizer
    if settings.kind not in KINDS:
        return load_tokenizer(Path(settings.kind))
    kind: TokenizerKind = settings.kind  # type: ignore[assignment]
    return train_tokenizer(texts, kind, settings.size or automatic_size(sum(map(len, texts)), kind))


def _divide(files: SpeechFiles, found: RecordingReport) -> tuple[list[Recording], list[Recording]]:
    """Training and validation; what is held out is the same every time, and does not follow the order of the list."""
    train = _usable(files.train, found.bad_lines)
    if files.valid is not None and found.valid is not None:
        return train, _usable(files.valid, found.valid.bad_lines)
    order = sorted(train, key=lambda item: text_hash(f"{item.path.name} {item.text}"))
    held = {item.line for item in order[: default_number(len(train))]}
    return [i for i in train if i.line not in held], [i for i in train if i.line in held]


def _usable(files: RecordingFiles, bad_lines: Iterable[int]) -> list[Recording]:
    bad = set(bad_lines)
    return [item for item in read_recordings(files) if isinstance(item, Recording) and item.line not in bad]


def _limits(recipe: TranscribeRecipe) -> str:
    return f"unreadable, over {recipe.max_seconds:g} seconds, or with more than {recipe.max_tokens} tokens"


def _write(
    items: list[Recording], tokenizer: Tokenizer, recipe: TranscribeRecipe, path: Path, use: str
) -> RecordingData:
    features = recipe.features
    assert features is not None
    kept: list[list[int]] = []
    rate = VECTORS_A_SECOND if features.kind == "vectors" else float(features.rate)

    def series() -> Iterator[Series]:
        for item in items:
            ids = tokenizer.encode(item.text)
            try:
                found = read_series(item.path, features)
            except UserError:  # not such as the model reads, or gone since the check; it is counted
                continue
            if len(found) <= recipe.max_seconds * rate and 0 < len(ids) <= recipe.max_tokens:
                kept.append(ids)
                yield found

    audio = write_audio_store(path, series())
    require(
        bool(kept),
        f"No recording is left {use}: of {counted(len(items), 'usable one')} all are {_limits(recipe)}.",
        "Raise max_seconds or max_tokens, or cut the recordings.",
    )
    return RecordingData(audio, write_store(path, kept, tokenizer.vocab_size), tokenizer)


def read_series(path: Path, features: FeatureSettings) -> Series:
    """A file as the model of these features reads it: samples of its rate, or vectors of its width."""
    if features.kind == "vectors":
        require(is_vectors(path), f"{path} is no file of vectors, which the model reads.", "Give .npy, .npz or .mfc.")
        return read_vectors(path, features.n_features)
    require(not is_vectors(path), f"{path} holds vectors, but the model hears sound.", "Give a wav, flac, ogg or mp3.")
    return read_sound(path, features.rate)

"""`glassformer train TASK DATA…`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from glassformer.tasks.run import Recipe

train = typer.Typer(help="Train a model on your own data.", no_args_is_help=False)

R = TypeVar("R", bound="Recipe")
# Options that all tasks share.
Out = Annotated[Path, typer.Option(help="The folder for the model.")]
Size = Annotated[str, typer.Option(help="tiny, small, base, big, or auto.")]
Minutes = Annotated[float | None, typer.Option(help="Plan the training so that it ends in time.")]
Steps = Annotated[
    int | None, typer.Option(help="Train for so many steps; without it and --minutes, what the data is worth.")
]
Vocab = Annotated[int | None, typer.Option(help="Tokens of the vocabulary; automatic if left out.")]
RecipeFile = Annotated[Path | None, typer.Option(help="A recipe file (TOML).")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="Change a setting, as train.lr=1e-3.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Write the curves for TensorBoard too.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


@train.command()
def translate(
    data: Annotated[
        list[Path], typer.Argument(help="One file of pairs (TSV, CSV, JSONL; .gz too), or two aligned files.")
    ],
    out: Out,
    valid: Annotated[list[Path] | None, typer.Option(help="Validation pairs, as DATA; else some are held out.")] = None,
    source: Annotated[str | None, typer.Option(help="The source field of a CSV, TSV or JSONL file.")] = None,
    target: Annotated[str | None, typer.Option(help="The target field.")] = None,
    size: Size = "auto",
    minutes: Minutes = None,
    steps: Steps = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A trained model to start from; new words are added.")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="bpe, word, char, or a tokenizer.json.")] = None,
    vocab: Vocab = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    resume: Resume = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
) -> None:
    """Train a translator on sentence pairs.

    glassformer train translate pairs.tsv --valid dev.tsv --out runs/en-de --minutes 30
    """
    from glassformer.data.pairs import open_pairs
    from glassformer.tasks.train_translate import TrainingFiles, train_translate
    from glassformer.tasks.translate import TranslateRecipe

    files = TrainingFiles(open_pairs(data, source, target), open_pairs(valid, source, target) if valid else None)
    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    checked = read_recipe(TranslateRecipe, recipe, flags, changes)
    finished = train_translate(files, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)


@train.command()
def complete(
    data: Annotated[
        list[Path], typer.Argument(help="Text files, folders of them, or JSONL with a field text; .gz too.")
    ],
    out: Out,
    valid: Annotated[
        list[Path] | None, typer.Option(help="Validation text, as DATA; else the end is held out.")
    ] = None,
    field: Annotated[str, typer.Option(help="The field of JSONL files that holds the text.")] = "text",
    size: Size = "auto",
    minutes: Minutes = None,
    steps: Steps = None,
    context: Annotated[int | None, typer.Option(help="Tokens that the model sees at once; 256 if left out.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="A trained or imported model to start from.")] = None,
    lora: Annotated[
        int | None, typer.Option(help="With --from: leave it as it is and train detours of this rank; 8 is usual.")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="bpe, char, byte, word, or a tokenizer.json.")] = None,
    vocab: Vocab = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    resume: Resume = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
) -> None:
    """Train a language model on text.

    glassformer train complete book.txt --out runs/book --minutes 15
    """
    from glassformer.data.documents import open_documents
    from glassformer.tasks.complete import CompleteRecipe
    from glassformer.tasks.text import TextFiles
    from glassformer.tasks.train_complete import train_complete

    files = TextFiles(open_documents(data, field), open_documents(valid, field) if valid else None)
    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "context": context,
        "lora.rank": lora,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    checked = read_recipe(CompleteRecipe, recipe, flags, changes)
    finished = train_complete(files, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)


@train.command()
def classify(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled texts (TSV, CSV, JSONL; .gz too), series of vectors (NPZ, NPY, JSONL), or pictures "
            "(a folder with a folder for each class, a table of paths, IDX, NPZ)."
        ),
    ],
    out: Out,
    valid: Annotated[list[Path] | None, typer.Option(help="Validation data, as DATA; else some is held out.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="For an NPY file of vectors: its labels, one a line, or NPY.")
    ] = None,
    valid_labels: Annotated[Path | None, typer.Option(help="The same for an NPY file of --valid.")] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Arrays (n, height, width) are pictures, not series of vectors.")
    ] = False,
    text: Annotated[str | None, typer.Option(help="The column or field of the text: its name, or number.")] = None,
    text2: Annotated[str | None, typer.Option(help="That of the second text of a pair.")] = None,
    label: Annotated[str | None, typer.Option(help="That of the label.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="What labels are: class, classes (many for each) or number; found if left out.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="What parts many labels of one text, such as | or ,")] = None,
    size: Size = "auto",
    minutes: Minutes = None,
    steps: Steps = None,
    epochs: Annotated[float | None, typer.Option(help="Read all examples so many times.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A model to start from: an encoder, or a language model (GPT's way).")
    ] = None,
    lora: Annotated[
        int | None, typer.Option(help="With --from: leave it as it is and train detours of this rank; 8 is usual.")
    ] = None,
    freeze: Annotated[int | None, typer.Option(help="With --from: leave so many of its lowest layers alone.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="Choose the best by accuracy, f1, matthews, pearson, spearman …")
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Let rare classes count as much as common ones.")] = False,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many validations without progress; 0 never does.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of a text that are read; 256 if left out.")] = None,
    allow_rare: Annotated[
        bool, typer.Option("--allow-rare", help="Train although a class was seen only once.")
    ] = False,
    tokenizer: Annotated[str | None, typer.Option(help="bpe, char, byte, word, or a tokenizer.json.")] = None,
    vocab: Vocab = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    resume: Resume = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on labelled texts, pairs of texts, series of vectors, or pictures.

    glassformer train classify reviews.tsv --out runs/mood --minutes 10
    """
    from glassformer.cli.labelled import open_subject
    from glassformer.data.labelled_layout import Columns
    from glassformer.tasks.classify import ClassifyRecipe
    from glassformer.tasks.train_classify import train_classify

    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "epochs": epochs,
        "labels": kind,
        "lora.rank": lora,
        "freeze": freeze,
        "metric": metric,
        "balance": "true" if balance else None,
        "allow_rare": "true" if allow_rare else None,
        "max_tokens": max_tokens,
        "train.patience": patience,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    checked = read_recipe(ClassifyRecipe, recipe, flags, changes)
    if separator is not None:
        checked = dataclasses.replace(checked, separator=separator)
    read = open_subject(data, valid, Columns(text, text2, label), labels, valid_labels, pictures)
    finished = train_classify(read, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)


@train.command()
def fill(
    data: Annotated[
        list[Path], typer.Argument(help="Text files, folders of them, or JSONL with a field text; .gz too.")
    ],
    out: Out,
    valid: Annotated[
        list[Path] | None, typer.Option(help="Validation text, as DATA; else the end is held out.")
    ] = None,
    field: Annotated[str, typer.Option(help="The field of JSONL files that holds the text.")] = "text",
    size: Size = "auto",
    minutes: Minutes = None,
    steps: Steps = None,
    context: Annotated[int | None, typer.Option(help="Tokens that the model sees at once; 128 if left out.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="A trained or imported model to start from.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="bpe, char, byte, word, or a tokenizer.json.")] = None,
    vocab: Vocab = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    resume: Resume = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
) -> None:
    """Train an encoder on text by letting it fill blanks; labels can be taught to it afterwards.

    glassformer train fill book.txt --out runs/book --minutes 15
    """
    from glassformer.data.documents import open_documents
    from glassformer.tasks.fill import FillRecipe
    from glassformer.tasks.text import TextFiles
    from glassformer.tasks.train_fill import train_fill

    files = TextFiles(open_documents(data, field), open_documents(valid, field) if valid else None)
    flags = {
        "size": size if size != "auto" else None,
        "start": start,
        "context": context,
        "train.minutes": minutes,
        "train.steps": steps,
        "tokenizer.kind": tokenizer,
        "tokenizer.size": vocab,
    }
    checked = read_recipe(FillRecipe, recipe, flags, changes)
    finished = train_fill(files, checked, out, resume, device, quiet, tensorboard)
    raise typer.Exit(0 if finished else 130)


def read_recipe(kind: type[R], file: Path | None, flags: dict[str, Any], changes: list[str] | None) -> R:
    """The recipe file, over it the flags, over them what --set says."""
    from glassformer import config

    settings = config.read_toml(file) if file else {}
    settings = config.override(settings, [f"{key}={value}" for key, value in flags.items() if value is not None])
    settings = config.override(settings, changes or [])
    return config.parse(kind, settings, str(file) if file else "The settings")

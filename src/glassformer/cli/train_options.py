"""The options that all `train` verbs share, written once: each verb receives them as one object."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from glassformer.tasks.run import Recipe

R = TypeVar("R", bound="Recipe")
Lora = Annotated[
    int | None, typer.Option(help="With --from: leave it as it is and train detours of this rank; 8 is usual.")
]

NAMES = ("start", "tokenizer.kind")


@dataclass(frozen=True)
class Options:
    out: Annotated[Path, typer.Option(help="The folder for the model.")]
    size: Annotated[str, typer.Option(help="tiny, small, base, big, or auto.")] = "auto"
    minutes: Annotated[float | None, typer.Option(help="Plan the training so that it ends in time.")] = None
    steps: Annotated[
        int | None, typer.Option(help="Train for so many steps; without it and --minutes, what the data is worth.")
    ] = None
    tokenizer: Annotated[
        str | None, typer.Option(help="bpe, char, word, or a tokenizer.json; for plain text also byte.")
    ] = None
    vocab: Annotated[int | None, typer.Option(help="Tokens of the vocabulary; automatic if left out.")] = None
    recipe: Annotated[Path | None, typer.Option(help="A recipe file (TOML).")] = None
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting, as train.lr=1e-3.")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto"
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write the curves for TensorBoard too.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False

    def read_recipe(self, kind: type[R], **flags: Any) -> R:
        """The recipe file, over it the flags, over them what --set says. Two underlines stand for a dot."""
        from glassformer import config

        shared = {
            "size": self.size if self.size != "auto" else None,
            "train.minutes": self.minutes,
            "train.steps": self.steps,
            "tokenizer.kind": self.tokenizer,
            "tokenizer.size": self.vocab,
        }
        given = {**shared, **{key.replace("__", "."): value for key, value in flags.items()}}
        settings = config.read_toml(self.recipe) if self.recipe else {}
        assignments = [_assignment(key, value) for key, value in given.items() if value is not None]
        settings = config.override(settings, assignments)
        settings = config.override(settings, self.changes or [])
        return config.parse(kind, settings, str(self.recipe) if self.recipe else "The settings")

    def run(self, train: Callable[..., bool], files: Any, recipe: "Recipe") -> NoReturn:
        """Train, and end the program: 130 if it was stopped on the way."""
        finished = train(files, recipe, self.out, self.resume, self.device, self.quiet, self.tensorboard)
        raise typer.Exit(0 if finished else 130)


def _assignment(key: str, value: Any) -> str:
    """A flag as --set has it; the name of a folder or file stays a name, be it 2024, true or none."""
    from glassformer import config

    if key in NAMES:
        value = config.write_toml({"name": f"./{value}" if value == "none" else value}).partition("=")[2]
    return f"{key}={value}"


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb with a parameter `options`, as typer can read it: with every shared option in its place."""
    own = [p for p in inspect.signature(verb).parameters.values() if p.name != "options"]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(Options)
    ]
    names = {parameter.name for parameter in shared}

    @functools.wraps(verb)
    def spread(**given: Any) -> None:
        options = Options(**{name: value for name, value in given.items() if name in names})
        verb(**{name: value for name, value in given.items() if name not in names}, options=options)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + shared
    parameters.sort(key=lambda p: p.default is not inspect.Parameter.empty)  # what must be given is shown first
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {p.name: p.annotation for p in parameters}
    return spread

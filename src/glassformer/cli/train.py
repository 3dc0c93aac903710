"""`glassformer train TASK DATA…`."""

import typer

from glassformer.cli.train_classify import classify
from glassformer.cli.train_options import with_options
from glassformer.cli.train_text import complete, fill
from glassformer.cli.train_transcribe import transcribe
from glassformer.cli.train_translate import translate

train = typer.Typer(help="Train a model on your own data.", no_args_is_help=False)
for verb in (translate, complete, classify, fill, transcribe):
    train.command()(with_options(verb))

"""Arguments and options that several verbs have in common, with one help text each."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="A model directory, or the name of a built-in model.")]
Others = Annotated[
    list[str] | None,
    typer.Option("--with", help="Another translator of the same vocabulary that answers together with it; repeatable."),
]
Engine = Annotated[str, typer.Option(help="auto, c++, ctranslate2 or torch.")]
Precision = Annotated[str, typer.Option(help="auto, fp32 or int8.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Nothing on stderr.")]

# Where in a file to look.
Source = Annotated[str | None, typer.Option(help="The source field of a CSV, TSV or JSONL file.")]
Target = Annotated[str | None, typer.Option(help="The target field.")]
Text2 = Annotated[str | None, typer.Option(help="That of the second text of a pair.")]
Label = Annotated[str | None, typer.Option(help="That of the label.")]

# How labelled data is read.
LabelsFile = Annotated[Path | None, typer.Option(help="For an NPY file of vectors: its labels, one a line, or NPY.")]
ValidLabels = Annotated[Path | None, typer.Option(help="The same for an NPY file of --valid.")]
AsPictures = Annotated[
    bool, typer.Option("--pictures", help="Arrays (n, height, width) are pictures, not series of vectors.")
]
LabelsKind = Annotated[
    str | None, typer.Option(help="What labels are: class, classes (many for each) or number; found if left out.")
]
Separator = Annotated[str | None, typer.Option(help="What parts many labels of one text, such as | or ,")]

# How answers are searched for, or drawn.
Beam = Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")]
LengthPenalty = Annotated[float, typer.Option(help="Scores are divided by length to this power.")]
MaxLen = Annotated[int, typer.Option(help="Tokens of an answer at most.")]
TopK = Annotated[int, typer.Option(help="Draw from the k best only; 0 is all.")]
TopP = Annotated[float, typer.Option(help="Draw from the best that make up this share.")]
MinP = Annotated[float, typer.Option(help="Draw from what is at least this share of the best.")]
Seed = Annotated[int | None, typer.Option(help="Draw the same again.")]

"""From counting words to the Transformer: every rung a working model with one face (`rung.py`)."""

from glassformer.ladder.counts import Uniform, Unigram
from glassformer.ladder.embedded import EmbeddedAttention
from glassformer.ladder.markov import BackOff, Markov
from glassformer.ladder.onehot import OneHotAttention
from glassformer.ladder.recurrent import LSTM, Recurrent
from glassformer.ladder.rung import Explanation, Matrix, Prediction, Reason, Rung
from glassformer.ladder.skips import MaskedSkips, Skips
from glassformer.ladder.transformer import FullTransformer, OneLayerTransformer

__all__ = [
    "LSTM",
    "BackOff",
    "EmbeddedAttention",
    "Explanation",
    "FullTransformer",
    "Markov",
    "MaskedSkips",
    "Matrix",
    "OneHotAttention",
    "OneLayerTransformer",
    "Prediction",
    "Reason",
    "Recurrent",
    "Rung",
    "Skips",
    "Uniform",
    "Unigram",
]

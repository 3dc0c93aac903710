"""The stack that thinks: attention, feed-forward, norms."""

from dataclasses import dataclass, field
from typing import Literal

from glassformer.errors import UserError, require
from glassformer.model.settings.base import Activation, Settings


@dataclass(frozen=True, kw_only=True)
class RotaryScaling(Settings):
    """Slower turns, so that a model trained on short texts can read longer ones."""

    # linear slows all turns alike; llama3 leaves the quick ones, which tell neighbours apart, and slows the others.
    kind: Literal["linear", "llama3"] = "linear"
    factor: float = 1.0
    # llama3 only: positions that the model first knew, and where quick ends and slow begins, in turns over them.
    original: int = 8192
    slow: float = 1.0
    quick: float = 4.0

    def __post_init__(self) -> None:
        require(self.factor >= 1, f"scaling.factor is {self.factor}, but turns are slowed by it.", "Give 1 or more.")
        self._at_least(1, "original")
        require(
            0 < self.slow < self.quick,
            f"scaling.slow is {self.slow} and scaling.quick {self.quick}, but slow turns are fewer.",
            "The usual values are 1 and 4.",
        )


@dataclass(frozen=True, kw_only=True)
class RotarySettings(Settings):
    """Queries and keys turned by an angle that grows with the position."""

    base: float = 10_000.0
    # Hugging Face's Llama turns (i, i + d/2) together; the RoFormer paper and llama2.c turn (2i, 2i + 1).
    layout: Literal["interleaved", "halves"] = "halves"
    scaling: RotaryScaling | None = None

    def __post_init__(self) -> None:
        require(self.base > 1, f"rotary.base is {self.base}, but it must be above 1.", "The usual value is 10000.")


@dataclass(frozen=True, kw_only=True)
class NormSettings(Settings):
    kind: Literal["layer", "rms"] = "layer"
    eps: float = 1e-5
    # Pre-norm trains deep stacks without long warm-up; post-norm is the paper's.
    place: Literal["pre", "post"] = "pre"
    # A pre-norm stack needs one more norm at its end; a post-norm stack has it already.
    final: bool | None = None

    def __post_init__(self) -> None:
        require(self.eps > 0, f"norm.eps is {self.eps}, but it must be above 0.", "The usual value is 1e-5.")

    @property
    def has_final(self) -> bool:
        return self.place == "pre" if self.final is None else self.final


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(Settings):
    n_heads: int = 8
    # Fewer key/value heads than query heads save cache memory (Llama 2); None means one for each query head.
    n_kv_heads: int | None = None
    # None means d_model / n_heads, as in the paper.
    d_k: int | None = None
    d_v: int | None = None
    # Which of the four projections carry a bias: BERT "qkvo", Llama "", Whisper "qvo".
    bias: str = "qkvo"
    rotary: RotarySettings | None = None
    # On the weights, after the softmax; the paper has none here, GPT-2 and BERT do.
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._at_least(1, "n_heads")
        self._share("dropout")
        for name in ("n_kv_heads", "d_k", "d_v"):
            if getattr(self, name) is not None:
                self._at_least(1, name)
        require(
            set(self.bias) <= set("qkvo"),
            f"attention.bias is {self.bias!r}, but it names projections.",
            'Use some of the letters q, k, v, o, such as "qkvo", "qvo" or "".',
        )
        require(
            self.n_heads % self.kv_heads == 0,
            f"attention.n_heads is {self.n_heads}, which n_kv_heads {self.kv_heads} does not divide.",
            "Every key/value head serves the same number of query heads: choose a divisor.",
        )

    @property
    def kv_heads(self) -> int:
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads


@dataclass(frozen=True, kw_only=True)
class FeedForwardSettings(Settings):
    d_ff: int = 2048
    activation: Activation = "relu"
    # Gated: w_2(act(w_gate x) * w_1 x); with silu this is SwiGLU.
    gated: bool = False
    bias: bool = True
    # After the activation; the paper has none here.
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._at_least(1, "d_ff")
        self._share("dropout")


@dataclass(frozen=True, kw_only=True)
class ConvolutionSettings(Settings):
    """What stands close together, heard together (the Conformer's): sounds are shorter than words."""

    # Positions that one filter sees, itself in the middle.
    width: int = 15

    def __post_init__(self) -> None:
        require(
            self.width >= 1 and self.width % 2 == 1,
            f"convolution.width is {self.width}, but a filter has as many positions on either side.",
            "Choose an odd number, such as 15.",
        )


@dataclass(frozen=True, kw_only=True)
class StackSettings(Settings):
    """A pile of equal blocks; the shape that holds it decides whether it is causal and looks at a memory."""

    d_model: int = 512
    n_layers: int = 6
    attention: AttentionSettings = field(default_factory=AttentionSettings)
    feed_forward: FeedForwardSettings = field(default_factory=FeedForwardSettings)
    norm: NormSettings = field(default_factory=NormSettings)
    # For encoders of sound.
    convolution: ConvolutionSettings | None = None
    # On every sub-layer's output before it is added, as in the paper.
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "d_model")
        self._at_least(0, "n_layers")
        self._share("dropout")
        a = self.attention
        if (a.d_k is None or a.d_v is None) and self.d_model % a.n_heads:
            near = [n for n in range(1, self.d_model + 1) if self.d_model % n == 0]
            best = min(near, key=lambda n: (abs(n - a.n_heads), n))
            raise UserError(
                f"d_model is {self.d_model}, which attention.n_heads {a.n_heads} does not divide.",
                f"Set n_heads to {best}, d_model to {-(-self.d_model // a.n_heads) * a.n_heads}, or give d_k and d_v.",
            )
        require(
            a.rotary is None or self.d_k % 2 == 0,
            f"attention.d_k is {self.d_k}, but rotary positions turn pairs of numbers.",
            "Choose d_model and n_heads so that d_k is even, or set an even attention.d_k.",
        )

    @property
    def d_k(self) -> int:
        return self.attention.d_k or self.d_model // self.attention.n_heads

    @property
    def d_v(self) -> int:
        return self.attention.d_v or self.d_model // self.attention.n_heads

"""What a model is, as data: frozen dataclasses, closed unions, every default with its reason.

Each class checks what only it can know (`__post_init__`); types and unknown keys are checked at the edge by
`glassformer.config`. Deliberately not here: names of ready-made models (`glassformer.sizes`), and training.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from glassformer.errors import UserError, require

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Common ground of all settings: unknown keys are refused."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def _at_least(self, least: float, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(
                value >= least,
                f"{name} is {value}, but it must be at least {least}.",
                f"Set {name} to {least} or more.",
            )

    def _share(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(0 <= value < 1, f"{name} is {value}, but it is a share.", f"Set {name} to 0 or more and below 1.")


@dataclass(frozen=True, kw_only=True)
class SinusoidalSettings(Settings):
    """Fixed waves of the paper; they have no longest position."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    # The paper interleaves sine and cosine; Marian puts all sines before all cosines.
    layout: Literal["interleaved", "halves"] = "interleaved"


@dataclass(frozen=True, kw_only=True)
class LearnedSettings(Settings):
    """One trained vector per position, up to `max_len`."""

    kind: Literal["learned"] = "learned"
    max_len: int = 1024

    def __post_init__(self) -> None:
        self._at_least(1, "max_len")


Positions = SinusoidalSettings | LearnedSettings


@dataclass(frozen=True, kw_only=True)
class RotarySettings(Settings):
    """Queries and keys turned by an angle that grows with the position."""

    base: float = 10_000.0
    # Hugging Face's Llama turns (i, i + d/2) together; the RoFormer paper and llama2.c turn (2i, 2i + 1).
    layout: Literal["interleaved", "halves"] = "halves"

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
class StackSettings(Settings):
    """A pile of equal blocks; the shape that holds it decides whether it is causal and looks at a memory."""

    d_model: int = 512
    n_layers: int = 6
    attention: AttentionSettings = field(default_factory=AttentionSettings)
    feed_forward: FeedForwardSettings = field(default_factory=FeedForwardSettings)
    norm: NormSettings = field(default_factory=NormSettings)
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


@dataclass(frozen=True, kw_only=True)
class TokensSettings(Settings):
    """Ids looked up in a table."""

    kind: Literal["tokens"] = "tokens"
    vocab_size: int = 8000
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    # The paper multiplies embeddings by sqrt(d_model), so that a tied table serves both ends and the waves do not drown
    # the words; None does so beside sinusoidal positions only.
    scale: bool | None = None
    # BERT marks the first and second sentence by a type id.
    n_types: int = 0
    # BERT normalises the sum.
    norm: NormSettings | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "vocab_size")
        self._at_least(0, "n_types")
        self._share("dropout")

    @property
    def is_scaled(self) -> bool:
        return isinstance(self.positions, SinusoidalSettings) if self.scale is None else self.scale


@dataclass(frozen=True, kw_only=True)
class FramesSettings(Settings):
    """Audio features, shortened by a pile of strided convolutions of width 3."""

    kind: Literal["frames"] = "frames"
    n_features: int = 80
    # One convolution per stride; (1, 2) is Whisper's and halves the length. () is a plain projection.
    strides: tuple[int, ...] = (1, 2)
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_features")
        self._share("dropout")
        require(
            all(s >= 1 for s in self.strides), f"frames.strides is {self.strides}.", "Each stride must be 1 or more."
        )


@dataclass(frozen=True, kw_only=True)
class PatchesSettings(Settings):
    """A picture cut into squares, each projected to a vector."""

    kind: Literal["patches"] = "patches"
    height: int = 224
    width: int = 224
    n_channels: int = 3
    patch: int = 16
    # ViT reads the class off an extra first position.
    class_token: bool = True
    learned_positions: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._at_least(1, "height", "width", "n_channels", "patch")
        self._share("dropout")
        for name in ("height", "width"):
            require(
                getattr(self, name) % self.patch == 0,
                f"patches.{name} is {getattr(self, name)}, which patch {self.patch} does not divide.",
                f"Choose a multiple of {self.patch}, or another patch size.",
            )

    @property
    def n_patches(self) -> int:
        return (self.height // self.patch) * (self.width // self.patch)


@dataclass(frozen=True, kw_only=True)
class VectorsSettings(Settings):
    """Any series of vectors, projected to the model's width."""

    kind: Literal["vectors"] = "vectors"
    n_features: int = 13
    positions: Positions | None = field(default_factory=SinusoidalSettings)
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_features")
        self._share("dropout")


FrontEnd = TokensSettings | FramesSettings | PatchesSettings | VectorsSettings


@dataclass(frozen=True, kw_only=True)
class TokenHeadSettings(Settings):
    """One score per word of the vocabulary, at every position."""

    kind: Literal["token"] = "token"
    bias: bool = False
    # BERT puts a dense layer, its activation and a norm before the scores.
    transform: Activation | None = None
    norm: NormSettings = field(default_factory=NormSettings)


Pooling = Literal["first", "mean", "last"]


@dataclass(frozen=True, kw_only=True)
class ClassHeadSettings(Settings):
    """One score per class for the whole sequence."""

    kind: Literal["class"] = "class"
    n_classes: int = 2
    # "last" is for decoders (GPT), "first" for a class token (BERT, ViT).
    pooling: Pooling = "mean"
    # BERT's pooler: a dense layer and its activation before the scores.
    transform: Activation | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_classes")
        self._share("dropout")


@dataclass(frozen=True, kw_only=True)
class RegressionHeadSettings(Settings):
    """Numbers for the whole sequence."""

    kind: Literal["regression"] = "regression"
    n_values: int = 1
    pooling: Pooling = "mean"
    transform: Activation | None = None
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self._at_least(1, "n_values")
        self._share("dropout")


@dataclass(frozen=True, kw_only=True)
class EmbeddingHeadSettings(Settings):
    """One vector for the whole sequence."""

    kind: Literal["embedding"] = "embedding"
    pooling: Pooling = "mean"
    # BERT's pooler, where a model carries one.
    transform: Activation | None = None
    normalise: bool = True


Head = TokenHeadSettings | ClassHeadSettings | RegressionHeadSettings | EmbeddingHeadSettings


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderSettings(Settings):
    """Sequence to sequence: translation, transcription."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    source: FrontEnd = field(default_factory=TokensSettings)
    target: TokensSettings = field(default_factory=TokensSettings)
    encoder: StackSettings = field(default_factory=StackSettings)
    decoder: StackSettings = field(default_factory=StackSettings)
    head: TokenHeadSettings = field(default_factory=TokenHeadSettings)
    tie_source_target: bool = True
    tie_output: bool = True
    # None: Xavier, which suits the paper's shape; a number: normal with this deviation, as GPT and BERT do.
    init_std: float | None = None

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        if not self.tie_source_target:
            return
        source, target = self.source, self.target
        require(
            isinstance(source, TokensSettings),
            f"tie_source_target is true, but the source is {source.kind}, which has no table of words.",
            "Set tie_source_target = false.",
        )
        assert isinstance(source, TokensSettings)
        require(
            source.vocab_size == target.vocab_size and self.encoder.d_model == self.decoder.d_model,
            "tie_source_target is true, but source and target tables differ: "
            f"{source.vocab_size} x {self.encoder.d_model} and {target.vocab_size} x {self.decoder.d_model}.",
            "Set tie_source_target = false, or give both the same vocab_size and d_model.",
        )


@dataclass(frozen=True, kw_only=True)
class DecoderOnlySettings(Settings):
    """Completion: each position sees the earlier ones only (GPT)."""

    kind: Literal["decoder_only"] = "decoder_only"
    source: TokensSettings = field(default_factory=TokensSettings)
    decoder: StackSettings = field(default_factory=StackSettings)
    head: Head = field(default_factory=TokenHeadSettings)
    tie_output: bool = True
    init_std: float | None = 0.02

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        _check_tie(self.tie_output, self.source, self.head)


@dataclass(frozen=True, kw_only=True)
class EncoderOnlySettings(Settings):
    """Representation: each position sees all others (BERT, ViT)."""

    kind: Literal["encoder_only"] = "encoder_only"
    source: FrontEnd = field(default_factory=TokensSettings)
    encoder: StackSettings = field(default_factory=StackSettings)
    head: Head = field(default_factory=TokenHeadSettings)
    tie_output: bool = False
    init_std: float | None = 0.02

    def __post_init__(self) -> None:
        _check_init(self.init_std)
        _check_tie(self.tie_output, self.source, self.head)
        require(
            isinstance(self.source, TokensSettings) or not isinstance(self.head, TokenHeadSettings),
            f"The head scores tokens, but the source is {self.source.kind}, which has no vocabulary.",
            'Set head.kind to "class", "regression" or "embedding".',
        )


def _check_init(std: float | None) -> None:
    require(
        std is None or 0 < std < math.inf,
        f"init_std is {std}, but it must be above 0.",
        "The usual value is 0.02; none is Xavier.",
    )


def _check_tie(tie_output: bool, source: FrontEnd, head: Head) -> None:
    require(
        not tie_output or (isinstance(source, TokensSettings) and isinstance(head, TokenHeadSettings)),
        f"tie_output is true, but there is no table to share between a {source.kind} source and a {head.kind} head.",
        "Set tie_output = false.",
    )


ModelSettings = EncoderDecoderSettings | DecoderOnlySettings | EncoderOnlySettings

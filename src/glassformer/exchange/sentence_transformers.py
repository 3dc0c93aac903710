"""What sentence-transformers says beside a model: modules.json, the pooling, the longest text.

Read as more fields of config.json, so that the folder takes the one way that all take.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import UserError, require
from glassformer.exchange.foreign import LARGEST_JSON, read_json

ARCHITECTURE = "SentenceTransformer"  # of our own: the bare encoder and a vector a text
POOLINGS = {"mean": "mean", "cls": "first", "lasttoken": "last"}
NO_LENGTH = 1 << 31  # transformers writes 1e30 where nothing is known
COPY = "Copy it again from where it came."


@dataclass(frozen=True)
class Sentences:
    """How one vector comes of a text."""

    folder: Path  # that holds config.json and the weights
    pooling: str
    normalise: bool
    max_len: int | None
    lower_case: bool

    def extend(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The config.json with what was found."""
        return {
            **config,
            "architectures": [ARCHITECTURE],
            "sentence_pooling": self.pooling,
            "sentence_normalise": self.normalise,
            "max_seq_length": self.max_len,
        }


def read_sentences(folder: Path) -> Sentences | None:
    """What modules.json says, if there is one; parts that are not known here are refused."""
    if not (folder / "modules.json").exists():
        return None
    modules = _read_list(folder / "modules.json")
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    require(
        kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]),
        f"{folder / 'modules.json'} asks for {', '.join(kinds)[:100] or 'nothing'}, which Glassformer lacks.",
        "Take a model of Transformer, Pooling and maybe Normalize.",
    )
    paths = [_inside(folder, module.get("path")) for module in modules]
    about = _read_maybe(paths[0] / "sentence_bert_config.json")
    _refuse_more(folder)
    return Sentences(
        paths[0],
        _pooling(paths[1] / "config.json"),
        "Normalize" in kinds,
        _longest(about.get("max_seq_length"), paths[0]),
        about.get("do_lower_case") is True,
    )


def _longest(given: Any, folder: Path) -> int | None:
    """The most tokens of a text; since version 6 it stands in the tokenizer's file alone. Too large means none."""
    for found in (given, _read_maybe(folder / "tokenizer_config.json").get("model_max_length")):
        if type(found) is int and found > 0:
            return found if found < NO_LENGTH else None
    return None


def _pooling(path: Path) -> str:
    """The one way that is switched on; older files have a switch for each, newer ones a name."""
    config = read_json(path)
    named = config.get("pooling_mode")
    switches = {
        "cls": "cls_token",
        "lasttoken": "lasttoken",
        "mean": "mean_tokens",
        "max": "max_tokens",
        "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
        "weightedmean": "weightedmean_tokens",
    }
    chosen = [mode for mode, switch in switches.items() if config.get(f"pooling_mode_{switch}") is True]
    modes = [named] if isinstance(named, str) else list(named) if isinstance(named, list) else chosen
    require(
        len(modes) == 1 and modes[0] in list(POOLINGS),
        f"{path} pools by {', '.join(map(str, modes))[:80] or 'nothing'}, which Glassformer lacks.",
        f"Take a model that pools by {', '.join(POOLINGS)}.",
    )
    return POOLINGS[modes[0]]


def _refuse_more(folder: Path) -> None:
    """Words before each text, and vectors that are cut off."""
    about = _read_maybe(folder / "config_sentence_transformers.json")
    name, prompts = about.get("default_prompt_name"), about.get("prompts")
    prompt = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
    require(
        not prompt,
        f"{folder} puts the words {str(prompt)[:60]!r} before each text, which is not done here.",
        "Take default_prompt_name out of config_sentence_transformers.json, and write the words yourself.",
    )
    n = about.get("truncate_dim")
    require(
        n is None,
        f"{folder} keeps only the first {str(n)[:20]} numbers of each vector, which is not done here.",
        "Take truncate_dim out of config_sentence_transformers.json, and cut the vectors yourself.",
    )


def _inside(folder: Path, name: Any) -> Path:
    """A folder in the folder, or itself where the name is empty."""
    plain = isinstance(name, str) and "\\" not in name and name in ("", Path(name).name) and name != ".."
    require(plain, f"{folder / 'modules.json'} names the folder {str(name)[:60]!r}, which is not in it.", COPY)
    return folder / str(name)


def _read_maybe(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _read_list(path: Path) -> list[dict[str, Any]]:
    try:
        require(path.stat().st_size <= LARGEST_JSON, f"{path} is too large for what it is to hold.", "Check the file.")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}.", COPY) from None
    sound = isinstance(data, list) and all(isinstance(module, dict) for module in data)
    require(sound, f"{path} holds no list of modules.", COPY)
    return list(data)

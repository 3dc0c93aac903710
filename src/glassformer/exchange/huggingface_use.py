"""How an encoder from Hugging Face is used, for settings.json: what its labels mean."""

from collections.abc import Mapping
from typing import Any

from glassformer import config as checked
from glassformer.data.labels import Labels
from glassformer.exchange.huggingface_settings import Config

CLASSIFIERS = ("BertForSequenceClassification", "ViTForImageClassification")


def read_use(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the task needs to know besides the weights."""
    use: dict[str, Any] = {}
    if config["architectures"][0] in CLASSIFIERS:
        use["labels"] = checked.to_data(read_labels(config))
    if config["model_type"] == "bert" and "labels" in use:
        use |= {"input": "text", "n_texts": 1}
    return use


def read_labels(config: Mapping[str, Any]) -> Labels:
    """Classes by name, or by number where the file has no names; one label alone is a number, as in Hugging Face."""
    table = Config(config).table("id2label")
    n = len(table) or config.get("num_labels", 2)
    if n == 1:
        return Labels("number")
    names = tuple(str(table.get(str(i), i)) for i in range(n))
    many = config.get("problem_type") == "multi_label_classification"
    return Labels("classes" if many else "class", names, "," if many else "")

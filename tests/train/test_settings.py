"""Settings that no training could keep to are refused in words."""

import pytest

from glassformer import config
from glassformer.errors import UserError
from glassformer.train.settings import TrainSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", "-1"), ("seed", str(2**64)), ("minutes", "inf"), ("minutes", "nan"), ("eps", "-1.0"), ("eps", "inf")],
)
def test_what_cannot_be_is_refused(name: str, value: str) -> None:
    with pytest.raises(UserError, match=f"{name} is "):
        config.parse(TrainSettings, config.override({}, [f"{name}={value}"]))


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_seeds_of_any_size_are_taken(seed: int) -> None:
    assert config.parse(TrainSettings, {"seed": seed}).seed == seed  # type: ignore[attr-defined]

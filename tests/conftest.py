"""Every test starts from the same seed, and hypothesis tries the same examples every time."""

import os

import pytest
import torch
from hypothesis import settings

pytest_plugins = ["tests.browser"]

# A machine under load is no reason to fail: no deadline; and the same examples every time.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)

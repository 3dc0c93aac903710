"""The C++ as processors without AVX-512 get it, tested where there is AVX-512: the same tests once more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fast.rounded import needs_compiler

HERE = Path(__file__).parent
FILES = [str(HERE / name) for name in ("test_native.py", "test_native_translator.py", "test_packed.py")]
SOME = "shape or rounded_layers or sums or activation or company or alone or chunks or threads or stack or totals"


@needs_compiler
@pytest.mark.skipif("avx512_vnni" not in Path("/proc/cpuinfo").read_text(), reason="all tests are of this form here")
def test_eight_numbers_at_a_time() -> None:
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", SOME, *FILES]
    done = subprocess.run(
        run,
        env={**os.environ, "GLASSFORMER_CXXFLAGS": "-mno-avx512f"},
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout

"""What the store needs of the attribution costs no numpy."""

from __future__ import annotations

import subprocess
import sys


def test_opening_the_store_module_imports_nothing_heavy() -> None:
    program = (
        "import sys, nexmark.store; print(*{'numpy', 'pyspark', 'zstandard'} & {*sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []

"""How much memory a program needs on Linux: the command ``bursar`` from Python.

>>> import bursar
>>> bursar.run(["sort", "big.txt"]).peak_bytes            # one run
>>> bursar.budget(["sort", "big.txt"]).budget_bytes       # the limit to ask for
>>> with bursar.measure() as m: work()                    # this process
>>> bursar.read("run.bursar").series                      # a record as frames

In a notebook, ``%load_ext bursar`` and then ``%%bursar`` measures a cell. In pytest, ``@pytest.mark.bursar(max="512M")``
fails a test that needs more. All sizes are bytes, all times are seconds; what is not known is ``None``, never 0.
"""

from __future__ import annotations

from typing import Any

from ._command import BursarError, command_path, size
from ._measure import Measurement, measure
from ._record import Record, read
from ._runs import Budget, Run, budget, run

__all__ = [
    "Budget",
    "BursarError",
    "Measurement",
    "Record",
    "Run",
    "budget",
    "command_path",
    "measure",
    "read",
    "run",
    "size",
]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext bursar`` adds the cell magic ``%%bursar``."""
    from ._notebook import bursar_magic

    shell.register_magic_function(bursar_magic, magic_kind="cell", magic_name="bursar")

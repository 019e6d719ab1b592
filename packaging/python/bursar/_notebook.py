"""The cell magic ``%%bursar``."""

from __future__ import annotations

from typing import Any

from ._measure import Measurement, measure


def bursar_magic(line: str, cell: str) -> None:
    """Measures the memory of this cell, and shows its peak with a picture. In the line: a file for the record."""
    from IPython.core.getipython import get_ipython
    from IPython.display import SVG, display

    shell: Any = get_ipython()
    measured: Measurement
    with measure(line.strip() or None) as measured:
        result = shell.run_cell(cell)
    print(measured)
    display(SVG(measured._repr_svg_()))  # type: ignore[no-untyped-call]
    # IPython has shown the error; a caller that runs all cells must see it, too.
    result.raise_error()

"""Markdown tables and the numbers in them."""

import statistics


def mib(value):
    return "?" if value is None else f"{value / (1 << 20):.0f} MiB" if value >= 10 << 20 else f"{value / (1 << 20):.2f} MiB"


def ratio(value, digits=2):
    return "?" if value is None else f"{value:.{digits}f}x"


def spread(values, digits=3):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def markdown(head, rows):
    table = [head, *rows]
    widths = [max(len(str(row[i])) for row in table) for i in range(len(head))]
    lines = ["| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)

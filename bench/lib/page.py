"""docs/measured.md, made of the latest result of each question."""

import os

from . import results

PAGE = results.BENCH.parent / "docs" / "measured.md"

HEADER = """# What was measured

This page is generated: `bench/report` renders the latest result of each question from [bench/results](../bench/results). Each result file also has the whole table that its bars are taken from.
[bench/README.md](../bench/README.md) describes the commands, which need root and a machine that does nothing else. A bar is what a figure is held to; missed bars stay on this page.
A figure like `1.02 (0.98-1.05)` is a median with the smallest and the largest value. `never`, `madvise` and `always` are the kernel's settings for huge pages. Every host so far was a virtual machine on
shared hardware, so speeds differ between dates; these hosts also page out memory that nobody has accessed for a minute (DAMON).
"""

# As `bursar --help` lists them.
COMMANDS = ["run", "watch", "attribute", "faults", "budget", "predict", "check", "provision", "advise", "balance", "curve", "serve"]


def order(name):
    command = name.partition("-")[0]
    return (COMMANDS.index(command) if command in COMMANDS else len(COMMANDS), name)


def latest(found):
    """By name, the newest result, by command; of two of one day that of the host whose name is last."""
    by_name = {}
    for result in sorted(found, key=lambda result: (result.date, result.host.name())):
        by_name[result.name] = result
    return [by_name[name] for name in sorted(by_name, key=order)]


def markdown(head, rows):
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [head, ["---"] * len(head), *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def verdict(result):
    judged = [bar for bar in result.bars if bar.bar is not None]
    met = sum(bar.met is True for bar in judged)
    match len(judged), met:
        case 0, _:
            return []
        case 1, _:
            return [{True: "The bar is met.", False: "The bar is missed.", None: "The runs do not show whether the bar is met."}[judged[0].met]]
        case 2, 2:
            return ["Both bars are met."]
        case count, 0:
            return [f"None of {count} bars is met."]
        case count, _ if met == count:
            return [f"All {met} bars are met."]
        case count, _:
            return [f"{met} of {count} bars {'is' if met == 1 else 'are'} met."]


def bars(result):
    verdicts = {True: "yes", False: "**no**", None: "not shown"}
    rows = [[bar.figure, bar.value, bar.bar or "", verdicts[bar.met] if bar.bar else ""] for bar in result.bars]
    return markdown(["figure", "measured", "bar", "met"], rows)


def table(result):
    titles = [column["name"] + (f", {column['unit']}" if column["unit"] else "") for column in result.columns]
    return markdown(titles, result.rows)


def host(of):
    words = [f"{of.cores} cores", f"{of.memory_bytes / (1 << 30):.0f} GiB", *([of.processor] if of.processor else []), f"Linux {of.kernel}"]
    return ", ".join(words)


def section(result):
    where = os.path.relpath(result.path(), PAGE.parent)
    commit = f" at {result.commit}" if result.commit else ""
    source = f"Measured {result.date} on {host(result.host)} by `{result.command}`{commit} ([data]({where}))."
    sentences = verdict(result)
    if len(result.bars) == 1:
        # A table of one row says no more than a sentence.
        only = result.bars[0]
        sentences.append(f"{only.figure[0].upper()}{only.figure[1:]}: {only.value}" + (f" (bar: {only.bar})." if only.bar else "."))
        shown = []
    else:
        shown = ["", bars(result) if result.bars else table(result)]
    answer = " ".join(sentences + result.notes)
    return "\n".join([f"### {result.question}", *([answer] if answer else []), source, *shown, ""])


def render(found):
    parts, command = [HEADER], None
    for result in latest(found):
        if command != result.name.partition("-")[0]:
            command = result.name.partition("-")[0]
            parts.append(f"## `bursar {command}`")
        parts.append(section(result))
    return "\n".join(parts)


def load_all():
    return [results.load(path) for path in sorted(results.RESULTS.glob("*/*/*.json"))]

"""The files bench/results/HOST/DATE/NAME.json: one result each. bench/README.md documents the format.

As a command it reads what a program prints, repeats it, and saves its first markdown table: see publish.sh.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys

from . import table

BENCH = pathlib.Path(__file__).resolve().parent.parent
RESULTS = BENCH / "results"
# A cell's unit moves to its column where all cells of the column have it.
UNITS = ["MiB", "GiB", "KiB", "ns", "us", "µs", "ms", "s", "%"]


@dataclasses.dataclass
class Bar:
    """A figure and what it is held to; `bar` is None where it is held to nothing, `met` is None where the runs do not show it."""

    figure: str
    value: str
    bar: str | None = None
    met: bool | None = None


@dataclasses.dataclass
class Host:
    cores: int
    memory_bytes: int
    kernel: str
    virtual: bool
    processor: str | None = None

    def name(self):
        words = f"{self.cores} cores {self.memory_bytes / (1 << 30):.0f} GiB {self.processor or ''}"
        return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


@dataclasses.dataclass
class Result:
    # COMMAND-TOPIC, also the file's name: `bursar COMMAND` is what the question is about.
    name: str
    question: str
    # What made it.
    command: str
    date: str
    # Of bursar; None where it is not known.
    commit: str | None
    host: Host
    # Each has a name and a unit, or None.
    columns: list
    # Of cells as they are printed; "" where there is none.
    rows: list
    bars: list
    # At most two sentences.
    notes: list

    def path(self):
        return RESULTS / self.host.name() / self.date / f"{self.name}.json"

    def write(self):
        self.path().parent.mkdir(parents=True, exist_ok=True)
        self.path().write_text(self.text())

    def text(self):
        """JSON, with a line for each row, so that a change of one shows as one."""
        def show(value):
            one_line = json.dumps(value, ensure_ascii=False)
            if not isinstance(value, list) or not value:
                return one_line
            return "[\n  " + ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n ]"
        fields = dataclasses.asdict(self).items()
        return "{\n" + ",\n".join(f' "{name}": {show(value)}' for name, value in fields) + "\n}\n"


def load(path):
    values = json.loads(path.read_text())
    values["host"], values["bars"] = Host(**values["host"]), [Bar(**bar) for bar in values["bars"]]
    return Result(**values)


def columns(head, rows):
    """Columns and rows with each unit in its column, where all cells of the column have the same."""
    rows = [[str(cell) for cell in row] for row in rows]
    found = []
    for at, title in enumerate(head):
        name, _, unit = title.rpartition(", ")
        if unit in UNITS:
            found.append({"name": name, "unit": unit})
            continue
        cells = [re.fullmatch(r"([-+]?\d[\d.,]*) ?(\D+)", row[at]) for row in rows if row[at] not in ("", "-")]
        units = {cell and cell[2] for cell in cells}
        unit = units.pop() if len(units) == 1 else None
        if unit in UNITS:
            for row in rows:
                row[at] = row[at].removesuffix(unit).rstrip()
            found.append({"name": title, "unit": unit})
        else:
            found.append({"name": title, "unit": None})
    return found, rows


def judged(head, rows, values, words=1, bar="bar"):
    """A bar for each row that has one: the figure is the row's first cells, its value what is in these columns."""
    found = []
    for row in rows:
        cells = dict(zip(head, row))
        if cells[bar]:
            value = ", ".join(f"{cells[name]} {name}" if len(values) > 1 else cells[name] for name in values if cells.get(name))
            found.append(Bar(", ".join(row[:words]), value, cells[bar], cells["met"] == "yes"))
    return found


def this_host():
    processor = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", processor, re.MULTILINE)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
    return Host(os.cpu_count(), memory, platform.release(), " hypervisor" in processor, name and name[1].strip())


def commit():
    said = subprocess.run(["git", "-C", BENCH, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return said.stdout.strip() or None


def parse(parser, arguments=None):
    """The options of a bench, --save among them."""
    parser.add_argument("--save", action="store_true", help="also write each table to bench/results/HOST/DATE/NAME.json")
    return parser.parse_args(arguments)


def publish(options, name, question, head, rows, bars=(), notes=(), command=None):
    """Prints the table and its bars, and saves them where the options ask for it."""
    print(table.markdown(head, rows))
    if bars:
        print("\nBars:")
    for bar in bars:
        verdict = {True: "met", False: "MISSED", None: "not shown"}[bar.met]
        print(f"- {bar.figure}: {bar.value}" + (f" (bar {bar.bar}: {verdict})" if bar.bar else ""))
    if options.save:
        save(name, question, head, rows, bars, notes, command)


def save(name, question, head, rows, bars=(), notes=(), command=None):
    if command is None:
        words = [word for word in sys.argv[1:] if word != "--save"]
        command = shlex.join([f"bench/{pathlib.Path(sys.argv[0]).name}", *words])
    titles, cells = columns(head, rows)
    result = Result(name, question, command, datetime.date.today().isoformat(), commit(), this_host(), titles, cells, list(bars), list(notes))
    result.write()
    print(f"saved: {result.path()}", file=sys.stderr)


def tables(lines):
    """The markdown tables among these lines, as (head, rows)."""
    found, is_within = [], False
    for line in lines:
        if line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
            if not is_within:
                found.append((cells, []))
            elif not re.fullmatch(r"[|\s:-]+", line):
                found[-1][1].append(cells)
        is_within = line.startswith("|")
    return found


def printed_bars(head, rows):
    """Bars of a table whose last column has them, as in "≤ 3 %: met", or as in "met" where its title is "bar: ≤ 3 %"."""
    title, _, for_all = head[-1].partition(": ")
    found = []
    for row in rows:
        bar, _, verdict = row[-1].rpartition(": ")
        if title == "bar" and verdict in ("met", "missed"):
            value = ", ".join(f"{name} {cell}" for name, cell in zip(head[1:-1], row[1:-1]) if cell != "-")
            found.append(Bar(row[0], value, bar or for_all, verdict == "met"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("command", "name", "question"):
        parser.add_argument(name)
    options = parse(parser)
    lines = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line)
    if options.save:
        head, rows = tables(lines)[0]
        save(options.name, options.question, head, rows, printed_bars(head, rows), command=options.command)


if __name__ == "__main__":
    main()

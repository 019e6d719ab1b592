"""For gdb: counts the calls of MPI's functions that come from outside MPI's libraries, by breakpoints.

gdb -batch -x breakpoints.py --args PROGRAM …; the counts are written to $COUNTS, a line each: its names, then the count.
"""

import os
import re
import subprocess

import gdb

MPI = re.compile(r"^lib(mpi|mpich|mpichfort|mpi_abi|mpi_mpifh|mpi_usempi\w*)(-\w+)?\.so")
# The constructors of Open MPI's C++ bindings call MPI before the runtime's own has run, so that is not seen.
INSIDE = re.compile(MPI.pattern + r"|^libmpi_cxx|^lib(open-|mca_|uc[ptsm])|^mca_")
counts = {}
names = {}
seen = set()


class Entry(gdb.Breakpoint):
    def stop(self):
        came_from = int(gdb.parse_and_eval("*(unsigned long *)$rsp"))
        library = gdb.solib_name(came_from) or ""
        if not INSIDE.match(os.path.basename(library)):
            pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
            counts[pc] = counts.get(pc, 0) + 1
        return False


def text_of(path):
    listing = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    return next(int(m.group(1), 16) for m in re.finditer(r"\s\.text\s+PROGBITS\s+(\w+)", listing))


def add_breakpoints():
    for line in gdb.execute("info sharedlibrary", to_string=True).splitlines():
        fields = line.split()
        if len(fields) < 4 or not fields[0].startswith("0x"):
            continue
        path = fields[-1]
        if path in seen or not MPI.match(os.path.basename(path)):
            continue
        seen.add(path)
        base = int(fields[0], 16) - text_of(path)
        listing = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout
        for symbol in listing.splitlines():
            value, kind, name = symbol.split()
            name = name.split("@")[0]
            if kind not in "TWi" or not re.match(r"^[pP]?(MPI|mpi)[XOxo]?_|^pmpir_", name):
                continue
            address = base + int(value, 16)
            if address not in names:
                Entry(f"*{address:#x}")
            names.setdefault(address, []).append(name)


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("set stop-on-solib-events 1")
gdb.execute("set print inferior-events off")
gdb.execute("handle SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE nostop noprint pass")
gdb.execute("run")
while gdb.selected_inferior().pid:
    add_breakpoints()
    gdb.execute("continue")
with open(os.environ["COUNTS"], "w") as out:
    for address, count in counts.items():
        print(" ".join(names[address]), count, file=out)

"""The list of benchmark programs, and running one of them."""

import dataclasses
import os
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(os.environ.get("BURSAR_BENCH_DATA", BENCH.parent / "target" / "bench-data"))
RESULTS = pathlib.Path(os.environ.get("BURSAR_BENCH_RESULTS", BENCH.parent / "target" / "bench-results"))

# ScaLAPACK's test of its LU factorization, of MPICH's package.
XDLU = "/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu"

# Open MPI refuses to run as root without these; `sort` is to compare bytes, whatever the user's language.
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "LC_ALL": "C",
}


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    command: str
    resembles: str

    def argv(self):
        # exec: the shell is not part of the job.
        return ["sh", "-c", f"exec {self.command}"]


def read_list():
    # Another list for the benches that have one of their own.
    path = os.environ.get("BURSAR_BENCH_LIST", BENCH / "programs.list")
    lines = pathlib.Path(path).read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return [Program(*(cell.strip() for cell in row)) for row in rows]


def choose(names):
    listed = {p.name: p for p in read_list()}
    unknown = [n for n in names if n not in listed]
    if unknown:
        sys.exit(f"no program is called {', '.join(unknown)}; there are {', '.join(listed)}")
    return [listed[n] for n in names] if names else list(listed.values())


def evict(files):
    """Drops the files' clean pages from the page cache, whoever they are charged to."""
    for path in files:
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def bursar():
    """The release build, else the debug build, else what $BURSAR names."""
    target = BENCH.parent / "target"
    candidates = [os.environ.get("BURSAR"), target / "release" / "bursar", target / "debug" / "bursar"]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return str(path)
    sys.exit("bursar is not built; run: cargo build --release (or set BURSAR to the binary)")

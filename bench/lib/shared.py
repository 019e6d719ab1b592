"""Programs in cgroups (version 1) that share memory, with swap of the bench's own."""

import os
import pathlib
import struct
import subprocess
import time

from . import programs

MIB = 1 << 20
MEMORY = pathlib.Path("/sys/fs/cgroup/memory")


class Zram:
    def __init__(self, mib):
        self.id = pathlib.Path("/sys/class/zram-control/hot_add").read_text().strip()
        pathlib.Path(f"/sys/block/zram{self.id}/disksize").write_text(f"{mib}M")
        self.kind = pathlib.Path(f"/sys/block/zram{self.id}/comp_algorithm").read_text().split("[")[1].split("]")[0]
        subprocess.run(["mkswap", f"/dev/zram{self.id}"], check=True, capture_output=True)
        subprocess.run(["swapon", f"/dev/zram{self.id}"], check=True)

    def close(self):
        subprocess.run(["swapoff", f"/dev/zram{self.id}"])
        pathlib.Path(f"/sys/block/zram{self.id}/reset").write_text("1")
        pathlib.Path("/sys/class/zram-control/hot_remove").write_text(self.id)


def never_kill(cgroup):
    """On cgroup v1 the kernel now and then finds nothing to reclaim for a moment, and kills with swap free. Who would be killed waits; see `wake`."""
    (cgroup / "memory.oom_control").write_text("1")


def wake(cgroup):
    """Whoever waits because nothing was found to reclaim tries again."""
    if "under_oom 1" in (cgroup / "memory.oom_control").read_text():
        limit = cgroup / "memory.limit_in_bytes"
        now = int(limit.read_text())
        for to in (now + 4 * MIB, now):
            try:
                limit.write_text(str(to))
            except OSError:
                pass


def built(folder):
    """The program that they are, in `folder`."""
    binary = folder / "shared"
    subprocess.run(["cc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-o", binary, programs.BENCH / "programs" / "shared.c"], check=True)
    return binary


class Program:
    """In a cgroup of its own, beneath `parent`; it is given a file of 8 bytes to count in, and `words`."""

    def __init__(self, name, words, binary, folder, parent, limit):
        self.dir, self.counter = parent / name, folder / name
        self.dir.mkdir()
        self.limit(limit)
        self.counter.write_bytes(bytes(8))
        enter = lambda: (self.dir / "cgroup.procs").write_text("0")  # noqa: E731
        self.process = subprocess.Popen([binary, self.counter, *words], preexec_fn=enter)

    def limit(self, bytes_):
        if bytes_ is not None:
            (self.dir / "memory.limit_in_bytes").write_text(str(bytes_))

    def limit_now(self):
        return int((self.dir / "memory.limit_in_bytes").read_text())

    def done(self):
        return struct.unpack("Q", self.counter.read_bytes())[0]

    def refaults(self):
        stat = dict(line.split() for line in (self.dir / "memory.stat").read_text().splitlines())
        return int(stat["workingset_refault_anon"]) + int(stat["workingset_refault_file"])

    def close(self):
        self.process.kill()
        self.process.wait()
        for _ in range(100):
            try:
                return self.dir.rmdir()
            except OSError:
                time.sleep(0.05)

"""A memory cgroup of one's own, version 1 or 2: the sweep's limits, set without bursar."""

import os
import pathlib
import signal
import sys
import time


def _hierarchy():
    """(version, mount point) of the memory controller."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    for _, where, kind, options, *_ in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            return 1, pathlib.Path(where)
    for _, where, kind, *_ in mounts:
        if kind == "cgroup2" and "memory" in pathlib.Path(where, "cgroup.subtree_control").read_text().split():
            return 2, pathlib.Path(where)
    sys.exit("there is no memory cgroup to set limits with; as root on cgroup v2, run: "
             "echo +memory > /sys/fs/cgroup/cgroup.subtree_control")


class Cgroup:
    """Fresh for every run, removed by `close`."""

    def __init__(self, name):
        self.version, root = _hierarchy()
        self.path = root / f"bursar-bench-{os.getpid()}-{name}"
        try:
            self.path.mkdir()
        except OSError as error:
            sys.exit(f"cannot make the cgroup {self.path}: {error.strerror}; the sweep needs root")

    def _number(self, name):
        try:
            return int((self.path / name).read_text())
        except FileNotFoundError:
            return None

    def _table(self, name):
        return {k: int(v) for k, v in (line.split() for line in (self.path / name).read_text().splitlines())}

    def set_limit(self, limit):
        """In bytes; no swap beyond it."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if self.version == 1 else ["memory.max"]
        for name in names:
            if (self.path / name).exists():
                (self.path / name).write_text(str(limit))
        if self.version == 2 and (self.path / "memory.swap.max").exists():
            (self.path / "memory.swap.max").write_text("0")

    def enter(self):
        """Moves the calling process; for the child between fork and exec."""
        (self.path / "cgroup.procs").write_text("0")

    def usage(self):
        return self._number("memory.usage_in_bytes" if self.version == 1 else "memory.current")

    def peak(self):
        return self._number("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")

    def unreclaimable(self):
        """The charge less the page cache of files and the reclaimable slab."""
        stat = self._table("memory.stat")
        if self.version == 1:
            return self.usage() - (stat["total_cache"] - stat.get("total_shmem", 0))
        return self.usage() - (stat["file"] - stat["shmem"]) - stat.get("slab_reclaimable", 0)

    def oom_kills(self):
        return self._table("memory.oom_control" if self.version == 1 else "memory.events")["oom_kill"]

    def kill(self):
        """Ends whatever is left inside."""
        while pids := (self.path / "cgroup.procs").read_text().split():
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def empty(self):
        """Reclaims all that can be; returns the bytes that stay charged."""
        os.sync()
        left = self.usage()
        while True:
            try:
                if self.version == 1:
                    (self.path / "memory.force_empty").write_text("0")
                else:
                    (self.path / "memory.reclaim").write_text(str(left))
            except OSError:
                pass  # EAGAIN, EBUSY: not all of it at once
            before, left = left, self.usage()
            if left < 1 << 20 or left >= before:
                return left

    def close(self):
        self.kill()
        left = self.empty()
        for _ in range(100):
            try:
                self.path.rmdir()
                return left
            except OSError:
                time.sleep(0.02)
        sys.exit(f"cannot remove the cgroup {self.path}")

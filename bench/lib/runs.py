"""One measured run of a program: from a cold cache, in a cgroup of its own, under a limit or none."""

import dataclasses
import itertools
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

from . import programs
from .cgroup import Cgroup

_numbers = itertools.count()
# A run's cgroup is removed also when its bench is ended by SIGTERM.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@dataclasses.dataclass
class Run:
    limit_bytes: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int | None
    # Peak of what cannot be reclaimed, sampled.
    floor_bytes: int
    # ok | oom | stopped | failed
    outcome: str
    left_bytes: int

    def ratio(self, reference_seconds):
        """Run time over the reference's; infinite if it did not finish."""
        return self.wall_seconds / reference_seconds if self.outcome == "ok" else float("inf")


def _wait(pid, cgroup, deadline):
    """Waits for the process, samples its cgroup; (status, rusage, floor, stopped)."""
    poll = select.poll()
    pidfd = os.pidfd_open(pid)
    poll.register(pidfd, select.POLLIN)
    floor, stopped = 0, False
    while not poll.poll(100):
        floor = max(floor, cgroup.unreclaimable())
        if not stopped and time.monotonic() > deadline:
            stopped = True
            # mpirun removes its files in /dev/shm when it is asked to end, and not when it is killed.
            os.kill(pid, signal.SIGTERM)
            if not poll.poll(3000):
                cgroup.kill()
    os.close(pidfd)
    _, status, rusage = os.wait4(pid, 0)
    return status, rusage, floor, stopped


def cold():
    """All is on disk and nothing in the page cache: executables, too, are charged to whoever reads them first."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def measure(program, data, limit=None, stop_seconds=None):
    """Runs it once, from a cold page cache. Ends bursar's bench with the program's stderr if it fails without a limit."""
    cold()
    cgroup = Cgroup(f"{program.name}-{next(_numbers)}")
    try:
        if limit is not None:
            cgroup.set_limit(limit)
        with tempfile.TemporaryFile() as errors:
            begin = time.monotonic()
            child = subprocess.Popen(
                program.argv(),
                cwd=data,
                env=programs.ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                preexec_fn=cgroup.enter,
            )
            deadline = begin + stop_seconds if stop_seconds else float("inf")
            status, rusage, floor, stopped = _wait(child.pid, cgroup, deadline)
            wall = time.monotonic() - begin
            child.returncode = os.waitstatus_to_exitcode(status)
            # By the counter: a program may go on when its child was killed.
            if cgroup.oom_kills() > 0:
                outcome = "oom"
            elif stopped:
                outcome = "stopped"
            else:
                outcome = "ok" if child.returncode == 0 else "failed"
            if limit is None and outcome != "ok":
                errors.seek(0)
                sys.stderr.write(errors.read().decode(errors="replace"))
                sys.exit(f"{program.name}: {outcome} without a limit, status {child.returncode}: {program.command}")
            peak = cgroup.peak()
    finally:
        left = cgroup.close()
    return Run(limit, wall, rusage.ru_utime + rusage.ru_stime, peak, floor, outcome, left)

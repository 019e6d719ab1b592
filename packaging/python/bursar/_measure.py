"""The memory of this process while a block runs."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, List, Mapping, Optional, Tuple, Type, Union

from ._command import BursarError, ask, command_path, reason, shown

_ATTACH_SECONDS = 30.0
_END_SECONDS = 60.0
_active = threading.Lock()


class Measurement:
    """What a block took. The figures are there when it has ended."""

    def __init__(self, record: Union[str, "os.PathLike[str]", None] = None) -> None:
        self._kept = None if record is None else Path(os.path.abspath(record))
        #: RSS of this process at the begin and at the end.
        self.begin_rss_bytes: Optional[int] = None
        self.end_rss_bytes: Optional[int] = None
        #: The most that it was in between.
        self.peak_rss_bytes: Optional[int] = None
        #: ``kernel``: exact. ``samples``: the process had held more before, so shorter peaks may be missing.
        self.peak_source: Optional[str] = None
        self.wall_seconds: Optional[float] = None
        #: Page faults of this process.
        self.minor_faults: Optional[int] = None
        self.major_faults: Optional[int] = None
        #: All names of ``bursar run --json``, of this process.
        self.figures: Mapping[str, Any] = {}
        #: (seconds since the begin, RSS in bytes), as sampled.
        self.samples: List[Tuple[float, float]] = []

    @property
    def growth_bytes(self) -> Optional[int]:
        """The peak over what the process had at the begin."""
        if self.peak_rss_bytes is None or self.begin_rss_bytes is None:
            return None
        return self.peak_rss_bytes - self.begin_rss_bytes

    def __enter__(self) -> "Measurement":
        if not _active.acquire(blocking=False):
            raise BursarError("this process is being measured already; blocks of bursar.measure() cannot overlap")
        try:
            self._start()
        except BaseException:
            _active.release()
            raise
        return self

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bursar-")
        self._record = self._kept or Path(self._folder.name, "record.bursar")
        before = _stamp(self._record)
        words = [command_path(), "run", "-q", "--pid", str(os.getpid()), "--record", str(self._record)]
        self._answer = Path(self._folder.name, "answer.json")
        # What it writes goes to a file: nobody reads a pipe meanwhile.
        self._said = open(Path(self._folder.name, "said"), "w+b")
        # In a session of its own: Ctrl-C is for this process.
        self._child = subprocess.Popen(
            [*words, "--json", str(self._answer)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )
        deadline = time.monotonic() + _ATTACH_SECONDS
        while _stamp(self._record) == before:
            if self._child.poll() is not None or time.monotonic() > deadline:
                self._child.kill()
                raise self._failed("bursar could not measure this process")
            time.sleep(0.002)
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self.begin_rss_bytes, self._high_before = _rss()
        self._begin = time.perf_counter()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.wall_seconds = time.perf_counter() - self._begin
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.end_rss_bytes, high = _rss()
        try:
            self._end()
            self.minor_faults = usage.ru_minflt - self._usage.ru_minflt
            self.major_faults = usage.ru_majflt - self._usage.ru_majflt
            self._read()
            sampled = [int(value) for _, value in self.samples]
            if high > self._high_before:
                self.peak_rss_bytes, self.peak_source = max(high, self.end_rss_bytes), "kernel"
            else:
                self.peak_rss_bytes = max([self.begin_rss_bytes or 0, self.end_rss_bytes, *sampled])
                self.peak_source = "samples"
        except BursarError:
            # The block's own error is the one to see.
            if error is None:
                raise
        finally:
            self._said.close()
            self._folder.cleanup()
            _active.release()

    def _end(self) -> None:
        # Not SIGINT: jobs that a script starts in the background, and all beneath them, ignore that.
        self._child.terminate()
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
            raise self._failed("bursar did not end its measurement when it was asked to") from None

    def _read(self) -> None:
        try:
            self.figures = json.loads(self._answer.read_text("utf-8"))
        except (OSError, ValueError):
            raise self._failed("bursar left no figures of this process") from None
        content = json.loads(ask(["report", "--format", "json", "--", str(self._record)]))
        lines = [line for line in content["runs"][0]["series"] if line["name"] == "tree_rss_bytes"]
        self.samples = [(t_ns / 1e9, value) for line in lines for t_ns, value in line["points"]]

    def _failed(self, what: str) -> BursarError:
        self._said.seek(0)
        return BursarError(reason(self._said.read()) or what)

    def __str__(self) -> str:
        exactly = "" if self.peak_source == "kernel" else ", sampled"
        return (
            f"peak {shown(self.peak_rss_bytes)}{exactly}   (+{shown(self.growth_bytes)} over the begin, "
            f"{shown(self.end_rss_bytes)} at the end)   {self.wall_seconds or 0:.3g} s"
        )

    def __repr__(self) -> str:
        return f"<bursar.Measurement {self}>"

    def _repr_svg_(self) -> str:
        """RSS over time, for notebooks."""
        points = self.samples or [(0.0, 0.0)]
        wide, high = 560, 120
        most = max(max(value for _, value in points), float(self.peak_rss_bytes or 0), 1.0)
        last = max(points[-1][0], 1e-9)
        line = " ".join(f"{t / last * wide:.1f},{high - value / most * (high - 16):.1f}" for t, value in points)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high + 18}" font-family="sans-serif" '
            f'font-size="12"><polygon points="0,{high} {line} {wide},{high}" fill="#4c78a8" fill-opacity="0.3"/>'
            f'<polyline points="{line}" fill="none" stroke="#4c78a8"/>'
            f'<text x="2" y="11">{shown(int(most))}</text><text x="2" y="{high + 14}">{_escaped(str(self))}</text></svg>'
        )


def measure(record: Union[str, "os.PathLike[str]", None] = None) -> Measurement:
    """Measures this process while a block runs; its children are not counted.

    Args:
        record: keep the record in this file, for ``bursar.read`` and ``bursar report``.

    Raises:
        BursarError: when the block is entered: bursar could not attach, or another block is being measured.
    """
    return Measurement(record)


def _rss() -> Tuple[int, int]:
    """RSS and the most that it ever was, in bytes."""
    text = Path("/proc/self/status").read_text("ascii", "replace")
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s*([0-9]+) kB", text, re.MULTILINE))
    return int(found["VmRSS"]) << 10, int(found["VmHWM"]) << 10


def _stamp(path: Path) -> Optional[Tuple[int, int]]:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")

"""``bursar run`` and ``bursar budget``."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._command import BursarError, command_path, reason, shown, size
from ._record import Record, read

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Run:
    """The account of one run."""

    #: All names of ``bursar run --json``.
    figures: Mapping[str, Any]
    #: Where the record was kept; ``None``: nobody asked for one.
    record_path: Optional[Path]
    #: What the command wrote, with ``capture_output=True``.
    stdout: Optional[bytes] = field(default=None, repr=False)
    stderr: Optional[bytes] = field(default=None, repr=False)

    @property
    def exit_status(self) -> Optional[int]:
        """The command's; 128 + signal; 124 after a time-out."""
        return self.figures["exit_status"]

    @property
    def wall_seconds(self) -> float:
        """Start to end."""
        return self.figures["wall_seconds"]

    @property
    def peak_bytes(self) -> Optional[int]:
        """Peak of the charge, page cache included; without a cgroup, of the RSS of the process tree."""
        charge = self.figures["peak_charge_bytes"]
        return self.figures["tree_max_rss_bytes"] if charge is None else charge

    @property
    def floor_bytes(self) -> Optional[int]:
        """What cannot be reclaimed, at its peak."""
        return self.figures["floor_bytes"]

    @property
    def app_max_rss_bytes(self) -> Optional[int]:
        """The largest process, as GNU time reports."""
        return self.figures["app_max_rss_bytes"]

    @property
    def doubts(self) -> List[str]:
        """Why these figures may not be the command's, as sentences."""
        return [doubt["sentence"] for doubt in self.figures["doubts"]]

    @property
    def record(self) -> Record[Any]:
        """The record as frames.

        Raises:
            BursarError: ``run`` was called without ``record``.
        """
        if self.record_path is None:
            raise BursarError('no record was kept; call bursar.run(..., record="run.bursar")')
        return read(self.record_path)

    def __str__(self) -> str:
        return (
            f"peak {shown(self.peak_bytes)}, must fit {shown(self.floor_bytes)}, "
            f"{self.wall_seconds:.3g} s, exit {self.exit_status}"
        )


@dataclass(frozen=True)
class Budget:
    """What ``bursar budget`` found."""

    #: All names of ``bursar budget --json``.
    figures: Mapping[str, Any]
    record_path: Optional[Path]

    @property
    def budget_bytes(self) -> Optional[int]:
        """What to ask for, margin included. ``None``: no limit was found to do."""
        return self.figures["budget_bytes"]

    @property
    def confident(self) -> bool:
        """Whether the answer is known to be within the slow-down and close to the least."""
        return self.figures["confident"]

    @property
    def reason(self) -> str:
        """Why it is or is not."""
        return self.figures["reason"]

    @property
    def reference_seconds(self) -> Optional[float]:
        """Median run time without a limit."""
        return self.figures["reference_seconds"]

    @property
    def methods(self) -> List[Dict[str, Any]]:
        """What the usual methods give, and what each costs."""
        return self.figures["methods"]

    @property
    def trials(self) -> List[Dict[str, Any]]:
        """Every run in order."""
        return self.figures["trials"]

    def __str__(self) -> str:
        sure = "confident" if self.confident else "not sure"
        return f"budget {shown(self.budget_bytes)}, {sure}: {self.reason}"


def run(
    command: Sequence[PathLike],
    *,
    limit: Union[int, str, None] = None,
    timeout: Optional[float] = None,
    record: Optional[PathLike] = None,
    capture_output: bool = False,
    check: bool = False,
    cwd: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
) -> Run:
    """Runs a command once and gives the account of its memory.

    Args:
        limit: run it under this limit (bytes, or ``"512M"``).
        timeout: seconds after which the command and all that it started are ended (``exit_status`` 124).
        record: keep the record in this file.
        capture_output: keep the command's output in ``stdout`` and ``stderr`` instead of passing it on.
        check: raise ``subprocess.CalledProcessError`` if the command fails.

    Raises:
        BursarError: bursar could not measure.
    """
    options = []
    if limit is not None:
        options += ["--limit", str(size(limit))]
    if timeout is not None:
        options += ["--timeout", f"{timeout}s"]
    figures, done = _measured("run", options, command, record, capture_output, cwd, env)
    if check and figures["exit_status"] != 0:
        words = [os.fspath(word) for word in command]
        raise subprocess.CalledProcessError(figures["exit_status"], words, done.stdout, done.stderr)
    return Run(figures, None if record is None else Path(record), done.stdout, done.stderr)


def budget(
    command: Sequence[PathLike],
    *,
    slowdown: Optional[float] = None,
    prepare: Optional[str] = None,
    compare: bool = True,
    timeout: Optional[float] = None,
    record: Optional[PathLike] = None,
    capture_output: bool = False,
    cwd: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
) -> Budget:
    """Finds the least limit at which a command stays within a slow-down; runs it some 4 to 16 times.

    Args:
        slowdown: allowed slow-down; 0.05 is 5 %, the default.
        prepare: a shell command to run before each run.
        compare: also run it at what the usual methods give.
        timeout: seconds after which a run is ended.

    Raises:
        BursarError: bursar could not measure, or the command fails without a limit.
    """
    options = []
    if slowdown is not None:
        options += ["--slowdown", str(slowdown)]
    if prepare is not None:
        options += ["--prepare", prepare]
    if not compare:
        options += ["--no-compare"]
    if timeout is not None:
        options += ["--timeout", f"{timeout}s"]
    figures, done = _measured("budget", options, command, record, capture_output, cwd, env)
    if done.returncode != 0:
        why = f"the command fails without a limit (status {done.returncode})"
        raise BursarError(reason(done.stderr) or why)
    return Budget(figures, None if record is None else Path(record))


def _measured(
    kind: str,
    options: List[str],
    command: Sequence[PathLike],
    record: Optional[PathLike],
    capture_output: bool,
    cwd: Optional[PathLike],
    env: Optional[Mapping[str, str]],
) -> Any:
    if isinstance(command, (str, bytes)):
        raise TypeError('a command is a list of words, such as ["sort", "big.txt"]')
    with tempfile.TemporaryDirectory(prefix="bursar-") as folder:
        answer = Path(folder, "answer.json")
        # A path of the caller's is in the caller's folder, whatever cwd is.
        kept = os.path.abspath(record) if record is not None else os.path.join(folder, "record.bursar")
        words = [command_path(), kind, "-q", "--json", str(answer), "--record", kept, *options, "--"]
        done = subprocess.run(
            [*words, *(os.fspath(word) for word in command)], capture_output=capture_output, cwd=cwd, env=env, check=False
        )
        try:
            return json.loads(answer.read_text("utf-8")), done
        except (OSError, ValueError):
            why = f"bursar {kind} ended with status {done.returncode} and no answer"
            raise BursarError(reason(done.stderr) or f"{why}; its reason is on standard error") from None

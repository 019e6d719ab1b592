"""One record for each task of a Snakemake workflow, with exact peaks.

At the top of the Snakefile:

>>> import bursar.snakemake
>>> bursar.snakemake.record("memory")

Each shell command, script, notebook and wrapper of a rule leaves ``memory/RULE/JOB-TIME.bursar``, also where Snakemake runs
it through a cluster. ``bursar report memory`` sums them by rule.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import Any, Optional

from ._command import BursarError, command_path

# The shell starts itself again under bursar, with the command as Snakemake has composed it. `$BASH_EXECUTION_STRING` is what
# `bash -c` was given; another shell, and one in a container without bursar, goes on as it is.
_PREFIX = (
    'if [ "${{BURSAR_TASK:-}}" != {task} ] && [ -n "${{BASH_EXECUTION_STRING:-}}" ] && [ -x {bursar} ]; then '
    "export BURSAR_TASK={task}; "
    'exec {bursar} run --quiet --record {record} -- "$BASH" -c "$BASH_EXECUTION_STRING"; fi; '
)


def record(folder: str = "memory") -> None:
    """Runs every task of this workflow under ``bursar run``, and leaves its record in ``folder``.

    Tasks keep their output and exit status. A later ``shell.prefix`` in the Snakefile undoes it: call it before.
    Raises :class:`BursarError` where the command is missing, or Snakemake is of a version that is not known.
    """
    from snakemake.shell import shell

    composed = vars(shell).get("_process_prefix", 0)
    if isinstance(composed, _PrefixOfTask):
        composed = composed.plain
    if composed is not None and not isinstance(composed, str):
        raise BursarError("this version of Snakemake composes commands in a way that is not known; 7, 8 and 9 are")
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    setattr(shell, "_process_prefix", _PrefixOfTask(command_path(), folder, composed))


class _PrefixOfTask:
    """What Snakemake puts before a command: of each task another, since Snakemake reads it once for each."""

    def __init__(self, bursar: str, folder: str, plain: Optional[str]) -> None:
        self.bursar, self.folder, self.plain = bursar, folder, plain

    def __get__(self, _: Any, shell: Any) -> Optional[str]:
        task = _task(sys._getframe(1))
        if task is None:
            return self.plain
        plain = self.plain
        if plain is None:  # Snakemake's own, from version 8 on
            plain = "set -euo pipefail; " if os.path.basename(shell.get_executable() or "") == "bash" else ""
        return _prefix(self.bursar, self.folder, *task) + plain


def _task(frame: Any) -> Optional[tuple[str, int]]:
    """The rule and the job of which a shell is started: Snakemake passes them on as variables of the rule's function."""
    while frame is not None:
        known = frame.f_locals
        if isinstance(known.get("rule"), str) and isinstance(known.get("jobid"), int):
            return known["rule"], known["jobid"]
        frame = frame.f_back
    return None


def _prefix(bursar: str, folder: str, rule: str, job: int) -> str:
    own = os.path.join(folder, rule)
    os.makedirs(own, exist_ok=True)
    task = f"{job}-{time.time_ns()}"
    path = os.path.join(own, f"{task}.bursar")
    return _PREFIX.format(task=task, bursar=shlex.quote(bursar), record=shlex.quote(path))

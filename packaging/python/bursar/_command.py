"""The command: where it is, and how it is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from typing import Optional, Sequence, Union

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class BursarError(Exception):
    """The command is missing, or it could not measure. The message is its own sentence where it left one."""


def command_path() -> str:
    """The binary that belongs to this package, else the first ``bursar`` on ``PATH``.

    Raises:
        BursarError: there is none.
    """
    folders = [sysconfig.get_path("scripts")]
    try:
        folders.append(sysconfig.get_path("scripts", f"{os.name}_user"))
    except KeyError:
        pass
    found = shutil.which("bursar", path=os.pathsep.join(f for f in folders if f)) or shutil.which("bursar")
    if found is None:
        raise BursarError("the command bursar is not on PATH; reinstall the package bursar")
    return found


def size(value: Union[int, str]) -> int:
    """Bytes of ``512M``, ``512MiB``, ``1.5G`` or a number of bytes; units are binary.

    Raises:
        ValueError: it is no size.
    """
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{value!r} is not a size; write 512M or 1.5GiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def shown(bytes_: Optional[int]) -> str:
    """Bytes for people, in binary units."""
    if bytes_ is None:
        return "-"
    value = float(bytes_)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def ask(arguments: Sequence[str]) -> bytes:
    """What the command prints.

    Raises:
        BursarError: it failed.
    """
    done = subprocess.run([command_path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise BursarError(reason(done.stderr) or f"bursar ended with status {done.returncode}")
    return done.stdout


def reason(stderr: Optional[bytes]) -> str:
    """The last line of what the command wrote, without its name."""
    lines = (stderr or b"").decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("bursar: ") if lines else ""

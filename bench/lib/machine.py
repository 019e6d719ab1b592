"""A small virtual machine (QEMU, Debian's kernel) that runs one program of shared.c and swaps to its own disk."""

import ctypes
import json
import os
import re
import socket
import subprocess
import time

from . import programs

MIB = 1 << 20
PR_SET_THP_DISABLE = 41


def prepare(folder):
    """What they boot, in this folder."""
    subprocess.run([programs.BENCH.parent / "tests" / "vm" / "machine", folder], check=True)


def _start():
    # In huge pages of the host accesses are seen by 2 MiB.
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


class Machine:
    """Of so many MiB; `program` as in random:160:0; by software emulation (tcg) or kvm."""

    def __init__(self, folder, name, mib, program, accelerator="tcg"):
        self.console, self.socket, swap = folder / f"{name}.console", folder / f"{name}.qmp", folder / f"{name}.swap"
        for path in (self.console, self.socket):
            path.unlink(missing_ok=True)
        with open(swap, "w") as file:
            file.truncate(2 * mib * MIB)
        subprocess.run(["mkswap", "-q", swap], check=True, capture_output=True)
        self.process = subprocess.Popen([
            "qemu-system-x86_64", "-accel", accelerator, "-cpu", "max", "-smp", "1", "-m", f"{mib}M", "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-serial", f"file:{self.console}", "-kernel", folder / "kernel",
            "-initrd", folder / "initrd.gz", "-append", f"console=ttyS0 quiet panic=-1 mitigations=off program={program}",
            "-drive", f"file={swap},format=raw,if=none,id=swap,cache=unsafe", "-device", "virtio-blk-pci,drive=swap",
            "-device", "virtio-balloon-pci", "-qmp", f"unix:{self.socket},server=on,wait=off",
        ], stdin=subprocess.DEVNULL, preexec_fn=_start)
        self.target = f"qmp:{self.socket}"

    def ask(self, command, **arguments):
        """While nobody else is connected."""
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(20)
            stream.connect(os.fspath(self.socket))
            lines = stream.makefile("rw")
            for one, given in (("qmp_capabilities", {}), (command, arguments)):
                lines.write(json.dumps({"execute": one, "arguments": given}) + "\n")
                lines.flush()
            answers = (json.loads(line) for line in lines)
            # Neither the greeting nor events.
            answers = (answer for answer in answers if "return" in answer or "error" in answer)
            next(answers)
            return next(answers)["return"]

    def size(self):
        return self.ask("query-balloon")["actual"]

    def resize(self, size):
        """As far as its guest has given it within 30 s."""
        self.ask("balloon", value=int(size))
        for _ in range(300):
            if abs(self.size() - size) < MIB:
                return
            time.sleep(0.1)

    def changed(self):
        """Pages changed and the guest's own time, as it has told last; none before its program has begun."""
        told = re.findall(r"changed\s+(\d+) at ([\d.]+)\s", self.console.read_text(errors="replace")) if self.console.exists() else []
        return (int(told[-1][0]), float(told[-1][1])) if told and int(told[-1][0]) > 0 else None

    def wait(self):
        """Until its program runs."""
        while not self.changed():
            if self.process.poll() is not None:
                raise SystemExit(f"the machine of {self.console} has ended")
            time.sleep(0.2)

    def close(self):
        self.process.kill()
        self.process.wait()


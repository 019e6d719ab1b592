"""A Snakemake workflow whose tasks leave a record each."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest

import bursar

MIB = 1 << 20
needs_snakemake = pytest.mark.skipif(importlib.util.find_spec("snakemake") is None, reason="snakemake is not installed")

SNAKEFILE = """\
import bursar.snakemake
bursar.snakemake.record("memory")
bursar.snakemake.record("memory")

rule all:
    input: "sum.txt", "script.txt"

rule make:
    output: "{n}.bin"
    shell: "head -c $(( {wildcards.n} << 20 )) /dev/zero | tail > {output}"

rule count:
    input: expand("{n}.bin", n=[8, 48])
    output: "sum.txt"
    shell: "cat {input} | wc -c > {output}; echo \\"it's $OMP_NUM_THREADS\\" >> {output}"

rule script:
    output: "script.txt"
    script: "hold.py"

rule fails:
    output: "never"
    shell: "exit 7"
"""


def snakemake(folder, *words):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@needs_snakemake
def test_each_task_of_a_workflow_leaves_a_record(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "hold.py").write_text("x = b'x' * (40 << 20); open(snakemake.output[0], 'w').write('done')")
    done = snakemake(tmp_path)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "sum.txt").read_text() == f"{56 * MIB}\nit's 1\n"
    failed = snakemake(tmp_path, "never")
    # Snakemake 7, the last for Python 3.10 and older, names no status.
    assert failed.returncode != 0 and re.search("exit status 7|exited with non-zero exit code", failed.stdout), failed.stdout

    report = subprocess.run([bursar.command_path(), "report", "memory", "--json", "-"], cwd=tmp_path, stdout=subprocess.PIPE)
    rules = {rule["rule"]: rule for rule in json.loads(report.stdout)["rules"]}
    tasks = {name: (rule["tasks"], rule["failed"]) for name, rule in rules.items()}
    assert tasks == {"make": (2, 0), "count": (1, 0), "script": (1, 0), "fails": (1, 1)}
    assert rules["make"]["peak_bytes"]["max"] > 48 * MIB > rules["make"]["peak_bytes"]["median"]
    assert rules["script"]["peak_bytes"]["max"] > 40 * MIB

"""The package with its command, as pip has installed them. Programs here have known footprints."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bursar

MIB = 1 << 20
HOLDS = "x = b'x' * ({} << 20); import time; time.sleep(0.3)"
FRAMES = [name for name in ("pandas", "polars") if importlib.util.find_spec(name)]


def holds(mib):
    return [sys.executable, "-c", HOLDS.format(mib)]


def columns(frame):
    return list(frame.columns)


def test_run_reports_the_peak_of_a_known_footprint(tmp_path):
    run = bursar.run(holds(150), record=tmp_path / "run.bursar")
    assert run.exit_status == 0 and run.wall_seconds > 0.3
    assert 150 * MIB <= run.app_max_rss_bytes < 200 * MIB
    assert 150 * MIB <= run.peak_bytes < 250 * MIB
    assert "MiB" in str(run) and run.record.complete


def test_run_keeps_the_status_and_the_output():
    run = bursar.run(["sh", "-c", "echo out; echo err >&2; exit 7"], capture_output=True)
    assert (run.exit_status, run.stdout, run.stderr) == (7, b"out\n", b"err\n")
    with pytest.raises(subprocess.CalledProcessError) as raised:
        bursar.run(["false"], check=True)
    assert raised.value.returncode == 1
    with pytest.raises(bursar.BursarError, match="no record was kept"):
        run.record


def test_run_takes_folder_and_environment(tmp_path):
    run = bursar.run(["sh", "-c", "pwd; echo $GREETING"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "GREETING": "hi"}, capture_output=True)
    assert run.stdout.decode().split() == [str(tmp_path), "hi"]


def test_run_ends_the_command_at_a_timeout():
    assert bursar.run(["sleep", "60"], timeout=0.5).exit_status == 124


def test_errors_are_the_commands_own_sentence(tmp_path):
    with pytest.raises(bursar.BursarError, match="no-such-program"):
        bursar.run(["no-such-program"], capture_output=True)
    with pytest.raises(bursar.BursarError, match="missing.bursar"):
        bursar.read(tmp_path / "missing.bursar")
    (tmp_path / "foreign.bursar").write_bytes(b"no record" * 100)
    with pytest.raises(bursar.BursarError, match="foreign.bursar"):
        bursar.read(tmp_path / "foreign.bursar")
    with pytest.raises(TypeError, match="list of words"):
        bursar.run("sort big.txt")


def test_sizes_are_binary():
    assert [bursar.size(text) for text in ("512M", "1.5GiB", "4k", "7", 9)] == [512 * MIB, 1536 * MIB, 4096, 7, 9]
    for wrong in ("", "M", "-1M", "1X", "1e3"):
        with pytest.raises(ValueError, match="is not a size"):
            bursar.size(wrong)


def test_budget_answers_or_says_why_it_cannot(tmp_path):
    try:
        budget = bursar.budget(holds(60), compare=False, capture_output=True, record=tmp_path / "budget.bursar")
    except bursar.BursarError as error:
        assert "limit" in str(error)
        return
    assert 55 * MIB <= budget.budget_bytes < 150 * MIB
    assert budget.reason and budget.trials and str(budget).startswith("budget ")
    with pytest.raises(bursar.BursarError):
        bursar.budget(["false"], capture_output=True)


@pytest.mark.parametrize("frames", FRAMES)
def test_frames_hold_what_the_record_holds(tmp_path, frames):
    path = tmp_path / "run.bursar"
    bursar.run(holds(100), record=path)
    record = bursar.read(path, frames)
    assert type(record.series).__module__.startswith(frames)
    assert columns(record.series) == ["run", "name", "unit", "pid", "start_ticks", "t_seconds", "value", "source"]
    assert len(record.series) == len(subprocess.check_output([bursar.command_path(), "report", path, "--format", "csv"]).splitlines()) - 1
    assert record.processes["max_rss_bytes"].max() >= 100 * MIB
    assert record.header["command"] == holds(100)
    for empty in (record.trials, record.methods, record.attribution):
        assert len(empty) == 0 and columns(empty)
    assert columns(record.curve)[-2:] == ["limit_bytes", "refault_bytes"]


@pytest.mark.parametrize("frames", FRAMES)
def test_a_record_of_watch_has_a_curve_over_time(tmp_path, frames):
    path = tmp_path / "watch.bursar"
    loop = "x = bytearray(32 << 20)\nimport time\nend = time.time() + 4\nwhile time.time() < end:\n  for i in range(0, len(x), 4096): x[i] = 1"
    done = subprocess.run([bursar.command_path(), "watch", "--record", path, "--json", "-", "--", sys.executable, "-c", loop], capture_output=True)
    if done.returncode != 0:
        pytest.skip(done.stderr.decode())
    curve = bursar.read(path, frames).curve
    assert columns(curve) == ["t_seconds", "bytes", "misses_per_second"]


def test_frames_have_to_be_of_a_library(tmp_path):
    with pytest.raises(ValueError, match="'pandas' or 'polars'"):
        bursar.read(tmp_path / "x.bursar", "arrow")


def test_measure_finds_the_peak_of_a_block(tmp_path):
    with bursar.measure(record=tmp_path / "block.bursar") as m:
        block = bytearray(300 * MIB)
        del block
    assert m.peak_source == "kernel"
    # The kernel counts a process's pages in batches.
    assert 299 * MIB <= m.growth_bytes < 330 * MIB
    assert m.end_rss_bytes < m.peak_rss_bytes and m.minor_faults > 0
    assert "peak" in str(m) and m._repr_svg_().startswith("<svg")
    assert bursar.read(tmp_path / "block.bursar").complete if FRAMES else True


def test_measure_samples_what_is_below_an_earlier_peak():
    high = bytearray(400 * MIB)
    del high
    with bursar.measure() as m:
        block = bytearray(100 * MIB)
    assert m.peak_source == "samples" and m.peak_rss_bytes >= m.begin_rss_bytes + 99 * MIB
    del block


def test_measure_ends_in_a_job_that_ignores_interrupts():
    # As what a script starts by `&` does.
    program = "import bursar\nwith bursar.measure() as block: pass\nprint(block.peak_rss_bytes > 0)"
    shell = ["sh", "-c", "trap '' INT QUIT; exec \"$@\"", "sh", sys.executable, "-c", program]
    assert subprocess.run(shell, stdout=subprocess.PIPE, timeout=60).stdout == b"True\n"


def test_measure_does_not_overlap_and_lets_errors_pass():
    with bursar.measure():
        with pytest.raises(bursar.BursarError, match="overlap"):
            with bursar.measure():
                pass
    with pytest.raises(KeyError):
        with bursar.measure() as m:
            raise KeyError("mine")
    assert m.peak_rss_bytes
    with bursar.measure() as again:
        pass
    assert again.wall_seconds is not None


TESTS = """
import pytest

@pytest.mark.bursar(growth="200M")
def test_small(): bytearray(50 << 20)

@pytest.mark.bursar(growth="50M")
def test_large(): bytearray(200 << 20)

@pytest.mark.bursar(max="1M")
def test_always(): pass

@pytest.mark.bursar(max="1M")
def test_its_own_failure_comes_first(): assert 1 == 2

@pytest.mark.bursar(most="1M")
def test_misspelt(): pass

def test_unmarked(): pass
"""


def test_the_pytest_mark_fails_tests_that_hold_more(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)], capture_output=True, text=True)
    said = done.stdout + done.stderr
    for line in ("growth of RSS 200 MiB exceeds growth=50 MiB", "exceeds max=1 MiB", "assert 1 == 2", "unexpected keyword argument 'most'"):
        assert line in said, said
    assert "test_small" not in said.split("short test summary")[-1]


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_the_cell_magic_prints_the_peak_and_a_picture():
    cells = "get_ipython().run_line_magic('load_ext', 'bursar'); get_ipython().run_cell_magic('bursar', '', 'kept = len(bytearray(200 << 20))'); print('kept', kept)"
    done = subprocess.run([sys.executable, "-m", "IPython", "--colors=NoColor", "-c", cells], capture_output=True, text=True)
    assert "peak" in done.stdout and f"kept {200 * MIB}" in done.stdout, done.stdout + done.stderr
    assert "SVG" in done.stdout


def test_the_command_is_the_one_beside_python():
    path = Path(bursar.command_path())
    assert path.parent == Path(sys.executable).parent or path.is_file()
    assert subprocess.check_output([path, "--version"], text=True).startswith("bursar ")
    assert json.loads(json.dumps(dict(bursar.run(["true"]).figures)))["exit_status"] == 0

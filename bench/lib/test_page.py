#!/usr/bin/env python3
"""Tests of the result files, of the page made of them, and of what the benches print. Ends with "N passed, N failed"."""

import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from lib import page, results  # noqa: E402
from lib.results import Bar, Host, Result  # noqa: E402

HOST = Host(2, 24 << 30, "6.18", True, "A B, third")


def result(name="serve-cost", date="2026-11-22", host=HOST, bars=(), notes=(), rows=(("200", "7.84"),)):
    titles = [{"name": "cgroups", "unit": None}, {"name": "memory", "unit": "MiB"}]
    return Result(name, "What does it cost?", "bench/serve", date, None, host, titles, [list(row) for row in rows], list(bars), list(notes))


class Saved(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, results, "RESULTS", results.RESULTS)
        results.RESULTS = pathlib.Path(folder.name)

    def test_reads_what_it_wrote(self):
        one = result(bars=[Bar("memory", "7.84 MiB", "≤ 50 MiB", True)], notes=["A note."])
        one.write()
        self.assertEqual(page.load_all(), [one])
        self.assertEqual(one.path().relative_to(results.RESULTS), pathlib.Path("2-cores-24-gib-a-b-third/2026-11-22/serve-cost.json"))

    def test_prints_and_saves_only_if_asked(self):
        for saves in (False, True):
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
                results.publish(types.SimpleNamespace(save=saves), "serve-cost", "?", ["a", "b"], [["1 MiB", "x"]], [Bar("b", "x", "y", False)])
            self.assertIn("| 1 MiB | x |", out.getvalue())
            self.assertIn("- b: x (bar y: MISSED)", out.getvalue())
            self.assertEqual(len(page.load_all()), int(saves))
        self.assertEqual(page.load_all()[0].columns[0], {"name": "a", "unit": "MiB"})


class Tables(unittest.TestCase):
    def test_moves_a_unit_that_all_cells_share_to_the_column(self):
        titles, rows = results.columns(["p99, µs", "memory", "mixed", "plain"], [["1.0", "7.84 MiB", "1 ms", "1.00x"], ["2.0", "-", "1 s", "2.00x"]])
        self.assertEqual([title["unit"] for title in titles], ["µs", "MiB", None, None])
        self.assertEqual(rows, [["1.0", "7.84", "1 ms", "1.00x"], ["2.0", "-", "1 s", "2.00x"]])

    def test_reads_each_printed_table(self):
        lines = ["text", "| a | b |", "|---|---|", "| 1 | x\\|y |", "", "| c |", "|---|", "| 2 |"]
        self.assertEqual(results.tables(lines), [(["a", "b"], [["1", "x|y"]]), (["c"], [["2"]])])

    def test_takes_printed_bars_from_the_last_column(self):
        bars = results.printed_bars(["engine", "speed", "bar"], [["exact", "8.5", "≥ 8x: met"], ["aet", "2", "-"], ["size", "1", "≥ 2x: missed"]])
        self.assertEqual([(bar.figure, bar.bar, bar.met) for bar in bars], [("exact", "≥ 8x", True), ("size", "≥ 2x", False)])
        [bar] = results.printed_bars(["file", "ratio", "bar: above 1"], [["csv", "4.2", "met"]])
        self.assertEqual(bar, Bar("csv", "ratio 4.2", "above 1", True))

    def test_takes_judged_rows_as_bars(self):
        head = ["job", "arm", "/4k", "bars", "met"]
        bars = results.judged(head, [["cg", "4k", "", "", ""], ["cg", "pool", "0.79x", "≤ 0.80x", "yes"]], ["/4k", "/1g"], words=2, bar="bars")
        self.assertEqual(bars, [Bar("cg, pool", "0.79x /4k", "≤ 0.80x", True)])


class Page(unittest.TestCase):
    def test_shows_the_latest_result_of_each_question(self):
        found = [result(date="2026-11-23", notes=["New."]), result(notes=["Old."]), result("run-cost", notes=["Other."])]
        text = page.render(found)
        self.assertEqual(text, page.render(found[::-1]))
        self.assertIn("New.", text)
        self.assertNotIn("Old.", text)
        self.assertLess(text.index("## `bursar run`"), text.index("## `bursar serve`"))

    def test_shows_rows_where_nothing_is_judged(self):
        self.assertIn("| cgroups | memory, MiB |\n| --- | --- |\n| 200 | 7.84 |", page.section(result()))

    def test_counts_bars_and_marks_those_missed(self):
        text = page.section(result(bars=[Bar("a", "1", "≤ 2", True), Bar("b", "3", "≤ 2", False), Bar("c", "?", "≤ 2"), Bar("d", "4")]))
        self.assertIn("1 of 3 bars is met.", text)
        self.assertIn("| b | 3 | ≤ 2 | **no** |\n| c | ? | ≤ 2 | not shown |\n| d | 4 |  |  |", text)

    def test_says_one_figure_in_a_sentence(self):
        text = page.section(result(bars=[Bar("memory", "60 MiB", "≤ 50 MiB", False)], notes=["Why."]))
        self.assertIn("The bar is missed. Memory: 60 MiB (bar: ≤ 50 MiB). Why.", text)
        self.assertNotIn("|", text)

    def test_names_host_command_and_file(self):
        text = page.section(result())
        self.assertIn("Measured 2026-11-22 on 2 cores, 24 GiB, A B, third, Linux 6.18 by `bench/serve`", text)
        self.assertIn("(../bench/results/2-cores-24-gib-a-b-third/2026-11-22/serve-cost.json)", text)


class Repository(unittest.TestCase):
    def test_every_result_file_is_well_formed(self):
        paths = sorted(results.RESULTS.glob("**/*.json"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path=str(path)):
                one = results.load(path)
                self.assertEqual(one.path(), path)
                self.assertEqual(one.text(), path.read_text())
                self.assertEqual({len(row) for row in one.rows}, {len(one.columns)})
                self.assertLessEqual(len(one.notes), 2)
                self.assertTrue(one.bars or one.rows)


if __name__ == "__main__":
    ran = unittest.main(exit=False).result
    failed = len({str(test.id()).split(" ")[0] for test, _ in ran.failures + ran.errors})
    print(f"{ran.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)

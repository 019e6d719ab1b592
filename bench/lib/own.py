"""Runs of programs from distributions under `bursar run`, over five sizes of input each, as a history: what `bench/predict own` scores.

`--keep` takes the records that are there.
"""

import argparse
import csv
import dataclasses
import json
import pathlib
import random
import shlex
import shutil
import subprocess
import sys

from . import programs

# Beside the smallest: uneven, so that tables that double are not always full to the same share. The last one is withheld.
SCALE = [1, 1.7, 2.6, 4.3, 18]
PYTHON = "/usr/bin/python3"


def lines(path, size):
    """Distinct keys with a number each."""
    rng = random.Random(size)
    with open(path, "w") as out:
        while out.tell() < size:
            block = rng.randbytes(16 * 1024).hex()
            out.write("".join(f"{block[at:at + 16]} {block[at + 16:at + 24]}\n" for at in range(0, len(block), 32)))


def words(path, size):
    """Lines of rare and frequent words, in any order: it compresses."""
    rng = random.Random(size)
    known = ["".join(rng.choices("etaoinshrdlucmf", k=rng.randint(2, 10))) for _ in range(50_000)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    written = rng.choices(known, weights, k=200_000)
    sentences = [" ".join(written[at:at + 20]) + "\n" for at in range(0, len(written), 20)]
    with open(path, "w") as out:
        while out.tell() < size:
            out.write("".join(rng.choices(sentences, k=1000)))


def fasta(path, size):
    rng = random.Random(size)
    letters = bytes(b"ACGT"[value % 4] for value in range(256))
    with open(path, "wb") as out:
        for record in range(4):
            out.write(b">chr%d\n" % record)
            text = rng.randbytes(size // 4).translate(letters)
            out.write(b"\n".join(text[at:at + 60] for at in range(0, len(text), 60)) + b"\n")


def sam(path, size):
    rng = random.Random(size)
    letters = bytes(b"ACGT"[value % 4] for value in range(256))
    with open(path, "w") as out:
        out.write("@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:200000000\n")
        while out.tell() < size:
            bases = rng.randbytes(100).translate(letters).decode()
            out.write(f"r{rng.getrandbits(40)}\t0\tchr1\t{rng.randrange(1, 199_000_000)}\t60\t100M\t*\t0\t0\t{bases}\t{'I' * 100}\n")


def source(path, size):
    """C functions with loops."""
    with open(path, "w") as out:
        number = 0
        while out.tell() < size:
            body = "".join(f"  for (int i = 0; i < n; i++) s += a[(i * {k + number % 97}) % n] * {k}.5 + b[i] / (s + {k + 1});\n" for k in range(6))
            out.write(f"double f{number}(int n, const double *a, const double *b) {{\n  double s = 0;\n{body}  return s;\n}}\n")
            number += 1


def numbers(path, size):
    rng = random.Random(size)
    with open(path, "w") as out:
        out.write("a,b,c,d\n")
        while out.tell() < size:
            for _ in range(1000):
                a, b, c = rng.random(), rng.random(), rng.random()
                out.write(f"{a:.6f},{b:.6f},{c:.6f},{a + 2 * b - c:.6f}\n")


def noise(path, size):
    path.write_bytes(random.Random(size).randbytes(size // 8 * 8))


def objects(path, size):
    rng = random.Random(size)
    with open(path, "w") as out:
        out.write("[")
        while out.tell() < size:
            out.write(json.dumps({"id": rng.getrandbits(40), "name": f"n{rng.getrandbits(32)}", "values": [rng.random() for _ in range(4)]}) + ",\n")
        out.write("{}]")


SCRIPTS = {
    "matrix.py": """\
import sys, numpy
a = numpy.fromfile(sys.argv[1], dtype=numpy.uint32).astype(numpy.float64)
a = a[: len(a) // 64 * 64].reshape(-1, 64)
print(numpy.linalg.norm(a.T @ a), numpy.sort(a.ravel())[0])
""",
    "deflate.py": """\
import sys, zlib
data = open(sys.argv[1], 'rb').read()
print(len(zlib.compress(data, 1)))
""",
    "model.R": """\
table <- read.csv(commandArgs(trailingOnly = TRUE)[1])
print(summary(lm(d ~ a + b + c, data = table)))
""",
    "Count.java": """\
import java.nio.file.*; import java.util.*;
public class Count {
  public static void main(String[] arguments) throws Exception {
    Map<String, Integer> counts = new HashMap<>();
    try (var lines = Files.lines(Path.of(arguments[0]))) { lines.forEach(line -> counts.merge(line, 1, Integer::sum)); }
    System.out.println(counts.size());
  }
}
""",
    "groups.py": """\
import sys, collections
groups = collections.defaultdict(list)
for line in open(sys.argv[1]):
    key, value = line.split()
    groups[key[:5]].append(int(value, 16))
print(sum(max(group) for group in groups.values()))
""",
    "parse.js": """\
const rows = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));
console.log(rows.length);
""",
}


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    # INPUT, HERE (the folder of the scripts) and OUT (a file) are replaced.
    command: str
    make: object
    # Of the smallest input.
    bytes: int

    def argv(self, here, path):
        def put(word):
            return word.replace("INPUT", str(path)).replace("HERE", str(here)).replace("OUT", str(here / "out"))
        return [put(word) for word in shlex.split(self.command)]


MB = 1_000_000
# The first ten are the ones that the bar is about, the others show that they were not tuned for.
PROGRAMS = [
    Program("samtools sort", "samtools sort -o OUT.bam INPUT", sam, 3 * MB),
    Program("bwa index", "bwa index INPUT", fasta, 400_000),
    Program("sqlite join", "sqlite3 :memory: 'create table t(k, v)' '.separator \" \"' '.import INPUT t' 'select count(*) from t a join t b on a.k = b.k'", lines, 500_000),
    Program("sort", "sort -o OUT INPUT", lines, 8 * MB),
    Program("xz", "xz -k -f -6 -T1 INPUT", words, 4 * MB),
    Program("numpy", f"{PYTHON} HERE/matrix.py INPUT", noise, 8 * MB),
    Program("R", "Rscript HERE/model.R INPUT", numbers, 1 * MB),
    Program("gcc", "gcc -O2 -c -o OUT.o INPUT", source, 25_000),
    Program("java", "java -cp HERE Count INPUT", lines, 4 * MB),
    Program("python zlib", f"{PYTHON} HERE/deflate.py INPUT", words, 3 * MB),
    Program("mawk join", "mawk 'FNR == NR {a[$1] = $2; next} $1 in a {n++} END {print n}' INPUT INPUT", lines, 2 * MB),
    Program("gawk", "gawk '{a[$1] = $2} END {print length(a)}' INPUT", lines, 2 * MB),
    Program("clang", "clang -O1 -c -o OUT.o INPUT", source, 25_000),
    Program("zstd", "zstd -q -f -12 -T1 -o OUT.zst INPUT", words, 1 * MB),
    Program("minimap2", "minimap2 -d OUT.mmi INPUT", fasta, 3 * MB),
    Program("node", "node HERE/parse.js INPUT", objects, 3 * MB),
    Program("python groups", f"{PYTHON} HERE/groups.py INPUT", lines, 3 * MB),
    Program("perl", "perl -ne '@f = split; $a{$f[0]} = $f[1]; END {print scalar keys %a}' INPUT", lines, 2 * MB),
    Program("pigz", "pigz -k -f -p 2 INPUT", words, 2 * MB),
    Program("bzip2", "bzip2 -k -f INPUT", words, 1 * MB),
]
SUFFIX = {fasta: ".fa", sam: ".sam", source: ".c", numbers: ".csv", objects: ".json"}


def prepare(here):
    here.mkdir(parents=True, exist_ok=True)
    for name, text in SCRIPTS.items():
        (here / name).write_text(text)
    subprocess.run(["javac", "-d", here, here / "Count.java"], check=True)


def record(program, here, runs):
    """Runs all sizes, the largest once. Each input is made, read and removed."""
    records = folder(here, program)
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    for place, scale in enumerate(SCALE):
        path = here / f"{place}{SUFFIX.get(program.make, '.txt')}"
        program.make(path, int(program.bytes * scale))
        for run in range(1 if scale == SCALE[-1] else runs):
            command = [programs.bursar(), "run", "-q", "--record", records / f"{place}-{run}.bursar", "--", *program.argv(here, path)]
            ended = subprocess.run(command, cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if ended.returncode:
                sys.exit(f"{program.name}: {ended.stderr}")
        with (records / "sizes").open("a") as sizes:
            sizes.write(f"{path.stat().st_size}\n")
        for made in [*here.glob(f"{place}.*"), *here.glob("out*")]:
            made.unlink()


def folder(here, program):
    return here / "records" / program.name.replace(" ", "-")


def figures(path):
    """(floor in bytes, seconds) of a run."""
    shown = subprocess.run([programs.bursar(), "report", "--json", "-", path], stdout=subprocess.PIPE, check=True).stdout
    run = json.loads(shown)
    return run["floor_bytes"], run["wall_seconds"]


def main():
    parser = argparse.ArgumentParser(prog="bench/predict own", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=programs.DATA / "own")
    parser.add_argument("--runs", type=int, default=2, help="of each size but the largest [default: 2]")
    parser.add_argument("--keep", action="store_true", help="use the records that are there")
    parser.add_argument("--history", type=pathlib.Path, required=True, help="write the runs to this file")
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    chosen = [program for program in PROGRAMS if not options.name or program.name in options.name]
    here = options.data.resolve()
    if not options.keep:
        prepare(here)
        for program in chosen:
            record(program, here, options.runs)
    with options.history.open("w") as out:
        writer = csv.writer(out)
        writer.writerow(["task", "input_bytes", "peak_bytes", "seconds", "requested_bytes", "submitted", "completed"])
        for program in chosen:
            sizes = (folder(here, program) / "sizes").read_text().split()
            for completed, path in enumerate(sorted(folder(here, program).glob("*.bursar"))):
                peak, seconds = figures(path)
                writer.writerow([program.name, sizes[int(path.name.split("-")[0])], peak, seconds, peak, completed, completed])


if __name__ == "__main__":
    main()

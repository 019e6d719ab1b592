"""The inputs of `bench/unseen`, one function for each program of unseen.list. Every input is the same on every machine."""

import random

# Program -> the commands that it takes, and the packages of PyPI.
NEEDS = {
    "samtools": ["samtools"],
    "bwa": ["bwa"],
    "blastn": ["blastn"],
    "bowtie2": ["bowtie2", "bwa"],
    "R": ["Rscript"],
    "java": ["java", "javac"],
    "node": ["node"],
    "go": ["go"],
    "pandas": ["python3"],
    "duckdb": ["python3"],
    "arrow": ["python3"],
    "memmap": ["python3"],
    "pgbench": ["pg_ctlcluster"],
    "redis": ["redis-server"],
    "pipeline": ["gzip"],
}
PACKAGES = {
    "samtools": "samtools",
    "bwa": "bwa",
    "blastn": "ncbi-blast+",
    "bowtie2": "bowtie2",
    "Rscript": "r-base-core",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "node": "nodejs",
    "go": "golang-go",
    "pg_ctlcluster": "postgresql",
    "redis-server": "redis-server",
    "gzip": "gzip",
    "python3": "python3",
}
MODULES = {"pandas": "pandas", "duckdb": "duckdb", "arrow": "pyarrow", "memmap": "numpy"}


def sequence(noise, length):
    return noise.choices("ACGT", k=length)


def genome(path, length, seed):
    noise = random.Random(seed)
    with open(path, "w", encoding="ascii") as out:
        out.write(">chr1\n")
        for _ in range(length // 60):
            out.write("".join(sequence(noise, 60)) + "\n")


def read_genome(path):
    with open(path, encoding="ascii") as lines:
        return "".join(line.strip() for line in lines if not line.startswith(">"))


def reads(text, count, length, seed):
    noise = random.Random(seed)
    for number in range(count):
        at = noise.randrange(len(text) - length)
        bases = list(text[at : at + length])
        for _ in range(2):
            bases[noise.randrange(length)] = noise.choice("ACGT")
        yield number, at, "".join(bases)


def samtools(place, _run):
    noise = random.Random(5)
    with open(place / "reads.sam", "w", encoding="ascii") as out:
        out.write("@SQ\tSN:chr1\tLN:100000000\n")
        for number in range(550_000):
            bases = "".join(sequence(noise, 100))
            out.write(f"read{number}\t0\tchr1\t{noise.randrange(1, 99_000_000)}\t60\t100M\t*\t0\t0\t{bases}\t{'I' * 100}\n")


def bwa(place, run):
    genome(place / "genome.fa", 24_000_000, seed=6)
    text = read_genome(place / "genome.fa")
    with open(place / "reads.fq", "w", encoding="ascii") as out:
        for number, _, bases in reads(text, 40_000, 100, seed=7):
            out.write(f"@r{number}\n{bases}\n+\n{'I' * 100}\n")
    run("bwa", "index", place / "genome.fa")
    run("bowtie2-build", "--quiet", "--threads", "2", place / "genome.fa", place / "genome")


def bowtie2(place, _run):
    """Its index and its reads are those of `bwa`."""


def blastn(place, run):
    genome(place / "genome.fa", 240_000_000, seed=8)
    with open(place / "genome.fa", encoding="ascii") as lines:
        next(lines)
        text = "".join(line.strip() for _, line in zip(range(200_000), lines))
    with open(place / "query.fa", "w", encoding="ascii") as out:
        for number, _, bases in reads(text, 4000, 500, seed=9):
            out.write(f">q{number}\n{bases}\n")
    run("makeblastdb", "-in", place / "genome.fa", "-dbtype", "nucl", "-out", place / "genome")
    (place / "genome.fa").unlink()


def R(place, _run):
    (place / "model.R").write_text(
        """set.seed(1)
n <- 800000
d <- data.frame(g = sample(letters, n, TRUE), x = rnorm(n), y = rnorm(n))
for (i in 1:4) {
  d$z <- d$x * i + d$y
  m <- aggregate(z ~ g, d, mean)
  f <- lm(z ~ x + y + g, d)
}
print(coef(f)[1:3])
"""
    )


def java(place, run):
    (place / "Alloc.java").write_text(
        """import java.util.*;
public class Alloc {
    public static void main(String[] args) {
        List<byte[]> live = new ArrayList<>();
        for (int i = 0; i < 1600; i++) live.add(new byte[65536]);
        long sum = 0;
        Random random = new Random(1);
        for (int i = 0; i < 6_000_000; i++) {
            byte[] garbage = new byte[512 + random.nextInt(1024)];
            garbage[i % 512] = (byte) i;
            sum += garbage[0] + Long.toString(i).length();
            if (i % 4096 == 0) live.set(random.nextInt(live.size()), new byte[65536]);
        }
        System.out.println(sum);
    }
}
"""
    )
    run("javac", "-d", place, place / "Alloc.java")


def node(place, _run):
    (place / "objects.js").write_text(
        """const live = new Map();
let sum = 0;
for (let i = 0; i < 5000000; i++) {
  const key = (i * 7919) % 300000;
  live.set(key, { key, text: 'value' + i, list: [i, i + 1, i + 2] });
  if (i % 3 === 0) sum += (live.get((i * 31) % 300000) || { list: [0] }).list[0] % 7;
}
console.log(sum);
"""
    )


def go(place, run):
    (place / "main.go").write_text(
        """package main

import "fmt"

type record struct {
	name string
	data []int64
}

func main() {
	live := make(map[int]*record)
	sum := int64(0)
	for i := 0; i < 3000000; i++ {
		key := i * 7919 % 400000
		r := &record{fmt.Sprint("r", i), make([]int64, 16)}
		r.data[i%16] = int64(i)
		live[key] = r
		if o, ok := live[i*31%400000]; ok {
			sum += o.data[0] % 7
		}
	}
	fmt.Println(sum, len(live))
}
"""
    )
    run("go", "build", "-o", place / "records", place / "main.go")


def pandas(place, _run):
    noise = random.Random(10)
    with open(place / "rows.csv", "w", encoding="ascii") as out:
        out.write("key,group,value,text\n")
        for number in range(1_200_000):
            out.write(f"{number},{noise.randrange(5000)},{noise.random():.6f},t{noise.randrange(1000)}\n")
    (place / "group.py").write_text(
        f"""import pandas
d = pandas.read_csv("{place}/rows.csv")
g = d.groupby("group").agg(value=("value", "mean"), count=("key", "count"))
m = d.merge(g, left_on="group", right_index=True)
print(m.groupby("text").value_x.sum().head())
"""
    )


def duckdb(place, run):
    (place / "query.py").write_text(
        f"""import duckdb
c = duckdb.connect("{place}/t.db", read_only=True)
c.execute("SET threads=2")
print(c.execute("SELECT a.g, count(*), sum(a.v * b.v) FROM t a JOIN t b ON a.id = b.other GROUP BY a.g ORDER BY 2 LIMIT 5").fetchall())
print(c.execute("SELECT s, count(DISTINCT id) n FROM t GROUP BY s ORDER BY n DESC LIMIT 3").fetchall())
"""
    )
    make = (
        f"import duckdb; c = duckdb.connect('{place}/t.db'); c.execute('SET threads=1'); "
        "c.execute('CREATE TABLE t AS SELECT i id, i * 7919 % 5000000 AS other, i % 1000 g, (i * 104729 % 999983) / 1000.0 v, "
        "(i * 31 % 65537)::VARCHAR s FROM range(5000000) r(i)'); c.close()"
    )
    run("python3", "-c", make)


def arrow(place, run):
    (place / "scan.py").write_text(
        f"""import pyarrow, pyarrow.compute, pyarrow.ipc
t = pyarrow.ipc.open_file(pyarrow.memory_map("{place}/t.arrow")).read_all()
s = 0
for k in range(12):
    s += pyarrow.compute.sum(pyarrow.compute.multiply(t["a"], k)).as_py()
    s += pyarrow.compute.sum(t["b"]).as_py() + pyarrow.compute.min_max(t["c"]).as_py()["max"]
print(s)
"""
    )
    make = (
        "import numpy, pyarrow, pyarrow.ipc; n = 10_000_000; r = numpy.random.default_rng(1); "
        "t = pyarrow.table({'a': r.integers(0, 999, n), 'b': r.random(n), 'c': r.integers(0, 99, n)}); "
        f"w = pyarrow.ipc.new_file('{place}/t.arrow', t.schema); w.write_table(t, 262144); w.close()"
    )
    run("python3", "-c", make)


def memmap(place, run):
    (place / "passes.py").write_text(
        f"""import numpy
a = numpy.memmap("{place}/m.bin", dtype="f8", mode="r", shape=(25_000_000,))
s = 0.0
for k in range(8):
    for i in range(0, len(a), 250_000):
        part = a[i : i + 250_000]
        s += float(numpy.sqrt(part * (k + 1)).sum())
print(s)
"""
    )
    run("python3", "-c", f"import numpy; numpy.random.default_rng(1).random(25_000_000).tofile('{place}/m.bin')")


def pgbench(place, run):
    (place / "run.sh").write_text(
        f"""set -e
B=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
D={place}/db S={place}
rm -f $D/postmaster.pid
as() {{ if [ $(id -u) = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }}
as $B/postgres -D $D -k $S -c listen_addresses= -c fsync=off -c port=54991 2>$S/log & P=$!
trap 'kill -INT $P; wait $P' EXIT
until as $B/pg_isready -q -h $S -p 54991; do sleep 0.02; done
as $B/pgbench -h $S -p 54991 -n -c 4 -j 1 -t 2500 -S bench >/dev/null 2>&1
as $B/pgbench -h $S -p 54991 -n -c 2 -j 1 -t 500 bench >/dev/null 2>&1
"""
    )
    (place / "make.sh").write_text(
        f"""set -e
B=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
D={place}/db S={place}
chmod 777 $S
as() {{ if [ $(id -u) = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }}
as $B/initdb -D $D --no-sync >/dev/null
as $B/pg_ctl -D $D -w -l $S/log -o "-k $S -c listen_addresses= -c fsync=off -c port=54991" start >/dev/null
as $B/createdb -h $S -p 54991 bench
as $B/pgbench -h $S -p 54991 -i -s 20 -q bench
as $B/pg_ctl -D $D -w stop >/dev/null
"""
    )
    run("sh", place / "make.sh")


def redis(place, _run):
    (place / "run.sh").write_text(
        f"""set -e
redis-server --port 0 --unixsocket {place}/s --save '' --appendonly no --dir {place} --logfile {place}/log & P=$!
trap 'kill $P; wait $P || true' EXIT
until redis-cli -s {place}/s ping >/dev/null 2>&1; do sleep 0.02; done
redis-benchmark -s {place}/s -q -t set -d 400 -r 250000 -n 450000 -P 16 >/dev/null
redis-benchmark -s {place}/s -q -t get -r 250000 -n 300000 -P 16 >/dev/null
"""
    )


def pipeline(place, run):
    noise = random.Random(11)
    with open(place / "log", "w", encoding="ascii") as out:
        for number in range(1_400_000):
            out.write(f"{noise.randrange(90_000)} GET /path/{noise.randrange(4000)} {number}\n")
    run("gzip", "-1", place / "log")
    (place / "run.sh").write_text(
        f"export LC_ALL=C\ngzip -dc {place}/log.gz | awk '{{ print $3, $1 }}' | sort -S 24M -T {place} | uniq -c | "
        f"sort -k1,1nr -S 24M -T {place} >{place}/out\n"
    )

# Page faults are timed here as well: neither the fault tracepoints' arguments nor the kernel's structures are those of Linux 6.18.
export HOME=/tmp/home
mkdir -p $HOME
pages='sum(2 ** (of["order"] or 0) * of["count"] for kind in ("base", "huge", "cow") for of in r["kinds"].get(kind, {"by_order": []})["by_order"])'
# An emulated processor may go on for a time with code that the kernel has patched: then it does not tell that faults begin, end,
# or are at all.
for attempt in 1 2 3; do
    bursar faults -q --json /tmp/faults.json -- memory hold 4 8
    figures /tmp/faults.json 'r["untimed_count"] < 5 and r["unfinished_count"] < 100' &&
        figures /tmp/faults.json "8192 <= $pages" && break
    echo "faults were lost (attempt $attempt)"
done
holds "faults are timed from their beginning" figures /tmp/faults.json 'r["untimed_count"] < 5'
holds "every page that is written was a fault of its kind" figures /tmp/faults.json "8192 <= $pages <= 2 * 8192"
holds "how long they took is known" figures /tmp/faults.json '0 < r["overall"]["p50_us"] <= r["overall"]["p999_us"]'
mkdir -m 777 /tmp/anybodys
setpriv --reuid=4711 --clear-groups bursar faults -q --json /tmp/anybodys/faults.json -- memory hold 4 8
holds "without root they are counted" figures /tmp/anybodys/faults.json 'r["overall"]["count"] > 16 and r["overall"]["p50_us"] is None'

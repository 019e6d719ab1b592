# The budget of a reader on cgroup v2, against a direct search for its knee.
export HOME=/tmp/home
mkdir -p $HOME
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
dd if=/dev/urandom of=/disk/file bs=1M count=48 status=none
program=(scan read 24 48 4 /disk/file)
# Emulated processors share the host's with whatever else it does: a comparison that fails is made once more.
for attempt in 1 2; do
    knee=$(knee "${program[@]}")
    bursar budget --no-compare --slowdown $SLOWDOWN% --json /out/reader.json --html /out/reader.html -- "${program[@]}"
    status=$?
    near="abs(r[\"budget_bytes\"] - $knee * MiB) <= 0.15 * $knee * MiB"
    figures /out/reader.json "$near" && break
done
holds "a knee is there ($knee MiB)" test "$knee" -gt 40 -a "$knee" -lt 500
holds "a budget ends well" test $status -eq 0
holds "the budget is within 15 % of the knee ($knee MiB)" figures /out/reader.json "$near"
holds "the answer names cgroup v2 and the swap policy" figures /out/reader.json '"v2" in r["placement"] and r["swap"]'
holds "the search takes at most 8 runs" figures /out/reader.json 'len(r["trials"]) <= 8'

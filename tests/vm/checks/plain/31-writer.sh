# The budget of a writer on cgroup v2, against a direct search for its knee.
export HOME=/tmp/home
mkdir -p $HOME
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
program=(scan write 24 48 4 /disk/written)
# Who first dirties a file owns its writeback while the inode is remembered: dropping caches makes each run the owner.
# Emulated processors share the host's with whatever else it does: a comparison that fails is made once more.
for attempt in 1 2; do
    knee=$(knee "${program[@]}")
    bursar budget --drop-caches --no-compare --slowdown $SLOWDOWN% --json /out/writer.json --html /out/writer.html -- "${program[@]}"
    status=$?
    near="abs(r[\"budget_bytes\"] - $knee * MiB) <= 0.15 * $knee * MiB"
    figures /out/writer.json "$near" && break
done
holds "a knee is there ($knee MiB)" test "$knee" -gt 40 -a "$knee" -lt 500
holds "a budget ends well" test $status -eq 0
holds "the budget is within 15 % of the knee ($knee MiB)" figures /out/writer.json "$near"
holds "the answer names cgroup v2 and the swap policy" figures /out/writer.json '"v2" in r["placement"] and r["swap"]'
holds "the search takes at most 8 runs" figures /out/writer.json 'len(r["trials"]) <= 8'

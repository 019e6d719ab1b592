# The budget of a writer on cgroup v2, against runs under limits at its knee: far more than it ever holds.
export HOME=/tmp/home
mkdir -p $HOME
echo "+memory +io" >/sys/fs/cgroup/cgroup.subtree_control
program=(scan write 24 48 4 /disk/written)
# Who first dirties a file owns its writeback while the inode is remembered: dropping caches makes each run the owner.
bursar budget --drop-caches --no-compare --slowdown $SLOWDOWN% --json /out/writer.json --html /out/writer.html -- "${program[@]}"
status=$?
answer=$(python3 -S -c 'import json, sys; print((json.load(open(sys.argv[1]))["budget_bytes"] or 0) >> 20)' /out/writer.json)
holds "a budget ends well" test $status -eq 0
holds "the budget is that of heap and file, or more" test "$answer" -ge 200 -a "$answer" -lt 500
# Beside a slow program all that is dirty is written in the background: what counts is how often it was held back.
tracing=/sys/kernel/tracing
echo "pause > 0" >$tracing/events/writeback/balance_dirty_pages/filter
echo 1 >$tracing/events/writeback/balance_dirty_pages/enable
held_back() {
    echo >$tracing/trace
    under_limit "$1" "${program[@]}" >/dev/null
    grep -c ' balance_dirty_pages: ' $tracing/trace
}
knee_at "$answer" 0 held_back
holds "the answer names cgroup v2 and the swap policy" figures /out/writer.json '"v2" in r["placement"] and r["swap"]'
holds "the search takes at most 8 runs" figures /out/writer.json 'len(r["trials"]) <= 8'

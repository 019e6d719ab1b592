# Ranks take their memory from the nodes in turn, and run there if they are told to.
before=$(reserved)
bursar pool create 256M
placed='placed $PPID >/tmp/placed.$PMI_RANK'

# are PLACED…: what each rank had where, in their order.
are() { diff <(cat /tmp/placed.*) <(printf '%s\n' "$@") && rm /tmp/placed.*; }

bursar provision -q --stats /tmp/two.json -- mpirun.mpich -n 2 memory hold 1 48 "$placed" >/tmp/out
holds "two ranks of one launcher have what they wrote" test "$(grep -cx right /tmp/out)" = 2
holds "each from a node of its own" are "50 0 0-1" "0 50 0-1"
holds "the stats name the nodes" figures /tmp/two.json \
    'sorted((p["rank"], p["node"]) for p in r["processes"] if p["served_bytes"] and p["executable"].endswith("/memory")) == [(0, 0), (1, 1)]'

mpirun.mpich -n 4 bursar provision -q --pin --stats /tmp/four.json -- memory hold 1 48 "$placed" >/tmp/out
holds "four ranks, each with a launcher, have what they wrote" test "$(grep -cx right /tmp/out)" = 4
holds "two from each node, pinned to its processor" are "50 0 0" "0 50 1" "50 0 0" "0 50 1"
holds "the stats of a rank name its node" figures /tmp/four.json.3 \
    '[p["node"] for p in r["processes"] if p["served_bytes"] and p["executable"].endswith("/memory")] == [1]'

export PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1
bursar provision -q --stats /tmp/large.json -- memory hold 1 160 "$placed" >/tmp/out
holds "a rank that needs more than the pool has on its node has what it wrote" grep -qx right /tmp/out
holds "and the rest from the other node" are "34 128 0-1"
holds "not from the kernel" figures /tmp/large.json.1 'r["fallbacks"] == 0 and r["pool_bytes_peak"] == 162 * MiB'
bursar pool destroy
holds "all is as it was found" test "$(reserved)" = "$before"

# What a job has of a pool is not charged to its cgroup: the broker keeps it to the limit.
before=$(reserved)
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
mkdir -p $root/job
echo +memory >$root/job/cgroup.subtree_control
mkdir $root/job/step
echo 128M >$root/job/memory.max
bursar pool create 256M

in_cgroup $root/job/step bursar provision -q --stats /tmp/job.json -- \
    memory hold 5 40 'bursar pool status >/tmp/lent' >/tmp/out
holds "a job that asks for more than its limit goes on" grep -qx right /tmp/out
holds "the broker has lent it as much as the limit above it" test "$(grep -c '64.0 MiB on node .* (memory)' /tmp/lent)" = 2
holds "three of five blocks are the pool's" figures /tmp/job.json 'r["pool_bytes_peak"] == 126 * MiB'
holds "two are its own, for that reason" figures /tmp/job.json 'r["passed_to_linux"]["cap"]["calls"] == r["fallbacks"] == 2'
holds "and charged to it" test "$(<$root/job/memory.peak)" -gt $((80 << 20))
holds "which is within its limit" grep -qx 'oom_kill 0' $root/job/memory.events
bursar provision -q --stats /tmp/free.json -- memory hold 5 40 >/tmp/out
holds "a job without a limit has all from the pool" figures /tmp/free.json \
    'r["pool_bytes_peak"] >= 200 * MiB and r["fallbacks"] == 0'
rmdir $root/job/step $root/job
bursar pool destroy
holds "all is as it was found" test "$(reserved)" = "$before"

# Control experiments: what systemd itself offers an ordinary user, without bursar.
holds "the user's manager runs" as_tester systemctl --user is-system-running --wait
holds "a user starts a scope with a limit" as_tester systemd-run --user --scope -q -p MemoryMax=50M -p MemorySwapMax=0 \
    bash -c 'test "$(cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max)" = 52428800'
cat /proc/uptime

# Control experiments: what systemd itself offers an ordinary user, without bursar.
as_tester() {
    setpriv --reuid=4242 --regid=4242 --clear-groups env -i PATH="$PATH" LANG="$LANG" HOME=/home/tester USER=tester \
        XDG_RUNTIME_DIR=/run/user/4242 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/4242/bus "$@"
}
holds "the user's manager runs" as_tester systemctl --user is-system-running --wait
holds "a user starts a scope with a limit" as_tester systemd-run --user --scope -q -p MemoryMax=50M -p MemorySwapMax=0 \
    bash -c 'test "$(cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max)" = 52428800'
systemd-analyze time; systemd-analyze blame | head -20; systemctl --failed; cat /proc/uptime

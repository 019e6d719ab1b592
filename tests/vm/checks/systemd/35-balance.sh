# systemd writes a unit's memory.high anew while bursar balance moves it.
systemd-run -q --unit=held -p MemoryHigh=100M python3 -c 'import time; held = bytearray(b"x") * (64 << 20); time.sleep(1000)'
high=/sys/fs/cgroup/system.slice/held.service/memory.high
rm -f /tmp/held-intervals
state() { echo "$(cat $high) $(tail -n 1 /tmp/held-intervals)"; }
is_ours() { test "$(cat $high)" != $((300 << 20)); }
says() { grep -q "$1" /tmp/held-intervals; }
bursar balance -q --total 128M --interval 1s --json /tmp/held-intervals "${high%/*}" 2>/tmp/told &
balancer=$!
holds "it balances" eventually test -s /tmp/held-intervals
before=$(cat $high)
systemctl daemon-reload
echo "memory.high before daemon-reload: $before, after it: $(cat $high)"
systemctl set-property --runtime held.service MemoryHigh=300M
holds "that systemd has set it is told" eventually says 'somebody else set memory.high to 300 MiB, and it was set again'
holds "and it is bursar's again" eventually is_ours
kill $balancer
wait $balancer
holds "at the end it is the unit's own" test "$(cat $high)" = $((300 << 20))
systemctl stop held

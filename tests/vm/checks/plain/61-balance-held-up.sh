# A heap that grows beyond its high mark where there is no swap, and marks that somebody else sets.
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
mkdir $root/bursts $root/beside
echo 48M >$root/bursts/memory.high
echo 48M >$root/beside/memory.high
rm -f /tmp/go /tmp/done /tmp/burst-intervals
cat >/tmp/bursts.py <<'END'
import os, time
held = bytearray(b'x') * (32 << 20)
while not os.path.exists('/tmp/go'): time.sleep(0.05)
burst = bytearray(b'x') * (160 << 20)
open('/tmp/done', 'w').close()
time.sleep(1000)
END
in_cgroup $root/bursts python3 /tmp/bursts.py &
in_cgroup $root/beside wants round 16 &

state() { echo "$(cat $root/bursts/memory.high $root/beside/memory.high | tr '\n' ' ') $(tail -n 1 /tmp/burst-intervals)"; }
is_limited() { test "$(cat $root/beside/memory.high)" != max; }
says() { grep -q "$1" /tmp/burst-intervals; }

bursar balance -q --total 96M --interval 2s --json /tmp/burst-intervals $root/bursts $root/beside 2>/tmp/told &
balancer=$!
holds "it balances" eventually test -s /tmp/burst-intervals
touch /tmp/go
holds "a heap that grows is not held up below what cannot be reclaimed" eventually test -e /tmp/done
holds "and that is told" eventually says 'it was raised at once'
echo max >$root/beside/memory.high
holds "a mark that somebody else sets is told" eventually says 'somebody else set memory.high to no limit, and it was set again'
holds "and set again" eventually is_limited
# What is written while bursar lowers that very mark is lost.
sets_another() { echo 300M >$root/beside/memory.high; says 'somebody else set memory.high to 300 MiB, and it was set again'; }
holds "and one that is a number" eventually sets_another
kill $balancer
wait $balancer
holds "at the end it is what the other one has set" test "$(cat $root/beside/memory.high)" = $((300 << 20))
holds "and where nobody has, what it was" test "$(cat $root/bursts/memory.high)" = $((48 << 20))
echo 1 >$root/bursts/cgroup.kill
echo 1 >$root/beside/cgroup.kill
eventually rmdir $root/bursts
eventually rmdir $root/beside

# Balancing on cgroup v2: one that gains from memory beside one that only streams, too little for both, and swap in zram.
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
echo 128M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
mkdir $root/gains $root/streams
echo 18M >$root/gains/memory.high
in_cgroup $root/gains wants any 24 &
in_cgroup $root/streams wants round 48 &

high() { cat $root/gains/memory.high $root/streams/memory.high | tr '\n' ' '; }
state() { echo "$(high) $(tail -n 1 /tmp/intervals)"; }
# last NAME: what the last interval says of that target.
last() { tail -n 1 /tmp/intervals | grep -o "{\"name\":\"$root/$1\"[^}]*}"; }
says() { last "$1" | grep -q "$2"; }
not_refused() { last "$1" | grep -vq 'cannot be changed'; }
has_more() { set -- $(high) && [ "$1" != max ] && [ "$2" != max ] && [ "$1" -gt $((22 << 20)) ] && [ "$2" -lt $((22 << 20)) ]; }
is_moved() { [ "$(high)" != "$before" ]; }
balance() { exec bursar balance --total 42M --interval 500ms "$@" $root/gains $root/streams; }
before=$(high)

begins() { read -r gains <$root/gains/cgroup.procs && grep -qx wants /proc/$gains/comm; }
eventually begins
bursar watch -q --intrusive --always --json /tmp/watched --pid "$gains" &
watcher=$!
holds "what comes back from swap is told by its faults" eventually grep -q 'page tables, and faults on what was swapped out' /tmp/watched
kill $watcher
wait $watcher

setpriv --reuid=65534 --regid=65534 --clear-groups bursar balance --total 42M $root/gains $root/streams 2>/tmp/told
holds "who may not move limits is a failure of bursar's" test $? -eq 125
holds "and is told in one sentence" grep -qx 'bursar: cannot write .*: Permission denied (os error 13); this needs root or a delegated cgroup, see `bursar doctor`' /tmp/told

balance --json /tmp/intervals 2>/tmp/told >/out/balanced &
balancer=$!
holds "memory goes to the one that gains" eventually has_more
mount --bind $root/streams $root/streams
eventually mount -o remount,bind,ro $root/streams # not while somebody writes there
holds "a write that is refused is told" eventually says streams 'cannot be changed: .*Read-only'
holds "and the other goes on" not_refused gains
eventually umount $root/streams # nor while somebody has a file of it open
holds "until it can be moved" eventually not_refused streams
kill $balancer
wait $balancer
holds "SIGTERM ends it well" test $? -eq 0
holds "and every high mark is what it was" test "$(high)" = "$before"

balance -q &
balancer=$!
holds "marks are moved" eventually is_moved
kill -KILL $balancer
wait $balancer
holds "after SIGKILL they are as they were left" is_moved
bursar balance --total 42M --dry-run --duration 200ms -q $root/gains 2>/tmp/told
holds "the next start puts them back" test "$(high)" = "$before"
holds "and says so" grep -q 'left by a killed run: .*/streams/memory.high was put back to max' /tmp/told

: >/tmp/intervals
balance -q --json /tmp/intervals 2>/tmp/told &
balancer=$!
eventually test -s /tmp/intervals
echo 1 >$root/streams/cgroup.kill
eventually rmdir $root/streams
holds "a cgroup that is removed is told" eventually grep -q 'streams has ended; its memory is for the others' /tmp/told
one_is_left() { says gains total || { says gains why && ! says streams why; }; }
holds "and the other has what there is" eventually one_is_left
echo 1 >$root/gains/cgroup.kill
eventually rmdir $root/gains
wait $balancer
holds "when all are gone it ends well" test $? -eq 0
holds "nothing is left to repair" test -z "$(bursar doctor --repair 2>/dev/null | grep 'put back')"
swapoff /dev/zram0

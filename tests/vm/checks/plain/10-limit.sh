# Control experiments: an enforced limit has the effect that bursar is to measure, without bursar.
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
dd if=/dev/urandom of=/disk/file bs=1M count=64 status=none

slower_by_half() { [ $(($2 * 2)) -gt $(($1 * 3)) ] || { echo "$1 ms against $2 ms"; false; }; }
free=$(best_of 3 max 0 scan read 24 64 8 /disk/file)
tight=$(best_of 3 60M 0 scan read 24 64 8 /disk/file)
holds "a loop over a file is slow under a limit that the file does not fit into" slower_by_half "$free" "$tight"
refaults() { [ "$(awk '$1 == "workingset_refault_file" {print $2}' /tmp/memory.stat)" -gt 100000 ]; }
holds "the kernel counts its refaults" refaults
under_limit 20M scan read 24 64 1 /disk/file
killed=$?
holds "a limit under the heap kills" test $killed -eq 137
holds "the kernel counts the kill" grep -qx 'oom_kill 1' /tmp/memory.events
echo "unlimited $free ms, at 60 MiB $tight ms"

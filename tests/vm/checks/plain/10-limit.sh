# Control experiments: an enforced limit has the effect that bursar is to measure, without bursar.
root=/sys/fs/cgroup
echo "+memory +io" >$root/cgroup.subtree_control
dd if=/dev/urandom of=/disk/file bs=1M count=64 status=none

free=$(under_limit max scan read 24 64 8 /disk/file)
tight=$(under_limit 60M scan read 24 64 8 /disk/file)
holds "a loop over a file reads it again under a limit that it does not fit into" test "$tight" -gt $((free * 4))
refaults() { [ "$(awk '$1 == "workingset_refault_file" {print $2}' /tmp/memory.stat)" -gt 100000 ]; }
holds "the kernel counts its refaults" refaults
under_limit 20M scan read 24 64 1 /disk/file
killed=$?
holds "a limit under the heap kills" test $killed -eq 137
holds "the kernel counts the kill" grep -qx 'oom_kill 1' /tmp/memory.events

# Records a job's files as this kernel writes them, for the tests of the readers (crates/linux/tests/trees).
root=/sys/fs/cgroup
mkdir -p $root/jobs/job
echo "+memory +io +hugetlb" >$root/cgroup.subtree_control
echo "+memory +io +hugetlb" >$root/jobs/cgroup.subtree_control
echo 96M >$root/jobs/memory.max
echo 60M >$root/jobs/job/memory.max
echo 0 >$root/jobs/job/memory.swap.max
in_cgroup $root/jobs/job dd if=/dev/zero of=/disk/written bs=1M count=20 status=none
in_cgroup $root/jobs/job scan read 24 64 100000 /disk/file &
until grep -q '^workingset_refault_file [1-9]' $root/jobs/job/memory.stat; do sleep 0.1; done
record plain "$(pgrep -x scan)"
pkill -x scan
wait
holds "the files of a job under a limit were recorded" grep -q '^workingset_refault_file [1-9]' /out/trees/plain$root/jobs/job/memory.stat

# As a container sees itself: its own cgroup is the root of its view, which cannot be written.
in_cgroup $root/jobs/job unshare --cgroup --mount bash -c '
    . /disk/inside/library
    umount /sys/fs/cgroup && mount -t cgroup2 -o ro cgroup2 /sys/fs/cgroup || exit
    scan read 24 64 100000 /disk/file &
    sleep 2
    record container $!
    kill $!'
holds "the files of a container were recorded" grep -qx '0::/' /out/trees/container/proc/self/cgroup
rmdir $root/jobs/job $root/jobs

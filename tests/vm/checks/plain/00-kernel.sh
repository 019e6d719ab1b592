# Control experiments: what the kernel itself offers, without bursar.
root=/sys/fs/cgroup
holds "the memory controller is on cgroup v2" grep -qw memory $root/cgroup.controllers
echo +memory >$root/cgroup.subtree_control
mkdir $root/control
for file in max current peak reclaim events stat pressure swap.max; do
    holds "memory.$file is there" test -e $root/control/memory.$file
done
holds "the disk is a block device" findmnt -n -o SOURCE /disk
ls $root/control
cat /proc/uptime
rmdir $root/control

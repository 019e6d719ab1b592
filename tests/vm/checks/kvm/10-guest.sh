# A guest of KVM, whose accesses DAMON tells, and a cgroup that swaps to zram.
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 256M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
python3 /disk/checks/kvm/guest bursar /disk

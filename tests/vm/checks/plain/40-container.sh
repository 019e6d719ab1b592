# bursar as the first program of a container: a read-only root, no HOME, its own cgroup as the root of what it sees.
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
mkdir $root/container
echo 200M >$root/container/memory.max
dd if=/dev/urandom of=/disk/file bs=1M count=64 status=none
mkdir -p /tmp/image

# in_container CGROUP_MODE COMMAND…: an image is a bind of the root in which nothing can be written but a pipe.
in_container() {
    local mode=$1
    shift
    in_cgroup $root/container unshare --cgroup --mount --pid --fork --ipc --uts bash -c '
        mount --rbind / /tmp/image && mount -o remount,bind,ro /tmp/image && mount -o remount,bind,ro /tmp/image/disk &&
            mount -o remount,bind,ro /tmp/image/run && mount -o remount,bind,ro /tmp/image/out &&
            mount -o bind,ro /tmp/image/disk /tmp/image/tmp &&
            umount /tmp/image/sys/fs/cgroup && mount -t cgroup2 -o "$1" cgroup2 /tmp/image/sys/fs/cgroup &&
            mount -t proc proc /tmp/image/proc || exit 99
        shift
        exec chroot /tmp/image /usr/bin/env -i PATH="$PATH" "$@"' - "$mode" "$@"
}
unwritable() { ! in_container ro touch /tmp/x /x /run/x; }
holds "the image cannot be written" unwritable
in_container ro bursar run --json - -- scan read 24 64 2 /disk/file 2>/tmp/said | tail -n +2 >/tmp/contained.json
holds "run works on a read-only image without HOME" figures /tmp/contained.json 'r["exit_status"] == 0 and r["app_max_rss_bytes"] >= 24 * MiB'
holds "it says that no record is kept" grep -qi 'no record' /tmp/said
holds "the container's own cgroup is read" figures /tmp/contained.json 'r["peak_charge_bytes"] >= 88 * MiB'
in_container ro bursar run -q -- sh -c 'exit 3'
holds "the entry point's status is the command's" test $? -eq 3
in_container ro bursar budget -q -- scan read 24 64 2 /disk/file 2>/tmp/said
holds "budget without limits is bursar's failure" test $? -eq 125
holds "and says what is missing" grep -qi 'cgroup' /tmp/said
cat /tmp/said
in_container rw bursar run -q --limit 60M --json - -- scan read 24 64 2 /disk/file 2>/tmp/said | tail -n +2 >/tmp/delegated.json
holds "a container that may write its cgroup gets limits" figures /tmp/delegated.json 'r["peak_charge_bytes"] <= 60 * MiB'
cat /tmp/said
rmdir $root/container

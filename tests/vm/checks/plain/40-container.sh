# bursar as the first program of a container: a read-only root, no HOME, its own cgroup as the root of what it sees.
root=/sys/fs/cgroup
echo +memory >$root/cgroup.subtree_control
mkdir $root/container
echo 200M >$root/container/memory.max
dd if=/dev/urandom of=/disk/file bs=1M count=64 conv=fdatasync status=none
echo 3 >/proc/sys/vm/drop_caches # what is cached already would not be charged to the container
mkdir -p /tmp/image

# in_container CGROUP_MODE COMMAND…: an image is a bind of the root in which nothing can be written but a pipe.
in_container() {
    local mode=$1 starter
    shift
    # It has a child once all is unshared.
    (until starter=$(pgrep -o -x unshare) && pgrep -P "$starter"; do sleep 0.1; done
        echo "$starter" >$root/cgroup.procs) >/dev/null 2>&1 &
    in_cgroup $root/container unshare --cgroup --mount --pid --fork --ipc --uts bash -c '
        mount --rbind / /tmp/image && mount -o remount,bind,ro /tmp/image && mount -o remount,bind,ro /tmp/image/disk &&
            mount -o remount,bind,ro /tmp/image/run && mount -o remount,bind,ro /tmp/image/out &&
            mount -o bind,ro /tmp/image/disk /tmp/image/tmp &&
            umount /tmp/image/sys/fs/cgroup && mount -t cgroup2 -o "$1" cgroup2 /tmp/image/sys/fs/cgroup &&
            mount -t proc proc /tmp/image/proc || exit 99
        # Who started the container leaves its cgroup, as container run times do; from inside it is process 0.
        while grep -qx 0 /tmp/image/sys/fs/cgroup/cgroup.procs; do sleep 0.1; done
        shift
        exec chroot /tmp/image /usr/bin/env -i PATH="$PATH" "$@"' - "$mode" "$@"
}
holds "the image cannot be written" test "$(in_container ro sh -c 'touch /x /tmp/x /run/x; echo "$?"' 2>/dev/null)" = 1
in_container ro bursar run --json - -- scan read 24 64 2 /disk/file 2>/tmp/errors | tail -n +2 >/tmp/contained.json
holds "run works on a read-only image without HOME" figures /tmp/contained.json 'r["exit_status"] == 0 and r["app_max_rss_bytes"] >= 24 * MiB'
holds "it says that no record is kept" grep -qi 'no record' /tmp/errors
holds "the container's own cgroup is read" figures /tmp/contained.json 'r["peak_charge_bytes"] >= 88 * MiB'
in_container ro bursar run -q -- sh -c 'exit 3'
holds "the entry point's status is the command's" test $? -eq 3
in_container ro bursar budget -q -- scan read 24 64 2 /disk/file 2>/tmp/errors
holds "budget without limits is bursar's failure" test $? -eq 125
holds "and says what is missing" grep -qi 'cgroup' /tmp/errors
holds "and why limits are not emulated" grep -qi 'emulated' /tmp/errors
cat /tmp/errors
in_container rw bursar run -q --limit 60M --json - -- scan read 24 64 2 /disk/file 2>/tmp/errors | tail -n +2 >/tmp/delegated.json
holds "a container that may write its cgroup gets limits" figures /tmp/delegated.json 'r["peak_charge_bytes"] <= 60 * MiB'
cat /tmp/errors
rmdir $root/container

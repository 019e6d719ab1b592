# `bursar run` as root on cgroup v2 without systemd.
export HOME=/tmp/home
mkdir -p $HOME
delay_accounting=$(cat /proc/sys/kernel/task_delayacct)
dd if=/dev/urandom of=/disk/file bs=1M count=64 status=none
cold() { sync && echo 3 >/proc/sys/vm/drop_caches; } # what is cached already is charged to another cgroup
cold

bursar doctor --json - >/out/doctor.json
bursar run --interval 50ms --json /tmp/run.json -- scan read 24 64 4 /disk/file >/tmp/out
holds "the command's output is left alone" grep -qx '[0-9]*' /tmp/out
holds "the heap is App-MaxRSS" figures /tmp/run.json '24 * MiB <= r["app_max_rss_bytes"] <= 27 * MiB'
holds "the file is in the peak charge" figures /tmp/run.json '88 * MiB <= r["peak_charge_bytes"] <= 96 * MiB'
holds "the breakdown sums to the charge" figures /tmp/run.json \
    'abs(sum(r["peak_breakdown"][k] or 0 for k in ("heap", "file", "shared", "kernel")) - r["peak_charge_bytes"]) <= max(MiB, r["peak_charge_bytes"] // 100)'
holds "heap and file are what the program has" figures /tmp/run.json \
    'abs(r["peak_breakdown"]["heap"] - 24.5 * MiB) <= 1.5 * MiB and abs(r["peak_breakdown"]["file"] - 64.5 * MiB) <= 2 * MiB'
holds "the floor is without the file" figures /tmp/run.json '24 * MiB <= r["floor_bytes"] <= 30 * MiB'
holds "Sys-MaxRSS has the file" figures /tmp/run.json '86 * MiB <= r["sys_max_rss_bytes"] <= 96 * MiB'
holds "the pressure is the cgroup's own" figures /tmp/run.json 'r["pressure"]["scope"] == "job"'
holds "the share of I/O wait is known" figures /tmp/run.json '0 <= r["io_wait_share"] < 1'
holds "the sources name cgroup v2" figures /tmp/run.json '"v2" in json.dumps(r["sources"])'

cold
bursar run --json /tmp/limited.json --record /out/limited.bursar --limit 60M -- scan read 24 64 4 /disk/file >/dev/null
holds "a limit is enforced" figures /tmp/limited.json 'r["exit_status"] == 0 and r["peak_charge_bytes"] <= 60 * MiB'
holds "a limit shows in refaults" figures /tmp/limited.json 'r["flow"]["refaults_file"] > 10000'
holds "the file's references were seen" figures /tmp/run.json \
    'abs(r["file_demand"]["referenced_bytes"] - 256 * MiB) <= 4 * MiB and abs(r["file_demand"]["distinct_bytes"] - 64 * MiB) <= 4 * MiB'
bursar run -q --json /tmp/killed.json --limit 40M -- sh -c 'scan read 64 8 1 /disk/file; true'
holds "a command whose child is killed still ends with its own status" test $? -eq 0
holds "the child's kill is counted" figures /tmp/killed.json 'r["exit_status"] == 0 and r["oom_kills"] >= 1'
bursar run -q --json - -- true >/tmp/true.json
rss=$(env time -f %M true 2>&1)
holds "the smallest program reads what GNU time reads ($rss KiB)" figures /tmp/true.json "abs(r['app_max_rss_bytes'] - $rss * 1024) <= 256 * 1024"
bursar run -q -- sh -c 'exit 7'
holds "the command's status is bursar's" test $? -eq 7
no_cgroup_left() { ! find /sys/fs/cgroup -mindepth 1 -name 'bursar-*' | grep .; }
holds "no cgroup is left" no_cgroup_left
holds "delay accounting is as it was" test "$(cat /proc/sys/kernel/task_delayacct)" = "$delay_accounting"

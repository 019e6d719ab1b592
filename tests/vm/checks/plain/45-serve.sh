# bursar serve on cgroup v2, as a user without rights: a step of Slurm that is slowed down by its limits.
root=/sys/fs/cgroup
step=$root/slurmstepd.scope/job_7/step_0
mkdir -p "$step/user"
for dir in $root $root/slurmstepd.scope $root/slurmstepd.scope/job_7 "$step"; do echo +memory >"$dir/cgroup.subtree_control"; done
echo 200M >$root/slurmstepd.scope/job_7/memory.max
echo 48M >"$step/memory.high"
dd if=/dev/urandom of=/disk/served bs=1M count=64 conv=fdatasync status=none
echo 3 >/proc/sys/vm/drop_caches # what is cached already is charged elsewhere
in_cgroup "$step/user" scan read 24 64 4 /disk/served >/dev/null 2>&1
setpriv --reuid=65534 --regid=65534 --clear-groups bursar serve --listen 127.0.0.1:9 2>/tmp/refused
holds "a port that is not to be had is told" grep -q 'cannot listen on 127.0.0.1:9' /tmp/refused
setpriv --reuid=65534 --regid=65534 --clear-groups bursar serve --interval 200ms 2>/tmp/served &
served=$!
until grep -q http /tmp/served; do sleep 0.1; done
in_cgroup "$step/user" sleep 1
python3 -c "
import urllib.request
request = urllib.request.Request('http://127.0.0.1:19676/metrics', headers={'Accept': 'application/openmetrics-text'})
print(urllib.request.urlopen(request).read().decode(), end='')" >/tmp/metrics
kill $served
wait $served
holds "SIGTERM ends it well" test $? -eq 0
cat >/tmp/look.py <<'PY'
import re, sys
name, least, most, *labels = sys.argv[1:]
for line in open("/tmp/metrics"):
    series, _, value = line.rpartition(" ")
    if series.split("{")[0] == name and all(label in series for label in ['slurm_step="0"', 'slurm_job="7"', *labels]):
        print(series, value)
        sys.exit(not float(least) <= float(value) <= float(most))
sys.exit(f"no {name}")
PY
look() { holds "$1" python3 /tmp/look.py "${@:2}"; }
look "a step has its numbers, and what is within it is its" bursar_cgroup_charge_bytes 1e6 5.2e7 'kind="slurm_step"'
look "the limit above it holds" bursar_cgroup_limit_bytes 209715200 209715200
look "so does the one that slows it down" bursar_cgroup_throttle_limit_bytes 50331648 50331648
look "what it read again is counted" bursar_cgroup_refaults_total 1e4 1e6 'pages="file"'
look "it stalled" bursar_cgroup_pressure_seconds_total 0.001 1e3 'stalled="io_some"'
look "its peak is the kernel's" bursar_cgroup_peak_bytes 2.4e7 5.2e7
look "reclaim is told" bursar_cgroup_reclaim_pages_total 1e4 1e8 'pages="taken"'
holds "nothing within the step is told by itself" test "$(grep -c 'step_0/user' /tmp/metrics)" -eq 0
holds "the end is there" test "$(tail -n 1 /tmp/metrics)" = "# EOF"
rmdir "$step/user" "$step" $root/slurmstepd.scope/job_7 $root/slurmstepd.scope

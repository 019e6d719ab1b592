# A shell whose threads are in threaded cgroups (Documentation/admin-guide/cgroup-v2.rst, "Threads"): its memory is charged to the
# root of its domain, beneath which no cgroup can have a memory controller.
domain=/sys/fs/cgroup/threads
mkdir -p $domain/inner
echo threaded >$domain/inner/cgroup.type
within() { sh -c "echo \$\$ >$domain/cgroup.procs && echo \$\$ >$domain/inner/cgroup.threads && exec \"\$@\"" - "$@"; }
within bursar run -q --interval 50ms --json /tmp/threaded.json -- memory hold 1 40 'sleep 1' >/tmp/out 2>&1
holds "a program begins in a threaded cgroup" test $? -eq 0
holds "its heap is told" figures /tmp/threaded.json '38 * MiB <= r["peak_breakdown"]["heap"] <= 48 * MiB'
within bursar budget --json /tmp/threaded-budget.json --no-compare -- memory hold 1 40 'sleep 0.1' >/tmp/out 2>&1
holds "a search in a threaded cgroup has an answer or says why it has none" grep -qE '^4[0-9] MiB keeps it|cgroup' /tmp/out
cp /tmp/out /out/threaded-budget.txt
rmdir $domain/inner $domain

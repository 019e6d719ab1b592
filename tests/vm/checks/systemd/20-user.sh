# bursar as an ordinary user, whose limits come from the user's own systemd over D-Bus.
dd if=/dev/urandom of=/disk/file bs=1M count=64 status=none
chmod 644 /disk/file
cold() { sync && echo 3 >/proc/sys/vm/drop_caches; } # what is cached already is charged to another cgroup
cold
cd /home/tester || exit

as_tester bursar doctor --json - >/out/doctor.json
as_tester bursar run -q --json - --limit 60M -- sh -c 'scan read 24 64 3 /disk/file >/dev/null' >/tmp/user.json
holds "a user's limit is enforced" figures /tmp/user.json 'r["exit_status"] == 0 and r["peak_charge_bytes"] <= 60 * MiB'
holds "it shows in refaults" figures /tmp/user.json 'r["flow"]["refaults_file"] > 10000'
holds "App-MaxRSS needs no rights" figures /tmp/user.json '24 * MiB <= r["app_max_rss_bytes"] <= 27 * MiB'
holds "a command runs in a scope of the user's systemd" grep -q 'user@4242.service/.*bursar-.*\.scope' <(as_tester bursar run -q -- cat /proc/self/cgroup)
as_tester bursar budget -q --no-compare --slowdown $SLOWDOWN% --max-trials 4 --json - -- scan read 24 64 4 /disk/file >/tmp/budget.json
holds "a user gets a budget" figures /tmp/budget.json '75 * MiB <= r["budget_bytes"] <= 105 * MiB'
holds "the user's bus is found without its variables" grep -q 'bursar-.*\.scope' \
    <(as_tester env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS bursar run -q -- cat /proc/self/cgroup)
# In a scope with a limit of its own bursar must not leave it: the job's cgroup is made beneath.
as_tester systemd-run --user --scope -q -p Delegate=yes -p MemoryMax=200M \
    bursar run -q --json - --limit 60M -- sh -c 'cat /proc/self/cgroup >/tmp/where; scan read 24 64 2 /disk/file >/dev/null' >/tmp/delegated.json
holds "in a delegated scope a limit is enforced" figures /tmp/delegated.json 'r["exit_status"] == 0 and r["peak_charge_bytes"] <= 60 * MiB'
holds "and the job stays within it" grep -q 'run-.*\.scope/.*bursar-' /tmp/where
no_scope_left() { ! as_tester systemctl --user list-units --no-legend --all 'bursar-*' | grep .; }
holds "no scope is left" no_scope_left

# Root, where systemd owns the hierarchy.
bursar run -q --json - --limit 60M -- sh -c 'scan read 24 64 2 /disk/file >/dev/null' >/tmp/root.json
holds "root's limit is enforced beside systemd" figures /tmp/root.json 'r["peak_charge_bytes"] <= 60 * MiB'

# A person without a manager of their own (no login, no linger): run works, budget emulates limits or says what it lacks.
alone() { setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH="$PATH" "$@"; }
alone bursar run -q --json - -- sh -c 'scan read 24 64 1 /disk/file >/dev/null' >/tmp/alone.json
holds "run works without any cgroup" figures /tmp/alone.json 'r["exit_status"] == 0 and r["tree_max_rss_bytes"] >= 24 * MiB'
alone bursar budget -q --json - -- true >/tmp/emulated.json
holds "budget without a cgroup emulates limits" figures /tmp/emulated.json 'r["limit_source"] == "emulated" and r["budget_bytes"] > 0'
alone bursar budget -q -- scan read 24 64 1 /disk/file 2>/tmp/errors
holds "budget of what the library is not in is bursar's failure" test $? -eq 125
cat /tmp/errors
holds "and says what is missing" grep -qiE 'systemd|cgroup' /tmp/errors
holds "and why limits are not emulated" grep -qi 'emulated' /tmp/errors

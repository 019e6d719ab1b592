# A pool of memory that Linux never had.
before=$(reserved)
status() { bursar pool status >/tmp/status && cat /tmp/status && grep -qE "$1" /tmp/status; }
bursar pool create 128M --backend dax
holds "a pool is spread over the nodes" test "$(bursar pool status | grep -c 'node [01] *64.0 MiB free')" = 2
bursar pool destroy
bursar pool create 256M --backend dax
holds "or has all memory of both" test "$(bursar pool status | grep -c 'node [01] *128 MiB free')" = 2
holds "which is divided into segments" test "$(grep -lx $((64 << 20)) /sys/bus/dax/devices/*/size | wc -l)" = 4

bursar provision -q --stats /tmp/hold.json -- memory hold 1 100 >/tmp/out
holds "a program has what it wrote" grep -qx right /tmp/out
holds "all from the pool" figures /tmp/hold.json 'r["pool_bytes_peak"] == 102 * MiB and r["fallbacks"] == 0'
holds "and does not fault for it" figures /tmp/hold.json 'r["page_faults"] <= 300'
holds "the next one is given zeroes" bursar provision -q -- memory hold 2 120
bursar provision -q --stats /tmp/fork.json -- memory fork 1 40 >/tmp/out
holds "a forked child has a copy" grep -qx right /tmp/out
holds "of memory of the pool" figures /tmp/fork.json 'r["forks"] == 1 and r["pool_bytes_peak"] >= 40 * MiB'

# The kernel does not say on which node a device's pages are; the broker does.
export PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1
bursar provision -q -- memory hold 1 60 'bursar pool status >/tmp/lent'
holds "a rank has its node's device" grep -q '64.0 MiB on node 1: process [0-9]* (memory)' /tmp/lent

# The broker is killed under a program, and another finds what it has lent.
mkfifo /tmp/go
bursar provision -q -- memory hold 1 60 'touch /tmp/held; read -r go </tmp/go' >/tmp/out &
program=$!
until [ -e /tmp/held ]; do sleep 0.1; done
kill -9 "$(pgrep -f 'bursar pool serve default')"
holds "the pool has no broker" status 'no broker'
setsid bursar pool serve &
until bursar pool status | grep -q 'broker [0-9]'; do sleep 0.1; done
holds "the next broker knows what is lent" status '64.0 MiB on node 1: process [0-9]+ \(memory\)'
bursar pool destroy --force 2>/tmp/why
holds "a device in use is not taken away" test $? -ne 0
holds "and it is told who has it" grep -q 'in use by [0-9]* (memory)' /tmp/why
echo >/tmp/go
wait $program
holds "the program went on" grep -qx right /tmp/out
holds "the pool is removed when nobody has any of it" bursar pool destroy
holds "the devices are as they were found" test "$(reserved)" = "$before"

# A budget of one node's memory beside the other's: what has no room on it comes from there.
placed='awk "/anon=/ {for (i = 3; i <= NF; i++) if (\$i ~ /^N[01]=/) mib[substr(\$i, 2, 1)] += substr(\$i, 4) / 256}
    END {print int(mib[0]), int(mib[1])}" /proc/$PPID/numa_maps >>/tmp/placed'
free() { awk '/MemFree/ {print $4}' /sys/devices/system/node/node1/meminfo; }
before=$(free)
bursar budget -q --json /tmp/tier.json --fast-tier 1 --slowdown 200% --runs 1 --max-trials 1 --no-compare -- memory hold 1 600 "$placed" 
sed 's/^/# node 0, node 1: /' /tmp/placed >&2
limit=$(python3 -c 'import json; print([t["limit_bytes"] >> 20 for t in json.load(open("/tmp/tier.json"))["trials"] if t["limit_bytes"]][0])')
# on ROUND LEAST MOST NODE: what a run had of a node.
on() { awk -v round="$1" -v least="$2" -v most="$3" -v node="$4" 'NR == round {found = $(node + 1)} END {exit !(least <= found && found <= most)}' /tmp/placed; }
holds "without a limit all is on the fast node" on 1 595 610 1
# The processors' lists of free pages hold up to 42 MiB each here, and what is run beside the program takes some.
holds "under one of $limit MiB at most so much is" on 2 $((limit - 96)) "$limit" 1
holds "and the rest is on the other" on 2 $((595 - limit)) $((605 - limit + 96)) 0
holds "it is told what the budget is of" grep -q '"fast_tier": "1"' /tmp/tier.json
holds "the node's memory is given back" test "$(free)" -gt $((before - 65536))
holds "a node that is not there is told" sh -c '! bursar budget --fast-tier 7 -- true 2>/tmp/why && grep -q "no NUMA node 7" /tmp/why'

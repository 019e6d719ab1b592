# Where a pool's pages are.
before=$(reserved)

# created NODES ARGUMENT…: MiB of huge pages on node 0 and on node 1, and how much of each is free, with a pool made so.
created() {
    local wanted=$1 found
    shift
    bursar pool create "$@" || return
    found="$(huge_pages 0), $(huge_pages 1)"
    bursar pool destroy && [ "$found" = "$wanted" ] || { echo "$found"; false; }
}
holds "a pool is spread over the nodes" created "64 0, 64 0" 128M
holds "or on one node" created "0 0, 64 0" 64M --node 1
holds "or interleaved" created "32 0, 32 0" 64M --node interleave

# refused WHY ARGUMENT…: no pool is made, and a line tells why.
refused() { ! bursar pool create "${@:2}" 2>/tmp/why && cat /tmp/why && grep -qE "$1" /tmp/why; }
holds "a node that does not exist is told, with those that do" refused "node 2.*0.*1" 64M --node 2
holds "more than a node has is refused" refused "MiB.* on node 1" 1G --node 1
holds "all is as it was found" test "$(reserved)" = "$before"

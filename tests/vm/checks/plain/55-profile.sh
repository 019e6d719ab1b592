# With huge pages for all, one that is touched at a single place would be there as a whole. Before Linux 6.18 a program that is
# profiled has none; and what is touched is told without root.
always=/sys/kernel/mm/transparent_hugepage/enabled
before=$(sed 's/.*\[\(.*\)\].*/\1/' $always)
echo always >$always
mkdir -m 777 /tmp/profiled
sparse='import mmap
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, 64 << 20, 65536): memory[at] = 1'
profile() { setpriv --reuid=4711 --clear-groups env HOME=/tmp/profiled bursar advise profile -o "/tmp/profiled/$1" -- "${@:2}"; }
profile sparse python3 -c "$sparse"
holds "the command's status is the profile's" test $? -eq 0
profile full memory hold 4 8
cat /tmp/profiled/sparse /tmp/profiled/full
holds "what is sparse is told to be" grep -qE '^mmap 26 0 0\.\.[0-9]+M touched=[67]%$' /tmp/profiled/sparse
holds "what is full is told to be" grep -qE '^mmap 23 [0-9*] 0\.\.[0-9]+M touched=100%$' /tmp/profiled/full
echo "$before" >$always

# An ordinary user and a pool of root's.
before=$(reserved)
user() { setpriv --reuid=4242 --regid=4242 --clear-groups env -i PATH="$PATH" LANG="$LANG" "$@"; }
bursar pool create 64M
user bursar provision --pool default -- true 2>/tmp/why
holds "a pool is for root alone" test $? -eq 125
cat /tmp/why
bursar pool destroy
for backend in hugetlb dax; do
    bursar pool create 64M --backend $backend --mode 0666
    user bursar provision -q --stats /tmp/$backend.json -- memory hold 1 48 >/tmp/out
    holds "$backend: or for all, who have what they wrote" grep -qx right /tmp/out
    holds "$backend: all of it from the pool" figures /tmp/$backend.json 'r["pool_bytes_peak"] == 50 * MiB and r["fallbacks"] == 0'
    user bursar pool destroy 2>/tmp/why
    holds "$backend: and may not change it" grep -q root /tmp/why
    bursar pool destroy
done
holds "all is as it was found" test "$(reserved)" = "$before"

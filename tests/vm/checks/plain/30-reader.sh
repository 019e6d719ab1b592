# The budget of a reader on cgroup v2, against runs under limits at its knee.
export HOME=/tmp/home
mkdir -p $HOME
echo "+memory +io" >/sys/fs/cgroup/cgroup.subtree_control
dd if=/dev/urandom of=/disk/file bs=1M count=48 status=none
program=(scan read 24 48 4 /disk/file)
answer=$(search /out/reader.json --html /out/reader.html -- "${program[@]}")
status=$?
holds "a budget ends well" test $status -eq 0
holds "the budget is that of heap and file, or more" test "$answer" -ge 72 -a "$answer" -lt 500
# Every run under a limit moved 48 MiB from 74 MiB on and 192 MiB up to 72 MiB; 97 MiB between the two.
knee_at "$answer" 120 "${program[@]}" # between one pass and four
holds "the answer names cgroup v2 and the swap policy" figures /out/reader.json '"v2" in r["placement"] and r["swap"]'
holds "the search takes at most 8 runs" figures /out/reader.json 'len(r["trials"]) <= 8'

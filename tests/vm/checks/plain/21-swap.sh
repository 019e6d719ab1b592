# Where there is swap: a limit is one on memory and swap together, and what is swapped out is told.
export HOME=/tmp/home
mkdir -p $HOME
dd if=/dev/zero of=/disk/swap bs=1M count=128 status=none
chmod 600 /disk/swap
mkswap /disk/swap >/dev/null 2>&1 && swapon /disk/swap
holds "there is swap" grep -q /disk/swap /proc/swaps
bursar run -q --json /tmp/killed.json --limit 40M -- sh -c 'scan read 64 8 1 /disk/file; true'
holds "a job over its limit is killed and does not swap" figures /tmp/killed.json 'r["oom_kills"] >= 1 and r["swap_bytes"] == 0'
bursar run -q --json /tmp/fits.json --limit 60M -- scan read 24 64 2 /disk/file >/dev/null
holds "a job that fits is slowed by its page cache alone" figures /tmp/fits.json \
    'r["exit_status"] == 0 and r["swap_bytes"] == 0 and r["flow"]["refaults_file"] > 5000'
swapoff /disk/swap && rm /disk/swap

# Debian 13's kernel: ext4 is a module, of whose arguments the verifier thinks less than of the kernel's own.
bursar doctor -v >/tmp/doctor
holds "the page cache is seen through its own tracepoints" grep -q 'yes filemap tracepoints' /tmp/doctor
bursar run -q --json /tmp/run.json -- dd if=/dev/zero of=/disk/written bs=1M count=8 2>/dev/null
holds "what is written to ext4 is seen" figures /tmp/run.json 'r["file_demand"]["distinct_bytes"] >= 8 * MiB'

# Linux 6.12: pages of hugetlb's pools may be charged with all else (Documentation/admin-guide/cgroup-v2.rst).
mount -o remount,memory_hugetlb_accounting /sys/fs/cgroup
pages=$(cat /proc/sys/vm/nr_hugepages)
echo 24 >/proc/sys/vm/nr_hugepages
GLIBC_TUNABLES=glibc.malloc.hugetlb=2 bursar run -q --interval 20ms --json /tmp/huge.json -- memory hold 1 40 'sleep 1'
holds "pages of hugetlb's pools are in the charge once" figures /tmp/huge.json \
    'r["peak_breakdown"]["hugetlb"] >= 4 * MiB and 40 * MiB <= r["peak_charge_bytes"] <= 52 * MiB and r["peak_breakdown"]["kernel"] <= 4 * MiB'
holds "the parts add up to the charge" figures /tmp/huge.json \
    'abs(sum(r["peak_breakdown"][k] or 0 for k in ("heap", "file", "shared", "kernel", "hugetlb")) - r["peak_charge_bytes"]) <= MiB'
holds "they are in the floor" figures /tmp/huge.json 'r["floor_bytes"] >= 40 * MiB'
echo "$pages" >/proc/sys/vm/nr_hugepages

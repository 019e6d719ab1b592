# Control experiments: what this machine has, without bursar.
of_all() { cat "${@:2}" | sort | tr '\n' ' ' | grep -qx "$1 "; }
holds "there are two nodes, each with a processor" of_all "0 1" /sys/devices/system/node/node*/cpulist
holds "both have memory" of_all 0-1 /sys/devices/system/node/has_memory
holds "there is memory that Linux leaves to device-dax" of_all "134217728 134217728" /sys/bus/dax/devices/*/size
holds "on either node" of_all "0 1" /sys/bus/dax/devices/*/numa_node
holds "the memory controller is on cgroup v2" grep -qw memory /sys/fs/cgroup/cgroup.controllers
reserved
cat /proc/uptime

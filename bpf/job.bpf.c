// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Follows the processes of a job, and the references they make to the page cache. Only tp_btf programs: unlike fentry
 * they load wherever BTF is, lockdown aside.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "pagecache.bpf.h"
#include "processes.bpf.h"
#include "syscalls.bpf.h"

/* bpf_get_stackid and others are GPL only, as is the reading of kernel memory. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Follows the processes of a job, and the references they make to the page cache. Only raw_tp programs and, where much
 * is to be read often, tp_btf: those read by plain loads, but take the verifier 2 ms each. Unlike fentry both load
 * wherever BTF is, lockdown aside.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "pagecache.bpf.h"
#include "processes.bpf.h"
#include "syscalls.bpf.h"

/* bpf_get_stackid and others are GPL only, as is the reading of kernel memory. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

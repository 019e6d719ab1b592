// Memory of the pool made the process's own, of the kernel, where it is: what it holds stays.
#pragma once

#include "runtime.h"

// Every unit that a range touches: for what huge pages cannot do. False: there is no memory for it.
bool make_private(uint64_t begin, uint64_t end);

// The protection of a range that is private anonymous memory of the kernel without a gap; else -1. With the exclusive
// lock, as all here.
int private_protection(uint64_t begin, uint64_t bytes);

// What the kernel's mremap refuses with EFAULT, because what was one mapping has become several by what is done here:
// by copying.
void *private_mremap(uint64_t begin, uint64_t old_bytes, uint64_t bytes, int flags, void *to);

// libc's fork, whose child must have a copy of its own: what is shared with its parent is not private.
extern int (*next_fork)(void);
int private_fork(void);

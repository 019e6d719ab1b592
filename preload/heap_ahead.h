// The heap that brk and sbrk make: the kernel's end of it is ahead of the program's, so that what comes next can be
// populated.
#pragma once

#include "runtime.h"

// Finds libc's own idea of it; where that is not to be found, the heap is left to the kernel.
void heap_ahead_begin(void);

// As brk does: 0, or -1 and errno.
int heap_ahead_set(uint64_t end);

void heap_ahead_forget(void);

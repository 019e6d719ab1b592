// The end of the heap, as brk and sbrk move it: from the first multiple of the unit on it is made of units.
#pragma once

#include "runtime.h"

// Finds libc's own idea of it; where that is not to be found, the heap is left to the kernel.
void heap_end_begin(void);

// As brk does: 0, or -1 and errno.
int heap_end_set(uint64_t end);

// As sbrk does: where it was, or (void *)-1 and errno.
void *heap_end_move(intptr_t more);

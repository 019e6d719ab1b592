// What the kernel is advised about the program's memory, as the program obtains it: by the rules of the plan, and else
// by what is seen. Each stands for the function of libc whose name it has, with its results and errno.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime.h"

extern bool advising;

// Reads the plan, and advises about what the program has from the start. libc is patched.
void advise_begin(const char *directory);

void *advise_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int advise_munmap(void *memory, size_t bytes);
void *advise_mremap(void *memory, size_t before, size_t bytes, int flags, void *to);
int advise_madvise(void *memory, size_t bytes, int advice);
int advise_brk(void *end);

// The heap has grown there.
void advise_heap(uint64_t heap, uint64_t begin, uint64_t end);

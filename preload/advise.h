// What the kernel is advised about the program's memory, as the program obtains it: by the rules of the plan, and else
// by what is seen. Each stands for the function of libc whose name it has, with its results and errno.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "runtime.h"

extern bool advising;

// Reads the plan. False: there is none, or it cannot be followed here.
bool advise_read(const char *directory);

// Advises about what the program has from the start. libc is patched.
void advise_begin(const char *directory);

// Whether rules speak of the mapping of this size that is made next.
bool advise_speaks(uint64_t bytes);

// A mapping is there that the pool has served; or that the kernel has made, where the program chose.
void advise_served(uint64_t bytes);
void advise_made(uint64_t begin, uint64_t bytes);

// What is there is about to be given back, or something else.
void advise_goes(uint64_t begin, uint64_t end);

// Whether the pool may serve what lies there, from where the heap or the executable's .bss begins: no rule speaks of
// it, or one that wants it to.
bool advise_allows_pool(enum advice_kind kind, uint64_t from, uint64_t to);

void *advise_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int advise_munmap(void *memory, size_t bytes);
void *advise_mremap(void *memory, size_t before, size_t bytes, int flags, void *to);
int advise_madvise(void *memory, size_t bytes, int advice);
int advise_brk(void *end);

// The heap has grown there.
void advise_heap(uint64_t heap, uint64_t begin, uint64_t end);

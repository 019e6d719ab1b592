// What memory is given with: of the pool where it can be, else the kernel's. Each stands for the function of libc whose
// name it has, with its results and errno. Changes of the address space come here from `vm.c`, when they are known.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "runtime.h"

extern bool serving;

// Reads what was asked for, and serves what the program has from the start: its .bss and its stack. libc is patched.
void serve_begin(void);

// When the program ends: what it never wrote is told.
void serve_end(void);

void *serve_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int serve_munmap(void *memory, size_t bytes);
void *serve_mremap(void *memory, size_t before, size_t bytes, int flags, void *to);
int serve_mprotect(void *memory, size_t bytes, int protection);
int serve_madvise(void *memory, size_t bytes, int advice);
int serve_brk(void *end);
void *serve_sbrk(intptr_t more);

// Units within memory that the kernel has just mapped, and nobody has touched, become the pool's. False: nothing has
// become of it.
bool serve_over(uint64_t begin, uint64_t bytes);

// Whether the kernel is to give so many bytes that the pool could not. That it is not to is told.
bool serve_falls_back(enum passed why, uint64_t bytes);

// One thread at a time, and no handler of signals in between; may be taken again by who has it.
void serve_begin_exclusive(void);
void serve_end_exclusive(void);

// What each process used, told by itself: bursar sees its children alone, and of the others only samples.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaded.h"

// A program has begun, or the child of a fork. Tells who it is (abi.h, `enum process_part`).
void life_begin(bool forked);

// So many bytes are about to be given back to the kernel: looks at what is resident before that, where it is 1 MiB
// since the last look. 3 microseconds.
void life_gives_back(size_t bytes);

// It has mapped shared memory, or a file in memory.
void life_shares(void);

// It ends with this status, or goes on as another program (PROCESS_GOES_ON). Some ten system calls, a few microseconds.
void life_end(uint32_t status, struct own_pages own);

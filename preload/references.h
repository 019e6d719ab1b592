// References to files: the fourth chain. Each read, write and mapping of a regular file is noted in memory that bursar
// shares (abi.h, section 4), so that `bursar run` needs no right for it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern bool referencing; // whether it is wanted, and the shared memory is there

// Maps what BURSAR_REFERENCES names; false if it is not set or cannot be mapped.
bool references_begin(void);

// Puts the runtime before the calls that read and write.
void references_detour(void);

// A file has been mapped.
void references_mapped(int file, off_t offset, size_t bytes);

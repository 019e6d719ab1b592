// References to files: each read, write and mapping of a regular file is noted in memory that bursar shares (abi.h,
// section 4), so that `bursar run` needs no right for it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Maps what BURSAR_REFERENCES names; false if it is not set or cannot be mapped.
bool references_begin(void);

// Puts the library before the calls that read, write and map. Between `patch_begin` and `patch_done`.
void references_detour(void);

// The number of a file that is in the page cache, by which its pages are noted; 0: it is none.
uint32_t references_file(const char *path);

// Pages of it, from the first to before the end, have been touched through a mapping since the program began. They are
// noted with that time: programs touch most of their libraries then.
void references_touched(uint32_t file, uint64_t first, uint64_t end);

// The loader or this library has read so many bytes by calls: /proc/PID/io counts them as the program's.
void references_read(uint64_t bytes);

// The program has told what the loader had mapped; whether liburing is among it, by which files are read unseen.
// False: it had told that before.
bool references_ended(bool with_io_uring);

// The number of a regular file: an open one's, with the path "", or that of a path from a directory on. 0: it is none.
uint32_t references_number(int file, const char *path);

// All pages of a file from this one to its end are gone: cut off, or removed with the file.
void references_removed(uint32_t file, uint64_t first);

// The number of what a call is about to remove, a path from this directory on: of a file of one name, that this process
// has not open. 0: its pages stay, or it is no file.
uint32_t references_removable(int directory, const char *path);

// An entry of the ring. In place of `file`, `pages` and `place`: what abi.h says of `kind`.
void references_put(uint32_t file, uint64_t pages, uint32_t kind, uint64_t place);

// The memory that bursar shares; false: there is none.
bool references_memory(uint64_t *begin, uint64_t *end);

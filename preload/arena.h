// The runtime's own memory: never the program's heap, and left out of what is told about the program.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zeroed, aligned to 16 bytes, never given back; NULL when there is none.
void *arena(size_t bytes);

// Pages of its own, zeroed, without huge pages; only what is touched takes memory. NULL when there are none.
void *arena_pages(size_t bytes);

// Pages within 2 GiB of an address, for code: writable until they are sealed, then readable and executable, never both
// (SELinux refuses both). NULL: none.
void *arena_near(uint64_t address, size_t bytes);
bool arena_seal(void *pages, size_t bytes);

// Whether the address is the runtime's.
bool arena_has(uint64_t address);

// Whether memory seems to have moved, by what is asked in microseconds, for looking at all of it takes milliseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime.h"

// Since `memory_still`: any fault, another size by more than 64 KiB, or of blocks by more than 1 MiB.
bool memory_moved(void);

// All is about to be looked at.
void memory_still(void);

// Whether more than 1 MiB has become resident since then, or since this was last true if that was later.
bool memory_grew(void);

// All is being looked at, for whatever reason.
void memory_looked(void);

// Heap by component that has been obtained since that look, as far as it is resident for certain; and the sum of it.
uint64_t memory_grown(uint64_t grown[COMPONENTS]);

// Whether memory seems to have moved, by what is asked in microseconds, for looking at all of it takes milliseconds.
#pragma once

#include <stdbool.h>

// Since `memory_still`: any fault, another size by more than 64 KiB, or of blocks by more than 1 MiB.
bool memory_moved(void);

// All has been looked at.
void memory_still(void);

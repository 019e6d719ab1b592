// Whether memory seems to have moved, by what is asked in microseconds, for looking at all of it takes milliseconds.
#pragma once

#include <stdbool.h>

// Since `memory_still`: more faults than a few, another size, or as much more or less of blocks.
bool memory_moved(void);

// All has been looked at.
void memory_still(void);

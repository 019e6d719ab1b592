// Free memory of the machine, and how much of it is in blocks as large as a huge page.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct blocks {
    uint64_t pages; // free, in all
    uint64_t huge;  // blocks
};

// Where that cannot be told, there is enough of both. Of one thread at a time.
struct blocks blocks_now(void);

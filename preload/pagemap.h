// /proc/self/pagemap: which pages are there. Documentation/admin-guide/mm/pagemap.rst
// A process that has given up what it might do may not open its own: then by mincore(2), which for files tells what is
// cached, mapped or not.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    PAGE_PRESENT = 63,
    PAGE_OF_FILE = 61 // or of shared memory
};

// Between these two it is open. Of one thread at a time. False: it could not be opened; not all could be read.
bool pagemap_open(void);
bool pagemap_close(void);

// Calls `each` for every page from `begin` to `end` that is present, with its entry. 10 ns a page.
void pagemap_present(uint64_t begin, uint64_t end, void (*each)(uint64_t page, uint64_t entry, void *), void *context);

// What the dynamic loader has mapped: it comes before the library, and calls the kernel by itself.
#pragma once

#include <stdint.h>

// Pages of the library itself and of the memory that bursar shares, which the process has in its page table; `heap`: of
// these, the pages of neither a file nor shared memory.
struct own_pages {
    uint64_t all, heap;
};

// Notes the pages of the program and its shared objects that the process has in its page table: those that it has
// touched, with those around them that the kernel maps at the same time, and what fork has copied of libc's for its
// code is patched. At the end of the program or process. Returns which of those pages are bursar's; none where that
// cannot be found out.
struct own_pages loaded_note(void);

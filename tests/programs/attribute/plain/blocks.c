// What the allocator gives, by every function that it has.
#include <malloc.h>
#include <stdlib.h>

#include "plain.h"

static void *filled(void *block, size_t bytes) {
    if (bytes && !block)
        fail("no memory");
    touch(block, bytes);
    return block;
}

void make_blocks(size_t bytes) {
    size_t each = bytes / 8 / PAGE * PAGE;
    free(filled(malloc(each), each));
    filled(malloc(each), each);
    filled(calloc(each / 16, 16), each);
    // Grown in place, moved, and out of a block that has been given back.
    void *grown = filled(realloc(filled(malloc(each / 2), each / 2), each), each);
    filled(realloc(grown, 2 * each), 2 * each);
    filled(memalign(1 << 16, each), each);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, each))
        fail("posix_memalign");
    filled(aligned, each);
    filled(aligned_alloc(PAGE, each), each);
    filled(valloc(each), each);
    truth("application", "heap", 8 * each);
    hold();
}

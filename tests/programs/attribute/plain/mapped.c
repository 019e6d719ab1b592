// What the program maps itself.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plain.h"

static void *map(size_t bytes, int flags, int descriptor) {
    void *memory = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0) : NULL;
    if (memory == MAP_FAILED)
        fail("mmap");
    touch(memory, bytes);
    return memory;
}

void make_mapped(size_t bytes) {
    char *memory = map(2 * bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    // A part from the middle, and one by advice.
    if (bytes && (munmap(memory + bytes / 2, bytes / 2) || madvise(memory, bytes / 2, MADV_DONTNEED)))
        fail("munmap");
    truth("application", "at_end_bytes", bytes);
    hold();
}

void make_remapped(size_t bytes) {
    void *memory = map(bytes / 2, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (bytes) {
        memory = mremap(memory, bytes / 2, bytes, MREMAP_MAYMOVE);
        if (memory == MAP_FAILED)
            fail("mremap");
        touch(memory, bytes);
    }
    truth("application", "mapped", bytes);
    hold();
}

void make_shared(size_t bytes) {
    map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
    truth("application", "shared", bytes);
    hold();
}

void make_file(size_t bytes) {
    char path[] = "bursar-truth-XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0 || unlink(path) || ftruncate(descriptor, (off_t)bytes))
        fail(path);
    map(bytes, MAP_SHARED, descriptor);
    truth("application", "page_cache", bytes);
    hold();
}

void make_hugetlb(size_t bytes) {
    map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
    truth("application", "hugetlb", bytes);
    hold();
}

// Not by malloc, as an allocator of the program's own does.
void make_sbrk(size_t bytes) {
    free(malloc(1000));
    void *memory = sbrk((intptr_t)bytes);
    touch(memory, bytes);
    truth("application", "heap", bytes);
    hold();
    // The allocator's memory lies on both sides of it.
    free(malloc(100000));
}

// A malloc that maps each block with a page before it that cannot be read, and that also has glibc's name for it, as
// the allocator of Chromium's crash handler has.
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

static size_t *size_of(void *block) {
    return (size_t *)((char *)block - 2 * PAGE);
}

void *malloc(size_t bytes) {
    size_t size = (bytes + PAGE) / PAGE * PAGE;
    char *begin = mmap(NULL, size + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        return NULL;
    *(size_t *)begin = size;
    mprotect(begin + PAGE, PAGE, PROT_NONE);
    return begin + 2 * PAGE;
}

void *__libc_malloc(size_t bytes) {
    return malloc(bytes);
}

void free(void *block) {
    if (block)
        munmap(size_of(block), *size_of(block) + 2 * PAGE);
}

void *calloc(size_t count, size_t bytes) {
    return malloc(count * bytes);
}

void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    if (block && moved) {
        memcpy(moved, block, *size_of(block) < bytes ? *size_of(block) : bytes);
        free(block);
    }
    return moved;
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    *block = alignment > PAGE ? NULL : malloc(bytes);
    return *block ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return alignment > PAGE ? NULL : malloc(bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    return aligned_alloc(alignment, bytes);
}

size_t malloc_usable_size(void *block) {
    return block ? *size_of(block) : 0;
}

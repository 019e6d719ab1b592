// outofcore FILE FILE_MIB HEAP_MIB PASSES: an out-of-core solver in small, after MADbench: it keeps HEAP_MIB of results
// and streams over a file that it treats as memory, PASSES times. It is fast if heap and file fit, and a looping scan
// under LRU gains nothing from less.
#include "program.h"

enum { BLOCK_WORDS = MIB / sizeof(uint64_t), LINE_WORDS = 32 };

// Every line's words join by exclusive or to the noise of its place.
static void generate(const char *path, size_t blocks) {
    uint64_t *block = allocate(MIB);
    int fd = open_or_fail(path, O_WRONLY | O_CREAT | O_TRUNC);
    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < BLOCK_WORDS; i += LINE_WORDS) {
            block[i] = noise(b * BLOCK_WORDS + i);
            for (size_t j = 1; j < LINE_WORDS; j++)
                block[i] ^= block[i + j] = noise(b * BLOCK_WORDS + i + j);
        }
        write_whole(fd, block, MIB);
    }
    if (fsync(fd))
        fail(path);
    free(block);
}

// One pass: every line is checked against what generate wrote, and updates one cell of the heap. Little work per byte,
// so that memory and not the processor decides.
static void pass(int fd, size_t blocks, uint64_t *heap, size_t heap_words, uint64_t *block) {
    for (size_t b = 0; b < blocks; b++) {
        read_whole(fd, block, MIB, (off_t)(b * MIB));
        for (size_t i = 0; i < BLOCK_WORDS; i += LINE_WORDS) {
            uint64_t seen = 0;
            for (size_t j = 0; j < LINE_WORDS; j++)
                seen ^= block[i + j];
            if (seen != noise(b * BLOCK_WORDS + i)) {
                errno = 0;
                fail("FILE");
            }
            heap[seen % heap_words] += 1;
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "generate") == 0) {
        generate(argv[2], strtoul(argv[3], NULL, 10));
        return 0;
    }
    if (argc != 5) {
        fputs("usage: outofcore generate FILE MIB | outofcore FILE FILE_MIB HEAP_MIB PASSES\n", stderr);
        return 2;
    }
    size_t blocks = strtoul(argv[2], NULL, 10), heap_bytes = strtoul(argv[3], NULL, 10) * MIB;
    unsigned long passes = strtoul(argv[4], NULL, 10);
    int fd = open_or_fail(argv[1], O_RDONLY);
    uint64_t *block = allocate(MIB), *heap = allocate(heap_bytes);
    // Not calloc: every page is to be resident from the start.
    memset(heap, 0, heap_bytes);
    for (size_t i = 0; i < heap_bytes / sizeof *heap; i += 512)
        ((volatile uint64_t *)heap)[i] = 0;
    for (unsigned long p = 0; p < passes; p++)
        pass(fd, blocks, heap, heap_bytes / sizeof *heap, block);
    uint64_t updates = 0;
    for (size_t i = 0; i < heap_bytes / sizeof *heap; i++)
        updates += heap[i];
    if (updates != passes * blocks * BLOCK_WORDS / LINE_WORDS) {
        errno = 0;
        fail("the heap");
    }
    printf("outofcore: %lu passes over %zu MiB, %lu updates, valid\n", passes, blocks, updates);
}

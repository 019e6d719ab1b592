// fragment: takes all free memory but 256 MiB in pages of 4 KiB, gives back all but one of 32, says "ready", and holds
// these until its input ends: hardly a block of 2 MiB is free then, though nearly all memory is.
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096, HELD = 32, LEFT_MIB = 256, AT_ONCE = 2 << 20 };

static uint64_t free_bytes(void) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "MemFree: %lu", &kib);
    return kib << 10;
}

int main(void) {
    const uint64_t left = (uint64_t)LEFT_MIB << 20, most = free_bytes();
    if (most <= left + AT_ONCE)
        return 1;
    uint64_t bytes = (most - left) & -(uint64_t)AT_ONCE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE))
        return 1;
    // What it takes, others may have taken meanwhile.
    for (uint64_t at = 0; at < bytes && free_bytes() > left; at += AT_ONCE)
        for (uint64_t page = at; page < at + AT_ONCE; page += PAGE)
            memory[page] = 1;
    for (uint64_t page = 0; page < bytes; page += HELD * PAGE)
        madvise(memory + page + PAGE, (HELD - 1) * PAGE, MADV_DONTNEED);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

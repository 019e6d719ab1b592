// fragment: takes all free memory but 256 MiB (the kernel has reserves) in pages of 4 KiB, gives back all but one
// of 32, says "ready", and holds these until its input ends: hardly a block of 2 MiB is free then, though nearly all
// memory is. They are locked: with vm.compact_unevictable_allowed=0 the kernel cannot move them.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum { PAGE = 4096, HELD = 32, LEFT_MIB = 256, AT_ONCE = 2 << 20 };

static uint64_t bytes_of(const char *name) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            sscanf(line + strlen(name), "%lu", &kib);
    if (file)
        fclose(file);
    return kib << 10;
}

int main(void) {
    const uint64_t left = (uint64_t)LEFT_MIB << 20, most = bytes_of("MemTotal:") & -(uint64_t)AT_ONCE;
    char *memory = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, most, MADV_NOHUGEPAGE))
        return 1;
    uint64_t bytes = 0;
    while (bytes < most && bytes_of("MemFree:") > left && !mlock(memory + bytes, AT_ONCE))
        bytes += AT_ONCE;
    if (!bytes)
        return 1;
    for (uint64_t page = 0; page < bytes; page += HELD * PAGE)
        madvise(memory + page + PAGE, (HELD - 1) * PAGE, MADV_DONTNEED_LOCKED);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

#include "arena.h"

#include "lock.h"
#include "runtime.h"
#include "space.h"
#include "sys.h"

enum { CHUNK = 256 << 10, RANGES = 4096 };

struct range {
    uint64_t begin, end;
};

static struct range ranges[RANGES];
static uint32_t range_count;
static char *chunk;
static size_t chunk_left;
struct lock arena_lock;

static void *map(void *at, size_t bytes, int flags) {
    long pages = sys(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (sys_failed(pages))
        return NULL;
    // A kernel before 4.17 takes an address for a wish.
    uint32_t index = RANGES;
    if (!(flags & MAP_FIXED_NOREPLACE) || (void *)pages == at)
        index = __atomic_fetch_add(&range_count, 1, __ATOMIC_RELAXED);
    if (index >= RANGES) {
        sys(SYS_munmap, pages, bytes);
        return NULL;
    }
    ranges[index].end = pages + bytes;
    __atomic_store_n(&ranges[index].begin, pages, __ATOMIC_RELEASE);
    // A shadow that is touched here and there would be whole huge pages where they are the rule.
    sys(SYS_madvise, pages, bytes, MADV_NOHUGEPAGE);
    return (void *)pages;
}

void *arena_pages(size_t bytes) {
    bytes = up(bytes, PAGE);
    return map((void *)own_place(bytes), bytes, MAP_NORESERVE);
}

void *arena(size_t bytes) {
    bytes = up(bytes, 16);
    if (bytes > CHUNK / 4)
        return arena_pages(bytes);
    lock_take(&arena_lock);
    if (bytes > chunk_left) {
        chunk = map((void *)own_place(CHUNK), CHUNK, 0);
        chunk_left = chunk ? CHUNK : 0;
    }
    void *memory = chunk_left ? chunk : NULL;
    if (memory) {
        chunk += bytes;
        chunk_left -= bytes;
    }
    lock_release(&arena_lock);
    return memory;
}

void *arena_near(uint64_t address, size_t bytes) {
    const uint64_t step = 1 << 20, reach = (1UL << 31) - (16 << 20);
    bytes = up(bytes, PAGE);
    // Where the kernel puts it, below what was mapped last, most often is near; where it was not, it is not asked
    // again.
    static bool far;
    uint64_t there = far ? 0 : (uint64_t)map(NULL, bytes, 0);
    if (there && there + reach > address && there < address + reach)
        return (void *)there;
    far = true;
    for (uint64_t away = step; away < reach; away += step) {
        uint64_t at[2] = {(address + away) & -PAGE, (address - away) & -PAGE};
        for (int side = 0; side < 2; side++) {
            void *pages = map((void *)at[side], bytes, MAP_FIXED_NOREPLACE);
            if (pages)
                return pages;
        }
    }
    return NULL;
}

bool arena_seal(void *pages, size_t bytes) {
    return !sys_failed(sys(SYS_mprotect, pages, up(bytes, PAGE), PROT_READ | PROT_EXEC));
}

bool arena_has(uint64_t address) {
    uint32_t count = __atomic_load_n(&range_count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count && i < RANGES; i++)
        if (address >= __atomic_load_n(&ranges[i].begin, __ATOMIC_ACQUIRE) && address < ranges[i].end)
            return true;
    return false;
}

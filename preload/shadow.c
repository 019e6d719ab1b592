#include "shadow.h"

#include <string.h>

#include "arena.h"
#include "sys.h"

enum { FEW = 16 };

struct region *regions[1UL << (ADDRESS_BITS - REGION_SHIFT)];

struct region *region_made(uint64_t address) {
    if (address >> ADDRESS_BITS)
        return NULL;
    struct region **slot = &regions[address >> REGION_SHIFT], *region = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (region)
        return region;
    // Of two threads that come at once one has made it in vain; nothing of it has been touched.
    struct region *made = arena_pages(sizeof *made);
    if (made && !__atomic_compare_exchange_n(slot, &region, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return region;
    return made;
}

// A memset by AVX-512 of few bytes, or none, in a page that is not there yet takes 150 ns.
static void fill(uint8_t *at, uint64_t count, uint8_t value) {
    if (count > FEW)
        memset(at, value, count);
    else
        for (uint64_t i = 0; i < count; i++)
            *(volatile uint8_t *)(at + i) = value; // or the compiler calls memset
}

static inline __attribute__((always_inline)) void within(struct region *region, uint64_t begin, uint64_t end,
                                                         uint8_t owner) {
    end = up(end, GRANULE);
    uint64_t first_page = up(begin, PAGE), last_page = end & -PAGE;
    if (owner) { // what is given back was obtained
        uint64_t first = begin / BLOCK, last = (end - 1) / BLOCK;
        region->marked[first] = region->marked[last] = 1;
        if (unlikely(last > first + 1))
            fill(region->marked + first + 1, last - first - 1, 1);
    }
    if (first_page > last_page) {
        mark_part(region->granule + begin / GRANULE, (end - begin) / GRANULE, owner);
        return;
    }
    if (begin < first_page)
        mark_part(region->granule + begin / GRANULE, (first_page - begin) / GRANULE, owner);
    if (last_page > first_page)
        fill(region->whole + first_page / PAGE, (last_page - first_page) / PAGE, owner);
    if (last_page < end)
        mark_part(region->granule + last_page / GRANULE, (end - last_page) / GRANULE, owner);
}

// Of nobody it is less to do.
void mark_within(struct region *region, uint64_t begin, uint64_t end, uint8_t owner) {
    if (owner)
        within(region, begin, end, owner);
    else
        within(region, begin, end, 0);
}

void mark_pages(uint64_t begin, uint64_t bytes, uint8_t owner) {
    const uint64_t size = 1UL << REGION_SHIFT;
    for (uint64_t left = bytes; left;) {
        uint64_t here = size - in_region(begin);
        here = least(here, left);
        struct region *region = region_made(begin);
        if (!region)
            return;
        mark_within(region, in_region(begin), in_region(begin) + here, owner);
        begin += here;
        left -= here;
    }
}

void code_of(uint64_t begin, uint64_t end, uint16_t object) {
    for (uint64_t page = begin & -PAGE; page < end; page += PAGE) {
        struct region *region = region_made(page);
        if (region)
            region->object[in_region(page) / PAGE] = object;
    }
}

uint32_t page_owners(uint64_t page, uint64_t bytes[OWNERS]) {
    struct region *region = region_of(page);
    if (!region || !region->marked[in_region(page) / BLOCK])
        return 0;
    uint8_t whole = region->whole[in_region(page) / PAGE];
    if (whole) {
        bytes[whole] += PAGE;
        return PAGE;
    }
    // It may change under our eyes; no length leads out of the page.
    const uint8_t *granule = region->granule + in_region(page) / GRANULE;
    const uint32_t granules = PAGE / GRANULE;
    uint32_t found = 0;
    for (uint32_t i = 0; i < granules;) {
        uint64_t eight = 0;
        if (i + 8 <= granules)
            memcpy(&eight, granule + i, 8);
        uint32_t count = 1;
        uint8_t owner = granule[i];
        if (owner & LONG)
            count = i + 1 < granules ? granule[i + 1] + 1 : 1;
        else if (i + 8 <= granules && eight == 0x0101010101010101UL * owner)
            count = 8;
        count = least(count, granules - i);
        if (owner) {
            bytes[owner & ~LONG] += count * GRANULE;
            found += count * GRANULE;
        }
        i += count;
    }
    return found;
}

bool ever_marked(uint64_t begin, uint64_t end) {
    for (uint64_t block = begin & -BLOCK; block < end; block += BLOCK) {
        struct region *region = region_of(block);
        if (region && region->marked[in_region(block) / BLOCK])
            return true;
        if (!region)
            block |= (1UL << REGION_SHIFT) - BLOCK;
    }
    return false;
}

// Whose each 16 bytes are: a byte of owner for every granule of the heap, found by the address alone, without a lock.
// A block is marked page by page. What it fills whole has one byte; of the parts at its ends the first granule has the
// owner, with LONG if there are more, and then in the next byte how many. The others stay nobody's.
#pragma once

#include "log.h"
#include "runtime.h"

enum {
    REGION_SHIFT = 30, // a region describes 1 GiB of addresses
    ADDRESS_BITS = 47,
    GRANULE = 16,
    BLOCK = 64 << 10, // what is told to hold any marks at all
    LONG = 0x80
};

struct region {
    uint8_t granule[(1UL << REGION_SHIFT) / GRANULE]; // owner; 0: nobody's
    uint8_t whole[(1UL << REGION_SHIFT) / PAGE];      // owner of a page that lies within one block of the heap
    uint16_t object[(1UL << REGION_SHIFT) / PAGE];    // whose code it is
    uint8_t touch[(1UL << REGION_SHIFT) / PAGE];      // owner in whose code it first became resident; 0: not known
    uint8_t marked[(1UL << REGION_SHIFT) / BLOCK];    // there have been blocks of the heap
};

extern struct region *regions[1UL << (ADDRESS_BITS - REGION_SHIFT)];

// The region of an address, made if need be; NULL: the address is beyond what is described, or there is no memory.
struct region *region_made(uint64_t address);

static inline struct region *region_of(uint64_t address) {
    return likely(address >> ADDRESS_BITS == 0) ? regions[address >> REGION_SHIFT] : NULL;
}

static inline uint64_t in_region(uint64_t address) {
    return address & ((1UL << REGION_SHIFT) - 1);
}

// What `mark` does for blocks that lie in several pages: of one region, and of several.
void mark_within(struct region *region, uint64_t begin, uint64_t end, uint8_t owner);
void mark_pages(uint64_t begin, uint64_t bytes, uint8_t owner);

// Granules of one page.
static inline void mark_part(uint8_t *at, uint64_t count, uint8_t owner) {
    if (likely(count > 1)) {
        const uint16_t both = owner ? owner | LONG | (count - 1) << 8 : 0;
        __builtin_memcpy(at, &both, 2); // of a machine that puts the lower byte first
    } else {
        *at = owner;
    }
}

static inline bool is_part(uint64_t begin, uint64_t bytes) {
    return begin % PAGE + bytes <= PAGE && bytes;
}

static inline void mark_in(struct region *region, uint64_t begin, uint64_t bytes, uint8_t owner) {
    uint64_t first = in_region(begin) / GRANULE;
    mark_part(region->granule + first, (bytes + GRANULE - 1) / GRANULE, owner);
    if (owner) // what is given back was obtained
        region->marked[first / (BLOCK / GRANULE)] = 1;
}

// The same of less than a page that lies in two, of one region.
static inline void mark_across(struct region *region, uint64_t begin, uint64_t bytes, uint8_t owner) {
    uint64_t first = in_region(begin) / GRANULE, count = (bytes + GRANULE - 1) / GRANULE;
    uint64_t border = PAGE / GRANULE - first % (PAGE / GRANULE);
    mark_part(region->granule + first, border, owner);
    mark_part(region->granule + first + border, count - border, owner);
    if (owner)
        region->marked[first / (BLOCK / GRANULE)] = region->marked[(first + border) / (BLOCK / GRANULE)] = 1;
}

// A block of the heap belongs to an owner from now on; 0: to nobody.
static inline void mark(uint64_t begin, uint64_t bytes, uint8_t owner) {
    struct region *region = region_of(begin);
    if (likely(region && is_part(begin, bytes)))
        mark_in(region, begin, bytes, owner);
    else
        mark_pages(begin, bytes, owner);
}

// The owner of the block that begins here; 0: it was never marked.
static inline uint8_t marked(uint64_t begin) {
    struct region *region = region_of(begin);
    if (unlikely(!region))
        return 0;
    uint8_t owner = region->granule[in_region(begin) / GRANULE] & ~LONG;
    return likely(owner) ? owner : region->whole[in_region(begin) / PAGE];
}

// Code from `begin` to `end` is the object's.
void code_of(uint64_t begin, uint64_t end, uint16_t object);

static inline uint32_t coder(uint64_t address) {
    struct region *region = region_of(address);
    return likely(region) ? region->object[in_region(address) / PAGE] : 0;
}

// Adds to `bytes` what of a page belongs to whom; returns what of it is marked. 0: it holds no block at all.
uint32_t page_owners(uint64_t page, uint64_t bytes[OWNERS]);

// Whether there has been any block of the heap between these.
bool ever_marked(uint64_t begin, uint64_t end);

// Whose each 16 bytes are: a byte of owner for every granule of the heap, found by the address alone, without a lock.
// A block is marked page by page. What it fills whole has one byte; the parts at its ends are a byte of owner for each
// granule, or, when they are many, the owner with LONG and in the next byte how many more granules follow.
#pragma once

#include "log.h"
#include "runtime.h"

enum {
    REGION_SHIFT = 30, // a region describes 1 GiB of addresses
    ADDRESS_BITS = 47,
    GRANULE = 16,
    BLOCK = 64 << 10, // what is told to hold any marks at all
    FEW = 16,         // granules that are marked one by one
    LONG = 0x80
};

struct region {
    uint8_t granule[(1UL << REGION_SHIFT) / GRANULE]; // owner; 0: nobody's
    uint8_t whole[(1UL << REGION_SHIFT) / PAGE];      // owner of a page that lies within one block of the heap
    uint8_t object[(1UL << REGION_SHIFT) / PAGE];     // whose code it is
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

// So few that the stores overlap instead of being counted. They stay within the block: its neighbours belong to others.
static inline void fill_few(uint8_t *at, uint64_t count, uint8_t value) {
    const uint64_t eight = 0x0101010101010101UL * value;
    const uint32_t four = eight;
    if (count >= 8) {
        __builtin_memcpy(at, &eight, 8);
        __builtin_memcpy(at + count - 8, &eight, 8);
    } else if (count >= 4) {
        __builtin_memcpy(at, &four, 4);
        __builtin_memcpy(at + count - 4, &four, 4);
    } else {
        at[0] = value;
        at[count - 1] = value;
        at[count >> 1] = value;
    }
}

// Granules of one page.
static inline void mark_part(uint8_t *at, uint64_t count, uint8_t owner) {
    if (likely(count <= FEW)) {
        fill_few(at, count, owner);
    } else {
        const uint8_t both[2] = {owner ? owner | LONG : 0, owner ? count - 1 : 0};
        __builtin_memcpy(at, both, 2);
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
void code_of(uint64_t begin, uint64_t end, uint8_t object);

static inline uint8_t coder(uint64_t address) {
    struct region *region = region_of(address);
    return likely(region) ? region->object[in_region(address) / PAGE] : 0;
}

// Adds to `bytes` what of a page belongs to whom; returns what of it is marked. 0: it holds no block at all.
uint32_t page_owners(uint64_t page, uint64_t bytes[OWNERS]);

// Whether there has been any block of the heap between these.
bool ever_marked(uint64_t begin, uint64_t end);

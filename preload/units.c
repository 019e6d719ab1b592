#include "units.h"

#include <string.h>

#include "arena.h"
#include "eager.h"
#include "prezero.h"
#include "space.h"
#include "sys.h"
#include "told.h"
#include "vm.h"

// At most 1 TiB of 2 MiB units. By address they are found in two steps, of 47 bits of address space at most.
enum { UNITS = 1 << 19, LEAF = 1 << 13, WORD = 64, MUCH = 16 << 20, EXCHANGED = 1 << 14 };

struct unit *units;
static uint64_t *free_bits;    // which units are free
static uint64_t *clean_bits;   // and zero: have never been anything else, or were zeroed since
static uint64_t *offered_bits; // and may be zeroed by another process
static uint64_t *roomy_bits;   // which have room for more
static uint32_t **tops;        // by address
static uint32_t unit_count;    // and the one that is not one
static uint64_t free_count;
static uint32_t busy;   // was free, and is being zeroed; 0: none
static bool busy_late;  // it was waited for in vain
static uint64_t zeroed; // bytes, while the program waited
static uint32_t pages_per_unit, words_per_unit, unit_shift;

static bool begin(void) {
    if (units)
        return true;
    uint64_t *lists = arena_pages(4 * UNITS / 8);
    tops = arena_pages((1UL << 47 >> 21) / LEAF * sizeof *tops);
    struct unit *all = arena_pages(UNITS * sizeof *units);
    if (!lists || !tops || !all)
        return false;
    free_bits = lists;
    roomy_bits = lists + UNITS / WORD;
    clean_bits = lists + 2 * UNITS / WORD;
    offered_bits = lists + 3 * UNITS / WORD;
    unit_shift = __builtin_ctzl(UNIT);
    pages_per_unit = UNIT / PAGE;
    words_per_unit = pages_per_unit / WORD;
    unit_count = 1;
    __atomic_store_n(&units, all, __ATOMIC_RELEASE);
    return true;
}

static uint64_t *live_bits(uint32_t unit) {
    const struct segment *segment = &segments[units[unit].segment];
    return segment->bits + 2UL * (unit - segment->first_unit) * words_per_unit;
}

static uint64_t *dirty_bits(uint32_t unit) {
    return live_bits(unit) + words_per_unit;
}

static bool bit(const uint64_t *words, uint64_t i) {
    return words[i / WORD] >> i % WORD & 1;
}

static void set(uint64_t *words, uint64_t i) {
    words[i / WORD] |= 1UL << i % WORD;
}

static void clear(uint64_t *words, uint64_t i) {
    words[i / WORD] &= ~(1UL << i % WORD);
}

// Where the first bit at or behind `i` is that is `value`; `end` if none.
static uint64_t find(const uint64_t *words, uint64_t i, uint64_t end, bool value) {
    while (i < end) {
        uint64_t word = (value ? words[i / WORD] : ~words[i / WORD]) >> i % WORD;
        if (word) {
            i += __builtin_ctzl(word);
            return least(i, end);
        }
        i = (i / WORD + 1) * WORD;
    }
    return end;
}

// Of which little is dirty is as quickly zeroed when it is needed.
static void offer(uint32_t unit) {
    const uint64_t *dirty = dirty_bits(unit);
    uint32_t pages = 0;
    for (uint32_t i = 0; i < words_per_unit; i++)
        pages += __builtin_popcountl(dirty[i]);
    if (pages < pages_per_unit / 4 || !prezero_offer(unit))
        return;
    set(offered_bits, unit);
}

// What has become of units that were offered.
static void take_stock(void) {
    for (uint32_t unit = 1; (unit = find(offered_bits, unit, unit_count, true)) < unit_count; unit++) {
        enum prezeroed now = prezero_look(unit);
        if (now == PREZERO_OFFERED)
            continue;
        if (now == PREZERO_BUSY && bit(free_bits, unit)) {
            busy = unit;
            busy_late = false;
            clear(free_bits, unit);
            free_count--;
        }
        if (now != PREZERO_DONE)
            continue;
        if (unit == busy)
            busy = 0;
        if (!bit(free_bits, unit)) {
            set(free_bits, unit);
            free_count++;
        }
        clear(offered_bits, unit);
        set(clean_bits, unit);
        memset(dirty_bits(unit), 0, words_per_unit * sizeof(uint64_t));
        told->zeroed_beside_bytes += UNIT;
    }
}

// Where nothing else is free. That takes some 0.1 ms if a processor is idle, and now ours is.
static bool wait_for_busy(void) {
    const uint64_t until = now_ns() + 100000000;
    const struct timespec a_while = {.tv_nsec = 20000};
    const uint32_t awaited = busy;
    while (awaited && busy == awaited && !busy_late) {
        busy_late = now_ns() > until || !prezero_lives();
        sys(SYS_nanosleep, &a_while, NULL);
        take_stock();
    }
    return awaited && busy != awaited;
}

// So many of a run of free units are ours; what is being zeroed ends it.
static uint64_t claim(uint32_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (!bit(offered_bits, first + i))
            continue;
        if (!prezero_withdraw(first + i)) {
            take_stock();
            if (bit(offered_bits, first + i))
                return i;
            continue;
        }
        clear(offered_bits, first + i);
    }
    return count;
}

uint32_t unit_at(uint64_t address) {
    if (!__atomic_load_n(&units, __ATOMIC_ACQUIRE) || address >> 47)
        return 0;
    uint64_t index = address >> unit_shift;
    const uint32_t *found = __atomic_load_n(&tops[index / LEAF], __ATOMIC_ACQUIRE);
    return found ? __atomic_load_n(&found[index % LEAF], __ATOMIC_RELAXED) : 0;
}

uint64_t units_next(uint64_t address, uint64_t end) {
    if (!__atomic_load_n(&units, __ATOMIC_ACQUIRE))
        return end;
    const uint64_t last = end >> 47 ? 1UL << 47 : end;
    for (uint64_t at = address & -UNIT; at < last;) {
        uint64_t index = at >> unit_shift;
        if (!__atomic_load_n(&tops[index / LEAF], __ATOMIC_ACQUIRE)) {
            at = (index / LEAF + 1) * LEAF << unit_shift;
            continue;
        }
        if (unit_at(at))
            return at > address ? at : address;
        at += UNIT;
    }
    return end;
}

// Makes certain that units at these addresses can be found.
static bool reach(uint64_t at, uint64_t count) {
    const uint64_t last = at + count * UNIT - 1, leaf_bytes = LEAF * UNIT;
    if (at >> 47 || last >> 47)
        return false;
    for (uint64_t top = at / leaf_bytes; top <= last / leaf_bytes; top++) {
        uint32_t *leaf = tops[top] ? tops[top] : arena_pages(LEAF * sizeof *leaf);
        if (!leaf)
            return false;
        __atomic_store_n(&tops[top], leaf, __ATOMIC_RELEASE);
    }
    return true;
}

static void point(uint64_t address, uint32_t unit) {
    uint64_t index = address >> unit_shift;
    __atomic_store_n(&tops[index / LEAF][index % LEAF], unit, __ATOMIC_RELAXED);
}

// What the lease has brought since.
static void take_in(void) {
    static uint32_t known;
    if (!segment_count)
        known = 0;
    for (; known < segment_count && begin(); known++) {
        struct segment *segment = &segments[known];
        uint64_t count = segment->bytes / UNIT, words = 2 * count * words_per_unit;
        segment->first_unit = unit_count;
        segment->bits = unit_count + count < UNITS ? arena(words * sizeof(uint64_t)) : NULL;
        for (uint64_t i = 0; segment->bits && i < count; i++) {
            units[unit_count] = (struct unit){.segment = known};
            set(clean_bits, unit_count);
            set(free_bits, unit_count++);
            free_count++;
        }
        prezero_add(known);
    }
}

enum passed units_have(uint64_t count) {
    take_in();
    if (free_count < count)
        take_stock();
    if (free_count < count && free_count + 1 >= count)
        wait_for_busy();
    if (free_count >= count)
        return PASSED_REASONS;
    uint64_t missing = count - free_count;
    // Before the first answer nobody knows how large a unit is.
    enum passed why = lease_more(missing * (UNIT ? UNIT : 2 << 20));
    take_in();
    return free_count >= count ? PASSED_REASONS : why == PASSED_REASONS ? PASSED_EXHAUSTED : why;
}

static uint64_t offset_of(uint32_t unit) {
    return (uint64_t)(unit - segments[units[unit].segment].first_unit) * UNIT;
}

// Present at once: the pages are there, only the page tables are filled. Without MAP_FIXED the kernel chooses a place.
static uint64_t map_units(uint64_t at, uint32_t first, uint64_t count, int protection, int fixed) {
    const struct segment *segment = &segments[units[first].segment];
    if (!lease_holds(segment))
        return 0;
    const int flags = MAP_SHARED | MAP_POPULATE | MAP_NORESERVE;
    long got = sys(SYS_mmap, at, count * UNIT, protection, flags | fixed, segment->file, offset_of(first));
    return sys_failed(got) ? 0 : got;
}

// The next run of units of one segment, free or clean, at most so many.
static uint64_t next_run(const uint64_t *which, uint32_t from, uint64_t most, uint32_t *first) {
    *first = find(which, from, unit_count, true);
    if (*first == unit_count)
        return 0;
    const struct segment *segment = &segments[units[*first].segment];
    uint64_t end = segment->first_unit + segment->bytes / UNIT;
    end = find(which, *first, least(end, unit_count), false);
    return least(end - *first, most);
}

// Where the first begins that is long enough; 0: none is.
static uint32_t long_run(const uint64_t *which, uint64_t count) {
    uint32_t first;
    for (uint64_t from = 1, run; (run = next_run(which, from, count, &first)); from = first + run)
        if (run == count)
            return first;
    return 0;
}

static void use(uint32_t unit, uint64_t address, int protection) {
    units[unit].address = address;
    units[unit].live = 0;
    units[unit].room = pages_per_unit;
    units[unit].protection = protection;
    units[unit].alone = units[unit].not_forked = false;
    clear(free_bits, unit);
    clear(clean_bits, unit);
    set(roomy_bits, unit);
    free_count--;
}

static void now_free(uint32_t unit) {
    units[unit].address = 0;
    clear(roomy_bits, unit);
    set(free_bits, unit);
    free_count++;
    told_pool(-(int64_t)UNIT);
    offer(unit);
}

static void unuse(uint32_t unit) {
    point(units[unit].address, 0);
    now_free(unit);
}

// A segment that the program has closed gives no more.
static void lose(uint32_t segment) {
    uint32_t first = segments[segment].first_unit;
    for (uint32_t unit = first; unit < first + segments[segment].bytes / UNIT && unit < unit_count; unit++)
        if (bit(free_bits, unit)) {
            clear(free_bits, unit);
            clear(clean_bits, unit);
            clear(offered_bits, unit);
            free_count--;
        }
}

static void used(uint64_t at, uint32_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        use(first + i, at + i * UNIT, PROT_READ | PROT_WRITE);
        point(at + i * UNIT, first + i);
    }
    told_pool(count * UNIT);
}

// Pieced together from runs; how many units there were.
static uint64_t map_runs(uint64_t at, uint64_t count) {
    uint64_t done = 0;
    uint32_t clean = long_run(clean_bits, count), first = clean ? clean : 1;
    while (done < count) {
        uint64_t run = next_run(free_bits, first, count - done, &first);
        if (!run && !clean && !wait_for_busy())
            break;
        if (!run) {
            clean = 0;
            first = 1;
            continue;
        }
        if (!(run = claim(first, run)))
            continue;
        if (!map_units(at + done * UNIT, first, run, PROT_READ | PROT_WRITE, MAP_FIXED)) {
            lose(units[first].segment);
            continue;
        }
        used(at + done * UNIT, first, run);
        done += run;
        first += run;
    }
    return done;
}

uint64_t units_map(uint64_t at, uint64_t count, enum place place) {
    uint64_t began = now_ns(), got = 0;
    uint32_t first = 0;
    take_stock();
    // What is clean need not be zeroed; of what was used the first is the most likely to be in the processor's caches.
    do {
        if (place == PLACE_ANYWHERE && !(first = long_run(clean_bits, count)))
            first = long_run(free_bits, count);
    } while (first && claim(first, count) < count);
    if (first)
        got = map_units(0, first, count, PROT_READ | PROT_WRITE, 0);
    if (got && !reach(got, count)) {
        sys(SYS_munmap, got, count * UNIT);
        got = 0;
    }
    if (got)
        used(got, first, count);
    else if (place == PLACE_ANYWHERE)
        at = space(count * UNIT, UNIT);
    else if (place == PLACE_IF_FREE && !space_at(at, count * UNIT, PROT_NONE))
        at = 0;
    if (!got && at) {
        uint64_t done = reach(at, count) ? map_runs(at, count) : 0;
        got = done == count ? at : 0;
        for (uint64_t i = 0; !got && i < done; i++)
            unuse(unit_at(at + i * UNIT));
        if (!got && place != PLACE_OVER)
            sys(SYS_munmap, at, count * UNIT);
    }
    told->populate_ns += now_ns() - began;
    return got;
}

static void zero(void *memory, uint64_t bytes) {
#if defined(__x86_64__)
    __asm__ volatile("rep stosb" : "+D"(memory), "+c"(bytes) : "a"(0) : "memory");
#else
    memset(memory, 0, bytes);
#endif
}

// A range within one unit, or where there is none; as pages of it.
struct part {
    uint64_t at, next;
    uint32_t unit, from, to;
};

static struct part part_of(uint64_t at, uint64_t end) {
    struct part part = {at, (at & -UNIT) + UNIT, unit_at(at), at % UNIT / PAGE, pages_per_unit};
    if (part.next > end) {
        part.next = end;
        part.to = part.from + (end - at + PAGE - 1) / PAGE;
    }
    return part;
}

#define EACH_PART(part, begin, end)                                                                                    \
    for (struct part part = part_of(begin, end); part.at < end; part = part_of(part.next, end))

// Sets or clears a run of bits; by how many there are more, or fewer.
static uint32_t change(uint64_t *words, uint32_t from, uint32_t to, bool value) {
    uint32_t changed = 0;
    while (from < to) {
        uint32_t end = (from / WORD + 1) * WORD;
        if (end > to)
            end = to;
        uint64_t mask = ~0UL >> (WORD - (end - from)) << from % WORD, *word = &words[from / WORD];
        changed += __builtin_popcountl((value ? ~*word : *word) & mask);
        *word = value ? *word | mask : *word & ~mask;
        from = end;
    }
    return changed;
}

static void note_zeroed(uint64_t bytes) {
    const uint64_t before = zeroed;
    zeroed += bytes;
    told->zeroed_bytes += bytes;
    // Not of a program that gives back what it has at its end; and not while what is asked for is a GiB.
    if (before < MUCH && zeroed >= MUCH && UNIT <= HUGE && prezero_start())
        for (uint64_t i = 1; (i = find(free_bits, i, unit_count, true)) < unit_count; i++)
            if (!bit(clean_bits, i))
                offer(i);
}

void units_take(uint64_t begin, uint64_t end) {
    uint64_t now_zeroed = 0, began = now_ns();
    EACH_PART(part, begin, end) {
        struct unit *unit = &units[part.unit];
        uint64_t *dirty = dirty_bits(part.unit);
        for (uint64_t i = part.from, stop; i < part.to; i = stop) {
            i = find(dirty, i, part.to, true);
            stop = find(dirty, i, part.to, false);
            zero((char *)unit->address + i * PAGE, (stop - i) * PAGE);
            now_zeroed += (stop - i) * PAGE;
        }
        change(dirty, part.from, part.to, true);
        unit->live += change(live_bits(part.unit), part.from, part.to, true);
        if (unit->live == pages_per_unit)
            clear(roomy_bits, part.unit);
    }
    if (now_zeroed) {
        told->populate_ns += now_ns() - began;
        note_zeroed(now_zeroed);
    }
}

// Another unit takes its place, which is zero. Who writes there meanwhile waits for the kernel.
static bool exchange(uint32_t old) {
    take_stock();
    const uint64_t address = units[old].address;
    const int protection = units[old].protection;
    uint32_t new = find(clean_bits, 1, unit_count, true);
    if (new == unit_count || !map_units(address, new, 1, protection, MAP_FIXED))
        return false;
    use(new, address, protection);
    units[new].live = units[old].live;
    units[new].alone = units[old].alone;
    units[new].not_forked = units[old].not_forked;
    memcpy(live_bits(new), live_bits(old), words_per_unit * sizeof(uint64_t));
    memcpy(dirty_bits(new), live_bits(old), words_per_unit * sizeof(uint64_t));
    memset(live_bits(old), 0, words_per_unit * sizeof(uint64_t));
    if (units[new].live == pages_per_unit)
        clear(roomy_bits, new);
    point(address, new);
    now_free(old);
    told_pool(UNIT);
    return true;
}

void units_zero(uint64_t begin, uint64_t end) {
    // There is one more only where somebody zeroes what is given back. Each may be a mapping of its own then, of which
    // a process has 65,530.
    if (end - begin == UNIT && unit_count <= EXCHANGED && prezero_lives() && exchange(unit_at(begin)))
        return;
    zero((void *)begin, end - begin);
    note_zeroed(end - begin);
}

uint64_t units_room(uint32_t pages) {
    for (uint64_t unit = 1; unit < unit_count; unit++) {
        unit = find(roomy_bits, unit, unit_count, true);
        if (unit == unit_count)
            return 0;
        struct unit *found = &units[unit];
        if (found->alone || found->not_forked || found->protection != (PROT_READ | PROT_WRITE) || found->room < pages)
            continue;
        const uint64_t *live = live_bits(unit);
        uint32_t longest = 0;
        for (uint64_t i = 0, stop; i < pages_per_unit; i = stop) {
            i = find(live, i, pages_per_unit, false);
            stop = find(live, i, pages_per_unit, true);
            if (stop - i >= pages)
                return found->address + i * PAGE;
            if (stop - i > longest)
                longest = stop - i;
        }
        found->room = longest;
    }
    return 0;
}

bool units_live(uint64_t begin, uint64_t end) {
    EACH_PART(part, begin, end)
    if (!part.unit || find(live_bits(part.unit), part.from, part.to, false) < part.to)
        return false;
    return true;
}

bool units_any_live(uint64_t begin, uint64_t end) {
    for (uint64_t at = units_next(begin, end); at < end; at = units_next(at, end)) {
        struct part part = part_of(at, end);
        if (find(live_bits(part.unit), part.from, part.to, true) < part.to)
            return true;
        at = part.next;
    }
    return false;
}

void units_release(uint64_t begin, uint64_t end) {
    uint64_t empty = 0, empty_end = 0;
    for (uint64_t at = units_next(begin, end); at < end; at = units_next(at, end)) {
        struct part part = part_of(at, end);
        struct unit *unit = &units[part.unit];
        at = part.next;
        unit->live -= change(live_bits(part.unit), part.from, part.to, false);
        unit->room = pages_per_unit;
        set(roomy_bits, part.unit);
        if (unit->live)
            continue;
        uint64_t address = unit->address;
        unuse(part.unit);
        if (address != empty_end) {
            if (empty_end > empty)
                next_munmap((void *)empty, empty_end - empty);
            empty = address;
        }
        empty_end = address + UNIT;
    }
    if (empty_end > empty)
        next_munmap((void *)empty, empty_end - empty);
}

// How many units from an address on stand in the pool as they do there, with one protection.
static uint64_t alike(uint64_t from, uint64_t count) {
    uint32_t first = unit_at(from);
    uint64_t i = 1;
    while (i < count && unit_at(from + i * UNIT) == first + i && units[first + i].segment == units[first].segment &&
           units[first + i].protection == units[first].protection)
        i++;
    return i;
}

bool units_move(uint64_t from, uint64_t to, uint64_t count) {
    if (!reach(to, count))
        return false;
    for (uint64_t done = 0, run; done < count; done += run) {
        uint32_t first = unit_at(from + done * UNIT);
        run = alike(from + done * UNIT, count - done);
        // Until all are there, the old place is as it was.
        if (!map_units(to + done * UNIT, first, run, units[first].protection, MAP_FIXED))
            return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t unit = unit_at(from + i * UNIT);
        point(from + i * UNIT, 0);
        point(to + i * UNIT, unit);
        units[unit].address = to + i * UNIT;
    }
    return true;
}

char *unit_view(uint32_t unit) {
    const struct segment *segment = &segments[units[unit].segment];
    if (!lease_holds(segment))
        return NULL;
    long view = sys(SYS_mmap, 0, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | MAP_NORESERVE, segment->file,
                    offset_of(unit));
    return sys_failed(view) ? NULL : (char *)view;
}

static bool is_zero(const uint64_t *words, uint64_t bytes) {
    for (const uint64_t *end = words + bytes / sizeof *words; words < end; words += 8)
        if (words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7])
            return false;
    return true;
}

// Units that are in use as a whole: of the others it is not worth looking.
static bool is_whole(uint32_t unit) {
    return units[unit].address && units[unit].live == pages_per_unit && units[unit].protection & PROT_READ;
}

uint64_t units_unwritten(void) {
    enum { PIECES = 64 };
    uint64_t whole = 0, looked = 0, empty = 0, number = 0;
    for (uint32_t unit = 1; unit < unit_count; unit++)
        whole += is_whole(unit);
    const uint64_t pieces = whole * (UNIT / HUGE), step = pieces / PIECES + 1;
    for (uint32_t unit = 1; unit < unit_count; unit++)
        for (uint64_t at = 0; is_whole(unit) && at < UNIT; at += HUGE)
            if (number++ % step == 0) {
                looked++;
                empty += is_zero((const uint64_t *)(units[unit].address + at), HUGE);
            }
    return looked ? pieces * HUGE * empty / looked : 0;
}

bool unit_page_live(uint32_t unit, uint32_t i) {
    return bit(live_bits(unit), i);
}

void unit_forget(uint32_t unit) {
    memset(live_bits(unit), 0, words_per_unit * sizeof(uint64_t));
    unuse(unit);
}

void units_forget(void) {
    if (!units)
        return;
    for (uint32_t unit = 1; unit < unit_count; unit++)
        if (units[unit].address)
            point(units[unit].address, 0);
    memset(free_bits, 0, (unit_count + WORD - 1) / WORD * 8);
    memset(clean_bits, 0, (unit_count + WORD - 1) / WORD * 8);
    memset(offered_bits, 0, (unit_count + WORD - 1) / WORD * 8);
    memset(roomy_bits, 0, (unit_count + WORD - 1) / WORD * 8);
    unit_count = 1;
    free_count = zeroed = 0;
    busy = 0;
    take_in();
}

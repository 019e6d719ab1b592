#include "frames.h"

#include <string.h>

#include "objects.h"
#include "shadow.h"
#include "space.h"

enum { RBP = 6, RSP = 7, RETURN = 16 }; // registers, as the tables number them
enum { CIE_ID = 0, PCREL_SDATA4 = 0x1b, UDATA4 = 3, DATAREL_SDATA4 = 0x3b };
enum { KNOWN = 1 << 12, DEPTH = 8 };

// Where the caller's frame is, seen from one place in the code.
struct rule {
    uint8_t from;      // the frame begins at: RBP or RSP and `offset`; DEREF: what is there; 0: not known
    bool rbp_saved;    // at `rbp_at` from where the frame begins
    bool rbp_indirect; // at `rbp_at` from rbp
    int32_t offset, rbp_at;
};

enum { DEREF = 1 };

// Packed into one word, with the place folded into another: a thread that reads what another is writing sees that the
// two do not belong together.
struct known {
    uint64_t check, packed;
};

static struct known known[KNOWN];

static uint64_t pack(struct rule rule) {
    return rule.from | (uint64_t)rule.rbp_saved << 3 | (uint64_t)rule.rbp_indirect << 4 | 1 << 5 |
           ((uint64_t)rule.rbp_at & 0xffffff) << 8 | (uint64_t)(uint32_t)rule.offset << 32;
}

static struct rule unpack(uint64_t packed) {
    return (struct rule){
        .from = packed & 7,
        .rbp_saved = packed >> 3 & 1,
        .rbp_indirect = packed >> 4 & 1,
        .rbp_at = (int32_t)(packed & 0xffffff00) >> 8,
        .offset = (int32_t)(packed >> 32),
    };
}

static uint64_t unsigned_leb(const uint8_t **at) {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

static int64_t signed_leb(const uint8_t **at) {
    uint64_t value = 0;
    uint32_t shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 64);
    if (byte & 0x40 && shift < 64)
        value |= -1UL << shift;
    return (int64_t)value;
}

static uint32_t word_at(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

// What a table's entry says of a function.
struct function_entry {
    const uint8_t *initial, *initial_end; // what holds for all that share it
    const uint8_t *own, *own_end;
    uint64_t begin, end;
    uint64_t code_unit;
    int64_t data_unit;
};

// The entry of the function that holds an address, as a sorted table has it.
static const uint8_t *entry_of(uint64_t table, uint64_t pc) {
    const uint8_t *header = (const uint8_t *)table;
    if (header[0] != 1 || header[1] != PCREL_SDATA4 || header[2] != UDATA4 || header[3] != DATAREL_SDATA4)
        return NULL;
    uint32_t low = 0, high = word_at(header + 8);
    const uint8_t *entries = header + 12;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table + (int64_t)(int32_t)word_at(entries + middle * 8UL) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? (const uint8_t *)(table + (int64_t)(int32_t)word_at(entries + (low - 1) * 8UL + 4)) : NULL;
}

static bool read_common(const uint8_t *at, struct function_entry *entry) {
    uint32_t length = word_at(at);
    if (length == UINT32_MAX || word_at(at + 4) != CIE_ID)
        return false;
    entry->initial_end = at + 4 + length;
    uint8_t version = at[8];
    const char *augmentation = (const char *)at + 9;
    at += 9 + strlen(augmentation) + 1;
    entry->code_unit = unsigned_leb(&at);
    entry->data_unit = signed_leb(&at);
    uint64_t return_register = version == 1 ? *at++ : unsigned_leb(&at);
    if (augmentation[0] != 'z' || return_register != RETURN)
        return false;
    uint64_t bytes = unsigned_leb(&at);
    const uint8_t *data = at;
    entry->initial = at + bytes;
    for (const char *letter = augmentation + 1; *letter; letter++) {
        if (*letter == 'L') {
            data++;
        } else if (*letter == 'P') {
            uint8_t size = *data & 7;
            data += 1 + (size == 0 || size == 4 ? 8 : size == 2 ? 2 : 4);
        } else if (*letter != 'R' || *data++ != PCREL_SDATA4) {
            return false; // a handler of signals is called by nobody
        }
    }
    return true;
}

static bool read_entry(const uint8_t *at, uint64_t pc, struct function_entry *entry) {
    uint32_t length = word_at(at);
    if (length == UINT32_MAX || !read_common(at + 4 - word_at(at + 4), entry))
        return false;
    entry->own_end = at + 4 + length;
    at += 8;
    entry->begin = (uint64_t)at + (int64_t)(int32_t)word_at(at);
    entry->end = entry->begin + word_at(at + 4);
    at += 8;
    uint64_t bytes = unsigned_leb(&at);
    entry->own = at + bytes;
    return entry->begin <= pc && pc < entry->end;
}

struct run {
    struct rule now, initial, kept[DEPTH];
    uint32_t depth;
    uint64_t at;
    bool failed;
};

static void saved(struct run *run, uint64_t number, int64_t offset) {
    if (number == RBP) {
        run->now.rbp_saved = true;
        run->now.rbp_indirect = false;
        run->now.rbp_at = (int32_t)offset;
    }
    run->failed |= number == RETURN && offset != -8;
}

static void restored(struct run *run, uint64_t number) {
    if (number != RBP)
        return;
    run->now.rbp_saved = run->initial.rbp_saved;
    run->now.rbp_indirect = run->initial.rbp_indirect;
    run->now.rbp_at = run->initial.rbp_at;
}

static void begins_at(struct run *run, uint64_t number, int64_t offset) {
    run->now.from = number;
    run->now.offset = (int32_t)offset;
    run->failed |= (number != RBP && number != RSP) || run->now.offset != offset;
}

// Of functions that align their stack: what lies at a distance from rbp.
static bool from_rbp(const uint8_t *at, const uint8_t *end, bool follow, int32_t *offset) {
    enum { BREG_RBP = 0x70 + RBP, DEREFERENCE = 6 };
    if (at >= end || *at++ != BREG_RBP)
        return false;
    *offset = (int32_t)signed_leb(&at);
    return follow ? at + 1 == end && *at == DEREFERENCE : at == end;
}

// What the instructions of a table say, up to a place in the code.
static void interpret(struct run *run, const struct function_entry *entry, const uint8_t *at, const uint8_t *end,
                      uint64_t pc) {
    while (at < end && run->at <= pc && !run->failed) {
        uint8_t byte = *at++, low = byte & 0x3f;
        uint64_t number;
        switch (byte >> 6) {
        case 1:
            run->at += low * entry->code_unit;
            continue;
        case 2:
            saved(run, low, (int64_t)unsigned_leb(&at) * entry->data_unit);
            continue;
        case 3:
            restored(run, low);
            continue;
        }
        switch (byte) {
        case 0x00: // nop
            break;
        case 0x02: // advance
            run->at += *at++ * entry->code_unit;
            break;
        case 0x03:
            run->at += (at[0] | at[1] << 8) * entry->code_unit;
            at += 2;
            break;
        case 0x04:
            run->at += word_at(at) * entry->code_unit;
            at += 4;
            break;
        case 0x05: // offset
            number = unsigned_leb(&at);
            saved(run, number, (int64_t)unsigned_leb(&at) * entry->data_unit);
            break;
        case 0x06:
            restored(run, unsigned_leb(&at));
            break;
        case 0x07: // undefined: nobody called it
            run->failed |= unsigned_leb(&at) == RETURN;
            break;
        case 0x08: // same value
            if (unsigned_leb(&at) == RBP)
                run->now.rbp_saved = false;
            break;
        case 0x09: // another register
            number = unsigned_leb(&at);
            unsigned_leb(&at);
            run->failed |= number == RBP || number == RETURN;
            break;
        case 0x0a: // remember
            if (run->depth == DEPTH)
                run->failed = true;
            else
                run->kept[run->depth++] = run->now;
            break;
        case 0x0b: // restore
            if (!run->depth)
                run->failed = true;
            else
                run->now = run->kept[--run->depth];
            break;
        case 0x0c: // the frame begins at
            number = unsigned_leb(&at);
            begins_at(run, number, (int64_t)unsigned_leb(&at));
            break;
        case 0x0d:
            begins_at(run, unsigned_leb(&at), run->now.offset);
            break;
        case 0x0e:
            begins_at(run, run->now.from, (int64_t)unsigned_leb(&at));
            break;
        case 0x0f:
            number = unsigned_leb(&at);
            run->failed |= !from_rbp(at, at + number, true, &run->now.offset);
            run->now.from = DEREF;
            at += number;
            break;
        case 0x10: { // saved where an expression says
            uint64_t saved_register = unsigned_leb(&at);
            number = unsigned_leb(&at);
            if (saved_register == RBP) {
                run->failed |= !from_rbp(at, at + number, false, &run->now.rbp_at);
                run->now.rbp_saved = run->now.rbp_indirect = true;
            }
            run->failed |= saved_register == RETURN;
            at += number;
            break;
        }
        case 0x11:
            number = unsigned_leb(&at);
            saved(run, number, signed_leb(&at) * entry->data_unit);
            break;
        case 0x12:
            number = unsigned_leb(&at);
            begins_at(run, number, signed_leb(&at) * entry->data_unit);
            break;
        case 0x13:
            begins_at(run, run->now.from, signed_leb(&at) * entry->data_unit);
            break;
        case 0x2e: // arguments
            unsigned_leb(&at);
            break;
        default:
            run->failed = true;
        }
    }
}

static struct rule rule_read(uint64_t pc) {
    const struct rule unknown = {0};
    uint32_t object = coder(pc);
    uint64_t table = object ? objects[object].frames : 0;
    const uint8_t *at = table ? entry_of(table, pc) : NULL;
    struct function_entry entry;
    if (!at || !read_entry(at, pc, &entry))
        return unknown;
    struct run run = {.at = entry.begin};
    interpret(&run, &entry, entry.initial, entry.initial_end, UINT64_MAX);
    run.initial = run.now;
    run.at = entry.begin;
    interpret(&run, &entry, entry.own, entry.own_end, pc);
    // It fits where it is packed.
    bool fits = run.now.rbp_at >= -(1 << 23) && run.now.rbp_at < 1 << 23;
    return run.failed || !fits ? unknown : run.now;
}

static struct rule rule_of(uint64_t pc) {
    struct known *slot = &known[(pc ^ pc >> 12) % KNOWN];
    uint64_t packed = __atomic_load_n(&slot->packed, __ATOMIC_RELAXED);
    uint64_t check = __atomic_load_n(&slot->check, __ATOMIC_RELAXED);
    if (likely(packed && check == (pc ^ packed * 0x9e3779b97f4a7c15)))
        return unpack(packed);
    struct rule rule = rule_read(pc);
    packed = pack(rule);
    __atomic_store_n(&slot->packed, packed, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->check, pc ^ packed * 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);
    return rule;
}

// Code without right tables may lead anywhere: what is on another page than the frame before is looked for first.
static bool word_of(uint64_t address, uint64_t sp, uint64_t *word) {
    if (address % 8 || ((address ^ sp) & -PAGE && !is_mapped(address)))
        return false;
    *word = *(const uint64_t *)address;
    return true;
}

bool frame_up(struct frame *frame) {
    if (!frame->pc)
        return false;
    // The call is before the place to which it returns.
    struct rule rule = rule_of(frame->pc - 1);
    uint64_t begin = (rule.from == RSP ? frame->sp : frame->rbp) + (int64_t)rule.offset, pc, rbp = frame->rbp;
    if (!rule.from || (rule.from == DEREF && !word_of(begin, frame->sp, &begin)) || begin <= frame->sp)
        return false;
    uint64_t rbp_at = (rule.rbp_indirect ? frame->rbp : begin) + (int64_t)rule.rbp_at;
    if (!word_of(begin - 8, frame->sp, &pc) || (rule.rbp_saved && !word_of(rbp_at, frame->sp, &rbp)))
        return false;
    *frame = (struct frame){pc, begin, rbp};
    return true;
}

void frames_forget(void) {
    for (uint32_t i = 0; i < KNOWN; i++)
        __atomic_store_n(&known[i].packed, 0, __ATOMIC_RELAXED);
}

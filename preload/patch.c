#include "patch.h"

#include "arena.h"
#include "runtime.h"
#include "symbols.h"
#include "sys.h"
#include "x86.h"

struct lock patch_lock;

#if defined(__x86_64__)

#include <linux/membarrier.h>
#include <string.h>

// The code of a patch is written to a page near the entry, which is sealed before the entry leads to it: so it is never
// writable and executable at once. The entry's own page must be, for others may run in it.
enum { JUMP = 5, PAGES = 64 << 10, STUB = 256, PATCHES = 1024, OPEN = 256 };

struct change {
    uint8_t *entry;
    uint64_t jump; // the five bytes
};

struct range {
    uint64_t begin, end;
};

// By the linker: where the runtime's own code is.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static struct change changes[PATCHES]; // that wait for the pages to be sealed
static uint32_t change_count;
static struct range opened[OPEN]; // pages that are writable
static uint32_t open_count;
static uint8_t *stubs, *stub; // of the code that is being written: all, and what is free

static void barrier(void) {
    sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0);
    sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0);
}

// No thread may run half of the jump. (One that was stopped between the instructions it replaces would; but objects are
// patched before anything of theirs runs, and what others have patched begins with one longer than it.) Where eight
// aligned bytes hold it, one store does; else the entry is made to wait first, by a jump to itself.
static void write_jump(const struct change *change) {
    uint32_t shift = (uint64_t)change->entry % 8 * 8;
    if (shift <= 24) {
        uint64_t *word = (uint64_t *)(change->entry - shift / 8);
        uint64_t others = *word & ~(0xffffffffffUL << shift);
        __atomic_store_n(word, others | change->jump << shift, __ATOMIC_SEQ_CST);
        return;
    }
    const uint16_t itself = 0xfeeb, begin = change->jump;
    *(volatile uint16_t *)change->entry = itself;
    barrier();
    memcpy(change->entry + 2, (const char *)&change->jump + 2, 3);
    barrier();
    *(volatile uint16_t *)change->entry = begin;
}

static bool is_open(uint64_t address) {
    for (uint32_t i = 0; i < open_count; i++)
        if (address >= opened[i].begin && address < opened[i].end)
            return true;
    return false;
}

static bool make_writable(struct range range) {
    if (sys_failed(sys(SYS_mprotect, range.begin, range.end - range.begin, PROT_READ | PROT_WRITE | PROT_EXEC)))
        return false;
    opened[open_count++] = range;
    return true;
}

// All the code of an object at once, so that its mapping stays one; where so much memory may not be promised, a page.
static bool open_page(uint64_t address) {
    struct range page = {address & -PAGE, (address & -PAGE) + PAGE}, code = page;
    return is_open(address) || (object_code(address, &code.begin, &code.end) && make_writable(code)) ||
           make_writable(page);
}

// Where the kernel refuses to make what was written executable again, it is left as it is.
static void close_pages(void) {
    for (uint32_t i = 0; i < open_count; i++)
        sys(SYS_mprotect, opened[i].begin, opened[i].end - opened[i].begin, PROT_READ | PROT_EXEC);
    open_count = 0;
}

static const char *flush(void) {
    bool sealed = !stubs || arena_seal(stubs, PAGES);
    for (uint32_t i = 0; sealed && i < change_count; i++)
        write_jump(&changes[i]);
    change_count = 0;
    close_pages();
    stubs = stub = NULL;
    return sealed ? NULL : "the kernel refuses to make code executable";
}

static bool reaches(const uint8_t *entry, const uint8_t *target) {
    const int64_t reach = (1UL << 31) - (1 << 20);
    int64_t distance = target - entry;
    return distance < reach && distance > -reach;
}

// A chunk of stubs within reach of the entry, with room for one.
static bool have_stubs(const uint8_t *entry) {
    bool fits = stubs && reaches(entry, stub) && stub + STUB <= stubs + PAGES;
    if (fits && change_count < PATCHES && open_count + 2 <= OPEN)
        return true;
    if (flush())
        return false;
    stubs = stub = arena_near((uint64_t)entry, PAGES);
    return stubs && reaches(entry, stub);
}

void patch_begin(void) {
    lock_take(&patch_lock);
}

const char *patch_done(void) {
    const char *why = flush();
    lock_release(&patch_lock);
    return why;
}

// Each gives where to go on.
static uint8_t *put(uint8_t *to, const void *code, size_t bytes) {
    memcpy(to, code, bytes);
    return to + bytes;
}

static uint8_t *put_jump(uint8_t *to, void *target) {
    const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; // to the address behind it
    return put(put(to, jump, sizeof jump), &target, sizeof target);
}

static uint8_t *put_with(uint8_t *to, void *r11) {
    const uint8_t load[] = {0x49, 0xbb};
    return put(put(to, load, sizeof load), &r11, sizeof r11);
}

static bool is_padding(const uint8_t *from, const uint8_t *end) {
    struct x86 instruction;
    for (; from < end; from += instruction.bytes) {
        instruction.bytes = 1;
        if (*from == 0 || *from == 0xcc)
            continue;
        bool nop = *from == 0x90 || (x86_decode(from, &instruction) && (from[instruction.opcode] == 0x1f));
        if (!nop)
            return false;
    }
    return true;
}

static bool ends(enum x86_kind kind) {
    return kind >= X86_JUMP && kind <= X86_RETURN;
}

// Moves the instructions that the jump will lie on. Functions begin at multiples of 16: what lies behind a return and
// before the next of these is nobody's, if it looks like it.
static const char *move(const uint8_t *entry, uint8_t **to) {
    size_t bytes = 0;
    struct x86 instruction;
    while (bytes < JUMP) {
        if (!x86_decode(entry + bytes, &instruction))
            return "an instruction that is not known";
        size_t moved = x86_move(entry + bytes, &instruction, *to);
        if (!moved)
            return "an instruction that cannot be moved";
        bytes += instruction.bytes;
        *to += moved;
        if (!ends(instruction.kind))
            continue;
        bool room = bytes >= JUMP || ((uint64_t)entry % 16 == 0 && is_padding(entry + bytes, entry + JUMP));
        return room ? NULL : "a return within five bytes";
    }
    // Of somebody else's patch, `movabs` and `jmp`, nothing must be left that runs: it may be taken back.
    if (x86_decode(entry + bytes, &instruction) && instruction.kind == X86_JUMP_INDIRECT) {
        *to = put(*to, entry + bytes, instruction.bytes);
        return NULL;
    }
    const uint8_t back = 0xe9;
    int32_t displacement = entry + bytes - (*to + JUMP);
    *to = put(put(*to, &back, sizeof back), &displacement, sizeof displacement);
    return NULL;
}

const char *patch_with(void *at, size_t bytes, void *target, void *r11, void **moved) {
    uint8_t *entry = at;
    if (patched(entry))
        return "it is patched already";
    if ((uint64_t)entry % 64 == 63)
        return "it begins at the end of a cache line";
    if (x86_branches_into(entry, bytes, JUMP))
        return "a branch into its first five bytes";
    if (!have_stubs(entry))
        return "no room for code near it";
    bool directly = !r11 && reaches(entry, target);
    uint8_t *to = directly ? stub : put_jump(r11 ? put_with(stub, r11) : stub, target), *first = to;
    const char *why = move(entry, &to);
    if (why)
        return why;
    if (!open_page((uint64_t)entry) || !open_page((uint64_t)entry + JUMP - 1))
        return "the kernel refuses to make its page writable";
    *moved = first;
    uint32_t displacement = (directly ? (uint8_t *)target : stub) - (entry + JUMP);
    changes[change_count++] = (struct change){entry, 0xe9 | (uint64_t)displacement << 8};
    stub = to + -(uint64_t)to % 16;
    return NULL;
}

const char *patch(void *entry, void *target, void **moved) {
    return patch_with(entry, 0, target, NULL, moved);
}

bool patched(const void *at) {
    for (uint32_t i = 0; i < change_count; i++)
        if (changes[i].entry == at)
            return true;
    const uint8_t *entry = at;
    struct x86 instruction;
    if (*entry != 0xe9 || !x86_decode(entry, &instruction))
        return false;
    bool is_own = instruction.target >= (uint64_t)__ehdr_start && instruction.target < (uint64_t)etext;
    return is_own || arena_has(instruction.target);
}

void *patch_thunks(void *target, void *r11, size_t stride) {
    uint8_t *page = arena_pages(THUNKS * THUNK);
    for (size_t i = 0; page && i < THUNKS; i++)
        put_jump(put_with(page + i * THUNK, (char *)r11 + i * stride), target);
    return page && arena_seal(page, THUNKS * THUNK) ? page : NULL;
}

#else

static const char not_here[] = "aarch64: code is not patched there";

void patch_begin(void) {
}

const char *patch_done(void) {
    return NULL;
}

const char *patch_with(void *entry, size_t bytes, void *target, void *r11, void **moved) {
    (void)entry, (void)bytes, (void)target, (void)r11, (void)moved;
    return not_here;
}

const char *patch(void *entry, void *target, void **moved) {
    return patch_with(entry, 0, target, NULL, moved);
}

bool patched(const void *entry) {
    (void)entry;
    return false;
}

void *patch_thunks(void *target, void *r11, size_t stride) {
    (void)target, (void)r11, (void)stride;
    return NULL;
}

#endif

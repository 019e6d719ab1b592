#include "reconcile.h"

#include <errno.h>
#include <string.h>

#include "arena.h"
#include "heap.h"
#include "lock.h"
#include "log.h"
#include "moved.h"
#include "objects.h"
#include "owners.h"
#include "pagemap.h"
#include "process.h"
#include "shadow.h"
#include "smaps.h"
#include "space.h"
#include "sys.h"
#include "text.h"
#include "touch.h"
#include "vm.h"

struct total {
    uint64_t rss, pss; // bytes while they are summed, KiB when they are logged
};

// Memory by one of the two axes.
struct view {
    enum log_entry entry;
    struct total now[OWNERS][KINDS], told[OWNERS][KINDS];
};

// Growth is told between two looks from so many bytes on.
enum { LOOKS = 8, GROWN = 1 << 20 };

struct lock reconcile_lock;
static struct view by_owner = {.entry = ENTRY_TOTALS}, by_touch = {.entry = ENTRY_TOUCHED};
static const struct range *ranges;
static uint32_t range_count;
static uint64_t spent_ns, began_ns, look_ns; // of this look
static bool leaving;                         // exec is under way
static uint32_t whose_turn;                  // a thread's number
static uint64_t grown_told;                  // since the last look, bytes

static void add_to(struct view *view, const struct mapping *mapping, uint8_t owner, enum kind kind, uint64_t rss) {
    view->now[owner][kind].rss += rss;
    view->now[owner][kind].pss += mapping->rss ? (__uint128_t)rss * mapping->pss / mapping->rss : 0;
}

// What has been unmapped since it was read is not there, rather than nobody's.
static void add(const struct mapping *mapping, uint8_t owner, enum kind kind, uint64_t rss) {
    if (owner != UNATTRIBUTED || is_mapped(mapping->begin))
        add_to(&by_owner, mapping, owner, kind, rss);
}

// What seems to be nobody's may have been mapped since its ranges were read, or mapped, touched and unmapped: to be
// looked at again with others, unless nothing has changed or it always does.
static bool look_again(uint32_t looks) {
    if (looks == LOOKS || vm_ranges_hold())
        return false;
    ranges = vm_ranges(&range_count);
    return true;
}

static bool holds(uint32_t at, uint64_t address) {
    return at < range_count && ranges[at].begin <= address;
}

// What holds an address of anonymous memory: a range that somebody mapped, a shared object's, or nobody's that we know
// of.
static struct range piece_at(uint64_t begin, uint64_t end) {
    uint32_t object = object_of(begin), at = range_beyond(ranges, range_count, begin);
    uint32_t component = objects[object].component;
    // It may have been mapped since we began, or unloaded.
    if (!holds(at, begin) && !object) {
        ranges = vm_ranges(&range_count);
        at = range_beyond(ranges, range_count, begin);
        object = object_gone_since(look_ns, begin);
        component = objects[object].gone_component;
    }
    struct range piece = {begin, end, UNATTRIBUTED, USE_MAPPED};
    if (holds(at, begin)) {
        piece = ranges[at];
    } else {
        if (object) {
            piece.owner = owner_of(component, object);
            // It may be unloaded at this moment.
            if (objects[object].end > begin)
                piece.end = objects[object].end;
        }
        if (at < range_count && ranges[at].begin < piece.end)
            piece.end = ranges[at].begin;
    }
    piece.begin = begin;
    piece.end = least(piece.end, end);
    return piece;
}

// The pages of one mapping: bytes by kind and owner.
struct parts {
    uint64_t bytes[KINDS][OWNERS];
};

struct dividing {
    struct parts *parts;
    struct range piece;
};

static void divide_page(uint64_t page, uint64_t entry, void *context) {
    (void)entry;
    const struct dividing *dividing = context;
    const struct range *piece = &dividing->piece;
    uint64_t(*bytes)[OWNERS] = dividing->parts->bytes;
    uint32_t blocks = page_owners(page, bytes[HEAP]);
    if (blocks || piece->use == USE_ALLOCATOR)
        bytes[HEAP][heap_is_divided() ? RETAINED : UNATTRIBUTED] += PAGE - blocks;
    else
        bytes[piece->use == USE_STACK ? STACK : piece->use == USE_BREAK ? HEAP : MAPPED][piece->owner] += PAGE;
}

// What was counted page by page, as shares of what the kernel says of the whole where that is less: pages of zeros are
// present and not resident, and some came between the two files. Those that went are not there.
static void add_parts(struct view *view, const struct mapping *mapping, const struct parts *parts) {
    const uint64_t *bytes = parts->bytes[0];
    uint64_t counted = 0, divided = 0;
    for (uint32_t i = 0; i < KINDS * OWNERS; i++)
        counted += bytes[i];
    uint64_t resident = least(counted, mapping->rss);
    for (uint32_t i = 0; i < KINDS * OWNERS && counted; i++) {
        uint64_t share = (__uint128_t)bytes[i] * resident / counted;
        add_to(view, mapping, i % OWNERS, i / OWNERS, share);
        divided += share;
    }
    add_to(view, mapping, UNATTRIBUTED, MAPPED, resident - divided);
}

static void divide(const struct mapping *mapping, bool brk, struct parts *parts) {
    memset(parts, 0, sizeof *parts);
    for (uint64_t at = mapping->begin; at < mapping->end;) {
        struct range piece = piece_at(at, mapping->end);
        if (brk && piece.use != USE_BREAK)
            piece.use = USE_ALLOCATOR;
        pagemap_present(at, piece.end, divide_page, &(struct dividing){parts, piece});
        at = piece.end;
    }
}

static void anonymous(const struct mapping *mapping, bool brk) {
    static struct parts parts;
    bool blocks = brk || ever_marked(mapping->begin, mapping->end);
    struct range first = piece_at(mapping->begin, mapping->end);
    if (!blocks && first.end == mapping->end && first.owner != UNATTRIBUTED && first.use != USE_ALLOCATOR) {
        add_to(&by_owner, mapping, first.owner, first.use == USE_STACK ? STACK : MAPPED, mapping->rss);
        return;
    }
    uint32_t looks = 0;
    do
        divide(mapping, brk, &parts);
    while (parts.bytes[MAPPED][UNATTRIBUTED] && look_again(++looks));
    add_parts(&by_owner, mapping, &parts);
}

// tmpfs has no device of its own; nor have some file systems of containers, whose files are page cache.
static bool in_memory(const struct mapping *mapping) {
    static const char *const places[] = {"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "/dev/hugepages/", "/run/"};
    if (mapping->major)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strncmp(mapping->path, places[i], strlen(places[i])))
            return true;
    return mapping->shared && !*mapping->path;
}

static void of_file(const struct mapping *mapping) {
    uint32_t object = object_of(mapping->begin);
    uint8_t owner =
        object ? owner_of_file(objects[object].component, object) : piece_at(mapping->begin, mapping->end).owner;
    uint64_t own = least(mapping->anonymous, mapping->rss);
    if (in_memory(mapping)) {
        add(mapping, owner, SHARED, mapping->rss);
        return;
    }
    // Code that differs from its file is what has been patched.
    add(mapping, mapping->protection & PROT_EXEC ? OWN : owner, MAPPED, own);
    add(mapping, owner, PAGE_CACHE, mapping->rss - own);
}

// By touch, a page is what it is and belongs to whom faulted.
struct touches {
    const struct mapping *mapping;
    struct range piece;
    struct parts parts;
};

static void touch_page(uint64_t page, uint64_t entry, void *context) {
    static uint64_t blocks[OWNERS];
    struct touches *touches = context;
    const struct mapping *mapping = touches->mapping;
    if (page >= touches->piece.end)
        touches->piece = piece_at(page, mapping->end);
    enum kind kind = MAPPED;
    // Not all know which of a file's pages are the process's own.
    bool has_file = mapping->inode || mapping->shared;
    if (has_file && entry >> PAGE_OF_FILE & 1)
        kind = in_memory(mapping) ? SHARED : PAGE_CACHE;
    else if (touches->piece.use == USE_STACK || !strcmp(mapping->path, "[stack]"))
        kind = STACK;
    else if (touches->piece.use == USE_ALLOCATOR || page_owners(page, blocks) || !strcmp(mapping->path, "[heap]"))
        kind = HEAP;
    bool patch = kind == MAPPED && mapping->protection & PROT_EXEC && mapping->inode;
    touches->parts.bytes[kind][patch ? OWN : toucher(page)] += PAGE;
}

static void add_touches(const struct mapping *mapping) {
    static struct touches touches;
    memset(&touches, 0, sizeof touches);
    touches.mapping = mapping;
    pagemap_present(mapping->begin, mapping->end, touch_page, &touches);
    add_parts(&by_touch, mapping, &touches.parts);
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static bool is_own(const struct mapping *mapping) {
    bool in_library = mapping->begin < (uint64_t)_end && mapping->end > (uint64_t)__ehdr_start;
    return in_library || arena_has(mapping->begin);
}

static void take(const struct mapping *mapping) {
    if (mapping->hugetlb) {
        uint8_t owner = piece_at(mapping->begin, mapping->end).owner;
        by_owner.now[owner][HUGETLB].rss += mapping->hugetlb;
        by_owner.now[owner][HUGETLB].pss += mapping->hugetlb;
        by_touch.now[toucher(mapping->begin)][HUGETLB].rss += mapping->hugetlb;
        by_touch.now[toucher(mapping->begin)][HUGETLB].pss += mapping->hugetlb;
    }
    if (!mapping->rss)
        return;
    if (is_own(mapping)) {
        add(mapping, OWN, MAPPED, mapping->rss);
        add_to(&by_touch, mapping, OWN, MAPPED, mapping->rss);
        return;
    }
    if (touching)
        add_touches(mapping);
    if (!strcmp(mapping->path, "[stack]"))
        add(mapping, owner_of(APPLICATION, 0), STACK, mapping->rss);
    else if (mapping->inode || mapping->shared)
        of_file(mapping);
    else if (mapping->path[0] == '[' && strcmp(mapping->path, "[heap]") && strncmp(mapping->path, "[anon", 5))
        add(mapping, owner_of(APPLICATION, 0), PAGE_CACHE, mapping->rss); // [vdso] and its kind
    else
        anonymous(mapping, !strcmp(mapping->path, "[heap]"));
}

// Each reason once.
static void tell_blind(int error) {
    static bool told[2];
    const bool is_full = error == -EMFILE;
    if (!told[is_full])
        log_note(is_full
                     ? "%s (%lu) has no file descriptor left (ulimit -n), and the library needs two to read /proc: "
                       "memory that changes meanwhile is not attributed"
                     : "%s (%lu) does not see itself in /proc (chroot, another PID namespace's /proc), and the library "
                       "with it: what its memory does from there is not told",
                 text_base(process.executable), process.pid);
    told[is_full] = true;
}

static bool measure(void) {
    look_ns = now_ns();
    touch_settle_all();
    ranges = vm_ranges(&range_count);
    memset(by_owner.now, 0, sizeof by_owner.now);
    memset(by_touch.now, 0, sizeof by_touch.now);
    bool opened = pagemap_open();
    int failed = smaps("/proc/thread-self/smaps", take);
    if (failed)
        tell_blind(failed);
    return pagemap_close() && opened && !failed;
}

static void tell(struct view *view, enum log_reason reason) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < OWNERS * KINDS; i++) {
        struct total *now = &view->now[i / KINDS][i % KINDS], *told = &view->told[i / KINDS][i % KINDS];
        now->rss >>= 10;
        now->pss >>= 10;
        changed += now->rss != told->rss || now->pss != told->pss;
    }
    if (!changed && reason == REASON_TIMER)
        return;
    owners_log();
    log_begin(view->entry);
    log_time();
    log_reason(reason);
    log_number(changed);
    for (uint32_t i = 0; i < OWNERS * KINDS; i++) {
        struct total now = view->now[i / KINDS][i % KINDS], *told = &view->told[i / KINDS][i % KINDS];
        if (now.rss == told->rss && now.pss == told->pss)
            continue;
        log_number(i / KINDS * LOG_KINDS + i % KINDS);
        log_number(now.rss);
        log_number(now.pss);
        *told = now;
    }
    log_end();
}

static void tell_growth(void) {
    uint64_t grown[COMPONENTS];
    const uint64_t all = memory_grown(grown);
    if (all < grown_told + GROWN)
        return;
    grown_told = all;
    log_begin(ENTRY_GROWN);
    log_time();
    log_number(component_count);
    for (uint32_t component = 0; component < component_count; component++) {
        log_number(component);
        log_number(grown[component]);
    }
    log_end();
}

// Of whoever has the lock. What vfork or clone made has no log of its own; what fork made has none at first, and what
// would be told then, the names of owners too, would be lost to the log that is opened.
static bool look(enum log_reason reason) {
    if (process.pid != sys(SYS_getpid) || !log_is_open() || leaving)
        return false;
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!began_ns)
        began_ns = now_ns();
    memory_looked();
    bool good = measure();
    if (good)
        tell(&by_owner, reason);
    grown_told = 0;
    if (good && touching)
        tell(&by_touch, reason);
    spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    return good;
}

static bool try_turn(void) {
    if (!lock_try(&reconcile_lock))
        return false;
    __atomic_store_n(&whose_turn, sys(SYS_gettid), __ATOMIC_RELAXED);
    return true;
}

static void end_turn(void) {
    __atomic_store_n(&whose_turn, 0, __ATOMIC_RELAXED);
    lock_release(&reconcile_lock);
}

// Another thread may be at it, for milliseconds, or for seconds where processors are few; this very one, if a handler
// of signals came between.
static bool take_turn(void) {
    const struct timespec a_while = {.tv_nsec = 100000};
    const uint32_t own = sys(SYS_gettid);
    for (int i = 0; !try_turn(); i++) {
        if (i == 100000 || __atomic_load_n(&whose_turn, __ATOMIC_RELAXED) == own)
            return false;
        sys(SYS_nanosleep, &a_while, NULL);
    }
    return true;
}

bool reconcile(enum log_reason reason) {
    if (!take_turn())
        return false;
    bool good = look(reason);
    end_turn();
    return good;
}

void reconcile_growth(void) {
    if (!try_turn())
        return;
    if (process.pid == sys(SYS_getpid) && log_is_open() && !leaving)
        tell_growth();
    end_turn();
}

enum begun reconcile_begin(bool (*open)(void)) {
    if (!take_turn())
        return BEGINS_LATER;
    enum begun begun = leaving ? BEGINS_LATER : open() ? HAS_BEGUN : NEVER_BEGINS;
    if (begun == HAS_BEGUN)
        look(REASON_FORK);
    end_turn();
    return begun;
}

static bool may_cost_more(void) {
    const uint64_t grace = 200000000;
    uint64_t age = began_ns ? now_ns() - began_ns : 0;
    return spent_ns <= grace + age / 50;
}

bool reconcile_at_a_peak(void) {
    if (!may_cost_more() || !try_turn())
        return false;
    bool good = look(REASON_SHRINK);
    end_turn();
    return good;
}

void reconcile_before_exec(void) {
    bool turn = take_turn();
    if (turn)
        look(REASON_EXEC);
    __atomic_store_n(&leaving, true, __ATOMIC_RELEASE);
    if (turn)
        end_turn();
}

void reconcile_exec_failed(void) {
    __atomic_store_n(&leaving, false, __ATOMIC_RELEASE);
}

void reconcile_before_fork(void) {
    if (may_cost_more())
        reconcile(REASON_SHARE);
}

uint64_t reconcile_spent_ns(void) {
    return spent_ns;
}

void mark_phase(const char *name) {
    reconcile(REASON_MARK);
    log_begin(ENTRY_MARK);
    log_time();
    log_string(name);
    log_end();
}

void reconcile_forget(void) {
    leaving = false;
    whose_turn = 0;
    spent_ns = began_ns = 0;
    memset(by_owner.told, 0, sizeof by_owner.told);
    memset(by_touch.told, 0, sizeof by_touch.told);
}

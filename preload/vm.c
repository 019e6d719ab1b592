#include "vm.h"

#include <pthread.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advise.h"
#include "arena.h"
#include "calls.h"
#include "detour.h"
#include "exec.h"
#include "heap.h"
#include "image.h"
#include "lock.h"
#include "main.h"
#include "objects.h"
#include "owners.h"
#include "patch.h"
#include "private.h"
#include "reconcile.h"
#include "serve.h"
#include "sys.h"
#include "touch.h"
#include "whose.h"

enum { CHANGES = 8192, RANGES = 1 << 20, TRIES = 100 };

// Threads append what they change without a lock. Whoever unmaps takes a turn before the kernel does it, and says what
// it was after: so two changes of one address stand in the order in which they were true, and nothing is nobody's while
// it is still there.
struct change {
    uint64_t turn;       // its index + 1, once it is said
    uint64_t begin, end; // what is gone
    struct range added;  // what is there instead; of no length: nothing
};

// Sorted by address.
struct list {
    struct range *ranges;
    uint32_t count;
};

static struct change changes[CHANGES];
static uint64_t turns, applied;
static struct list known, copy;
static uint64_t copied; // turns that had been taken
static bool copied_all; // and said
struct lock vm_lock;

uint32_t range_beyond(const struct range *ranges, uint32_t count, uint64_t address) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ranges[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void insert(struct list *list, uint32_t at, struct range range) {
    if (list->count == RANGES)
        return;
    memmove(list->ranges + at + 1, list->ranges + at, (list->count - at) * sizeof range);
    list->ranges[at] = range;
    list->count++;
}

static void cut(struct list *list, uint64_t begin, uint64_t end) {
    struct range *ranges = list->ranges;
    uint32_t at = range_beyond(ranges, list->count, begin);
    if (at < list->count && ranges[at].begin < begin) {
        struct range rest = ranges[at];
        ranges[at++].end = begin;
        if (rest.end > end) {
            rest.begin = end;
            insert(list, at, rest);
            return;
        }
    }
    uint32_t last = at;
    while (last < list->count && ranges[last].end <= end)
        last++;
    memmove(ranges + at, ranges + last, (list->count - last) * sizeof *ranges);
    list->count -= last - at;
    if (at < list->count && ranges[at].begin < end)
        ranges[at].begin = end;
}

static void add(struct list *list, struct range range) {
    cut(list, range.begin, range.end);
    uint32_t at = range_beyond(list->ranges, list->count, range.begin);
    struct range *before = at ? &list->ranges[at - 1] : NULL;
    if (before && before->end == range.begin && before->owner == range.owner && before->use == range.use)
        before->end = range.end;
    else
        insert(list, at, range);
}

// False: it has not been said yet.
static bool change_list(struct list *list, uint64_t turn) {
    const struct change *change = &changes[turn % CHANGES];
    if (__atomic_load_n(&change->turn, __ATOMIC_ACQUIRE) != turn + 1)
        return false;
    if (change->end > change->begin)
        cut(list, change->begin, change->end);
    if (change->added.end > change->added.begin)
        add(list, change->added);
    return true;
}

// With the lock held.
static void apply(void) {
    if (!known.ranges && !(known.ranges = arena_pages(RANGES * sizeof *known.ranges)))
        return;
    while (change_list(&known, applied))
        applied++;
}

void vm_forked(void) {
    for (apply(); applied < turns; apply())
        applied++;
}

const struct range *vm_ranges(uint32_t *count) {
    if (!copy.ranges)
        copy.ranges = arena_pages(RANGES * sizeof *copy.ranges);
    lock_take(&vm_lock);
    apply();
    copy.count = copy.ranges ? known.count : 0;
    memcpy(copy.ranges, known.ranges, copy.count * sizeof *copy.ranges);
    // To unmap much takes the kernel long, and what others have said meanwhile is true already.
    copied = copy.count ? __atomic_load_n(&turns, __ATOMIC_ACQUIRE) : 0;
    copied_all = true;
    for (uint64_t turn = applied; turn < copied; turn++)
        copied_all &= change_list(&copy, turn);
    lock_release(&vm_lock);
    *count = copy.count;
    return copy.ranges;
}

bool vm_ranges_hold(void) {
    return copied_all && copied == __atomic_load_n(&turns, __ATOMIC_ACQUIRE);
}

static uint64_t take_turn(void) {
    uint64_t turn = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    // A thread that was stopped at its turn holds up all; better to lose a change than to hang.
    for (int i = 0; i < TRIES && turn - __atomic_load_n(&applied, __ATOMIC_ACQUIRE) >= CHANGES; i++) {
        if (lock_soon(&vm_lock)) {
            apply();
            lock_release(&vm_lock);
        }
    }
    return turn;
}

static void say(uint64_t turn, struct range gone, struct range added) {
    struct change *change = &changes[turn % CHANGES];
    change->begin = gone.begin;
    change->end = gone.end;
    change->added = added;
    __atomic_store_n(&change->turn, turn + 1, __ATOMIC_RELEASE);
}

static const struct range nothing;

void vm_known(uint64_t begin, uint64_t end, uint8_t owner, enum use use) {
    say(take_turn(), nothing, (struct range){begin, end, owner, use});
}

// Of whom: of the component whose code asks, by way of the object that called.
static uint8_t owner_now(void *caller, void *stack) {
    struct whose by = whose(&self, (uint64_t)caller, (uint64_t)stack);
    return owner_of(by.component, by.object);
}

// Whether it counts as memory in use: the allocator's is counted block by block, and address space is not memory.
static bool counts(struct range range) {
    return range.owner && range.use == USE_MAPPED;
}

static void count_obtained(struct range range) {
    if (!counts(range))
        return;
    live_add(owner_component[range.owner], range.end - range.begin);
    if (self.inside && self.inside == owner_component[range.owner])
        calls_obtained(&self, range.end - range.begin);
}

static void count_given_back(struct range range) {
    if (!counts(range))
        return;
    live_add(owner_component[range.owner], -(int64_t)(range.end - range.begin));
    if (self.inside)
        calls_gave(&self, range.end - range.begin);
}

static void obtained(struct range range) {
    say(take_turn(), nothing, range);
    count_obtained(range);
}

// The range that holds an address; nobody's when a handler of signals has come in between.
static struct range range_around(uint64_t address) {
    struct range found = {0};
    if (!lock_soon(&vm_lock))
        return found;
    apply();
    uint32_t at = known.ranges ? range_beyond(known.ranges, known.count, address) : 0;
    if (at < known.count && known.ranges[at].begin <= address)
        found = known.ranges[at];
    lock_release(&vm_lock);
    return found;
}

// What is about to be given back; `turn` is to be said afterwards.
struct giving {
    uint64_t turn;
    struct range range;
};

static struct giving gives_back(const void *begin, size_t bytes) {
    struct giving giving = {take_turn(), range_around((uint64_t)begin)};
    giving.range.begin = (uint64_t)begin;
    giving.range.end = giving.range.begin + up(bytes, PAGE);
    return giving;
}

#define CALLER __builtin_return_address(0)
#define STACK __builtin_frame_address(0)

void *(*next_mmap)(void *, size_t, int, int, int, off_t);
int (*next_munmap)(void *, size_t);
void *(*next_mremap)(void *, size_t, size_t, int, ...);
int (*next_mprotect)(void *, size_t, int);
int (*next_madvise)(void *, size_t, int);
int (*next_brk)(void *);
void *(*next_sbrk)(intptr_t);
static void *(*next_shmat)(int, const void *, int);
static int (*next_shmdt)(const void *);
static int (*next_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static __thread bool makes_thread __attribute__((tls_model("initial-exec")));

// Who gives: the pool's part of the runtime, or the kernel, advised or not.
#define GIVEN(call, ...)                                                                                               \
    (serving ? serve_##call(__VA_ARGS__) : advising ? advise_##call(__VA_ARGS__) : next_##call(__VA_ARGS__))

static void *on_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (!attributing)
        return GIVEN(mmap, at, bytes, protection, flags, file, offset);
    uint32_t caller = coder((uint64_t)CALLER);
    if (flags & MAP_FIXED)
        before_shrinking();
    void *memory = GIVEN(mmap, at, bytes, protection, flags, file, offset);
    if (memory == MAP_FAILED)
        return memory;
    enum use use = USE_MAPPED;
    if (makes_thread)
        use = USE_STACK;
    else if (caller && caller == allocator_object() && flags & MAP_ANONYMOUS)
        use = USE_ALLOCATOR;
    else if (protection == PROT_NONE || flags & MAP_NORESERVE)
        use = USE_RESERVED;
    uint64_t begin = (uint64_t)memory;
    obtained((struct range){begin, begin + up(bytes, PAGE), owner_now(CALLER, STACK), use});
    return memory;
}

static int on_munmap(void *memory, size_t bytes) {
    if (!attributing)
        return GIVEN(munmap, memory, bytes);
    before_shrinking();
    struct giving giving = gives_back(memory, bytes);
    int failed = GIVEN(munmap, memory, bytes);
    say(giving.turn, failed ? nothing : giving.range, nothing);
    if (!failed) {
        touch_clear(giving.range.begin, giving.range.end);
        count_given_back(giving.range);
    }
    return failed;
}

static void *on_mremap(void *memory, size_t before, size_t bytes, int flags, void *to) {
    if (!attributing)
        return GIVEN(mremap, memory, before, bytes, flags, to);
    if (bytes < before)
        before_shrinking();
    struct giving giving = gives_back(memory, before);
    struct range *old = &giving.range;
    void *moved = GIVEN(mremap, memory, before, bytes, flags, to);
    if (moved == MAP_FAILED) {
        say(giving.turn, nothing, nothing);
        return moved;
    }
    uint8_t owner = bytes > before || !old->owner ? owner_now(CALLER, STACK) : old->owner;
    struct range range = {(uint64_t)moved, (uint64_t)moved + up(bytes, PAGE), owner, old->use};
    say(giving.turn, *old, range);
    touch_move(old->begin, range.begin, least(before, bytes));
    touch_clear(old->begin + bytes, old->end);
    count_given_back(*old);
    count_obtained(range);
    return moved;
}

static bool holds_an_entry(uint64_t begin, uint64_t end);

// A thread's stack is made by mmap of addresses alone; here it becomes memory. And who has patched libc after us (Open
// MPI and UCX do, and then call the kernel themselves) closes its code again by this: ours is to be the first again.
static int on_mprotect(void *memory, size_t bytes, int protection) {
    int failed = serving ? serve_mprotect(memory, bytes, protection) : next_mprotect(memory, bytes, protection);
    if (protection == (PROT_READ | PROT_EXEC) && holds_an_entry((uint64_t)memory, (uint64_t)memory + bytes))
        vm_patch();
    if (serving && makes_thread && !failed && protection & PROT_WRITE)
        image_thread_stack((uint64_t)memory, (uint64_t)memory + bytes);
    return failed;
}

static int on_madvise(void *memory, size_t bytes, int advice) {
    if (!attributing)
        return GIVEN(madvise, memory, bytes, advice);
    bool gives = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
    if (gives)
        before_shrinking();
    int failed = GIVEN(madvise, memory, bytes, advice);
    if (gives && !failed)
        touch_clear((uint64_t)memory, (uint64_t)memory + bytes);
    return failed;
}

static __thread bool in_sbrk __attribute__((tls_model("initial-exec"))); // which calls brk

// What the allocator obtains so is the allocator's; what the program does for itself (an allocator of its own) is its
// own.
static void break_moved(uint64_t before, uint64_t now, void *caller, void *stack) {
    if (now < before) {
        touch_clear(now, before);
        say(take_turn(), (struct range){.begin = now, .end = before}, nothing);
    } else if (!in_sbrk && coder((uint64_t)caller) != allocator_object()) {
        obtained((struct range){up(before, PAGE), up(now, PAGE), owner_now(caller, stack), USE_BREAK});
    }
}

static int on_brk(void *end) {
    if (!attributing)
        return GIVEN(brk, end);
    // The kernel's own answer: libc's variable may not be set yet.
    long before = serving ? (long)serve_sbrk(0) : sys(SYS_brk, 0);
    if ((long)end < before)
        before_shrinking();
    int failed = GIVEN(brk, end);
    if (!failed)
        break_moved(before, (uint64_t)end, CALLER, STACK);
    return failed;
}

// As UCX's does not, which moves the kernel's own end.
static void *on_sbrk(intptr_t more) {
    if (!attributing)
        return serving ? serve_sbrk(more) : next_sbrk(more);
    if (more < 0)
        before_shrinking();
    in_sbrk = true;
    char *before = serving ? serve_sbrk(more) : next_sbrk(more);
    in_sbrk = false;
    if (before != (void *)-1 && more)
        break_moved((uint64_t)before, (uint64_t)before + more, CALLER, STACK);
    return before;
}

static void *on_shmat(int segment, const void *at, int flags) {
    void *memory = next_shmat(segment, at, flags);
    struct shmid_ds status;
    if (memory != (void *)-1 && !sys_failed(sys(SYS_shmctl, segment, IPC_STAT, &status)))
        obtained((struct range){(uint64_t)memory, (uint64_t)memory + up(status.shm_segsz, PAGE),
                                owner_now(CALLER, STACK), USE_MAPPED});
    return memory;
}

static int on_shmdt(const void *memory) {
    before_shrinking();
    // How long it is, nobody says.
    struct range range = range_around((uint64_t)memory);
    bool known = range.owner && range.begin == (uint64_t)memory;
    struct giving giving = gives_back(memory, known ? range.end - range.begin : 0);
    int failed = next_shmdt(memory);
    say(giving.turn, failed ? nothing : giving.range, nothing);
    if (!failed)
        count_given_back(giving.range);
    return failed;
}

// A thread that a component starts is the component's.
struct start {
    void *(*routine)(void *);
    void *argument;
    uint32_t component;
    struct start *next_free;
};

static struct start *free_starts;
struct lock starts_lock;

static void *run(void *given) {
    struct start start = *(struct start *)given;
    lock_take(&starts_lock);
    ((struct start *)given)->next_free = free_starts;
    free_starts = given;
    lock_release(&starts_lock);
    self.inside = start.component;
    self.frame = UINT64_MAX;
    touch_thread();
    struct range range = range_around((uint64_t)STACK);
    // A stack that another thread has left may have been another component's.
    if (range.owner && range.use == USE_STACK && owner_component[range.owner] != start.component)
        vm_known(range.begin, range.end, owner_of(start.component, 0), USE_STACK);
    return start.routine(start.argument);
}

static int on_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                             void *argument) {
    if (!attributing) {
        makes_thread = true;
        int error = next_pthread_create(thread, attributes, routine, argument);
        makes_thread = false;
        return error;
    }
    lock_take(&starts_lock);
    struct start *start = free_starts;
    if (start)
        free_starts = start->next_free;
    lock_release(&starts_lock);
    if (!start && !(start = arena(sizeof *start)))
        return next_pthread_create(thread, attributes, routine, argument);
    *start = (struct start){routine, argument, whose(&self, (uint64_t)CALLER, (uint64_t)STACK).component, NULL};
    makes_thread = true;
    int error = next_pthread_create(thread, attributes, run, start);
    makes_thread = false;
    return error;
}

static struct detour detours[] = {
    {"mmap", on_mmap, (void **)&next_mmap, NULL, FIRST},
    {"munmap", on_munmap, (void **)&next_munmap, NULL, FIRST},
    {"mremap", on_mremap, (void **)&next_mremap, NULL, FIRST},
    {"madvise", on_madvise, (void **)&next_madvise, NULL, FIRST},
    {"brk", on_brk, (void **)&next_brk, NULL, FIRST},
    {"pthread_create", on_pthread_create, (void **)&next_pthread_create, NULL, FIRST},
    // Of attribution, and of advice. To glibc it is _exit; musl has its exit and _exit call it.
    {"_Exit", on_exit_now, (void **)&next_exit_now, NULL, FIRST},
    {"execve", on_execve, (void **)&next_execve, NULL, FIRST},
    {"execve", on_libc_execve, (void **)&next_libc_execve, NULL, LIBC_BEHIND},
    {"fexecve", on_fexecve, (void **)&next_fexecve, NULL, FIRST},
    {"execveat", on_execveat, (void **)&next_execveat, NULL, FIRST_IF_ANY},
    // Of attribution alone.
    {"shmat", on_shmat, (void **)&next_shmat, NULL, FIRST},
    {"shmdt", on_shmdt, (void **)&next_shmdt, NULL, FIRST},
    {"sbrk", on_sbrk, (void **)&next_sbrk, NULL, FIRST},
    // Not sbrk: of provisioning alone.
    {"mprotect", on_mprotect, (void **)&next_mprotect, NULL, FIRST},
    {"_Fork", private_fork, (void **)&next_fork, NULL, FIRST},
};
enum {
    ENDS = 6,
    EXECS = 7,
    FOR_ATTRIBUTION = 11,
    FOR_PROVISIONING = 13,
    MPROTECT = 14,
    FORK = 15,
    DETOURS = sizeof detours / sizeof *detours
};

static bool holds_an_entry(uint64_t begin, uint64_t end) {
    for (size_t i = 0; i < DETOURS; i++)
        if ((uint64_t)detours[i].entry >= begin && (uint64_t)detours[i].entry < end)
            return true;
    return false;
}

void vm_detour(void) {
    detours_patch(detours, ENDS);
    if (attributing || !provisioning)
        detours_patch(detours + ENDS, FOR_ATTRIBUTION - ENDS);
    else if (runtime_in_memory()) // of which programs of other users see nothing
        detours_patch(detours + EXECS, FOR_ATTRIBUTION - EXECS);
    if (attributing)
        detours_patch(detours + FOR_ATTRIBUTION, MPROTECT - FOR_ATTRIBUTION);
    if (!provisioning)
        return;
    // Before glibc 2.34 fork is one function.
    if (!next_symbol("_Fork"))
        detours[FORK].name = "fork";
    detours_patch(detours + FOR_PROVISIONING, DETOURS - FOR_PROVISIONING);
}

void vm_patch(void) {
    patch_begin();
    vm_detour();
    patch_done();
}

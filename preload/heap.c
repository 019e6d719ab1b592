#include "heap.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "objects.h"
#include "owners.h"
#include "patch.h"
#include "process.h"
#include "reconcile.h"
#include "shadow.h"
#include "text.h"
#include "whose.h"

#define EXPORTED __attribute__((visibility("default")))

enum { SOON = 256 << 10, LARGE = 1 << 20 };

struct functions {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable)(void *);
};

static struct functions next;

static uint32_t allocator;    // the object that malloc is in
static uint32_t new_object;   // the C++ library, which asks for others
static bool operators_tried;  // its operators have been looked for
static bool allocator_is_new; // operator new is the allocator's own, and calls no malloc

int64_t live[COMPONENTS];
static bool off;
static int64_t most[COMPONENTS]; // `live` when all was last looked at and it was the most

enum { HEAD_FLAGS = 7, HEAD_MAPPED = 2 };

static inline uint64_t head_of(void *block) {
    return ((uint64_t *)block)[-1];
}

static inline uint64_t size_before(void *block) {
    uint64_t head = head_of(block);
    return (head & ~(uint64_t)HEAD_FLAGS) - (head & HEAD_MAPPED ? 16 : 8);
}

// glibc keeps a block's size before it; asking it is two calls for each block. Tried before it is believed, but not
// with blocks that it maps: to give one back raises the size from which it maps, and the program's heap would be
// another.
static bool sizes_are_before;

// By the object that asks outside of all components: the owner. 0: not seen yet, or it is to be looked at more closely.
static uint8_t quick_owners[OBJECTS + 1];

// Only glibc's blocks have their size in front of them. Other allocators export glibc's names too (__libc_malloc), and
// what lies before their blocks may not be mapped: the object is asked for what glibc alone defines.
static bool all_is_glibc(void);

static void try_sizes(void) {
    if (!all_is_glibc())
        return;
    const size_t sizes[] = {1, 24, 25, 1000, 100000};
    bool agree = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = next.malloc(sizes[i]);
        agree = agree && block && next.usable(block) == size_before(block);
        next.free(block);
    }
    sizes_are_before = agree;
}

static __attribute__((noinline)) uint64_t usable_asked(void *block) {
    self.asking = true;
    uint64_t bytes = next.usable(block);
    self.asking = false;
    return bytes;
}

static inline uint64_t usable(void *block) {
    return likely(sizes_are_before) ? size_before(block) : usable_asked(block);
}

static void find(void);

static void find_operators(void);

void heap_off(void) {
    off = true;
    sizes_are_before = false; // nothing is done quickly
    memset(quick_owners, 0, sizeof quick_owners);
}

void heap_objects_changed(void) {
    memset(quick_owners, 0, sizeof quick_owners);
}

uint32_t allocator_object(void) {
    return allocator;
}

void live_add(uint32_t component, int64_t bytes) {
    __atomic_fetch_add(&live[component], bytes, __ATOMIC_RELAXED);
}

void before_shrinking(void) {
    bool new_most = false;
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        int64_t now = __atomic_load_n(&live[i], __ATOMIC_RELAXED);
        new_most |= now > most[i] + most[i] / 100 + LARGE;
    }
    if (!new_most || !reconcile_at_a_peak())
        return;
    for (uint32_t i = 0; i < COMPONENTS; i++)
        if (live[i] > most[i])
            most[i] = live[i];
}

static __attribute__((noinline)) void settle(struct thread *thread, uint32_t component) {
    int64_t bytes = thread->net[component];
    if (bytes < 0)
        before_shrinking();
    live_add(component, bytes);
    thread->net[component] = 0;
}

static inline void count(struct thread *thread, uint32_t component, int64_t bytes) {
    int64_t net = thread->net[component] += bytes;
    if (unlikely((uint64_t)(net + SOON) > 2 * SOON))
        settle(thread, component);
}

// A block belongs to the component whose call the thread is in, by way of the object that asked.
static __attribute__((noinline)) void obtained(void *block, void *caller, void *stack) {
    struct thread *thread = &self;
    if (unlikely(off || thread->asking))
        return;
    uint64_t bytes = usable(block);
    // The C++ library may ask for itself, or by an operator that was not called through ours (RTLD_DEEPBIND).
    bool in_cpp = coder((uint64_t)caller) == new_object, by_operator = in_cpp && thread->caller;
    struct whose by = whose(thread, by_operator ? thread->caller : (uint64_t)caller, (uint64_t)stack);
    uint32_t component = by.component, object = by.object;
    if (by_operator)
        thread->caller = 0;
    if (sizes_are_before && !in_cpp && !thread->inside && asks_for_itself(object))
        quick_owners[object] = owner_of(component, object);
    // One function of the allocator has called another, which was seen, too.
    uint8_t noted = sizes_are_before ? 0 : marked((uint64_t)block);
    if (unlikely(noted))
        count(thread, owner_component[noted], -(int64_t)bytes);
    mark((uint64_t)block, bytes, owner_of(component, object));
    count(thread, component, bytes);
    if (component && component == thread->inside && !noted)
        calls_obtained(thread, bytes);
}

struct given {
    uint64_t bytes;
    uint8_t owner; // 0: it was never marked, being older than the runtime
};

// Before the block is given back: afterwards it may be another thread's.
static __attribute__((noinline)) struct given given_back(void *block) {
    struct given given = {0};
    struct thread *thread = &self;
    if (unlikely(off || thread->asking))
        return given;
    given.owner = marked((uint64_t)block);
    if (unlikely(!given.owner))
        return given;
    given.bytes = usable(block);
    if (unlikely(given.bytes >= LARGE))
        before_shrinking();
    mark((uint64_t)block, given.bytes, 0);
    count(thread, owner_component[given.owner], -(int64_t)given.bytes);
    if (thread->inside)
        calls_gave(thread, given.bytes);
    return given;
}

// The common case of both: the application's own block, of one region.
struct noted {
    struct region *region;
    uint64_t begin, bytes;
};

static inline __attribute__((always_inline)) bool note(struct noted *noted, void *block, uint32_t component,
                                                       int64_t sign) {
    uint64_t begin = (uint64_t)block, head = head_of(block), bytes = (head & ~(uint64_t)HEAD_FLAGS) - 8;
    struct region *region = region_of(begin);
    int64_t net = self.net[component] + sign * (int64_t)bytes;
    if (unlikely(!region || head & HEAD_MAPPED || (uint64_t)(net + SOON) > 2 * SOON))
        return false;
    self.net[component] = net;
    *noted = (struct noted){region, begin, bytes};
    return true;
}

// Of what lies in several pages.
static inline void mark_noted(void *block, struct region *region, uint64_t bytes, uint8_t owner) {
    uint64_t begin = in_region((uint64_t)block), end = begin + bytes;
    if (likely(bytes < PAGE && end <= 1UL << REGION_SHIFT))
        mark_across(region, begin, bytes, owner);
    else if (likely(end <= 1UL << REGION_SHIFT))
        mark_within(region, begin, end, owner);
    else
        mark_pages((uint64_t)block, bytes, owner);
}

// What is called here is called last, so that nothing has to be kept on the stack for it: half of what all this costs.
static __attribute__((noinline)) void *kept_in_pages(void *block, struct region *region, uint64_t bytes,
                                                     uint8_t owner) {
    mark_noted(block, region, bytes, owner);
    return block;
}

static inline __attribute__((always_inline)) void *kept_noted(void *block, struct noted noted, uint8_t owner) {
    if (unlikely(!is_part(noted.begin, noted.bytes)))
        return kept_in_pages(block, noted.region, noted.bytes, owner);
    mark_in(noted.region, noted.begin, noted.bytes, owner);
    return block;
}

static __attribute__((noinline)) void *kept_slowly(void *block, void *caller, void *stack) {
    if (block)
        obtained(block, caller, stack);
    return block;
}

// Inside a component's call, and outside.
static __attribute__((noinline)) void *kept_inside(void *block, void *caller, void *stack) {
    uint32_t component = self.inside, object = coder((uint64_t)caller);
    uint8_t owner = owner_ids[component][object];
    struct noted noted;
    if (unlikely(!block || !owner || objects[object].component != component || !sizes_are_before ||
                 (uint64_t)stack >= self.frame || !note(&noted, block, component, 1)))
        return kept_slowly(block, caller, stack);
    calls_obtained(&self, noted.bytes);
    return kept_noted(block, noted, owner);
}

static __attribute__((noinline)) void *kept_outside(void *block, void *caller, void *stack) {
    uint8_t owner = quick_owners[coder((uint64_t)caller)];
    struct noted noted;
    if (unlikely(!block || !owner || !note(&noted, block, owner_component[owner], 1)))
        return kept_slowly(block, caller, stack);
    return kept_noted(block, noted, owner);
}

// A block, once it is noted; NULL is none.
static inline void *kept(void *block, void *caller, void *stack) {
    return unlikely(self.inside) ? kept_inside(block, caller, stack) : kept_outside(block, caller, stack);
}

#define CALLER __builtin_return_address(0)
#define STACK __builtin_dwarf_cfa() // without a frame pointer

static inline void ready(void) {
    if (unlikely(!next.malloc))
        find();
}

static void *on_malloc(size_t bytes) {
    ready();
    void *block = next.malloc(bytes);
    return kept(block, CALLER, STACK);
}

static void *on_calloc(size_t count, size_t bytes) {
    ready();
    return kept(next.calloc(count, bytes), CALLER, STACK);
}

static __attribute__((noinline)) void free_in_pages(void *block, struct region *region, uint64_t bytes) {
    mark_noted(block, region, bytes, 0);
    next.free(block);
}

static inline __attribute__((always_inline)) void free_noted(void *block, struct noted noted) {
    if (unlikely(!is_part(noted.begin, noted.bytes))) {
        free_in_pages(block, noted.region, noted.bytes);
    } else {
        mark_in(noted.region, noted.begin, noted.bytes, 0);
        next.free(block);
    }
}

static __attribute__((noinline)) void free_slowly(void *block) {
    ready();
    given_back(block);
    next.free(block);
}

static __attribute__((noinline)) void free_inside(void *block) {
    struct noted noted;
    uint8_t owner = marked((uint64_t)block);
    if (unlikely(!owner || !sizes_are_before || !note(&noted, block, owner_component[owner], -1))) {
        free_slowly(block);
        return;
    }
    calls_gave(&self, noted.bytes);
    free_noted(block, noted);
}

static void on_free(void *block) {
    if (unlikely(!block))
        return;
    if (unlikely(self.inside)) {
        free_inside(block);
        return;
    }
    struct noted noted;
    uint8_t owner = marked((uint64_t)block);
    if (unlikely(!owner || !sizes_are_before || !note(&noted, block, owner_component[owner], -1))) {
        free_slowly(block);
        return;
    }
    free_noted(block, noted);
}

static void *on_realloc(void *block, size_t bytes) {
    ready();
    struct given given = block ? given_back(block) : (struct given){0};
    void *moved = next.realloc(block, bytes);
    if (unlikely(!moved && given.owner && bytes)) {
        mark((uint64_t)block, given.bytes, given.owner);
        count(&self, owner_component[given.owner], given.bytes);
    }
    return kept(moved, CALLER, STACK);
}

static void *on_memalign(size_t alignment, size_t bytes) {
    ready();
    return kept(next.memalign(alignment, bytes), CALLER, STACK);
}

static void *on_aligned_alloc(size_t alignment, size_t bytes) {
    ready();
    return kept(next.aligned_alloc(alignment, bytes), CALLER, STACK);
}

static int on_posix_memalign(void **block, size_t alignment, size_t bytes) {
    ready();
    int error = next.posix_memalign(block, alignment, bytes);
    if (likely(!error))
        kept(*block, CALLER, STACK);
    return error;
}

static void *on_valloc(size_t bytes) {
    ready();
    return kept(next.valloc(bytes), CALLER, STACK);
}

static void *on_pvalloc(size_t bytes) {
    ready();
    return kept(next.pvalloc(bytes), CALLER, STACK);
}

// The operators of C++. All they are given is in three registers, whatever it is: sizes, alignments, std::nothrow.
#define NEWS(each)                                                                                                     \
    each(_Znwm) each(_Znam) each(_ZnwmRKSt9nothrow_t) each(_ZnamRKSt9nothrow_t) each(_ZnwmSt11align_val_t)             \
        each(_ZnamSt11align_val_t) each(_ZnwmSt11align_val_tRKSt9nothrow_t) each(_ZnamSt11align_val_tRKSt9nothrow_t)
#define DELETES(each)                                                                                                  \
    each(_ZdlPv) each(_ZdaPv) each(_ZdlPvm) each(_ZdaPvm) each(_ZdlPvRKSt9nothrow_t) each(_ZdaPvRKSt9nothrow_t)        \
        each(_ZdlPvSt11align_val_t) each(_ZdaPvSt11align_val_t) each(_ZdlPvmSt11align_val_t)                           \
            each(_ZdaPvmSt11align_val_t) each(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                     \
                each(_ZdaPvSt11align_val_tRKSt9nothrow_t)

typedef void *new_function(size_t, size_t, const void *);
typedef void delete_function(void *, size_t, size_t);

// Who called operator new is who asks. The C++ library's own calls malloc, which notes the block; an allocator's does
// not.
#define NEW(name)                                                                                                      \
    static new_function *next_##name;                                                                                  \
    static void *on_##name(size_t bytes, size_t alignment, const void *nothrow) {                                      \
        if (unlikely(!next_##name))                                                                                    \
            find_operators();                                                                                          \
        if (unlikely(allocator_is_new))                                                                                \
            return kept_slowly(next_##name(bytes, alignment, nothrow), CALLER, STACK);                                 \
        self.caller = (uint64_t)CALLER;                                                                                \
        return next_##name(bytes, alignment, nothrow);                                                                 \
    }                                                                                                                  \
    EXPORTED void *name(size_t, size_t, const void *) __attribute__((alias("on_" #name)));
NEWS(NEW)

#define DELETE(name)                                                                                                   \
    static delete_function *next_##name;                                                                               \
    static void on_##name(void *block, size_t bytes, size_t alignment) {                                               \
        if (unlikely(!next_##name))                                                                                    \
            find_operators();                                                                                          \
        if (unlikely(allocator_is_new && block))                                                                       \
            given_back(block);                                                                                         \
        next_##name(block, bytes, alignment);                                                                          \
    }                                                                                                                  \
    EXPORTED void name(void *, size_t, size_t) __attribute__((alias("on_" #name)));
DELETES(DELETE)

// The names are the program's to replace; so the runtime itself never uses them.
#define EXPORT(name) EXPORTED __typeof__(name) name __attribute__((alias("on_" #name)))
EXPORT(malloc);
EXPORT(calloc);
EXPORT(free);
EXPORT(realloc);
EXPORT(memalign);
EXPORT(aligned_alloc);
EXPORT(posix_memalign);
EXPORT(valloc);
EXPORT(pvalloc);

static const struct kin {
    const char *name;
    void **next;
    void *ours;
} kin[] = {
    {"malloc", (void **)&next.malloc, on_malloc},
    {"free", (void **)&next.free, on_free},
    {"calloc", (void **)&next.calloc, on_calloc},
    {"realloc", (void **)&next.realloc, on_realloc},
    {"memalign", (void **)&next.memalign, on_memalign},
    {"aligned_alloc", (void **)&next.aligned_alloc, on_aligned_alloc},
    {"posix_memalign", (void **)&next.posix_memalign, on_posix_memalign},
    {"valloc", (void **)&next.valloc, on_valloc},
    {"pvalloc", (void **)&next.pvalloc, on_pvalloc},
};
#define OPERATOR(name) {#name, (void **)&next_##name, on_##name},
static const struct kin operators[] = {NEWS(OPERATOR) DELETES(OPERATOR)};
enum { KIN = sizeof kin / sizeof *kin, OPERATORS = sizeof operators / sizeof *operators };

static bool all_is_glibc(void) {
    const struct link_map *libc = next_definer("malloc_usable_size");
    bool all = libc && object_symbol(libc, "gnu_get_libc_version");
    for (uint32_t i = 0; all && i < KIN; i++)
        all = next_definer(kin[i].name) == libc;
    return all;
}

// An operator that nothing defines is nobody's to call.
static void find_operators(void) {
    for (uint32_t i = 0; i < OPERATORS; i++)
        if (!*operators[i].next)
            *operators[i].next = next_symbol(operators[i].name);
    const struct link_map *definer = next_definer("_Znwm");
    if (!definer || operators_tried)
        return;
    operators_tried = true;
    allocator_is_new = definer == next_definer("malloc");
    if (allocator_is_new)
        return;
    new_object = object_of((uint64_t)next_symbol("_Znwm"));
    quick_owners[new_object] = 0; // it may have asked for itself before: the first exception, what it begins with
}

static void find(void) {
    // It calls malloc before it can be asked about a block; and only the allocator itself knows the size of its own.
    bool instrumented = process_is_instrumented();
    if (instrumented || next_definer("malloc_usable_size") != next_definer("malloc"))
        heap_off();
    next.usable = next_symbol("malloc_usable_size");
    for (uint32_t i = KIN; i-- > 0;)
        *kin[i].next = next_symbol(kin[i].name);
    if (!instrumented)
        try_sizes();
}

void heap_leave(void) {
    heap_off();
    find();
    find_operators();
    void *unused;
    patch_begin();
    for (uint32_t i = 0; i < KIN; i++)
        if (*kin[i].next)
            patch(kin[i].ours, *kin[i].next, &unused);
    for (uint32_t i = 0; i < OPERATORS; i++)
        if (*operators[i].next)
            patch(operators[i].ours, *operators[i].next, &unused);
    patch_done();
}

// An object that defines malloc and is searched before the runtime is: the executable, or what was preloaded in front.
// Its own comes before ours, whoever calls; NULL: none.
static const struct link_map *allocator_in_front(void) {
    const struct link_map *own = runtime_map(), *map = loader()->r_map;
    for (; map && map != own; map = map->l_next)
        if (object_symbol(map, "malloc"))
            return map;
    return NULL;
}

// What another name of the same code goes on to; NULL: none is patched.
static void *patched_by_another_name(const struct link_map *map, const void *entry) {
    for (uint32_t i = 0; i < KIN + OPERATORS; i++) {
        const struct kin *other = i < KIN ? &kin[i] : &operators[i - KIN];
        if (object_symbol(map, other->name) == entry && *other->next != entry)
            return *other->next;
    }
    return NULL;
}

static const char *patch_all(const struct link_map *map, const struct kin *all, uint32_t count) {
    const char *why = NULL;
    for (uint32_t i = 0; i < count && !why; i++) {
        void *entry = object_symbol(map, all[i].name);
        void *known = entry && patched(entry) ? patched_by_another_name(map, entry) : NULL;
        if (known)
            *all[i].next = known;
        else if (entry)
            why = patch(entry, all[i].ours, all[i].next);
    }
    return why;
}

// What a library opened with RTLD_DEEPBIND calls by these names is libc's own function, whatever comes before it. Our
// own calls of libc's pass through.
static struct functions deep;

static uint32_t own_object;

#define IS_OWN (coder((uint64_t)CALLER) == own_object)

static void *deep_malloc(size_t bytes) {
    void *block = deep.malloc(bytes);
    return IS_OWN ? block : kept(block, CALLER, STACK);
}

static void *deep_calloc(size_t count, size_t bytes) {
    void *block = deep.calloc(count, bytes);
    return IS_OWN ? block : kept(block, CALLER, STACK);
}

static void *deep_memalign(size_t alignment, size_t bytes) {
    void *block = deep.memalign(alignment, bytes);
    return IS_OWN ? block : kept(block, CALLER, STACK);
}

static void *deep_aligned_alloc(size_t alignment, size_t bytes) {
    void *block = deep.aligned_alloc(alignment, bytes);
    return IS_OWN ? block : kept(block, CALLER, STACK);
}

static int deep_posix_memalign(void **block, size_t alignment, size_t bytes) {
    int error = deep.posix_memalign(block, alignment, bytes);
    if (!error && !IS_OWN)
        kept(*block, CALLER, STACK);
    return error;
}

static void deep_free(void *block) {
    if (block && !IS_OWN)
        given_back(block);
    deep.free(block);
}

static void *deep_realloc(void *block, size_t bytes) {
    if (IS_OWN)
        return deep.realloc(block, bytes);
    struct given given = block ? given_back(block) : (struct given){0};
    void *moved = deep.realloc(block, bytes);
    if (!moved && given.owner && bytes) {
        mark((uint64_t)block, given.bytes, given.owner);
        count(&self, owner_component[given.owner], given.bytes);
    }
    return kept(moved, CALLER, STACK);
}

static const struct kin deep_kin[] = {
    {"malloc", (void **)&deep.malloc, deep_malloc},
    {"free", (void **)&deep.free, deep_free},
    {"calloc", (void **)&deep.calloc, deep_calloc},
    {"realloc", (void **)&deep.realloc, deep_realloc},
    {"memalign", (void **)&deep.memalign, deep_memalign},
    {"aligned_alloc", (void **)&deep.aligned_alloc, deep_aligned_alloc},
    {"posix_memalign", (void **)&deep.posix_memalign, deep_posix_memalign},
};

// Whether blocks are obtained that are not seen: what lies in the allocator's memory unmarked may be in use.
static bool some_unseen;

// Once; where another allocator comes before libc's, each has its own blocks, and libc's mappings are no allocator's.
static void follow_deep(const char *path) {
    static bool followed;
    if (off || !all_is_glibc() || __atomic_exchange_n(&followed, true, __ATOMIC_ACQ_REL))
        return;
    own_object = object_of((uint64_t)follow_deep);
    const struct link_map *libc = next_definer("malloc");
    patch_begin();
    const char *why = NULL;
    for (uint32_t i = 0; i < sizeof deep_kin / sizeof *deep_kin && !why; i++) {
        void *entry = object_symbol(libc, deep_kin[i].name);
        // Some are two names of one function.
        if (entry && !patched(entry))
            why = patch(entry, deep_kin[i].ours, deep_kin[i].next);
    }
    const char *later = patch_done();
    if (!why)
        why = later;
    if (!why)
        return;
    some_unseen = true;
    log_note("%s is opened with RTLD_DEEPBIND, and the blocks that it obtains are not seen: libc's malloc: %s",
             path ? text_base(path) : "the program", why);
}

static void *(*next_dlopen)(const char *, int);

// The loader asks who called, so that this must be no call of ours.
static void *on_dlopen(const char *path, int flags) {
    if (flags & RTLD_DEEPBIND)
        follow_deep(path);
    return next_dlopen(path, flags);
}

// Names by which allocators are called beside malloc.
static bool is_own_name(const char *name) {
    static const char *const names[] = {"mallocx",    "rallocx",  "mi_malloc", "mi_zalloc",   "mi_calloc",
                                        "mi_realloc", "mi_heap_", "mi_new",    "tc_malloc",   "tc_calloc",
                                        "tc_realloc", "tc_new",   "je_malloc", "je_calloc",   "je_realloc",
                                        "nallocx",    "rpmalloc", "rpcalloc",  "tc_memalign", "mi_aligned_alloc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return true;
    return false;
}

// Once for each allocator: an object that calls it by its own names.
void heap_look_at(uint32_t id) {
    if (off || !allocator || id == allocator || !objects[id].map || objects[id].map == runtime_map())
        return;
    const char *name = object_wants(objects[id].map, is_own_name);
    if (!name || !object_symbol(objects[allocator].map, name))
        return;
    if (!some_unseen)
        log_note("%s calls %s of %s, which is not followed: what it obtains by it is unattributed; malloc and its kind "
                 "are followed",
                 text_base(objects[id].path), name, text_base(objects[allocator].path));
    some_unseen = true;
}

void heap_begin(void) {
    find();
    find_operators();
    const struct link_map *front = allocator_in_front();
    const char *why = NULL;
    patch_begin();
    if (front)
        why = patch_all(front, kin, KIN);
    if (front && !why)
        why = patch_all(front, operators, OPERATORS);
    const char *later = patch_done();
    if (!why)
        why = later;
    void *own = front ? object_symbol(front, "malloc") : NULL;
    allocator = object_of((uint64_t)(own ? own : next_symbol("malloc")));
    if (!why && object_of((uint64_t)next.usable) != allocator)
        why = "it does not tell the size of a block";
    if (why) {
        log_note("the heap is not divided, and is unattributed: its malloc is %s's, and %s",
                 text_base(objects[allocator].path), why);
        heap_off();
    }
    for (uint32_t id = 1; id <= object_count; id++)
        heap_look_at(id);
    void *entry = next_symbol("dlopen");
    patch_begin();
    // Without it what is opened so is nobody's.
    if (entry)
        patch(entry, on_dlopen, (void **)&next_dlopen);
    patch_done();
}

bool heap_is_divided(void) {
    return !off && !some_unseen;
}

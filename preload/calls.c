#include "calls.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "arena.h"
#include "comm.h"
#include "heap.h"
#include "log.h"
#include "main.h"
#include "objects.h"
#include "patch.h"
#include "reconcile.h"
#include "sys.h"
#include "text.h"
#include "touch.h"
#include "vm.h"

enum { FEW = 32, ROUNDS = 3, ADDRESSES_BEGIN = 1 << 16 };

// How often one thread has entered each function, how long it was in it, and what it obtained and gave back there. When
// it has ended, another goes on where it left off.
struct counters {
    struct counters *next;
    uint32_t tid;
    uint64_t calls[4 * FUNCTIONS];
};

_Static_assert(sizeof(struct function) == 88 && QUICK == 256 && QUICK_BY_STACK == 128 && TICKS == 65536, "calls.S");

// The processor's clock beside the kernel's.
struct clocks {
    uint64_t ticks, ns;
};

// Of functions that have to do with more than the call: `mpi` and the end of the name aside, in any case.
struct special {
    const char *name;
    uint16_t flags;
};

// Functions each of which has code of its own: their numbers, and what they are called.
struct quick {
    uint32_t next, end;
    const char *names[FEW];
};

// The entries of one object, as they are patched.
struct scan {
    uint32_t object;
    uint32_t round; // a function with several names has the first of them, as `round_of` says
    uint32_t seen, unseen;
    const void *refused[FEW];
    char names[256];
};

__thread struct thread self;
struct function functions[FUNCTIONS];
uint32_t function_count = QUICK;
struct lock calls_lock;
bool calls_timed, calls_quickly;

static struct clocks began;
static struct counters first;
static struct counters *all = &first;
static struct function *thunks; // the first of them
static void (*next_debug_state)(void);

#define ARGUMENTS(first, count) (CALL_CALLBACK * (((1 << (count)) - 1) << (first)))

static const struct special specials[] = {
    {"_init", CALL_INIT},
    {"_init_thread", CALL_INIT},
    {"_session_init", CALL_INIT},
    {"_finalize", CALL_FINALIZE},
    {"_pcontrol", CALL_PCONTROL},
    {"_op_create", ARGUMENTS(0, 1)},
    {"_comm_create_keyval", ARGUMENTS(0, 2)},
    {"_type_create_keyval", ARGUMENTS(0, 2)},
    {"_win_create_keyval", ARGUMENTS(0, 2)},
    {"_keyval_create", ARGUMENTS(0, 2)},
    {"_comm_create_errhandler", ARGUMENTS(0, 1)},
    {"_win_create_errhandler", ARGUMENTS(0, 1)},
    {"_file_create_errhandler", ARGUMENTS(0, 1)},
    {"_session_create_errhandler", ARGUMENTS(0, 1)},
    {"_errhandler_create", ARGUMENTS(0, 1)},
    {"_grequest_start", ARGUMENTS(0, 3)},
    {"_register_datarep", ARGUMENTS(1, 3)},
    {"_t_event_register_callback", ARGUMENTS(4, 1)},
    {"_t_event_free", ARGUMENTS(2, 1)},
    {"_t_event_set_dropped_handler", ARGUMENTS(1, 1)},
    {"x_grequest_start", ARGUMENTS(0, 3)},
    {"x_grequest_class_create", ARGUMENTS(0, 5)},
    {"x_op_create_x", ARGUMENTS(0, 2)},
    {"x_comm_create_errhandler_x", ARGUMENTS(0, 2)},
    {"x_win_create_errhandler_x", ARGUMENTS(0, 2)},
    {"x_file_create_errhandler_x", ARGUMENTS(0, 2)},
    {"x_session_create_errhandler_x", ARGUMENTS(0, 2)},
    {"x_async_start", ARGUMENTS(0, 1)},
};

// What compilers and bindings put behind a name.
static const char *const tails[] = {"", "_c", "_", "__", "_f", "_f08", "_f08_", "_f08ts_", "_c_f08_", "_c_f08ts_"};

// Of those that programs call a million times a second, for want of something to do or with each message. In registers
// are six arguments.
// clang-format off
static struct quick quick[] = {
    {1, QUICK_BY_STACK, { // at most five, or six with the error of Fortran
        "_test", "_testany", "_testall", "_testsome", "_request_get_status",
        "_wait", "_waitany", "_waitall", "_waitsome", "_request_free",
        "_probe", "_iprobe", "_get_count", "_start", "_startall",
        "_comm_rank", "_comm_size", "_barrier", "_bcast", "_wtime",
        "_type_commit", "_type_free", "_type_size", "_type_vector", "_type_indexed",
        "_type_contiguous", "_type_match_size", "_type_get_extent", "_pack_size", "_get_address",
    }},
    {QUICK_BY_STACK, QUICK, { // six or seven
        "_send", "_ssend", "_bsend", "_rsend", "_isend", "_issend", "_ibsend", "_irsend",
        "_recv", "_irecv", "_reduce", "_allreduce", "_iallreduce", "_ibcast", "_scan", "_exscan",
        "_allgather", "_alltoall", "_pack", "_unpack",
    }},
};
// clang-format on

// In these, nothing is patched: everything depends on them, the runtime too.
static const char *const untouched[] = {"libc.so.",  "libpthread.", "libdl.",   "libm.so.", "libm-",
                                        "libgcc_s.", "libstdc++.",  "librt.so", "libmvec."};

// Functions that return twice, that depend on who called them, or that are the loader's or the allocator's.
static const char *const left_alone[] = {
    "_init",      "_fini",       "setjmp",   "_setjmp",       "__setjmp", "sigsetjmp", "__sigsetjmp",
    "getcontext", "swapcontext", "vfork",    "__vfork",       "fork",     "malloc",    "free",
    "calloc",     "realloc",     "memalign", "aligned_alloc", "valloc",   "pvalloc",   "posix_memalign",
};

static const char *const operators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"}; // new and delete

extern void calls_enter(void);
enum { QUICK_CODE = 128 }; // as in calls.S
extern char calls_quick[QUICK][QUICK_CODE];
extern void calls_enter_comm(void);
extern void calls_around_comm(void);
void calls_entering(struct function *function, uint64_t *arguments, uint64_t outer);
void calls_left(struct function *function);
bool calls_stack(uint64_t page);

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static bool begins_with_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return true;
    return false;
}

static bool is_profiling(const char *name) {
    return (*name | 32) == 'p';
}

// Names as they are known best, then what else compilers and bindings make of them, then those with P.
static uint32_t round_of(const char *name) {
    size_t length = strlen(name);
    bool in_c = name[0] == 'M' && length > 5 && name[5] > 'Z' && !strstr(name, "_f");
    bool in_fortran = name[0] == 'm' && name[length - 1] == '_' && name[length - 2] != '_';
    return is_profiling(name) ? 2 : in_c || in_fortran ? 0 : 1;
}

// MPI_Send, mpi_send_, mpi_send_f08_, PMPI_Send, pmpir_send_f08_, MPIX_Send: what follows "mpi"; NULL: another
// function.
static const char *behind_mpi(const char *name) {
    const char *rest = name + is_profiling(name), upper = *rest == 'M' ? 0 : 32;
    // Of thousands of names: without a call.
    if (rest[0] != ('M' | upper) || rest[1] != ('P' | upper) || rest[2] != ('I' | upper))
        return NULL;
    rest += 3;
    const char *kinds = is_profiling(name) ? "XOR" : "XO";
    return *rest == '_' || (*rest && strchr(kinds, *rest & ~32) && rest[1] == '_') ? rest : NULL;
}

// What follows "mpi" is this, and a tail.
static bool is_function(const char *rest, const char *name) {
    // Most differ there already.
    if ((rest[0] | 32) != (name[0] | 32) || (rest[1] | 32) != (name[1] | 32))
        return false;
    size_t length = strlen(name);
    for (size_t tail = 0; !strncasecmp(rest, name, length) && tail < sizeof tails / sizeof *tails; tail++)
        if (!strcasecmp(rest + length, tails[tail]))
            return true;
    return false;
}

static uint16_t flags_of(const char *rest) {
    for (const struct special *special = specials; special < specials + sizeof specials / sizeof *specials; special++)
        if (is_function(rest, special->name))
            return special->flags |
                   (special->flags == CALL_PCONTROL && strcmp(rest, "_Pcontrol") ? CALL_BY_ADDRESS : 0);
    return 0;
}

static struct quick *quick_of(const char *rest) {
    for (struct quick *each = quick; each < quick + sizeof quick / sizeof *quick; each++)
        for (size_t i = 0; i < FEW && each->names[i]; i++)
            if (is_function(rest, each->names[i]))
                return each;
    return NULL;
}

static const char *copy(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *kept = arena(bytes);
    return kept ? memcpy(kept, text, bytes) : "?";
}

static struct function *new_function(struct function made, struct quick *quick) {
    lock_take(&calls_lock);
    uint32_t *count = quick && quick->next < quick->end ? &quick->next : &function_count, number = *count;
    struct function *function = number < FUNCTIONS ? &functions[number] : NULL;
    if (function) {
        made.number = number;
        *function = made;
        __atomic_store_n(count, number + 1, __ATOMIC_RELEASE);
    }
    lock_release(&calls_lock);
    return function;
}

// What comes again with its object is counted on.
static struct function *function_for(const char *name, uint32_t object, struct quick *quick) {
    for (uint32_t i = 1; objects[object].again && i < function_count; i++)
        if (functions[i].object == object && !strcmp(functions[i].name, name))
            return &functions[i];
    struct function made = {.name = copy(name), .component = objects[object].component, .object = object};
    if (made.component == MPI)
        made.flags = flags_of(behind_mpi(name));
    return new_function(made, quick);
}

static void refuse(struct scan *scan, const char *name, const void *entry, const char *why) {
    for (uint32_t i = 0; i < scan->unseen && i < FEW; i++)
        if (scan->refused[i] == entry)
            return;
    if (scan->unseen < FEW)
        scan->refused[scan->unseen] = entry;
    size_t length = strlen(scan->names);
    text_format(scan->names + length, sizeof scan->names - length, "%s%s (%s)", scan->unseen ? ", " : "", name, why);
    scan->unseen++;
}

static bool is_wanted(const char *name, uint32_t component) {
    if (component == MPI)
        return behind_mpi(name);
    return !is_one_of(name, left_alone, sizeof left_alone / sizeof *left_alone) &&
           !begins_with_one_of(name, operators, sizeof operators / sizeof *operators);
}

static void take(const char *name, void *entry, size_t bytes, void *context) {
    struct scan *scan = context;
    uint32_t component = objects[scan->object].component;
    if (!is_wanted(name, component) || (component == MPI && round_of(name) != scan->round) || patched(entry))
        return;
    void (*const ways[])(void) = {
        [COMM_NOT] = calls_enter, [COMM_BEFORE] = calls_enter_comm, [COMM_AFTER] = calls_around_comm};
    void (*way)(void) = ways[comm_looks_at(name)];
    bool quickly = way == calls_enter && component == MPI && calls_quickly;
    struct function *function = function_for(name, scan->object, quickly ? quick_of(behind_mpi(name)) : NULL);
    const char *why = "too many functions";
    if (function && function->number < QUICK)
        why = patch_with(entry, bytes, calls_quick[function->number], NULL, &function->moved);
    else if (function)
        why = patch_with(entry, bytes, way, function, &function->moved);
    if (why)
        refuse(scan, name, entry, why);
    else
        scan->seen++;
}

static void found(uint32_t id, const struct link_map *map) {
    static struct scan scan;
    struct object *object = &objects[id];
    heap_look_at(id);
    if (!object->named || !object->component ||
        begins_with_one_of(text_base(object->path), untouched, sizeof untouched / sizeof *untouched))
        return;
    scan = (struct scan){.object = id};
    patch_begin();
    for (uint32_t rounds = object->component == MPI ? ROUNDS : 1; scan.round < rounds; scan.round++)
        object_functions(map, take, &scan);
    const char *why = patch_done();
    if (!why && !scan.unseen)
        return;
    char text[512];
    if (why || !scan.seen)
        text_format(text, sizeof text, "the entries of %s are not seen: %s", text_base(object->path),
                    why ? why : scan.names);
    else
        text_format(text, sizeof text, "%u of %u entries of %s are not seen: %s", scan.unseen, scan.unseen + scan.seen,
                    text_base(object->path), scan.names);
    object->unseen = copy(text);
}

// In place of a function of the loader that does nothing, but is called when objects have come or gone: before their
// constructors run.
static void on_debug_state(void) {
    if (loader()->r_state == RT_CONSISTENT) {
        objects_scan(found);
        heap_objects_changed();
    }
    next_debug_state();
}

static struct clocks clocks_now(void) {
#if defined(__x86_64__)
    return (struct clocks){__builtin_ia32_rdtsc(), now_ns()};
#else
    return (struct clocks){0}; // nothing is patched there
#endif
}

void calls_begin(void) {
    began = clocks_now();
    objects_scan(found);
    void *entry = (void *)loader()->r_brk;
    patch_begin();
    const char *why = entry ? patch(entry, on_debug_state, (void **)&next_debug_state) : "the loader does not tell";
    const char *later = patch_done();
    if (!why)
        why = later;
    uint32_t loader = object_of((uint64_t)entry);
    if (why && loader) {
        char text[256];
        text_format(text, sizeof text, "libraries that are loaded later are not seen: %s", why);
        objects[loader].unseen = copy(text);
    }
}

// Sums are read while threads count, so they may be a call behind.
static void sum_up(struct function *function) {
    const uint32_t number = function->number;
    function->calls = function->ticks = function->got = function->gave = 0;
    for (const struct counters *each = __atomic_load_n(&all, __ATOMIC_ACQUIRE); each; each = each->next) {
        uint64_t calls = __atomic_load_n(&each->calls[number], __ATOMIC_RELAXED);
        if (!calls)
            continue;
        function->calls += calls;
        function->ticks += calls_timed ? __atomic_load_n(&each->calls[TICKS + number], __ATOMIC_RELAXED) : 0;
        function->got += __atomic_load_n(&each->calls[GOT + number], __ATOMIC_RELAXED);
        function->gave += __atomic_load_n(&each->calls[GAVE + number], __ATOMIC_RELAXED);
    }
}

// How long each was entered, by what the processor's clock has made of the time since the beginning.
static void log_durations(uint32_t functions_before, uint32_t changed) {
    struct clocks now = clocks_now();
    uint64_t ticks = now.ticks - began.ticks, ns = now.ns - began.ns;
    log_begin(ENTRY_DURATIONS);
    log_time();
    log_number(changed);
    for (struct function *function = functions + 1; function < functions + functions_before; function++) {
        if (!function->news)
            continue;
        log_number(function->number);
        log_number(ticks ? (unsigned __int128)function->ticks * ns / ticks : 0);
    }
    log_end();
}

void calls_log(void) {
    lock_take(&calls_lock);
    uint32_t count = function_count, changed = 0;
    for (struct function *function = functions + 1; function < functions + count; function++) {
        function->news = 0;
        if (!function->name)
            continue;
        sum_up(function);
        function->news = function->calls + function->ticks + function->got + function->gave - function->told;
        changed += function->news != 0;
        if (!function->news || function->told)
            continue;
        log_begin(ENTRY_FUNCTION);
        log_number(function->number);
        log_number(function->component);
        log_string(function->name);
        log_end();
    }
    if (changed) {
        log_begin(ENTRY_CALLS);
        log_time();
        log_number(changed);
        for (struct function *function = functions + 1; function < functions + count; function++) {
            if (!function->news)
                continue;
            function->told += function->news;
            log_number(function->number);
            log_number(function->calls);
            log_number(function->got);
            log_number(function->gave);
        }
        log_end();
        if (calls_timed)
            log_durations(count, changed);
    }
    lock_release(&calls_lock);
}

void calls_forget(void) {
    for (struct counters *each = all; each; each = each->next)
        for (uint32_t i = 1; i < function_count; i++)
            if (each->calls[i])
                each->calls[i] = each->calls[TICKS + i] = each->calls[GOT + i] = each->calls[GAVE + i] = 0;
    for (uint32_t i = 1; i < function_count; i++)
        functions[i].told = 0;
    objects_forget();
}

static bool has_ended(uint32_t tid) {
    return !tid || sys(SYS_tgkill, sys(SYS_getpid), tid, 0) == -ESRCH;
}

// A thread that has the number of one that counted: that one has ended.
static struct counters *counters_for(uint32_t tid) {
    for (struct counters *each = __atomic_load_n(&all, __ATOMIC_ACQUIRE); each; each = each->next) {
        uint32_t whose = __atomic_load_n(&each->tid, __ATOMIC_RELAXED);
        bool free = whose == tid || has_ended(whose);
        if (free && __atomic_compare_exchange_n(&each->tid, &whose, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return each;
    }
    struct counters *made = arena_pages(sizeof *made);
    if (!made)
        return &first;
    made->tid = tid;
    made->next = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&all, &made->next, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return made;
}

// Of those that are there: the function's own, or one that nobody has yet; NULL: none. With the lock held.
static struct function *thunk_for(void *address, uint32_t component) {
    for (struct function *each = thunks; each && each < functions + function_count; each++) {
        if (!each->thunk || (each->moved && (each->moved != address || each->component != component)))
            continue;
        each->moved = address;
        each->component = component;
        return each;
    }
    return NULL;
}

// Code is sealed, so that many are made before they are used.
static bool more_thunks(void) {
    if (function_count + THUNKS > FUNCTIONS)
        return false;
    struct function *begin = &functions[function_count];
    char *code = patch_thunks(calls_enter, begin, sizeof *begin);
    for (uint32_t i = 0; code && i < THUNKS; i++)
        begin[i] = (struct function){.number = function_count + i, .thunk = code + i * THUNK};
    if (code)
        __atomic_store_n(&function_count, function_count + THUNKS, __ATOMIC_RELEASE);
    if (code && !thunks)
        thunks = begin;
    return code;
}

// The function by which it is called back instead, so that the thread is inside the component that gave it meanwhile.
// One that is the library's own (MPI_COMM_DUP_FN), or stands for something, is left as it is.
static uint64_t called_back(uint64_t address, uint32_t outer) {
    uint32_t object = object_of(address);
    if (address < ADDRESSES_BEGIN || -address < ADDRESSES_BEGIN || objects[object].component == MPI ||
        arena_has(address))
        return address;
    lock_take(&calls_lock);
    struct function *function = thunk_for((void *)address, outer);
    if (!function && more_thunks())
        function = thunk_for((void *)address, outer);
    lock_release(&calls_lock);
    return function ? (uint64_t)function->thunk : address;
}

// Of the assembler, for functions that have flags and in threads that have no counters yet. The arguments are those in
// the six integer registers, and may be changed. `outer`: the component that calls.
__attribute__((used)) void calls_entering(struct function *function, uint64_t *arguments, uint64_t outer) {
    if (!self.calls)
        self.calls = counters_for(sys(SYS_gettid))->calls;
    touch_settle(outer);
    if (function->flags & CALL_INIT) {
        // The constructors of a library that was loaded since may have patched libc's functions (UCX).
        vm_patch();
        reconcile(REASON_INIT);
    }
    if (function->flags & CALL_FINALIZE)
        on_finalize();
    if (function->flags & CALL_PCONTROL) {
        int32_t level = function->flags & CALL_BY_ADDRESS ? *(int32_t *)arguments[0] : (int32_t)arguments[0];
        char name[32];
        text_format(name, sizeof name, "pcontrol %s%u", level < 0 ? "-" : "", level < 0 ? -level : level);
        mark_phase(name);
    }
    for (int i = 0; i < 6; i++)
        if (function->flags & CALL_CALLBACK << i)
            arguments[i] = called_back(arguments[i], outer);
}

// Of the assembler, when it would copy arguments from a page where there may be no stack. The kernel reads it in vain,
// and says whether it could.
__attribute__((used)) bool calls_stack(uint64_t page) {
    if (sys(SYS_rt_sigprocmask, -1, page, 0, 8) == -EFAULT)
        return false;
    self.stack = page;
    return true;
}

// Of the assembler, when the function has flags, or there were faults.
__attribute__((used)) void calls_left(struct function *function) {
    touch_settle(function->component);
    if (function->flags & CALL_INIT) {
        // Open MPI and UCX have patched libc's functions meanwhile.
        vm_patch();
        reconcile(REASON_INITIALIZED);
    }
}

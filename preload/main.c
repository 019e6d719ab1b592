#include "main.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "advice_told.h"
#include "advise.h"
#include "arena.h"
#include "bursar.h"
#include "calls.h"
#include "comm.h"
#include "confine.h"
#include "exec.h"
#include "gather.h"
#include "heap.h"
#include "helper.h"
#include "lock.h"
#include "log.h"
#include "moved.h"
#include "objects.h"
#include "owners.h"
#include "patch.h"
#include "presence.h"
#include "process.h"
#include "reconcile.h"
#include "serve.h"
#include "smaps.h"
#include "sys.h"
#include "text.h"
#include "told.h"
#include "touch.h"
#include "vm.h"

static char run_directory[4096], name[512];
static uint64_t interval_ns = 100000000;
bool attributing, provisioning;
static bool logging, away;
static uint32_t over;

void (*next_exit_now)(int);
static void log_process(void) {
    static char arguments[4096];
    long bytes = text_of_file("/proc/self/cmdline", arguments, sizeof arguments);
    uint32_t count = 0;
    for (long i = 0; i < bytes; i++)
        count += !arguments[i];
    log_begin(ENTRY_PROCESS);
    log_number(PAGE);
    log_number(process.pid);
    log_number(process.parent);
    log_number(process.ticks);
    log_number(clock_ns(CLOCK_REALTIME));
    log_number(process.rank_plus_1);
    log_number(process.ranks);
    log_string(process.host);
    log_string(process.executable);
    log_number(count);
    for (const char *argument = arguments; count--; argument += strlen(argument) + 1)
        log_string(argument);
    log_number(component_count);
    for (uint32_t i = 0; i < component_count; i++)
        log_string(component_names[i]);
    const char *world = getenv("PMIX_NAMESPACE");
    log_string(world ? world : "");
    log_number(process.namespace);
    log_string(process.boot);
    log_end();
}

// A directory of this node that is this user's alone.
static bool own_directory(void) {
    struct stat found;
    text_format(run_directory, sizeof run_directory, "/tmp/bursar-run-%u", (uint32_t)sys(SYS_getuid));
    sys(SYS_mkdirat, AT_FDCWD, run_directory, 0700);
    return !sys_failed(sys(SYS_newfstatat, AT_FDCWD, run_directory, &found, AT_SYMLINK_NOFOLLOW)) &&
           S_ISDIR(found.st_mode) && found.st_uid == (uid_t)sys(SYS_getuid);
}

static bool open_log(void) {
    uint32_t rank = process.rank_plus_1 - 1;
    if (process.rank_plus_1)
        text_format(name, sizeof name, "rank-%u.%s.%lu.%lu", rank, process.host, process.pid, process.ticks);
    else
        text_format(name, sizeof name, "%s.%lu.%lu", process.host, process.pid, process.ticks);
    bool opened = log_open(run_directory, name);
    // On another node the run directory may not be there: what is logged is brought to rank 0's at MPI_Finalize.
    if (!opened && process.rank_plus_1 && own_directory())
        opened = away = log_open(run_directory, name);
    if (!opened)
        return false;
    log_process();
    objects_log();
    return logging = true;
}

static void wait_for(uint64_t ns) {
    uint64_t until = now_ns() + ns;
    struct timespec wait = {ns / 1000000000, ns % 1000000000};
    if (!touching)
        sys(SYS_futex, &over, FUTEX_WAIT_PRIVATE, 0, &wait);
    while (touching && !__atomic_load_n(&over, __ATOMIC_ACQUIRE) && now_ns() < until)
        touch_wait(until - now_ns());
}

// Until the next look. Growth is told meanwhile.
static void wait_for_look(uint64_t ns) {
    for (const uint64_t until = now_ns() + ns; !__atomic_load_n(&over, __ATOMIC_ACQUIRE);) {
        const uint64_t now = now_ns();
        if (now >= until)
            return;
        wait_for(least(until - now, interval_ns));
        helper_leaves();
        if (logging && now_ns() < until)
            reconcile_growth();
    }
}

// Ranks on one node look at the same moments: who waits for whom loses the time but once. The next is after the pause,
// or after twice as long at most.
static uint64_t until_moment(uint64_t pause) {
    uint64_t period = interval_ns;
    while (period * 2 <= pause)
        period *= 2;
    uint64_t rest = period - now_ns() % period;
    while (rest + interval_ns / 2 < pause)
        rest += period;
    return rest;
}

// The timer. It takes at most half a hundredth of one processor: what is large is looked at less often. Where nothing
// seems to have moved, a look a second is enough.
static void watch(void) {
    const uint64_t second = 1000000000, soon = 10000000;
    uint64_t next_calls = second, age = 0, still = 0, pause = interval_ns;
    // What has just begun is not kept waiting by its first look; most that begin end sooner.
    bool first = logging;
    for (uint64_t rest = first ? least(soon, pause) : pause; !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
         rest = until_moment(pause)) {
        wait_for_look(rest);
        if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
            return;
        age += rest;
        still += rest;
        bool forked = !logging;
        if (first || forked || still >= second || memory_moved()) {
            uint64_t before = reconcile_spent_ns();
            // What moves from here on this look may miss.
            memory_still();
            enum begun begun = HAS_BEGUN;
            if (forked)
                begun = reconcile_begin(open_log);
            else
                reconcile(first ? REASON_START : REASON_TIMER);
            if (begun == BEGINS_LATER)
                continue;
            if (begun == NEVER_BEGINS)
                return;
            uint64_t dear = (reconcile_spent_ns() - before) * 200;
            pause = dear > interval_ns ? dear : interval_ns;
            still = 0;
        }
        first = false;
        // Calls that change nothing are few bytes, ever less often.
        if (age > next_calls) {
            calls_log();
            comm_log();
            next_calls *= 2;
        }
    }
}

static struct lock *const locks[] = {&comm_lock,  &reconcile_lock, &smaps_lock,  &vm_lock,  &starts_lock,
                                     &patch_lock, &calls_lock,     &owners_lock, &log_lock, &arena_lock};
enum { LOCKS = sizeof locks / sizeof *locks };

// What the parent holds is looked at before it is shared: its next look may come when the child has gone, or never.
static void before_fork(void) {
    if (logging && memory_grew())
        reconcile_before_fork();
    for (int i = 0; i < LOCKS; i++)
        lock_take(locks[i]);
}

static void after_fork(void) {
    for (int i = LOCKS; i-- > 0;)
        lock_release(locks[i]);
}

// Most children call exec or end at once: only what is still there after an interval gets a log.
static void in_child(void) {
    vm_forked();
    after_fork();
    process_forked();
    logging = false;
    log_forget();
    owners_forget();
    reconcile_forget();
    calls_forget();
    touch_forget();
    comm_forget();
    helper_start(watch, &over);
}

static void log_the_end(enum log_reason how) {
    calls_log();
    comm_log();
    log_begin(ENTRY_END);
    log_time();
    log_reason(how);
    log_end();
}

void on_finalize(void) {
    reconcile(REASON_FINALIZE);
    if (!logging)
        return;
    // What follows has no way to rank 0's node.
    if (away)
        log_the_end(REASON_FINALIZE);
    if (gather(run_directory) && away)
        sys(SYS_unlinkat, AT_FDCWD, log_path(), 0);
}

// A child that ends before it had a log, and holds little more than its parent did, goes without.
static void end(enum log_reason how) {
    if (process.pid != sys(SYS_getpid) || __atomic_exchange_n(&over, 1, __ATOMIC_ACQ_REL) || !logging)
        return;
    reconcile(how);
    log_the_end(how);
}

void tell_of_sandbox(void) {
    if (process.pid != sys(SYS_getpid) || !logging)
        return;
    reconcile(REASON_SANDBOX);
    calls_log();
    comm_log();
    log_note(
        "%s (%lu) gives up system calls (seccomp), and the library with it: what its memory does from there is not "
        "told",
        text_base(process.executable), process.pid);
}

void on_exit_now(int status) {
    end(REASON_EXIT);
    presence_tell(0, UINT64_MAX);
    next_exit_now(status);
}

void before_exec(bool own, const char *path, const char *hidden) {
    if (own)
        reconcile_before_exec();
    if (own && logging) {
        calls_log();
        comm_log();
    }
    if (hidden && own && logging)
        log_note(
            runtime_in_memory()
                ? "%s (%lu) does not see %s, and the library is not in it: set XDG_CACHE_HOME to a folder that can be "
                  "written and that it sees, too"
                : "%s (%lu) does not see %s, and the library is not in it: bind that directory into its mount "
                  "namespace or container, or run bursar inside",
            path && *path ? text_base(path) : "a program", process.pid, hidden);
    presence_tell_before_exec();
}

void exec_failed(void) {
    reconcile_exec_failed();
}

// For the program: see bursar.h.
__attribute__((visibility("default"))) void bursar_mark(const char *phase) {
    if (logging)
        mark_phase(phase);
}

// For Fortran, whose texts have a length and end in blanks.
__attribute__((visibility("default"))) void bursar_mark_(const char *phase, size_t length) {
    char text[256];
    while (length && phase[length - 1] == ' ')
        length--;
    length = length < sizeof text ? length : sizeof text - 1;
    memcpy(text, phase, length);
    text[length] = 0;
    bursar_mark(text);
}

static void known_from_the_start(const struct mapping *mapping) {
    bool anonymous = !mapping->inode && (!*mapping->path || !strncmp(mapping->path, "[anon", 5));
    if (anonymous && !arena_has(mapping->begin) && !object_of(mapping->begin))
        vm_known(mapping->begin, mapping->end, owner_of(APPLICATION, 0), USE_MAPPED);
}

static bool attribute_begin(void) {
    const char *directory = getenv("BURSAR_RUN"), *components = getenv("BURSAR_COMPONENTS");
    if (!directory || !components)
        return false;
    text_format(run_directory, sizeof run_directory, "%s", directory);
    interval_ns = number_of("BURSAR_INTERVAL_MS", 100) * 1000000;
    log_limit(number_of("BURSAR_LOG_LIMIT", -1));
    components_parse(components);
    owners_begin();
    if (!open_log())
        return false;
    if (process_is_instrumented()) {
        log_note(
            "%s runs in valgrind or is built with a sanitizer, which keeps its own account of memory: it is left alone",
            process.executable);
        return false;
    }
    counting_messages = number_of("BURSAR_COMM", 0);
    calls_timed = number_of("BURSAR_TIMES", 0);
    calls_quickly = !calls_timed && !number_of("BURSAR_TOUCH", 0);
    calls_begin();
    smaps("/proc/thread-self/maps", known_from_the_start);
    heap_begin();
    return true;
}

static bool provision_begin(void) {
    if (!told_begin())
        return false;
    if (process_is_instrumented()) {
        told->left_alone = PROVISION_SANITIZER;
        told_open();
        return false;
    }
    return true;
}

// The directory of advice; NULL: there is to be none here.
static const char *advice_wanted(void) {
    const char *directory = advice_told_begin();
    if (!directory || !process_is_instrumented())
        return directory;
    advice_told->left_alone = ADVICE_SANITIZER;
    advice_told_open();
    return NULL;
}

static __attribute__((constructor)) void begin(void) {
    uint64_t began = now_ns();
    bool known = process_find() && !process_is_launcher();
    attributing = known && attribute_begin();
    provisioning = known && provision_begin();
    const char *advice = known ? advice_wanted() : NULL;
    if (!attributing && (provisioning || advice))
        heap_leave();
    else if (!attributing)
        heap_off();
    if (attributing || provisioning || advice) {
        exec_begin();
        patch_begin();
        vm_detour();
        confine_detour();
        patch_done();
    }
    // What rules speak of is not the pool's, unless they say so.
    if (advice && !advise_read(advice))
        advice = NULL;
    if (provisioning) {
        serve_begin();
        told->start_ns = now_ns() - began;
    }
    if (advice) {
        advise_begin(advice);
        advice_told->start_ns = now_ns() - began;
    }
    if (!attributing)
        return;
    if (number_of("BURSAR_TOUCH", 0))
        touch_begin();
    at_fork(before_fork, after_fork, in_child);
    helper_start(watch, &over);
}

static __attribute__((destructor)) void finish(void) {
    if (advising)
        advice_sample();
    if (serving)
        serve_end();
    // Where `_exit` could not be patched.
    if (!next_exit_now) {
        end(REASON_EXIT);
        presence_tell(0, UINT64_MAX);
    }
}

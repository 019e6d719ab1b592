#include "main.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "arena.h"
#include "bursar.h"
#include "calls.h"
#include "comm.h"
#include "gather.h"
#include "heap.h"
#include "helper.h"
#include "lock.h"
#include "log.h"
#include "moved.h"
#include "objects.h"
#include "owners.h"
#include "reconcile.h"
#include "smaps.h"
#include "sys.h"
#include "text.h"
#include "touch.h"
#include "vm.h"

// mpirun and its kind start programs, also on other machines; what they hold is no part of the job.
static const char *const launchers[] = {"mpirun",    "mpiexec", "orterun", "orted",      "prterun", "prte",
                                        "prted",     "prun",    "hydra_",  "pmi_proxy",  "srun",    "ssh",
                                        "slurmstep", "bursar",  "rsh",     "mpirun_rsh", "mpispawn"};

static char run_directory[4096], executable[4096], name[512];
static struct utsname machine;
static uint64_t interval_ns = 100000000;
static uint32_t rank_plus_1, ranks;
static long pid;
static bool logging, away;
static uint32_t over;

void (*next_exit_now)(int);
int (*next_execve)(const char *, char *const *, char *const *);

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text >= '0' && *text <= '9' ? text_number(&text, 10) : otherwise;
}

static void find_rank(void) {
    static const char *const variables[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"PMIX_RANK", "PMIX_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables && !rank_plus_1; i++) {
        // In a batch script Slurm's are set without a step.
        if (variables[i][0][0] == 'S' && !getenv("SLURM_STEP_ID"))
            continue;
        rank_plus_1 = number_of(variables[i][0], -1) + 1;
        ranks = number_of(variables[i][1], 0);
    }
}

static bool is_launcher(void) {
    const char *program = text_base(executable);
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strncmp(program, launchers[i], strlen(launchers[i])))
            return true;
    return false;
}

// Field 22 of /proc/self/stat, counted behind the command name, which may hold anything; and field 4.
static void process_times(uint64_t *parent, uint64_t *ticks) {
    char stat[1024];
    *parent = *ticks = 0;
    if (text_of_file("/proc/self/stat", stat, sizeof stat) <= 0)
        return;
    const char *at = strrchr(stat, ')');
    for (uint32_t field = 2; at && (at = strchr(at, ' ')) && field < 22; field++) {
        const char *number = ++at;
        if (field == 3)
            *parent = text_number(&number, 10);
        if (field == 21)
            *ticks = text_number(&number, 10);
    }
}

static void log_process(uint64_t parent, uint64_t ticks) {
    static char arguments[4096];
    long bytes = text_of_file("/proc/self/cmdline", arguments, sizeof arguments);
    uint32_t count = 0;
    for (long i = 0; i < bytes; i++)
        count += !arguments[i];
    log_begin('P');
    log_number(PAGE);
    log_number(pid);
    log_number(parent);
    log_number(ticks);
    log_number(clock_ns(CLOCK_REALTIME));
    log_number(rank_plus_1);
    log_number(ranks);
    log_string(machine.nodename);
    log_string(executable);
    log_number(count);
    for (const char *argument = arguments; count--; argument += strlen(argument) + 1)
        log_string(argument);
    log_number(component_count);
    for (uint32_t i = 0; i < component_count; i++)
        log_string(component_names[i]);
    const char *world = getenv("PMIX_NAMESPACE");
    log_string(world ? world : "");
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
    uint64_t parent, ticks;
    process_times(&parent, &ticks);
    if (rank_plus_1)
        text_format(name, sizeof name, "rank-%u.%s.%u.%lu", rank_plus_1 - 1, machine.nodename, (uint32_t)pid, ticks);
    else
        text_format(name, sizeof name, "%s.%u.%lu", machine.nodename, (uint32_t)pid, ticks);
    bool opened = log_open(run_directory, name);
    // On another node the run directory may not be there: what is logged is brought to rank 0's at MPI_Finalize.
    if (!opened && rank_plus_1 && own_directory())
        opened = away = log_open(run_directory, name);
    if (!opened)
        return false;
    log_process(parent, ticks);
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

// The timer. It takes at most a hundredth of one processor: what is large is looked at less often. Where nothing seems
// to have moved, a look a second is enough.
static void watch(void) {
    const uint64_t second = 1000000000, soon = 10000000;
    uint64_t next_calls = second, age = 0, still = 0;
    // What has just begun is not kept waiting by its first look; most that begin end sooner.
    bool first = logging;
    for (uint64_t rest = first && soon < interval_ns ? soon : interval_ns; !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
         age += rest) {
        wait_for(rest);
        if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
            return;
        bool forked = !logging;
        if (forked && !open_log())
            return;
        still += rest;
        if (first || forked || still >= second || memory_moved()) {
            uint64_t before = reconcile_spent_ns();
            reconcile(first ? "start" : forked ? "fork" : "timer");
            uint64_t spent = reconcile_spent_ns() - before;
            rest = spent * 100 > interval_ns ? spent * 100 : interval_ns;
            still = 0;
            memory_still();
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

static struct lock *const locks[] = {&comm_lock,  &reconcile_lock, &vm_lock,  &starts_lock, &patch_lock,
                                     &calls_lock, &owners_lock,    &log_lock, &arena_lock};
enum { LOCKS = sizeof locks / sizeof *locks };

static void before_fork(void) {
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
    pid = sys(SYS_getpid);
    logging = false;
    log_forget();
    owners_forget();
    reconcile_forget();
    calls_forget();
    touch_forget();
    comm_forget();
    helper_start(watch);
}

static void log_the_end(const char *how) {
    calls_log();
    comm_log();
    log_begin('E');
    log_time();
    log_string(how);
    log_end();
}

void on_finalize(void) {
    reconcile("finalize");
    if (!logging)
        return;
    // What follows has no way to rank 0's node.
    if (away)
        log_the_end("finalize");
    if (gather(run_directory) && away)
        sys(SYS_unlinkat, AT_FDCWD, log_path(), 0);
}

// A child that ends before it had a log, and holds little more than its parent did, goes without.
static void end(const char *how) {
    if (pid != sys(SYS_getpid) || __atomic_exchange_n(&over, 1, __ATOMIC_ACQ_REL) || !logging)
        return;
    reconcile(how);
    log_the_end(how);
}

void on_exit_now(int status) {
    end("exit");
    next_exit_now(status);
}

int on_execve(const char *path, char *const *arguments, char *const *environment) {
    // What vfork shares is the parent's.
    if (pid == sys(SYS_getpid) && logging) {
        reconcile("exec");
        calls_log();
        comm_log();
    }
    return next_execve(path, arguments, environment);
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

// A sanitizer keeps an account of its own of every byte, and takes ours for the program's.
static bool has_sanitizer(void) {
    static const char *const beginnings[] = {"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (next_symbol(beginnings[i]))
            return true;
    return false;
}

static void known_from_the_start(const struct mapping *mapping) {
    bool anonymous = !mapping->inode && (!*mapping->path || !strncmp(mapping->path, "[anon", 5));
    if (anonymous && !arena_has(mapping->begin) && !object_of(mapping->begin))
        vm_known(mapping->begin, mapping->end, owner_of(APPLICATION, 0), USE_MAPPED);
}

static __attribute__((constructor)) void begin(void) {
    const char *directory = getenv("BURSAR_RUN"), *components = getenv("BURSAR_COMPONENTS");
    long length = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", executable, sizeof executable - 1);
    if (!directory || !components || length <= 0 || is_launcher()) {
        heap_off();
        return;
    }
    text_format(run_directory, sizeof run_directory, "%s", directory);
    pid = sys(SYS_getpid);
    sys(SYS_uname, &machine);
    interval_ns = number_of("BURSAR_INTERVAL_MS", 100) * 1000000;
    log_limit(number_of("BURSAR_LOG_LIMIT", -1));
    find_rank();
    components_parse(components);
    owners_begin();
    if (!open_log()) {
        heap_off();
        return;
    }
    if (has_sanitizer()) {
        log_note("%s is built with a sanitizer, which keeps its own account of memory: it is left alone", executable);
        heap_off();
        return;
    }
    counting_messages = number_of("BURSAR_COMM", 0);
    calls_begin();
    smaps("/proc/self/maps", known_from_the_start);
    heap_begin();
    vm_patch();
    if (number_of("BURSAR_TOUCH", 0))
        touch_begin();
    pthread_atfork(before_fork, after_fork, in_child);
    helper_start(watch);
}

static __attribute__((destructor)) void finish(void) {
    // Where `_exit` could not be patched.
    if (!next_exit_now)
        end("exit");
}

#include "process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "symbols.h"
#include "sys.h"
#include "text.h"

static const char *const launchers[] = {"mpirun",    "mpiexec", "orterun", "orted",      "prterun", "prte",
                                        "prted",     "prun",    "hydra_",  "pmi_proxy",  "srun",    "ssh",
                                        "slurmstep", "bursar",  "rsh",     "mpirun_rsh", "mpispawn"};

static char executable[4096];
static struct utsname machine;
struct process process;

uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text >= '0' && *text <= '9' ? text_number(&text, 10) : otherwise;
}

static void find_rank(void) {
    static const char *const variables[][3] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
        {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables && !process.rank_plus_1; i++) {
        // In a batch script Slurm's are set without a step.
        if (variables[i][0][0] == 'S' && !getenv("SLURM_STEP_ID"))
            continue;
        uint32_t rank = number_of(variables[i][0], -1);
        process.rank_plus_1 = rank + 1;
        process.ranks = number_of(variables[i][1], 0);
        process.local_rank = number_of(variables[i][2], process.rank_plus_1 ? rank : 0);
    }
}

// Field 22 of /proc/self/stat, counted behind the command name, which may hold anything; and field 4.
static void find_times(void) {
    char stat[1024];
    process.parent = process.ticks = 0;
    if (text_of_file("/proc/self/stat", stat, sizeof stat) <= 0)
        return;
    const char *at = strrchr(stat, ')');
    for (uint32_t field = 2; at && (at = strchr(at, ' ')) && field < 22; field++) {
        const char *number = ++at;
        if (field == 3)
            process.parent = text_number(&number, 10);
        if (field == 21)
            process.ticks = text_number(&number, 10);
    }
}

static void find_namespace(void) {
    struct stat found;
    process.namespace = 0;
    if (!sys_failed(sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &found, 0)))
        process.namespace = found.st_ino;
}

static void find_boot(void) {
    static char boot[64];
    long length = text_of_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    boot[length > 0 ? strcspn(boot, "\n") : 0] = 0;
    process.boot = boot;
}

void process_forked(void) {
    process.pid = sys(SYS_getpid);
    find_times();
    find_namespace();
}

bool process_find(void) {
    long length = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", executable, sizeof executable - 1);
    sys(SYS_uname, &machine);
    process.host = machine.nodename;
    process.executable = executable;
    process_forked();
    find_boot();
    find_rank();
    return length > 0;
}

bool process_is_launcher(void) {
    const char *program = text_base(executable);
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strncmp(program, launchers[i], strlen(launchers[i])))
            return true;
    return false;
}

bool process_is_instrumented(void) {
    static const char *const beginnings[] = {"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (next_symbol(beginnings[i]))
            return true;
    // valgrind loads parts of its own into what it runs.
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "/vgpreload_");
}

// glibc's, which its pthread_atfork calls, and musl's own.
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

void at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    if (__register_atfork) {
        __register_atfork(before, in_parent, in_child, &__dso_handle);
        return;
    }
    int (*of_musl)(void (*)(void), void (*)(void), void (*)(void)) = next_symbol("pthread_atfork");
    if (of_musl)
        of_musl(before, in_parent, in_child);
}

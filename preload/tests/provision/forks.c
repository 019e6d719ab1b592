// fork and its kin: the child has what the parent had, and from then on each has its own.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct memory {
    char *at[COUNT(sizes)];
};

static void fill_all(struct memory *memory, char *(*get)(size_t)) {
    FOR_SIZES(bytes) {
        memory->at[size_index] = get(bytes);
        check(memory->at[size_index]);
        fill(memory->at[size_index], 0, bytes, size_index);
    }
}

static char *get_from_malloc(size_t bytes) {
    return malloc(bytes);
}

static char *get_aside(size_t bytes) {
    // Neither end on a unit's edge.
    return map(bytes + 3 * PAGE) + PAGE;
}

static char *get_from_brk(size_t bytes) {
    return sbrk(bytes);
}

static void check_all(struct memory *memory, uint64_t seed) {
    FOR_SIZES(bytes)
    check_filled(memory->at[size_index], 0, bytes, size_index + seed);
}

static void write_all(struct memory *memory, uint64_t seed) {
    FOR_SIZES(bytes)
    fill(memory->at[size_index], 0, bytes, size_index + seed);
}

// Both write after the fork, the parent first; then each has its own.
static void apart(struct memory *memory, pid_t (*fork_somehow)(void)) {
    int written[2];
    check(pipe(written) == 0);
    pid_t pid = fork_somehow();
    check(pid >= 0);
    if (!pid) {
        char byte;
        check(read(written[0], &byte, 1) == 1);
        check_all(memory, 0);
        write_all(memory, 100);
        check_all(memory, 100);
        _exit(0);
    }
    write_all(memory, 200);
    check(write(written[1], "x", 1) == 1);
    check_ends_well(pid);
    check_all(memory, 200);
}

CASE(fork_copies_the_heap) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    apart(&memory, fork);
}

CASE(fork_copies_mappings) {
    struct memory memory;
    fill_all(&memory, map);
    apart(&memory, fork);
}

CASE(fork_copies_mappings_that_begin_and_end_within_units) {
    struct memory memory;
    fill_all(&memory, get_aside);
    apart(&memory, fork);
}

CASE(fork_copies_what_sbrk_gave) {
    struct memory memory;
    fill_all(&memory, get_from_brk);
    apart(&memory, fork);
}

CASE(_Fork_copies_mappings) {
    struct memory memory;
    fill_all(&memory, map);
    apart(&memory, _Fork);
}

static pid_t fork_by_syscall(void) {
    return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

CASE(fork_by_syscall_copies_mappings) {
    struct memory memory;
    fill_all(&memory, map);
    apart(&memory, fork_by_syscall);
}

// Also where what is given back is zeroed by somebody beside the program, which begins when much was used again.
CASE(what_a_child_by_syscall_unmaps_its_parent_has) {
    struct memory memory;
    fill_all(&memory, map);
    for (int i = 0; i < 100; i++) {
        char *again = map(4 * MIB);
        memset(again, 1, 4 * MIB);
        unmap(again, 4 * MIB);
    }
    pid_t pid = fork_by_syscall();
    check(pid >= 0);
    if (!pid) {
        FOR_SIZES(bytes)
        unmap(memory.at[size_index], bytes);
        _exit(0);
    }
    check_ends_well(pid);
    usleep(100000);
    check_all(&memory, 0);
    for (int i = 0; i < 100; i++)
        unmap(map(4 * MIB), 4 * MIB);
    check_all(&memory, 0);
}

static int child_of_clone(void *argument) {
    check_all(argument, 0);
    write_all(argument, 100);
    check_all(argument, 100);
    _exit(0);
}

CASE(clone_copies_mappings) {
    struct memory memory;
    fill_all(&memory, map);
    check_ends_well(clone(child_of_clone, map(MIB) + MIB, SIGCHLD, &memory));
    check_all(&memory, 0);
}

static void check_own(void *argument) {
    check_all(argument, 0);
    write_all(argument, 100);
    check_all(argument, 100);
}

CASE(many_children_one_after_another) {
    struct memory memory;
    fill_all(&memory, map);
    for (int i = 0; i < 10; i++)
        in_child(check_own, &memory);
    check_all(&memory, 0);
}

CASE(many_children_at_once) {
    enum { CHILDREN = 6 };
    char *at = map(16 * MIB);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        fill(at, 0, 16 * MIB, i);
        children[i] = fork();
        check(children[i] >= 0);
        if (!children[i]) {
            for (int round = 0; round < 5; round++) {
                check_filled(at, 0, 16 * MIB, i + round * 10);
                fill(at, 0, 16 * MIB, i + (round + 1) * 10);
                sched_yield();
            }
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++)
        check_ends_well(children[i]);
    check_filled(at, 0, 16 * MIB, CHILDREN - 1);
}

static long private_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %ld", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib;
}

static void has_little_of_its_own(void *argument) {
    check_filled(argument, 0, 64 * MIB, 7);
    long kib = private_kib();
    check(kib >= 0 && kib < 8 << 10);
}

CASE(children_share_what_they_do_not_write) {
    char *at = map(64 * MIB);
    fill(at, 0, 64 * MIB, 7);
    in_child(has_little_of_its_own, at);
    in_child(has_little_of_its_own, at);
    check_filled(at, 0, 64 * MIB, 7);
}

static void unmap_and_map_anew(void *argument) {
    struct memory *memory = argument;
    FOR_SIZES(bytes) {
        unmap(memory->at[size_index], bytes);
        char *at = map(bytes);
        check_zero(at, 0, bytes);
        fill(at, 0, bytes, 300);
    }
}

CASE(what_a_child_unmaps_its_parent_keeps) {
    struct memory memory;
    fill_all(&memory, map);
    in_child(unmap_and_map_anew, &memory);
    check_all(&memory, 0);
}

static void malloc_and_free(void *argument) {
    struct memory *memory = argument, more;
    fill_all(&more, get_from_malloc);
    check_all(memory, 0);
    FOR_SIZES(bytes) {
        free(memory->at[size_index]);
        memory->at[size_index] = realloc(more.at[size_index], 2 * bytes);
        check(memory->at[size_index]);
        check_filled(memory->at[size_index], 0, bytes, size_index);
    }
}

CASE(a_child_frees_and_allocates) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    in_child(malloc_and_free, &memory);
    check_all(&memory, 0);
}

static void change_shared(void *argument) {
    struct memory *memory = argument;
    check_all(memory, 0);
    write_all(memory, 100);
}

static char *get_shared(size_t bytes) {
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    return at;
}

CASE(shared_memory_stays_shared) {
    struct memory memory;
    fill_all(&memory, get_shared);
    in_child(change_shared, &memory);
    check_all(&memory, 100);
}

struct generations {
    struct memory memory;
    int left;
};

static void fork_again(void *argument) {
    struct generations *generations = argument;
    uint64_t seed = generations->left-- * 10;
    check_all(&generations->memory, seed);
    write_all(&generations->memory, seed - 10);
    if (generations->left)
        in_child(fork_again, generations);
    check_all(&generations->memory, seed - 10);
}

CASE(fork_of_a_fork_of_a_fork) {
    static struct generations generations = {.left = 4};
    fill_all(&generations.memory, map);
    write_all(&generations.memory, 40);
    in_child(fork_again, &generations);
    check_all(&generations.memory, 40);
}

static void protected_alike(void *argument) {
    check_faults_only(argument, 4 * MIB, MIB, MIB + PAGE, false);
    check_filled(argument, 0, MIB, 7);
    check_filled(argument, MIB + PAGE, 4 * MIB, 7);
    check(mprotect((char *)argument + MIB, PAGE, PROT_READ | PROT_WRITE) == 0);
    check_filled(argument, 0, 4 * MIB, 7);
}

CASE(a_child_has_its_parents_guard_pages) {
    char *at = map(4 * MIB);
    fill(at, 0, 4 * MIB, 7);
    check(mprotect(at + MIB, PAGE, PROT_NONE) == 0);
    in_child(protected_alike, at);
    check_faults_only(at, 4 * MIB, MIB, MIB + PAGE, false);
}

static void without_what_is_not_to_be_forked(void *argument) {
    char *at = argument;
    check_gone(at, 2 * MIB, 6 * MIB);
    check_filled(at, 0, 2 * MIB, 7);
    check_filled(at, 6 * MIB, 10 * MIB + PAGE, 7);
}

CASE(dontfork_is_not_in_the_child) {
    char *at = map(10 * MIB + PAGE);
    fill(at, 0, 10 * MIB + PAGE, 7);
    check(madvise(at + 2 * MIB, 4 * MIB, MADV_DONTFORK) == 0);
    in_child(without_what_is_not_to_be_forked, at);
    check_filled(at, 0, 10 * MIB + PAGE, 7);
    check(madvise(at + 2 * MIB, 4 * MIB, MADV_DOFORK) == 0);
    struct memory memory;
    fill_all(&memory, map);
    in_child(check_own, &memory);
}

static void wiped(void *argument) {
    char *at = argument;
    check_zero(at, MIB, 5 * MIB + PAGE);
    check_filled(at, 0, MIB, 7);
    check_filled(at, 5 * MIB + PAGE, 10 * MIB, 7);
}

CASE(wipeonfork_is_zero_in_the_child) {
    char *at = map(10 * MIB);
    fill(at, 0, 10 * MIB, 7);
    check(madvise(at + MIB, 4 * MIB + PAGE, MADV_WIPEONFORK) == 0);
    in_child(wiped, at);
    check_filled(at, 0, 10 * MIB, 7);
    check(madvise(at, 10 * MIB, MADV_KEEPONFORK) == 0);
}

static volatile bool stop;

// Its own blocks, of which each is seen to be whole.
static void *allocate_busily(void *argument) {
    uint64_t seed = (uintptr_t)argument;
    while (!stop) {
        size_t bytes = 64 * KIB << seed++ % 6;
        char *block = malloc(bytes), *mapping = map(bytes);
        check(block);
        fill(block, 0, bytes, seed);
        fill(mapping, 0, bytes, seed + 1);
        check_filled(block, 0, bytes, seed);
        check_filled(mapping, 0, bytes, seed + 1);
        unmap(mapping, bytes);
        free(block);
    }
    return NULL;
}

CASE(fork_among_busy_threads) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct memory memory;
    fill_all(&memory, map);
    for (uintptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, allocate_busily, (void *)(i * 1000)) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (!pid) {
            check_all(&memory, 0);
            for (size_t bytes = 32; bytes < 8 * MIB; bytes *= 2) {
                char *block = malloc(bytes);
                check(block);
                fill(block, 0, bytes, i);
                check_filled(block, 0, bytes, i);
                free(block);
            }
            exit(0);
        }
        check_ends_well(pid);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    check_all(&memory, 0);
}

static void fork_in_thread(void *argument) {
    check_own(argument);
    struct memory more;
    fill_all(&more, get_from_malloc);
}

static void *fork_from_here(void *argument) {
    in_child(fork_in_thread, argument);
    return NULL;
}

CASE(fork_from_a_thread) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    pthread_t thread;
    check(pthread_create(&thread, NULL, fork_from_here, &memory) == 0);
    check(pthread_join(thread, NULL) == 0);
    check_all(&memory, 0);
}

CASE(vfork_and_exec) {
    struct memory memory;
    fill_all(&memory, map);
    for (int i = 0; i < 10; i++) {
        pid_t pid = vfork();
        if (!pid) {
            execl("/bin/true", "true", NULL);
            _exit(1);
        }
        check_ends_well(pid);
    }
    check_all(&memory, 0);
}

CASE(what_a_child_of_vfork_writes_its_parent_has) {
    char *at = map(4 * MIB);
    fill(at, 0, 4 * MIB, 1);
    pid_t pid = vfork();
    if (!pid) {
        *(uint64_t *)(at + 2 * MIB) = 42;
        _exit(0);
    }
    check_ends_well(pid);
    check(*(uint64_t *)(at + 2 * MIB) == 42);
    check_filled(at, 0, 2 * MIB, 1);
    check_filled(at, 2 * MIB + 8, 4 * MIB, 1);
}

CASE(posix_spawn_system_and_popen) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    char *arguments[] = {"sh", "-c", "exit 0", NULL}, line[32] = "";
    pid_t pid;
    check(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    check_ends_well(pid);
    check(WEXITSTATUS(system("exit 3")) == 3);
    FILE *pipe = popen("echo here; cat /dev/null", "r");
    check(pipe && fgets(line, sizeof line, pipe) && !strcmp(line, "here\n") && pclose(pipe) == 0);
    check_all(&memory, 0);
}

CASE(exec_of_itself) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    check_all(&memory, 0);
    const char *times = getenv("TIMES_RUN");
    if (times && strlen(times) == 3)
        return;
    setenv("TIMES_RUN", times ? times[1] ? "iii" : "ii" : "i", 1);
    execl(program, program, "exec_of_itself", NULL);
    check(!"exec returns");
}

CASE(an_exec_that_fails_changes_nothing) {
    struct memory memory;
    fill_all(&memory, map);
    check_error(execl("/nowhere", "nowhere", NULL), ENOENT);
    check_all(&memory, 0);
    pid_t pid = vfork();
    if (!pid) {
        execl("/nowhere", "nowhere", NULL);
        _exit(0);
    }
    check_ends_well(pid);
    check_all(&memory, 0);
}

// As daemons do it; the grandchild's words come by the pipe, whose end says that it is gone.
CASE(a_daemon_keeps_its_memory) {
    struct memory memory;
    fill_all(&memory, get_from_malloc);
    int said[2];
    char text[8] = "";
    check(pipe(said) == 0);
    pid_t pid = fork();
    if (!pid) {
        setsid();
        if (fork())
            _exit(0);
        // Its parent is gone soon.
        while (getppid() == pid)
            usleep(1000);
        usleep(100000);
        check_all(&memory, 0);
        write_all(&memory, 100);
        struct memory more;
        fill_all(&more, map);
        check_all(&memory, 100);
        check(write(said[1], "well", 5) == 5);
        _exit(0);
    }
    check_ends_well(pid);
    close(said[1]);
    write_all(&memory, 200);
    check(read(said[0], text, 5) == 5 && !strcmp(text, "well"));
    check_all(&memory, 200);
}

CASE(a_child_outlives_its_parent) {
    struct memory memory;
    int said[2];
    char text[8] = "";
    check(pipe(said) == 0);
    pid_t pid = fork();
    if (!pid) {
        fill_all(&memory, map);
        if (fork())
            _exit(0);
        usleep(1500000); // longer than a broker looks away
        check_all(&memory, 0);
        write_all(&memory, 100);
        check_all(&memory, 100);
        check(write(said[1], "well", 5) == 5);
        _exit(0);
    }
    check_ends_well(pid);
    close(said[1]);
    // Meanwhile somebody else wants memory.
    for (int i = 0; i < 20; i++) {
        struct memory others;
        fill_all(&others, map);
        write_all(&others, i);
        check_all(&others, i);
        FOR_SIZES(bytes)
        unmap(others.at[size_index], bytes);
        usleep(50000);
    }
    check(read(said[0], text, 5) == 5 && !strcmp(text, "well"));
}

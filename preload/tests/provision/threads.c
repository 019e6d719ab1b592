// Many threads at once, their stacks, signal handlers that map, and the main stack.
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 8 };

static void run_threads(void *(*run)(void *)) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
}

static void *map_and_unmap(void *argument) {
    uint64_t seed = (uintptr_t)argument * 1000;
    for (int i = 0; i < 100; i++) {
        size_t bytes = (seed++ * 7919 % 1021 + 1) * PAGE;
        char *at = map(bytes);
        check_zero(at, 0, bytes);
        fill(at, 0, bytes, seed);
        size_t half = bytes / 2 & -PAGE;
        if (i % 3 == 0 && half) {
            unmap(at, half);
        } else if (i % 3 == 1) {
            check(madvise(at, bytes, MADV_DONTNEED) == 0);
            check_zero(at, 0, bytes);
            fill(at, 0, bytes, seed);
            half = 0;
        } else {
            at = mremap(at, bytes, bytes + MIB, MREMAP_MAYMOVE);
            check(at != MAP_FAILED);
            check_zero(at, bytes, bytes + MIB);
            unmap(at + bytes, MIB);
            half = 0;
        }
        check_filled(at, half, bytes, seed);
        unmap(at + half, bytes - half);
    }
    return NULL;
}

CASE(threads_map_and_unmap) {
    run_threads(map_and_unmap);
}

static void *protect_and_unprotect(void *argument) {
    size_t bytes = 3 * MIB + PAGE;
    char *at = map(bytes);
    fill(at, 0, bytes, (uintptr_t)argument);
    for (size_t i = 0; i < 300; i++) {
        size_t page = i * 37 * PAGE % bytes;
        check(mprotect(at + page, PAGE, i % 2 ? PROT_READ : PROT_NONE) == 0);
        check(mprotect(at + page, PAGE, PROT_READ | PROT_WRITE) == 0);
        check_filled(at, page, page + PAGE, (uintptr_t)argument);
    }
    check_filled(at, 0, bytes, (uintptr_t)argument);
    unmap(at, bytes);
    return NULL;
}

CASE(threads_protect_and_unprotect) {
    run_threads(protect_and_unprotect);
}

// Each in its own arena, whose heaps are reservations made accessible bit by bit.
static void *allocate(void *argument) {
    enum { BLOCKS = 200 };
    char *blocks[BLOCKS] = {0};
    uint64_t state = (uintptr_t)argument + 1;
    size_t sizes_of[BLOCKS];
    for (int i = 0; i < 10000; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        int index = (state >> 33) % BLOCKS;
        if (blocks[index]) {
            check_filled(blocks[index], 0, sizes_of[index], index);
            free(blocks[index]);
        }
        sizes_of[index] = (state >> 40) % (index % 20 ? 20 * KIB : MIB) & -8;
        blocks[index] = malloc(sizes_of[index]);
        check(blocks[index]);
        fill(blocks[index], 0, sizes_of[index], index);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

CASE(threads_allocate) {
    run_threads(allocate);
}

static char *volatile handed[THREADS];

// What one thread allocated another frees.
static void *hand_over(void *argument) {
    size_t own = (uintptr_t)argument;
    for (int i = 0; i < 400; i++) {
        size_t bytes = 64 * KIB + (i * 7919 % 300) * PAGE;
        char *block = malloc(bytes);
        check(block);
        *(size_t *)block = bytes;
        fill(block, 8, bytes, 3);
        block = __atomic_exchange_n(&handed[(own + i) % THREADS], block, __ATOMIC_ACQ_REL);
        if (block)
            check_filled(block, 8, *(size_t *)block, 3);
        free(block);
    }
    return NULL;
}

CASE(threads_free_what_others_allocated) {
    run_threads(hand_over);
}

static void *read_while_others_map(void *argument) {
    char *at = argument;
    for (int i = 0; i < 10; i++)
        check_filled(at, 0, 16 * MIB, 1);
    return NULL;
}

CASE(threads_read_while_neighbours_come_and_go) {
    char *at = map(16 * MIB);
    fill(at, 0, 16 * MIB, 1);
    pthread_t thread;
    check(pthread_create(&thread, NULL, read_while_others_map, at) == 0);
    run_threads(map_and_unmap);
    check(pthread_join(thread, NULL) == 0);
}

static void *end_at_once(void *argument) {
    char text[64 * KIB];
    memset(text, 1, sizeof text);
    __asm__ volatile("" ::"r"(text) : "memory");
    return argument;
}

CASE(threads_come_and_go) {
    for (int i = 0; i < 100; i++)
        run_threads(end_at_once);
}

// Each level has 64 KiB of its own, which are as they were when it comes back to them.
static size_t recurse(size_t left) {
    volatile char own[64 * KIB];
    for (size_t i = 0; i < sizeof own; i += PAGE)
        own[i] = (char)left;
    size_t below = left > sizeof own ? recurse(left - sizeof own) : 0;
    for (size_t i = 0; i < sizeof own; i += PAGE)
        check(own[i] == (char)left);
    return below + sizeof own;
}

CASE(main_stack_7_mib_deep) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur < 8 * MIB)
        skip("the stack is limited to less than 8 MiB");
    check(recurse(7 * MIB) >= 7 * MIB);
    check(recurse(7 * MIB) >= 7 * MIB);
}

static void *recurse_deeply(void *argument) {
    check(recurse((size_t)argument) >= (size_t)argument);
    return argument;
}

CASE(large_thread_stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    check(pthread_attr_init(&attributes) == 0);
    for (size_t bytes = 4 * MIB; bytes <= 256 * MIB; bytes *= 4) {
        check(pthread_attr_setstacksize(&attributes, bytes) == 0);
        check(pthread_create(&thread, &attributes, recurse_deeply, (void *)(bytes - MIB)) == 0);
        check(pthread_join(thread, NULL) == 0);
    }
}

CASE(thread_stack_in_mapped_memory) {
    pthread_attr_t attributes;
    pthread_t thread;
    check(pthread_attr_init(&attributes) == 0);
    FOR_SIZES(bytes) {
        char *stack = map(bytes + PAGE);
        // With a guard of its own making.
        check(mprotect(stack, PAGE, PROT_NONE) == 0);
        check(pthread_attr_setstack(&attributes, stack + PAGE, bytes) == 0);
        void *deep = (void *)(bytes > MIB ? bytes - MIB / 2 : 1);
        check(pthread_create(&thread, &attributes, bytes < MIB ? map_and_unmap : recurse_deeply, deep) == 0);
        check(pthread_join(thread, NULL) == 0);
        check(signal_of_read(stack) == SIGSEGV);
        unmap(stack, bytes + PAGE);
    }
}

static sigjmp_buf out;
static volatile uintptr_t fault_at;

static void jump_out(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    fault_at = (uintptr_t)info->si_addr;
    siglongjmp(out, 1);
}

static void use_alternate_stack(void) {
    char *alternate = malloc(256 * KIB);
    check(alternate);
    check(sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = 256 * KIB}, NULL) == 0);
    struct sigaction action = {.sa_sigaction = jump_out, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    check(sigaction(SIGSEGV, &action, NULL) == 0);
}

static volatile uintptr_t lowest;

static size_t overflow(size_t depth) {
    volatile char own[16 * KIB];
    own[0] = (char)depth;
    lowest = (uintptr_t)own;
    return depth ? overflow(depth + 1) + own[0] : 0;
}

CASE(overflow_of_the_main_stack_is_handled_on_an_allocated_one) {
    use_alternate_stack();
    if (!sigsetjmp(out, 1))
        overflow(1);
    check(fault_at > lowest - MIB && fault_at < lowest + MIB);
}

static void *overflow_own_stack(void *argument) {
    use_alternate_stack();
    if (!sigsetjmp(out, 1))
        overflow(1);
    check(fault_at > lowest - MIB && fault_at < lowest + MIB);
    return argument;
}

CASE(overflow_of_a_threads_stack_is_handled_on_an_allocated_one) {
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, overflow_own_stack, NULL) == 0);
        check(pthread_join(thread, NULL) == 0);
    }
}

static volatile int handled;

static void map_in_handler(int signal) {
    (void)signal;
    int error = errno, number = handled++;
    size_t bytes = (number % 5 + 1) * 700 * KIB & -PAGE;
    char *at = map(bytes);
    check_zero(at, 0, PAGE);
    check_zero(at, bytes - PAGE, bytes);
    fill(at, 0, bytes, number);
    check(mprotect(at, PAGE, PROT_READ) == 0);
    check(madvise(at + PAGE, PAGE, MADV_DONTNEED) == 0);
    check_zero(at, PAGE, 2 * PAGE);
    check_filled(at, 2 * PAGE, bytes, number);
    unmap(at, bytes);
    errno = error;
}

CASE(signal_handlers_map) {
    struct sigaction action = {.sa_handler = map_in_handler, .sa_flags = SA_RESTART};
    check(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; handled < 100; i++)
        map_and_unmap((void *)(uintptr_t)i);
    check(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

CASE(signal_handlers_map_among_threads) {
    struct sigaction action = {.sa_handler = map_in_handler, .sa_flags = SA_RESTART};
    check(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {0};
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (handled < 30)
        run_threads(map_and_unmap);
    check(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

enum { BESIDE = 256 * KIB };
static volatile uint64_t written;
static volatile bool over;

static void *write_and_read(void *at) {
    while (!over) {
        fill(at, 0, BESIDE, written);
        check_filled(at, 0, BESIDE, written);
        written++;
    }
    return NULL;
}

// A page of a huge page that is used by two is protected: it cannot stay one, but nobody else is to notice.
CASE(a_thread_writes_beside_memory_that_is_protected) {
    unmap(map(4 * MIB), 4 * MIB);
    for (int i = 0; i < 100; i++) {
        char *at = map(BESIDE), *beside = map(BESIDE);
        pthread_t thread;
        over = false;
        written = 0;
        check(pthread_create(&thread, NULL, write_and_read, at) == 0);
        while (!written)
            usleep(100);
        check(mprotect(beside, PAGE, PROT_READ) == 0);
        over = true;
        check(pthread_join(thread, NULL) == 0);
        unmap(at, BESIDE);
        unmap(beside, BESIDE);
    }
}

static jmp_buf target;
static void (*volatile jump)(struct __jmp_buf_tag *, int) = longjmp;

static size_t leave(int left) {
    volatile char own[32 * KIB];
    own[0] = (char)left;
    if (left)
        return leave(left - 1) + own[0];
    jump(target, 1);
    return 0;
}

CASE(longjmp_leaves_memory_alone) {
    char *volatile at = map(16 * MIB);
    for (volatile int i = 0; i < 50; i++) {
        fill(at, 0, 16 * MIB, i);
        if (!setjmp(target))
            leave(20);
        check_filled(at, 0, 16 * MIB, i);
    }
}

static ucontext_t here, there;
static size_t turns;

static void turn(void) {
    for (;;) {
        turns += recurse(MIB) >= MIB;
        check(swapcontext(&there, &here) == 0);
    }
}

CASE(contexts_on_mapped_stacks) {
    char *stack = map(3 * MIB + PAGE);
    check(getcontext(&there) == 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = 3 * MIB + PAGE;
    makecontext(&there, turn, 0);
    for (int i = 0; i < 20; i++) {
        check(swapcontext(&here, &there) == 0);
        unmap(map(4 * MIB), 4 * MIB);
    }
    check(turns == 20);
}

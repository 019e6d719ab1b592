#include "helper.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>

#include "arena.h"
#include "lock.h"
#include "sys.h"

enum { STACK_BYTES = 128 << 10, TLS_BYTES = 8 << 10, HELPERS = 2 };

// Kept through forks: the child's takes the place of the parent's, which is not there.
static struct helper {
    void (*run)(void);
    char *memory;
    long process;
    uint32_t thread; // 0, by the kernel, when it has ended
    uint32_t *futex, turn;
} helpers[HELPERS];

static struct lock asking;
static void (*asked)(void);
static uint32_t turn;

static long clone_onto(long flags, uint64_t stack, uint64_t tls, uint32_t *thread, void (*run)(void)) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = (long)thread;
    register long r8 __asm__("r8") = tls;
    register void (*r9)(void) __asm__("r9") = run;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "xor %%ebp, %%ebp\n"
                     "call *%%r9\n"
                     "mov %[exit], %%eax\n"
                     "xor %%edi, %%edi\n"
                     "syscall\n"
                     "1:\n"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"(flags), "S"(stack), "d"(thread), "r"(r10), "r"(r8),
                       "r"(r9), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = flags;
    register long x1 __asm__("x1") = stack;
    register long x2 __asm__("x2") = (long)thread;
    register long x3 __asm__("x3") = tls;
    register long x4 __asm__("x4") = (long)thread;
    register void (*x5)(void) __asm__("x5") = run;
    __asm__ volatile("svc 0\n"
                     "cbnz x0, 1f\n"
                     "mov x29, 0\n"
                     "blr x5\n"
                     "mov x8, %[exit]\n"
                     "mov x0, 0\n"
                     "svc 0\n"
                     "1:\n"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), [exit] "i"(SYS_exit)
                     : "memory");
    return x0;
#endif
}

bool helper_start(void (*run)(void), uint32_t *futex) {
    uint32_t number = 0;
    while (number < HELPERS - 1 && helpers[number].run && helpers[number].run != run)
        number++;
    char *memory = helpers[number].memory;
    if (!memory && !(memory = arena_pages(STACK_BYTES + TLS_BYTES)))
        return false;
    struct helper *helper = &helpers[number];
    long process = sys(SYS_getpid);
    // Who held it is in the parent.
    if (helper->process != process)
        asking.state = 0;
    *helper = (struct helper){run, memory, process, 0, futex, __atomic_load_n(&turn, __ATOMIC_ACQUIRE)};
    uint64_t stack = (uint64_t)memory + STACK_BYTES, tls = stack + TLS_BYTES / 2;
    // Where x86-64 keeps the thread's own address.
    *(uint64_t *)tls = tls;
    const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    // The program's signals are for its own threads.
    uint64_t all = ~0UL, before;
    sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    long started = clone_onto(flags, stack, tls, &helper->thread, run);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    return !sys_failed(started);
}

void helper_asked(void) {
    char here;
    for (struct helper *helper = helpers; helper < helpers + HELPERS; helper++) {
        uint32_t now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
        if (!helper->memory || (uint64_t)(&here - helper->memory) >= STACK_BYTES || helper->turn == now)
            continue;
        asked();
        __atomic_store_n(&helper->turn, now, __ATOMIC_RELEASE);
    }
}

static bool waits_for(struct helper *helper, long process) {
    return helper->process == process && __atomic_load_n(&helper->thread, __ATOMIC_ACQUIRE) &&
           __atomic_load_n(&helper->turn, __ATOMIC_ACQUIRE) != turn;
}

void helpers_do(void (*work)(void)) {
    const uint64_t patience = 1000000000, until = now_ns() + patience;
    const struct timespec a_while = {.tv_nsec = 50000};
    long process = sys(SYS_getpid);
    bool any = false;
    for (int i = 0; i < HELPERS; i++)
        any |= helpers[i].process == process && helpers[i].thread;
    if (!any)
        return;
    lock_take(&asking);
    asked = work;
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < HELPERS; i++)
        while (waits_for(&helpers[i], process) && now_ns() < until) {
            sys(SYS_futex, helpers[i].futex, FUTEX_WAKE_PRIVATE, 1);
            sys(SYS_nanosleep, &a_while, NULL);
        }
    lock_release(&asking);
}

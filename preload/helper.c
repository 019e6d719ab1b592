#include "helper.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>

#include "arena.h"
#include "sys.h"

enum { STACK_BYTES = 128 << 10, TLS_BYTES = 8 << 10, HELPERS = 2 };

// Kept through forks: the child's takes the place of the parent's, which is not there.
static struct helper {
    void (*run)(void);
    uint32_t *futex;
    char *memory;
    long process;
    uint32_t thread; // 0: it has left
} helpers[HELPERS];

static uint32_t leaving; // threads of the program that want them to

static long clone_onto(long flags, uint64_t stack, uint64_t tls, uint32_t *thread, void (*run)(void)) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = 0;
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
    register long x4 __asm__("x4") = 0;
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
    // Where nobody foresaw that a thread is made.
    if (sandboxed)
        return false;
    uint32_t number = 0;
    while (number < HELPERS - 1 && helpers[number].run && helpers[number].run != run)
        number++;
    char *memory = helpers[number].memory;
    if (!memory && !(memory = arena_pages(STACK_BYTES + TLS_BYTES)))
        return false;
    struct helper *helper = &helpers[number];
    *helper = (struct helper){run, futex, memory, sys(SYS_getpid), 0};
    uint64_t stack = (uint64_t)memory + STACK_BYTES, tls = stack + TLS_BYTES / 2;
    // Where x86-64 keeps the thread's own address.
    *(uint64_t *)tls = tls;
    const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                       CLONE_PARENT_SETTID;
    // The program's signals are for its own threads.
    uint64_t all = ~0UL, before;
    sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    long started = clone_onto(flags, stack, tls, &helper->thread, run);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    return !sys_failed(started);
}

void helper_leaves(void) {
    if (__atomic_load_n(&leaving, __ATOMIC_ACQUIRE))
        sys(SYS_exit, 0);
}

static bool is_there(const struct helper *helper) {
    return helper->thread && helper->process == sys(SYS_getpid) &&
           !sys_failed(sys(SYS_tgkill, helper->process, helper->thread, 0));
}

void helpers_leave(void) {
    const uint64_t patience = 1000000000, until = now_ns() + patience;
    const struct timespec a_while = {.tv_nsec = 50000};
    bool any = false;
    for (int i = 0; i < HELPERS; i++)
        any |= is_there(&helpers[i]);
    // Those of who called vfork are its own.
    if (!any)
        return;
    __atomic_fetch_add(&leaving, 1, __ATOMIC_RELEASE);
    for (struct helper *helper = helpers; helper < helpers + HELPERS; helper++) {
        while (is_there(helper) && now_ns() < until) {
            sys(SYS_futex, helper->futex, FUTEX_WAKE_PRIVATE, 1);
            sys(SYS_nanosleep, &a_while, NULL);
        }
        if (!is_there(helper))
            helper->thread = 0;
    }
    __atomic_fetch_sub(&leaving, 1, __ATOMIC_RELEASE);
}

void helpers_come_back(void) {
    for (struct helper *helper = helpers; helper < helpers + HELPERS; helper++)
        if (helper->run && !helper->thread && helper->process == sys(SYS_getpid))
            helper_start(helper->run, helper->futex);
}

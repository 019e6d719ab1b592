// The kernel without libc: what runs inside another program must not pass through the very functions it watches, set
// its errno, or need a libc that is newer than the program's.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

// Whether it is in a sandbox (confine.h): then only what has to do with memory, as any program's, goes through to the
// kernel.
extern bool sandboxed __attribute__((visibility("hidden")));

static inline bool always_allowed(long number) {
    return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap || number == SYS_mprotect ||
           number == SYS_brk || number == SYS_futex || number == SYS_exit || number == SYS_exit_group;
}

// -errno on failure, as the kernel gives it.
static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
    if (__builtin_expect(sandboxed, 0) && !always_allowed(number))
        return -EPERM;
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "bursar's runtime knows x86-64 and aarch64"
#endif
}

#define SYS_OF(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define sys(...) SYS_OF(__VA_ARGS__, sys_6, sys_5, sys_4, sys_3, sys_2, sys_1, sys_0)(__VA_ARGS__)
#define sys_0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define sys_1(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define sys_2(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define sys_3(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys_4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys_5(n, a, b, c, d, e) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define sys_6(n, a, b, c, d, e, f) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int sys_failed(long result) {
    return (unsigned long)result > -4096UL;
}

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now = {0};
    sys(SYS_clock_gettime, clock, &now);
    return now.tv_sec * 1000000000UL + now.tv_nsec;
}

static inline uint64_t now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

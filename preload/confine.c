#include "confine.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "detour.h"
#include "helper.h"
#include "main.h"
#include "process.h"
#include "sys.h"

bool sandboxed;

static struct __user_cap_data_struct permitted[_LINUX_CAPABILITY_U32S_3];

// What vfork made confines itself alone, though all that is written here is its parent's; what clone made has no thread
// of ours.
static bool is_own(void) {
    return process.pid == sys(SYS_getpid);
}

// Whether it has given up what it could have got back until now.
static bool gave_up(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {0};
    sys(SYS_capget, &header, now);
    bool gave = false;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        gave |= now[i].permitted != permitted[i].permitted;
        permitted[i] = now[i];
    }
    return gave;
}

// All take up to three words.
#define MAY_GIVE_UP(name)                                                                                              \
    static int (*next_##name)(long, long, long);                                                                       \
    static int on_##name(long a, long b, long c) {                                                                     \
        int failed = next_##name(a, b, c);                                                                             \
        if (!failed && is_own() && gave_up()) {                                                                        \
            helpers_leave();                                                                                           \
            helpers_come_back();                                                                                       \
        }                                                                                                              \
        return failed;                                                                                                 \
    }
MAY_GIVE_UP(setuid)
MAY_GIVE_UP(setgid)
MAY_GIVE_UP(seteuid)
MAY_GIVE_UP(setegid)
MAY_GIVE_UP(setreuid)
MAY_GIVE_UP(setregid)
MAY_GIVE_UP(setresuid)
MAY_GIVE_UP(setresgid)
MAY_GIVE_UP(setgroups)
MAY_GIVE_UP(capset)

static int (*next_unshare)(int), (*next_setns)(int, int);

static int on_unshare(int flags) {
    helpers_leave();
    int failed = next_unshare(flags);
    helpers_come_back();
    return failed;
}

static int on_setns(int file, int kind) {
    helpers_leave();
    int failed = next_setns(file, kind);
    helpers_come_back();
    return failed;
}

// Without a filter it is asked what there is.
static bool enters(bool strict, const void *filter) {
    return !sandboxed && (strict || filter) && is_own();
}

static void enter(void) {
    tell_of_sandbox();
    helpers_leave();
    sandboxed = true;
}

static void stay(void) {
    sandboxed = false;
    helpers_come_back();
}

static int (*next_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);

static int on_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    bool is_way = option == PR_SET_SECCOMP && enters(a == SECCOMP_MODE_STRICT, (const void *)b);
    if (is_way)
        enter();
    int failed = next_prctl(option, a, b, c, d);
    if (is_way && failed)
        stay();
    return failed;
}

#if defined(__x86_64__)

// Other calls go on with the registers and the stack as they are: some are a thread's first, on a stack of its own.
__asm__(".text\n"
        "on_syscall:\n"
        "cmpq $317, %rdi\n"
        "je on_confining\n"
        "cmpq $272, %rdi\n"
        "je on_confining\n"
        "cmpq $308, %rdi\n"
        "je on_confining\n"
        "jmpq *next_syscall(%rip)\n");
_Static_assert(SYS_seccomp == 317 && SYS_unshare == 272 && SYS_setns == 308, "as above");
void on_syscall(void) __attribute__((visibility("hidden")));
long (*next_syscall)(long, unsigned long, unsigned long, const void *) __attribute__((visibility("hidden"), used));

__attribute__((visibility("hidden"), used)) long on_confining(long number, unsigned long a, unsigned long b,
                                                              const void *c) {
    bool is_filter = number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER);
    bool is_way = is_filter && enters(a == SECCOMP_SET_MODE_STRICT, c);
    if (is_way)
        enter();
    else if (number != SYS_seccomp)
        helpers_leave();
    long result = next_syscall(number, a, b, c);
    // A filter gives 0, or a descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER.
    if (is_way && result < 0)
        stay();
    else if (number != SYS_seccomp)
        helpers_come_back();
    return result;
}

#else

static void on_syscall(void) {
}
static void *next_syscall;

#endif

#define DETOUR(name)                                                                                                   \
    { #name, on_##name, (void **)&next_##name, NULL, FIRST }
static struct detour filters[] = {
    DETOUR(prctl),
    DETOUR(syscall),
};
static struct detour namespaces[] = {
    DETOUR(unshare),
    DETOUR(setns),
};
static struct detour giving_up[] = {
    DETOUR(setuid),   DETOUR(setgid),    DETOUR(seteuid),   DETOUR(setegid),   DETOUR(setreuid),
    DETOUR(setregid), DETOUR(setresuid), DETOUR(setresgid), DETOUR(setgroups), DETOUR(capset),
};

void confine_filters_detour(void) {
    detours_patch(filters, sizeof filters / sizeof *filters);
}

void confine_detour(void) {
    confine_filters_detour();
    detours_patch(namespaces, sizeof namespaces / sizeof *namespaces);
    // Most have nothing to give up.
    if (gave_up())
        detours_patch(giving_up, sizeof giving_up / sizeof *giving_up);
}

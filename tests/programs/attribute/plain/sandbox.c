// Programs that give up all system calls but those they know to need: any other is their end.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plain.h"

static const int allowed[] = {SYS_read,  SYS_write, SYS_mmap,       SYS_munmap, SYS_mremap,    SYS_brk,
                              SYS_futex, SYS_exit,  SYS_exit_group, SYS_fstat,  SYS_newfstatat};
enum { ALLOWED = sizeof allowed / sizeof *allowed };

static struct sock_fprog filter(void) {
    static struct sock_filter code[2 * ALLOWED + 2];
    struct sock_filter *at = code;
    *at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    *at = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return (struct sock_fprog){2 * ALLOWED + 2, code};
}

// Grows, shrinks and rests, as programs do.
static void go_on(void) {
    for (size_t i = 0; i < 60; i++) {
        size_t bytes = (i % 20 + 1) << 20;
        char *block = malloc(bytes), *behind = malloc(bytes / 3);
        touch(block, bytes);
        free(block);
        touch(behind, bytes / 3);
        behind = realloc(behind, bytes);
        free(behind);
    }
}

static void give_up(size_t bytes, bool all_threads) {
    char *held = malloc(bytes);
    touch(held, bytes);
    hold();
    truth("application", "peak_bytes", bytes);
    struct sock_fprog program = filter();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // What is not accepted changes nothing.
    struct sock_fprog empty = {0, program.filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty) == 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == 0)
        fail("an empty filter");
    long failed = all_threads ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
                              : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    if (failed)
        fail("seccomp");
    go_on();
    free(held);
}

void make_sandboxed(size_t bytes) {
    give_up(bytes, false);
}

void make_sandboxed_all(size_t bytes) {
    give_up(bytes, true);
}

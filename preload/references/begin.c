// The library that notes references, from before the program to its end. It is not the runtime of the other commands:
// it is to cost a process of a few milliseconds nothing that shows, so it has no more than it needs.

#include <stddef.h>

#include "../abi.h"
#include "../confine.h"
#include "../detour.h"
#include "../exec.h"
#include "../helper.h"
#include "../log.h"
#include "../main.h"
#include "../patch.h"
#include "../process.h"
#include "../runtime.h"
#include "../sys.h"
#include "life.h"
#include "loaded.h"
#include "note.h"
#include "removed.h"

void (*next_exit_now)(int);

// It has neither a log nor threads of its own.
void log_note(const char *format, ...) {
    (void)format;
}

void tell_of_sandbox(void) {
}

void helpers_leave(void) {
}

void helpers_come_back(void) {
}

// The child of a vfork has the memory of its parent, which goes on.
void on_exit_now(int status) {
    if (process.pid == sys(SYS_getpid))
        life_end(status & 0xff, loaded_note());
    next_exit_now(status);
}

void before_exec(bool own, const char *path, const char *hidden) {
    (void)hidden;
    // Where the program is looked for along PATH, most calls fail.
    if (own && path && !sys_failed(sys(SYS_faccessat, AT_FDCWD, path, 1 /* X_OK */)))
        life_end(PROCESS_GOES_ON, loaded_note());
}

void exec_failed(void) {
}

static struct detour detours[] = {
    // To glibc it is _exit; musl has its exit and _exit call it.
    {"_Exit", on_exit_now, (void **)&next_exit_now, NULL, FIRST},
    {"execve", on_execve, (void **)&next_execve, NULL, FIRST},
    {"execve", on_libc_execve, (void **)&next_libc_execve, NULL, LIBC_BEHIND},
    {"fexecve", on_fexecve, (void **)&next_fexecve, NULL, FIRST},
    {"execveat", on_execveat, (void **)&next_execveat, NULL, FIRST_IF_ANY},
};

static __attribute__((constructor)) void begin(void) {
    process.pid = sys(SYS_getpid);
    if (!references_begin())
        return;
    exec_begin();
    patch_begin();
    references_detour();
    removed_detour();
    detours_patch(detours, sizeof detours / sizeof *detours);
    confine_filters_detour();
    patch_done();
}

// A loader of programs that takes its time: exec of whoever has it in LD_PRELOAD begins a quarter of a second later, as
// from a disk that is slow.
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int execve(const char *path, char *const *arguments, char *const *environment) {
    static int (*next)(const char *, char *const *, char *const *);
    if (!next)
        next = (int (*)(const char *, char *const *, char *const *))dlsym(RTLD_NEXT, "execve");
    nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
    return next(path, arguments, environment);
}

// Comes before libc's execve, as tools do that follow what a program starts.
#include <dlfcn.h>
#include <unistd.h>

int execve(const char *path, char *const *arguments, char *const *environment) {
    int (*next)(const char *, char *const *, char *const *) =
        (int (*)(const char *, char *const *, char *const *))dlsym(RTLD_NEXT, "execve");
    return next(path, arguments, environment);
}

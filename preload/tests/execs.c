// Becomes itself, `execs done`, in every way that libc has, with 64 MiB that were touched just before: how much memory
// the log has at that moment is how well its end was told.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };

extern char **environ;

static char *const words[] = {"execs", "done", NULL};

static int spawn(const char *path, int (*how)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                                              const posix_spawnattr_t *, char *const[], char *const[])) {
    pid_t child;
    int status;
    if (how(&child, path, NULL, NULL, words, environ) || waitpid(child, &status, 0) != child)
        return 1;
    _exit(status != 0);
}

static int become(const char *way, const char *path) {
    if (!strcmp(way, "execve"))
        return execve(path, words, environ);
    if (!strcmp(way, "execv"))
        return execv(path, words);
    if (!strcmp(way, "execvp"))
        return execvp(path, words);
    if (!strcmp(way, "execvpe"))
        return execvpe(path, words, environ);
    if (!strcmp(way, "execl"))
        return execl(path, words[0], words[1], (char *)NULL);
    if (!strcmp(way, "execlp"))
        return execlp(path, words[0], words[1], (char *)NULL);
    if (!strcmp(way, "execle"))
        return execle(path, words[0], words[1], (char *)NULL, environ);
    if (!strcmp(way, "fexecve"))
        return fexecve(open(path, O_RDONLY | O_CLOEXEC), words, environ);
    if (!strcmp(way, "execveat"))
        return execveat(AT_FDCWD, path, words, environ, 0);
    if (!strcmp(way, "posix_spawn"))
        return spawn(path, posix_spawn);
    if (!strcmp(way, "posix_spawnp"))
        return spawn(path, posix_spawnp);
    if (!strcmp(way, "vfork")) {
        int status;
        pid_t child = vfork();
        if (!child) {
            execv(path, words);
            _exit(1);
        }
        return waitpid(child, &status, 0) != child || status ? 1 : execv(path, words);
    }
    // What fails is no end: the program goes on, and so does its log.
    if (!strcmp(way, "fails"))
        return execv("/nowhere", words) == -1 && execveat(AT_FDCWD, "/nowhere", words, environ, 0) == -1
                   ? execv(path, words)
                   : 1;
    return 1;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    if (!strcmp(arguments[1], "done"))
        return 0;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *memory = malloc(BYTES);
    if (length < 0 || !memory)
        return 2;
    path[length] = 0;
    memset(memory, 1, BYTES);
    __asm__ volatile("" : : "r"(memory) : "memory");
    become(arguments[1], path);
    perror(arguments[1]);
    return 1;
}

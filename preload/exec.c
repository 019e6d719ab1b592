#include "exec.h"

#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "symbols.h"
#include "sys.h"
#include "text.h"

int (*next_execve)(const char *, char *const *, char *const *);
int (*next_libc_execve)(const char *, char *const *, char *const *);
int (*next_fexecve)(int, char *const *, char *const *);
int (*next_execveat)(int, const char *, char *const *, char *const *, int);

// LD_PRELOAD without the runtime; NULL: nothing else is in it, or it is too long.
static const char *preload_without(const char *list, const char *own, char *kept, size_t bytes) {
    size_t length = 0;
    for (size_t part; *list; list += part + (list[part] != 0)) {
        part = strcspn(list, ": ");
        if (!part || (part == strlen(own) && !strncmp(list, own, part)))
            continue;
        if (length + part + 2 > bytes)
            return NULL;
        kept[length] = length ? ':' : 0;
        length++;
        memcpy(kept + length, list, part);
        length += part;
    }
    kept[length] = 0;
    return length ? kept + 1 : NULL;
}

// A call that makes another program of the process; it returns only when that fails.
struct exec {
    int (*call)(const struct exec *exec, char *const *environment);
    int directory; // of `path`, or the program itself
    const char *path;
    char *const *arguments, *const *environment;
    int flags;
};

static int call_execve(const struct exec *exec, char *const *environment) {
    return next_execve(exec->path, exec->arguments, environment);
}

static int call_libc_execve(const struct exec *exec, char *const *environment) {
    return next_libc_execve(exec->path, exec->arguments, environment);
}

static int call_fexecve(const struct exec *exec, char *const *environment) {
    return next_fexecve(exec->directory, exec->arguments, environment);
}

static int call_execveat(const struct exec *exec, char *const *environment) {
    return next_execveat(exec->directory, exec->path, exec->arguments, environment, exec->flags);
}

// The program is started where the runtime's file cannot be read: in a mount namespace, a container, behind chroot. The
// loader would complain on the program's standard error.
static int execute_without(const struct exec *exec, const char *own) {
    const char *const name = "LD_PRELOAD=";
    char *const *environment = exec->environment;
    uint32_t count = 0, kept = 0;
    while (environment && environment[count])
        count++;
    char *without[count + 1], list[4096];
    text_format(list, sizeof list, "%s", name);
    size_t head = strlen(name);
    for (uint32_t i = 0; i < count; i++) {
        without[kept++] = environment[i];
        if (strncmp(environment[i], name, head))
            continue;
        const char *others = preload_without(environment[i] + head, own, list + head - 1, sizeof list - head);
        list[head - 1] = '=';
        if (others)
            without[kept - 1] = list;
        else
            kept--;
    }
    without[kept] = NULL;
    return exec->call(exec, without);
}

// The runtime's file as it was loaded. Where bursar could write no file it is in bursar's memory, and has a name in
// /proc, which in another PID namespace is another file's.
static struct stat own_file;
static const char in_memory[] = "/proc/";

static bool file_of(const char *path, struct stat *found) {
    return !sys_failed(sys(SYS_newfstatat, AT_FDCWD, path, found, 0));
}

static bool is_hidden(const char *path) {
    struct stat found;
    if (sys_failed(sys(SYS_faccessat, AT_FDCWD, path, 4 /* R_OK */)))
        return true;
    return !strncmp(path, in_memory, sizeof in_memory - 1) &&
           (!file_of(path, &found) || found.st_dev != own_file.st_dev || found.st_ino != own_file.st_ino);
}

bool runtime_in_memory(void) {
    const struct link_map *own = runtime_map();
    return own && !strncmp(own->l_name, in_memory, sizeof in_memory - 1);
}

// The runtime's file, if it cannot be read from here; else NULL.
static const char *unreadable_file(const struct exec *exec) {
    const struct link_map *own = runtime_map();
    // A program that is opened already has no path to be asked for.
    bool starts =
        !exec->path || !*exec->path || !sys_failed(sys(SYS_faccessat, exec->directory, exec->path, 1 /* X_OK */));
    return starts && own && *own->l_name == '/' && is_hidden(own->l_name) ? own->l_name : NULL;
}

void exec_begin(void) {
    const struct link_map *own = runtime_map();
    if (own)
        file_of(own->l_name, &own_file);
}

// The process that is about to become another program, by this thread: another library's execve calls libc's, and
// fexecve may call execve. The child of a vfork has its parent's variables, and leaves them as they are.
static __thread long executes __attribute__((tls_model("initial-exec")));

static int execute(const struct exec *exec) {
    long pid = sys(SYS_getpid), before = executes;
    if (before == pid)
        return exec->call(exec, exec->environment);
    executes = pid;
    // What vfork shares is the parent's.
    bool own = process.pid == pid;
    const char *hidden = unreadable_file(exec);
    before_exec(own, exec->path, hidden);
    int failed = hidden ? execute_without(exec, hidden) : exec->call(exec, exec->environment);
    if (own)
        exec_failed();
    executes = before;
    return failed;
}

int on_execve(const char *path, char *const *arguments, char *const *environment) {
    return execute(&(struct exec){call_execve, AT_FDCWD, path, arguments, environment, 0});
}

int on_libc_execve(const char *path, char *const *arguments, char *const *environment) {
    return execute(&(struct exec){call_libc_execve, AT_FDCWD, path, arguments, environment, 0});
}

int on_fexecve(int file, char *const *arguments, char *const *environment) {
    return execute(&(struct exec){call_fexecve, file, NULL, arguments, environment, 0});
}

int on_execveat(int directory, const char *path, char *const *arguments, char *const *environment, int flags) {
    return execute(&(struct exec){call_execveat, directory, path, arguments, environment, flags});
}

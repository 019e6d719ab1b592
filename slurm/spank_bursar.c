// srun --bursar: the account of a step in its output at its end, and the --mem to ask for. So for sbatch and salloc,
// for the script and the steps in it.
//
// plugstack.conf:  optional /usr/local/lib/bursar/spank_bursar.so bursar=/usr/local/bin/bursar
//
// Beside each step, on each of its nodes, one `bursar slurm step` watches the step's cgroup as the job's user. It is
// started before the step has a cgroup, so that it is in none of its figures and takes none of its memory. One socket
// is its standard input and output: it is told a task's PID, sees the end of the input when the last task has ended or
// slurmstepd has died, and says the account. Whatever happens to it, the step goes on; only its end waits for the
// account, at most PATIENCE_MS.
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef BURSAR
#define BURSAR "/usr/local/bin/bursar"
#endif

#ifndef PATIENCE_MS
#define PATIENCE_MS 5000
#endif

enum { MOST_FILES = 65536, LINE = 512 };

SPANK_PLUGIN(bursar, 1)

// One step per process.
static bool wanted;
static const char *program = BURSAR;
static int observer = -1;
static bool told;
static uint32_t exited;

static int want(int val, const char *optarg, int remote) {
    (void)val, (void)optarg, (void)remote;
    wanted = true;
    return ESPANK_SUCCESS;
}

static struct spank_option option = {
    .name = "bursar",
    .usage = "print the memory account of each step at its end, and the --mem to ask for",
    .cb = want,
};

int slurm_spank_init(spank_t spank, int ac, char **av) {
    static const char key[] = "bursar=";
    for (int i = 0; i < ac; i++) {
        if (strncmp(av[i], key, sizeof key - 1) == 0)
            program = av[i] + sizeof key - 1;
        else
            slurm_error("spank_bursar: '%s' in plugstack.conf is not bursar=PATH", av[i]);
    }
    spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
        return ESPANK_SUCCESS;
    return spank_option_register(spank, &option);
}

// Who the job's processes are.
struct user {
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    int count;
};

static bool become(const struct user *user) {
    if (geteuid() != 0)
        return true;
    return setgroups((size_t)user->count, user->groups) == 0 && setgid(user->gid) == 0 && setuid(user->uid) == 0;
}

// In a child, which nobody waits for and which no process of the step is above.
static _Noreturn void observe(int socket, const struct user *user, char *const environment[]) {
    if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0)
        _exit(1);
    // What slurmstepd has open, srun and the tasks wait to see closed. Its log is not ours.
    for (int fd = STDERR_FILENO; fd < MOST_FILES; fd++)
        close(fd);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (chdir("/") != 0 || !become(user))
        _exit(1);
    execle(program, program, "slurm", "step", (char *)NULL, environment);
    dprintf(STDOUT_FILENO, "bursar: %s cannot be run: %s\n", program, strerror(errno));
    _exit(1);
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av) {
    (void)ac, (void)av;
    if (!wanted || spank_remote(spank) != 1)
        return ESPANK_SUCCESS;
    struct user user = {0};
    if (spank_get_item(spank, S_JOB_UID, &user.uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &user.gid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &user.groups, &user.count) != ESPANK_SUCCESS)
        return ESPANK_SUCCESS;
    // Where its record goes.
    char home[LINE] = "HOME=", state[LINE] = "XDG_STATE_HOME=", path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    char *environment[4] = {path};
    int count = 1;
    if (spank_getenv(spank, "HOME", home + strlen(home), (int)(sizeof home - strlen(home))) == ESPANK_SUCCESS)
        environment[count++] = home;
    if (spank_getenv(spank, "XDG_STATE_HOME", state + strlen(state), (int)(sizeof state - strlen(state))) ==
        ESPANK_SUCCESS)
        environment[count++] = state;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return ESPANK_SUCCESS;
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            observe(ends[1], &user, environment);
        _exit(0);
    }
    close(ends[1]);
    observer = ends[0];
    if (child > 0)
        waitpid(child, NULL, 0);
    return ESPANK_SUCCESS;
}

// The tasks are in their cgroups and have not begun.
int slurm_spank_task_post_fork(spank_t spank, int ac, char **av) {
    (void)ac, (void)av;
    pid_t pid;
    if (observer < 0 || told || spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
        return ESPANK_SUCCESS;
    char line[32];
    int length = snprintf(line, sizeof line, "%d\n", (int)pid);
    told = send(observer, line, (size_t)length, MSG_NOSIGNAL) == length;
    return ESPANK_SUCCESS;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The step has ended: its account, line by line, into its output.
static void finish(void) {
    if (observer < 0)
        return;
    shutdown(observer, SHUT_WR);
    int64_t deadline = now_ms() + PATIENCE_MS;
    char line[LINE];
    size_t length = 0;
    struct pollfd readable = {.fd = observer, .events = POLLIN};
    for (;;) {
        int64_t left = deadline - now_ms();
        if (left <= 0) {
            slurm_spank_log("bursar: no account of the step: it was not there %d ms after the step's end", PATIENCE_MS);
            break;
        }
        if (poll(&readable, 1, (int)left) <= 0)
            continue;
        char byte;
        if (read(observer, &byte, 1) != 1)
            break;
        if (byte != '\n' && length < sizeof line - 1) {
            line[length++] = byte;
            continue;
        }
        line[length] = '\0';
        slurm_spank_log("%s", line);
        length = 0;
    }
    close(observer);
    observer = -1;
}

int slurm_spank_task_exit(spank_t spank, int ac, char **av) {
    (void)ac, (void)av;
    uint32_t tasks;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS && ++exited >= tasks)
        finish();
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int ac, char **av) {
    (void)spank, (void)ac, (void)av;
    finish();
    return ESPANK_SUCCESS;
}

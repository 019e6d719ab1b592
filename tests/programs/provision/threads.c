// Has so much memory and a second thread, and forks children that only read it: threads BYTES CHILDREN
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *rest(void *unused) {
    pause();
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    size_t bytes = strtoul(argv[1], NULL, 10);
    char *memory = malloc(bytes);
    pthread_t thread;
    if (!memory || pthread_create(&thread, NULL, rest, NULL))
        return 1;
    memset(memory, 1, bytes);
    for (int child = atoi(argv[2]); child > 0; child--) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(memory[bytes - 1] != 1);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            return 1;
    }
    puts("forked");
    return 0;
}

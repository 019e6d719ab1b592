// forked BYTES: a child that grows beyond its parent at once, gives that back, and then holds so many bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *filled(size_t bytes) {
    return memset(malloc(bytes + 1), 1, bytes + 1);
}

int main(int count, char **arguments) {
    size_t bytes = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
    if (!fork()) {
        free(filled(bytes / 2));
        void *held = filled(bytes);
        usleep(500000);
        free(held);
        exit(0);
    }
    wait(NULL);
    printf("/components/application/heap=%zu\n", bytes);
    return 0;
}

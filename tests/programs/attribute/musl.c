// musl BYTES: all that allocates, in threads and in children, with another libc. At the end it holds nothing.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *churn(void *unused) {
    for (size_t i = 0; i < 1000; i++) {
        char *block = malloc(100 + i);
        memset(block, 1, 100 + i);
        free(realloc(block, 5000 + i));
    }
    return unused;
}

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    char *held = malloc(bytes);
    memset(held, 1, bytes);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    void *aligned;
    if (posix_memalign(&aligned, 64, 1000))
        return 1;
    free(aligned);
    free(calloc(10, 10));
    if (fork() == 0) {
        churn(NULL);
        _exit(0);
    }
    wait(NULL);
    free(held);
    return system("true");
}

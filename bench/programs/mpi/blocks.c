// blocks: what a block costs that is obtained and given back, on one thread and on two. It needs no MPI.
#include <pthread.h>

#include "measure.h"

enum { BLOCKS = 31, PAIRS = 100000, KEPT = 64 };

static const size_t sizes[] = {16, 64, 256, 1024, 16384};
static size_t bytes;

// As programs do: some live at any time, and the oldest goes.
static void *pairs(void *each_ns) {
    double each[BLOCKS];
    void *kept[KEPT] = {NULL};
    for (int i = 0; i < BLOCKS; i++) {
        double begin = seconds();
        for (int j = 0; j < PAIRS; j++) {
            void *volatile *oldest = &kept[j % KEPT];
            free(*oldest);
            *oldest = malloc(bytes);
        }
        each[i] = (seconds() - begin) / PAIRS * 1e9;
    }
    for (int i = 0; i < KEPT; i++)
        free(kept[i]);
    *(double *)each_ns = fastest(each, BLOCKS);
    return NULL;
}

int main(void) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bytes = sizes[i];
        double one, two;
        pairs(&one);
        printf("pair_ns_%zu=%.2f\n", bytes, one);
        pthread_t other;
        if (pthread_create(&other, NULL, pairs, &two))
            return 1;
        pairs(&one);
        pthread_join(other, NULL);
        printf("pair_ns_two_threads_%zu=%.2f\n", bytes, one > two ? one : two);
    }
    return 0;
}

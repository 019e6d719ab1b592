// Calls that can be counted, by one thread and by many.
#include <pthread.h>
#include <stdlib.h>

#include "cases.h"

enum { THREADS = 4, CALLS = 1000 };

static size_t each;

static void *exchange(void *argument) {
    int tag = *(int *)argument, received;
    char *own = filled(each);
    for (int i = 0; i < CALLS; i++)
        MPI_Sendrecv(&tag, 1, MPI_INT, 1 - rank, tag, &received, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    return own;
}

// The test knows 4 times 1000 calls of MPI_Sendrecv per rank.
void make_multiple(size_t bytes) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_t threads[THREADS];
    int tags[THREADS];
    each = bytes / THREADS;
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i;
        pthread_create(&threads[i], NULL, exchange, &tags[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    truth_of(rank, "application", "heap", bytes / THREADS * THREADS);
    hold();
}

// The test knows: 100 by name, 100 by the name that tools use, 100 by a pointer.
void make_counted(size_t bytes) {
    begin();
    int (*volatile pointer)(MPI_Comm) = MPI_Barrier;
    for (int i = 0; i < 100; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        PMPI_Barrier(MPI_COMM_WORLD);
        pointer(MPI_COMM_WORLD);
    }
    filled(bytes);
    truth_of(rank, "application", "heap", bytes);
    hold();
}

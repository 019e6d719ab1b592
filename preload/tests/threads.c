// Threads, one generation after another, that all call MPI: none of their calls is lost when they end.
#include <mpi.h>
#include <pthread.h>

enum { GENERATIONS = 20, THREADS = 8, TIMES = 5000 };

static void *calls(void *unused) {
    int rank, flag;
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (i % 100 == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    return unused;
}

int main(int count, char **arguments) {
    int provided;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, calls, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    MPI_Finalize();
    return provided != MPI_THREAD_MULTIPLE;
}

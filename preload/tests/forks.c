// A child counts from nothing, and its parent goes on.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int rank, status;
    MPI_Init(&count, &arguments);
    for (int i = 0; i < 100; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 7; i++)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        // A child that ends at once has no log.
        usleep(500000);
        _exit(0);
    }
    waitpid(child, &status, 0);
    for (int i = 0; i < 100; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    return status;
}

// alltoall: rounds of small and of large messages from everybody to everybody, with fresh buffers in each.
#include <mpi.h>
#include <string.h>

#include "measure.h"

enum { ROUNDS = 40, SMALL = 2 << 10, LARGE = 4 << 20 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = seconds();
    for (int round = 0; round < ROUNDS; round++) {
        int bytes = round % 2 ? LARGE : SMALL;
        size_t all = (size_t)bytes * (size_t)ranks;
        char *sent = malloc(all), *received = malloc(all);
        memset(sent, rank, all);
        MPI_Alltoall(sent, bytes, MPI_BYTE, received, bytes, MPI_BYTE, MPI_COMM_WORLD);
        if (received[all - 1] != (char)(ranks - 1))
            MPI_Abort(MPI_COMM_WORLD, 1);
        free(sent);
        free(received);
    }
    if (rank == 0)
        printf("alltoall_seconds=%.6f\n", seconds() - begin);
    return MPI_Finalize();
}

// messages: pairs of ranks, the first half sends to the second: there and back one by one, and many at a time.
#include <mpi.h>

#include "measure.h"

enum { WINDOW = 64, LARGEST = 4 << 20, BLOCKS = 9 };

static int rank, peer, is_sender;
static char *buffer;

static double there_and_back(int bytes, int times) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = seconds();
    for (int i = 0; i < times; i++) {
        if (is_sender)
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!is_sender)
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
    return (seconds() - begin) / times / 2;
}

static double many(int bytes, int windows) {
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = seconds();
    for (int i = 0; i < windows; i++) {
        for (int j = 0; j < WINDOW; j++) {
            if (is_sender)
                MPI_Isend(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(WINDOW, requests, statuses);
        if (is_sender)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (seconds() - begin) / windows / WINDOW;
}

int main(int argc, char **argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks % 2)
        MPI_Abort(MPI_COMM_WORLD, 1);
    is_sender = rank < ranks / 2;
    peer = is_sender ? rank + ranks / 2 : rank - ranks / 2;
    buffer = calloc(1, LARGEST);
    for (int bytes = 1; bytes <= LARGEST; bytes *= 4) {
        // About as long for every size.
        int times = bytes <= 16 << 10 ? 2000 : 2000 / (bytes >> 13) + 4;
        double one[BLOCKS], rate[BLOCKS];
        there_and_back(bytes, times / 4 + 1);
        for (int i = 0; i < BLOCKS; i++) {
            one[i] = there_and_back(bytes, times);
            rate[i] = many(bytes, times / 16 + 1);
        }
        if (rank == 0)
            printf("one_way_us_%d=%.3f\nmessages_per_second_%d=%.0f\n", bytes, fastest(one, BLOCKS) * 1e6, bytes,
                   ranks / 2 / fastest(rate, BLOCKS));
    }
    return MPI_Finalize();
}

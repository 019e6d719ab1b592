// Messages of which it is known who sends how much to whom, by communicators in which ranks have other numbers.
#include <stdlib.h>

#include "cases.h"

enum { TIMES = 10 };

// To rank 1: 10 of `bytes`, 10 of 8 bytes, 3 of 12; to rank 0: 10 of 8 bytes, 5 of 100. Nothing else counts: what is
// received, collective, or sent to nobody.
void make_exchange(size_t bytes) {
    MPI_Comm reversed;
    MPI_Request request;
    begin();
    char *buffer = filled(bytes + 100);
    int other = 1 - rank;
    double mine = rank, theirs;
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0)
            MPI_Send(buffer, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, 1, &theirs, 1, MPI_DOUBLE, other, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Send(buffer, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &theirs, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    // Here rank 0 is 1, and 1 is 0.
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    int count = rank == 0 ? 3 : 5, expected = rank == 0 ? 5 : 3;
    for (int i = 0; i < count; i++) {
        MPI_Isend(buffer, rank == 0 ? 3 : 100, rank == 0 ? MPI_INT : MPI_BYTE, rank, 2, reversed, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < expected; i++)
        MPI_Recv(buffer, 100, MPI_BYTE, rank, 2, reversed, MPI_STATUS_IGNORE);
    MPI_Comm_free(&reversed);
}

// Messages of which it is known who sends how much to whom, by communicators in which ranks have other numbers.
#include <stdlib.h>

#include "cases.h"

enum { TIMES = 10 };

// Prepared once, and started again and again, to rank 1 and then to rank 0: 4 of 4 bytes and 4 of 7; to rank 1 also 3
// of 2 parts of 5 bytes. Who receives has requests of its own, by then those that it has sent by.
static void start_prepared(char *buffer) {
    enum { STARTS = 4, PARTS = 2, PART = 5 };
    MPI_Request two[2], parted;
    MPI_Status statuses[2];
    for (int to = 1; to >= 0; to--) {
        int number = 3;
        if (rank != to) {
            MPI_Send_init(&number, 1, MPI_INT, to, 3, MPI_COMM_WORLD, &two[0]);
            MPI_Ssend_init(buffer, 7, MPI_BYTE, to, 4, MPI_COMM_WORLD, &two[1]);
        } else {
            MPI_Recv_init(&number, 1, MPI_INT, 1 - to, 3, MPI_COMM_WORLD, &two[0]);
            MPI_Recv_init(buffer, 7, MPI_BYTE, 1 - to, 4, MPI_COMM_WORLD, &two[1]);
        }
        for (int i = 0; i < STARTS; i++) {
            if (i % 2) {
                MPI_Startall(2, two);
            } else {
                MPI_Start(&two[0]);
                MPI_Start(&two[1]);
            }
            MPI_Waitall(2, two, statuses);
        }
        MPI_Request_free(&two[0]);
        MPI_Request_free(&two[1]);
        if (to == 0)
            return;
#if MPI_VERSION >= 4
        if (rank == 0)
            MPI_Psend_init(buffer, PARTS, PART, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &parted);
        else
            MPI_Precv_init(buffer, PARTS, PART, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &parted);
        for (int i = 0; i < 3; i++) {
            MPI_Start(&parted);
            for (int part = 0; part < PARTS && rank == 0; part++)
                MPI_Pready(part, parted);
            MPI_Wait(&parted, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&parted);
#else
        for (int i = 0; i < 3; i++) {
            if (rank == 0)
                MPI_Send(buffer, PARTS * PART, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
            else
                MPI_Recv(buffer, PARTS * PART, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        (void)parted;
#endif
    }
}

// To rank 1: 10 of `bytes`, 10 of 8 bytes, 3 of 12; to rank 0: 10 of 8 bytes, 5 of 100; and what is prepared. Nothing
// else counts: what is received, collective, or sent to nobody.
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
    start_prepared(buffer);
}

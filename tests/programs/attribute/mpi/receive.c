// The application's receive buffer is touched first by MPI, inside MPI_Recv.
#include <stdlib.h>

#include "cases.h"

void make_receive(size_t bytes) {
    begin();
    if (rank == 0) {
        char *sent = filled(bytes);
        MPI_Send(sent, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        char *received = malloc(bytes + 1);
        MPI_Recv(received, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    truth_of(rank, "application", "heap", bytes);
    truth_of(rank, "mpi", "peak_bytes", 0);
    hold();
}

// Messages of all sizes, there and back: MPI holds what it holds, and never more than there is.
void make_messages(size_t bytes) {
    begin();
    char *buffer = filled(4 << 20);
    for (size_t size = 1; bytes && size <= 4 << 20; size *= 2) {
        for (int i = 0; i < 50; i++) {
            if (rank == 0)
                MPI_Send(buffer, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, (int)size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1)
                MPI_Send(buffer, (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    truth_of(rank, "application", "heap", 0);
    hold();
}

// Memory that MPI obtains for the application to use.
#include "cases.h"

void make_window(size_t bytes) {
    begin();
    void *memory;
    MPI_Win window;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    touch(memory, bytes);
    truth_of(rank, "mpi", "peak_bytes", bytes);
    truth_of(rank, "application", "peak_bytes", 0);
    hold();
    MPI_Win_free(&window);
}

void make_window_shared(size_t bytes) {
    begin();
    void *memory;
    MPI_Win window;
    MPI_Win_allocate_shared((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    touch(memory, bytes);
    truth_of(rank, "mpi", "peak_bytes", bytes);
    truth_of(rank, "mpi", "shared", bytes);
    truth_of(rank, "application", "peak_bytes", 0);
    hold();
    MPI_Win_free(&window);
}

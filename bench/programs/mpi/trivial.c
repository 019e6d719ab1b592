// trivial: a job that only begins and ends.
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}

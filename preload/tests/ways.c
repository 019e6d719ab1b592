// Calls MPI in every way that a C program can: each is one call of its function, whoever calls it within the library.
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 1000 };

int main(int count, char **arguments) {
    int rank, size, sum = 0;
    MPI_Init(&count, &arguments);
    for (int i = 0; i < TIMES; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int (*volatile pointer)(MPI_Comm, int *) = MPI_Comm_rank;
    for (int i = 0; i < TIMES; i++)
        pointer(MPI_COMM_WORLD, &rank);
    int (*found)(MPI_Comm, int *) = dlsym(RTLD_DEFAULT, "MPI_Comm_rank");
    for (int i = 0; i < TIMES; i++)
        found(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TIMES; i++)
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    found = dlsym(RTLD_DEFAULT, "PMPI_Comm_rank");
    for (int i = 0; i < TIMES; i++)
        found(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    // Nine arguments: what goes by the stack arrives.
    int *counts = calloc(4 * size, sizeof *counts), *values = calloc(2 * size, sizeof *values);
    for (int i = 0; i < size; i++) {
        counts[i] = counts[size + i] = 1;
        counts[2 * size + i] = counts[3 * size + i] = i;
        values[i] = rank;
    }
    MPI_Alltoallv(values, counts, counts + 2 * size, MPI_INT, values + size, counts + size, counts + 3 * size, MPI_INT,
                  MPI_COMM_WORLD);
    int wrong = sum != size * (size - 1) / 2;
    for (int i = 0; i < size; i++)
        wrong |= values[size + i] != i;
    MPI_Comm other;
    for (int i = 0; i < 5; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        MPI_Comm_free(&other);
    }
    MPI_Finalize();
    return wrong;
}

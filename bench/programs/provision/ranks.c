// ranks [MIB] [ROUNDS]: each rank streams over MIB of its own and sends the last MiB of it to the next rank, ROUNDS
// times.
#include <mpi.h>

#include "provision.h"

enum { SENT = MIB / sizeof(double) };

int main(int argc, char **argv) {
    int rank, ranks;
    uint64_t begin = nanoseconds();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t count = argument(argv, 1, 1024) * MIB / 2 / sizeof(double);
    uint64_t rounds = argument(argv, 2, 4);
    double *a = doubles(count), *b = doubles(count), sum = 0, total;
    if (count < 2 * SENT)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < count; i++)
        a[i] = rank + (double)(i % 1024) / 1024;
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++)
            b[i] = 0.5 * a[i] + 1;
        for (size_t i = 0; i < count; i++)
            a[i] = 0.5 * (a[i] + b[i]);
        MPI_Sendrecv(a + count - SENT, SENT, MPI_DOUBLE, (rank + 1) % ranks, 0, a, SENT, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (size_t i = 0; i < count; i += 512)
        sum += a[noise(i) % count];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    // Of its own work and of waiting for its neighbours; a rank that is starved holds up all.
    double taken = (double)(nanoseconds() - begin) * 1e-9, slowest, fastest;
    MPI_Reduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&taken, &fastest, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks: %d, %.17g\nslowest_seconds=%.6f\nfastest_seconds=%.6f\n", ranks, total, slowest, fastest);
    return MPI_Finalize();
}

// calls: what one call costs that changes nothing, and one that touches a fresh page.
#include <mpi.h>
#include <string.h>
#include <sys/mman.h>

#include "measure.h"

enum { BLOCKS = 31, CALLS = 200000, PAGE = 4096, PAGES = 4096 };

static double nothing(void) {
    int rank;
    double begin = seconds();
    for (int i = 0; i < CALLS; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return (seconds() - begin) / CALLS * 1e9;
}

// Each call adds up into a page that nobody has touched.
static double fault(void) {
    static char in[PAGE];
    char *fresh = mmap(NULL, (size_t)PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(fresh, (size_t)PAGE * PAGES, MADV_NOHUGEPAGE);
    double begin = seconds();
    for (size_t i = 0; i < PAGES; i++)
        MPI_Reduce_local(in, fresh + i * PAGE, PAGE, MPI_BYTE, MPI_BOR);
    double each = (seconds() - begin) / PAGES * 1e9;
    munmap(fresh, (size_t)PAGE * PAGES);
    return each;
}

int main(int argc, char **argv) {
    double calls[BLOCKS], faults[BLOCKS];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < BLOCKS; i++) {
        calls[i] = nothing();
        faults[i] = fault();
    }
    if (rank == 0)
        printf("call_ns=%.2f\nfault_ns=%.1f\n", fastest(calls, BLOCKS), fastest(faults, BLOCKS));
    return MPI_Finalize();
}

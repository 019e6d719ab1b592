// A program between whose calls of MPI there is another component.
#include <mpi.h>
#include <stdio.h>

#include "outer.h"

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong |= outer_rank() != 0;
    outer_reduce(10);
    wrong |= outer_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.0, 12.0, 13L, 14.0, 15L, 16.0, 17L, 18.0, 19L, 20.0, 21L, 22.0,
                       23L, 24.0, 25L, 26.0, 27L, 28.0) != 28 * 29 / 2;
    struct large large = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    large = outer_large(large, 2);
    for (int i = 0; i < 9; i++)
        wrong |= large.values[i] != 2 * (i + 1);
    wrong |= outer_long(41.5L) != 42.5L;
    MPI_Finalize();
    printf("%s\n", wrong ? "wrong" : "right");
    return wrong;
}

#include "outer.h"

#include <mpi.h>
#include <stdarg.h>

// The six integers in registers, four and the rest on the stack, floating point in registers.
long outer_sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, double x, double y,
               ...) {
    va_list rest;
    va_start(rest, y);
    long sum = a + b + c + d + e + f + g + h + i + j + (long)(x + y);
    for (int number = 0; number < 8; number++)
        sum += va_arg(rest, long) + (long)va_arg(rest, double);
    va_end(rest);
    return sum;
}

struct large outer_large(struct large given, double times) {
    for (int i = 0; i < 9; i++)
        given.values[i] *= times;
    return given;
}

long double outer_long(long double value) {
    return value + 1;
}

int outer_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void add(void *from, void *into, int *count, MPI_Datatype *type) {
    (void)type;
    // In its own callback it is the library again that calls.
    outer_rank();
    for (int i = 0; i < *count; i++)
        ((int *)into)[i] += ((int *)from)[i];
}

void outer_reduce(int times) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    int one = 1, sum = 0;
    for (int i = 0; i < times; i++)
        MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
    MPI_Op_free(&op);
}

// cg [N] [ITERATIONS]: conjugate gradients on a 27-point stencil over N x N x N points, after HPCCG: the matrix is two
// large arrays and a pointer into each for every row.
#include "provision.h"

enum { POINTS = 27 };

static size_t rows, n;
static int *entries, **columns;
static double **values;

static void make_matrix(void) {
    entries = allocate(rows * sizeof *entries);
    columns = allocate(rows * sizeof *columns);
    values = allocate(rows * sizeof *values);
    int *column = allocate(rows * POINTS * sizeof *column);
    double *value = allocate(rows * POINTS * sizeof *value);
    for (size_t row = 0; row < rows; row++) {
        long x = (long)(row % n), y = (long)(row / n % n), z = (long)(row / n / n), side = (long)n;
        columns[row] = column;
        values[row] = value;
        for (long dz = -1; dz <= 1; dz++)
            for (long dy = -1; dy <= 1; dy++)
                for (long dx = -1; dx <= 1; dx++) {
                    if (x + dx < 0 || x + dx >= side || y + dy < 0 || y + dy >= side || z + dz < 0 || z + dz >= side)
                        continue;
                    *value++ = dx || dy || dz ? -1 : POINTS;
                    *column++ = (int)((long)row + dx + side * (dy + side * dz));
                }
        entries[row] = (int)(column - columns[row]);
    }
}

static void multiply(const double *x, double *y) {
    for (size_t row = 0; row < rows; row++) {
        const double *value = values[row];
        const int *column = columns[row];
        double sum = 0;
        for (int i = 0; i < entries[row]; i++)
            sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

static double dot(const double *x, const double *y) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += x[i] * y[i];
    return sum;
}

int main(int argc, char **argv) {
    (void)argc;
    n = argument(argv, 1, 110);
    uint64_t iterations = argument(argv, 2, 100);
    rows = n * n * n;
    make_matrix();
    double *x = doubles(rows), *r = doubles(rows), *p = doubles(rows), *product = doubles(rows);
    for (size_t i = 0; i < rows; i++) {
        x[i] = 0;
        r[i] = p[i] = POINTS - (entries[i] - 1) + (double)(noise(i) >> 40) * 0x1p-24;
    }
    double residual = dot(r, r);
    for (uint64_t k = 0; k < iterations && residual > 0; k++) {
        multiply(p, product);
        double alpha = residual / dot(p, product), before = residual;
        for (size_t i = 0; i < rows; i++)
            x[i] += alpha * p[i];
        for (size_t i = 0; i < rows; i++)
            r[i] -= alpha * product[i];
        residual = dot(r, r);
        for (size_t i = 0; i < rows; i++)
            p[i] = r[i] + residual / before * p[i];
    }
    printf("cg: residual %.17g, solution %016lx\n", sqrt(residual), checksum(x, rows * sizeof *x));
}

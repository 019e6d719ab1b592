// The conjugate gradient of Mantevo's HPCCG: a matrix of 27 points in a cube, stored by rows as HPCCG stores it, solved
// by so many iterations.
//   hpccg POINTS-PER-EDGE ITERATIONS
// Prints the residual.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 27 };

static void *allocate(long count, size_t bytes) {
    void *made = malloc(count * bytes);
    if (!made)
        exit(1);
    return made;
}

static long edge, rows;
static int *in_row;
static double *values;
static int *columns;

static void generate(double *right) {
    in_row = allocate(rows, sizeof *in_row);
    values = allocate(rows * ENTRIES, sizeof *values);
    columns = allocate(rows * ENTRIES, sizeof *columns);
    for (long z = 0, row = 0; z < edge; z++)
        for (long y = 0; y < edge; y++)
            for (long x = 0; x < edge; x++, row++) {
                long count = 0;
                for (long dz = -1; dz <= 1; dz++)
                    for (long dy = -1; dy <= 1; dy++)
                        for (long dx = -1; dx <= 1; dx++) {
                            long at[] = {x + dx, y + dy, z + dz};
                            if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= edge || at[1] >= edge || at[2] >= edge)
                                continue;
                            values[row * ENTRIES + count] = dx || dy || dz ? -1.0 : 27.0;
                            columns[row * ENTRIES + count++] = (int)((at[2] * edge + at[1]) * edge + at[0]);
                        }
                in_row[row] = (int)count;
                right[row] = 27.0 - (count - 1);
            }
}

static void multiply(const double *in, double *out) {
    for (long row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = 0; i < in_row[row]; i++)
            sum += values[row * ENTRIES + i] * in[columns[row * ENTRIES + i]];
        out[row] = sum;
    }
}

static double dot(const double *one, const double *other) {
    double sum = 0;
    for (long row = 0; row < rows; row++)
        sum += one[row] * other[row];
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    edge = atol(argv[1]);
    rows = edge * edge * edge;
    double *right = allocate(rows, sizeof *right), *found = allocate(rows, sizeof *found);
    double *residual = allocate(rows, sizeof *residual), *direction = allocate(rows, sizeof *direction);
    double *product = allocate(rows, sizeof *product);
    generate(right);
    for (long row = 0; row < rows; row++) {
        found[row] = 0;
        residual[row] = direction[row] = right[row];
    }
    double norm = dot(residual, residual);
    for (long left = atol(argv[2]); left > 0 && norm > 0; left--) {
        multiply(direction, product);
        const double step = norm / dot(direction, product);
        for (long row = 0; row < rows; row++) {
            found[row] += step * direction[row];
            residual[row] -= step * product[row];
        }
        const double before = norm;
        norm = dot(residual, residual);
        for (long row = 0; row < rows; row++)
            direction[row] = residual[row] + norm / before * direction[row];
    }
    printf("%.6g\n", sqrt(norm));
    return 0;
}

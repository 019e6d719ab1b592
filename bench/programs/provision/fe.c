// fe [N] [ITERATIONS]: Poisson's equation by finite elements on an unstructured mesh: N^3 boxes of six tetrahedra each,
// nodes moved and numbered at random. Rows are assembled in small blocks that grow, made one CSR matrix, and solved by
// conjugate gradients.
#include "provision.h"

struct entry {
    uint32_t column;
    double value;
};

struct row {
    struct entry *entries; // sorted by column
    uint32_t count, room;
};

static size_t n, nodes, elements;
static uint32_t *number_of, (*corners)[4];
static double (*place)[3];
static uint8_t *is_boundary;
static struct row *building;
static size_t *first;
static uint32_t *columns;
static double *values;

static double share(uint64_t i) {
    return (double)(noise(i) >> 11) * 0x1p-53;
}

static void shuffle(void *items, size_t count, size_t bytes, uint64_t seed) {
    char *all = items, kept[32];
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = (size_t)(share(seed + i) * (double)(i + 1));
        memcpy(kept, all + i * bytes, bytes);
        memcpy(all + i * bytes, all + j * bytes, bytes);
        memcpy(all + j * bytes, kept, bytes);
    }
}

static void make_mesh(void) {
    size_t line = n + 1;
    nodes = line * line * line;
    elements = 6 * n * n * n;
    number_of = allocate(nodes * sizeof *number_of);
    place = allocate(nodes * sizeof *place);
    is_boundary = allocate(nodes);
    corners = allocate(elements * sizeof *corners);
    for (size_t i = 0; i < nodes; i++)
        number_of[i] = (uint32_t)i;
    shuffle(number_of, nodes, sizeof *number_of, 1ull << 40);
    for (size_t i = 0; i < nodes; i++) {
        size_t at[] = {i % line, i / line % line, i / line / line}, node = number_of[i];
        is_boundary[node] = 0;
        for (size_t d = 0; d < 3; d++)
            is_boundary[node] |= at[d] == 0 || at[d] == n;
        for (size_t d = 0; d < 3; d++)
            place[node][d] = ((double)at[d] + (is_boundary[node] ? 0 : 0.3 * (share(3 * i + d) - 0.5))) / (double)n;
    }
    // Kuhn's tetrahedra: from one corner of the box to the opposite one, an axis at a time, in every order.
    static const uint8_t order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const size_t stride[] = {1, line, line * line};
    for (size_t e = 0; e < elements; e++) {
        size_t cube = e / 6, at = cube % n + line * (cube / n % n) + line * line * (cube / n / n);
        corners[e][0] = number_of[at];
        for (size_t k = 0; k < 3; k++)
            corners[e][k + 1] = number_of[at += stride[order[e % 6][k]]];
    }
    shuffle(corners, elements, sizeof *corners, 1ull << 41);
}

static void add(uint32_t in, uint32_t column, double value) {
    struct row *row = &building[in];
    uint32_t at = 0;
    while (at < row->count && row->entries[at].column < column)
        at++;
    if (at < row->count && row->entries[at].column == column) {
        row->entries[at].value += value;
        return;
    }
    if (row->count == row->room) {
        row->room += 4;
        row->entries = realloc(row->entries, row->room * sizeof *row->entries);
        if (!row->entries)
            fail("realloc");
    }
    memmove(row->entries + at + 1, row->entries + at, (row->count - at) * sizeof *row->entries);
    row->entries[at] = (struct entry){column, value};
    row->count++;
}

static void cross(double *to, const double *a, const double *b) {
    for (int d = 0; d < 3; d++)
        to[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
}

static double inner(const double *a, const double *b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// Linear elements: the gradients of the four shape functions are constant, and times the determinant cross products.
static void add_element(const uint32_t *corner) {
    double edge[3][3], gradient[4][3];
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < 3; d++)
            edge[k][d] = place[corner[k + 1]][d] - place[corner[0]][d];
    for (int k = 0; k < 3; k++)
        cross(gradient[k + 1], edge[(k + 1) % 3], edge[(k + 2) % 3]);
    for (int d = 0; d < 3; d++)
        gradient[0][d] = -gradient[1][d] - gradient[2][d] - gradient[3][d];
    double determinant = fabs(inner(edge[0], gradient[1]));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (!is_boundary[corner[i]] && !is_boundary[corner[j]])
                add(corner[i], corner[j], inner(gradient[i], gradient[j]) / (6 * determinant));
}

static void assemble(void) {
    building = allocate(nodes * sizeof *building);
    memset(building, 0, nodes * sizeof *building);
    for (size_t e = 0; e < elements; e++)
        add_element(corners[e]);
    first = allocate((nodes + 1) * sizeof *first);
    first[0] = 0;
    for (size_t i = 0; i < nodes; i++) {
        if (is_boundary[i])
            add((uint32_t)i, (uint32_t)i, 1);
        first[i + 1] = first[i] + building[i].count;
    }
    columns = allocate(first[nodes] * sizeof *columns);
    values = allocate(first[nodes] * sizeof *values);
    for (size_t i = 0; i < nodes; i++) {
        for (uint32_t k = 0; k < building[i].count; k++) {
            columns[first[i] + k] = building[i].entries[k].column;
            values[first[i] + k] = building[i].entries[k].value;
        }
        free(building[i].entries);
    }
    free(building);
}

static double dot(const double *x, const double *y) {
    double sum = 0;
    for (size_t i = 0; i < nodes; i++)
        sum += x[i] * y[i];
    return sum;
}

int main(int argc, char **argv) {
    (void)argc;
    n = argument(argv, 1, 70);
    uint64_t iterations = argument(argv, 2, 40);
    make_mesh();
    assemble();
    double *x = doubles(nodes), *r = doubles(nodes), *p = doubles(nodes), *product = doubles(nodes);
    for (size_t i = 0; i < nodes; i++) {
        x[i] = 0;
        r[i] = p[i] = is_boundary[i] ? 0 : 1 / (double)nodes;
    }
    double residual = dot(r, r);
    for (uint64_t k = 0; k < iterations; k++) {
        for (size_t i = 0; i < nodes; i++) {
            double sum = 0;
            for (size_t e = first[i]; e < first[i + 1]; e++)
                sum += values[e] * p[columns[e]];
            product[i] = sum;
        }
        double alpha = residual / dot(p, product), before = residual;
        for (size_t i = 0; i < nodes; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * product[i];
        }
        residual = dot(r, r);
        for (size_t i = 0; i < nodes; i++)
            p[i] = r[i] + residual / before * p[i];
    }
    printf("fe: %zu nodes, %zu entries, residual %.17g, solution %016lx\n", nodes, first[nodes], sqrt(residual),
           checksum(x, nodes * sizeof *x));
}

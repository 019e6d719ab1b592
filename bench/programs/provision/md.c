// md [CELLS] [STEPS]: molecular dynamics of a Lennard-Jones liquid, 4 x CELLS^3 atoms, in reduced units, after miniMD:
// cell lists, neighbour lists that are made anew every 20 steps, velocity Verlet.
#include "provision.h"

#define CUTOFF 2.5
#define SKIN 0.3
#define DENSITY 0.8442
#define STEP 0.005

enum { KEEP = 20 }; // steps that a neighbour list serves

typedef struct {
    double x, y, z;
} vector;

static size_t atoms, sides;
static double box, side;
static vector *position, *velocity, *force;
static uint32_t *cell_first, *next_atom, *neighbours;
static size_t *neighbours_first, room;

static double wrap(double d) {
    return d > box / 2 ? d - box : d < -box / 2 ? d + box : d;
}

static vector between(vector a, vector b) {
    return (vector){wrap(a.x - b.x), wrap(a.y - b.y), wrap(a.z - b.z)};
}

static size_t along(double x) {
    size_t at = (size_t)(x / side);
    return at < sides ? at : sides - 1;
}

static void make_lattice(size_t cells) {
    static const vector corner[] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    double lattice = cbrt(4 / DENSITY);
    atoms = 4 * cells * cells * cells;
    box = lattice * (double)cells;
    sides = (size_t)(box / (CUTOFF + SKIN));
    side = box / (double)sides;
    position = allocate(atoms * sizeof *position);
    velocity = allocate(atoms * sizeof *velocity);
    force = allocate(atoms * sizeof *force);
    vector sum = {0, 0, 0};
    for (size_t i = 0; i < atoms; i++) {
        size_t cell = i / 4;
        position[i].x = lattice * ((double)(cell % cells) + corner[i % 4].x + 0.25);
        position[i].y = lattice * ((double)(cell / cells % cells) + corner[i % 4].y + 0.25);
        position[i].z = lattice * ((double)(cell / cells / cells) + corner[i % 4].z + 0.25);
        // As hot as miniMD's: uniform in (-a, a) has a variance of a^2/3, here 1.44.
        double *v = &velocity[i].x, *total = &sum.x;
        for (size_t d = 0; d < 3; d++)
            total[d] += v[d] = ((double)(noise(3 * i + d) >> 11) * 0x1p-52 - 1) * 2.078;
    }
    for (size_t i = 0; i < atoms; i++) {
        velocity[i].x -= sum.x / (double)atoms;
        velocity[i].y -= sum.y / (double)atoms;
        velocity[i].z -= sum.z / (double)atoms;
    }
}

static void make_cells(void) {
    for (size_t cell = 0; cell < sides * sides * sides; cell++)
        cell_first[cell] = UINT32_MAX;
    for (size_t i = 0; i < atoms; i++) {
        size_t cell = along(position[i].x) + sides * (along(position[i].y) + sides * along(position[i].z));
        next_atom[i] = cell_first[cell];
        cell_first[cell] = (uint32_t)i;
    }
}

// Each pair once, in the list of its atom of the smaller number.
static void make_neighbours(void) {
    const double reach = (CUTOFF + SKIN) * (CUTOFF + SKIN);
    make_cells();
    size_t filled = 0;
    for (size_t i = 0; i < atoms; i++) {
        neighbours_first[i] = filled;
        size_t x = along(position[i].x), y = along(position[i].y), z = along(position[i].z);
        for (size_t around = 0; around < 27; around++) {
            size_t ax = (x + sides + around % 3 - 1) % sides, ay = (y + sides + around / 3 % 3 - 1) % sides,
                   az = (z + sides + around / 9 - 1) % sides;
            for (uint32_t j = cell_first[ax + sides * (ay + sides * az)]; j != UINT32_MAX; j = next_atom[j]) {
                vector d = between(position[i], position[j]);
                if (j <= i || d.x * d.x + d.y * d.y + d.z * d.z > reach)
                    continue;
                if (filled == room) {
                    room = room ? room + room / 2 : atoms;
                    neighbours = realloc(neighbours, room * sizeof *neighbours);
                    if (!neighbours)
                        fail("realloc");
                }
                neighbours[filled++] = j;
            }
        }
    }
    neighbours_first[atoms] = filled;
}

// The potential energy.
static double make_forces(void) {
    double energy = 0;
    memset(force, 0, atoms * sizeof *force);
    for (size_t i = 0; i < atoms; i++) {
        vector at = position[i], sum = {0, 0, 0};
        for (size_t k = neighbours_first[i]; k < neighbours_first[i + 1]; k++) {
            vector d = between(at, position[neighbours[k]]), *other = &force[neighbours[k]];
            double square = d.x * d.x + d.y * d.y + d.z * d.z;
            if (square > CUTOFF * CUTOFF)
                continue;
            double inverse = 1 / square, sixth = inverse * inverse * inverse;
            double pull = 48 * sixth * (sixth - 0.5) * inverse;
            energy += 4 * sixth * (sixth - 1);
            sum.x += pull * d.x, sum.y += pull * d.y, sum.z += pull * d.z;
            other->x -= pull * d.x, other->y -= pull * d.y, other->z -= pull * d.z;
        }
        force[i].x += sum.x, force[i].y += sum.y, force[i].z += sum.z;
    }
    return energy;
}

static double into_box(double x) {
    return x < 0 ? x + box : x >= box ? x - box : x;
}

int main(int argc, char **argv) {
    (void)argc;
    make_lattice(argument(argv, 1, 40));
    uint64_t steps = argument(argv, 2, 25);
    cell_first = allocate(sides * sides * sides * sizeof *cell_first);
    next_atom = allocate(atoms * sizeof *next_atom);
    neighbours_first = allocate((atoms + 1) * sizeof *neighbours_first);
    make_neighbours();
    double potential = make_forces(), kinetic = 0;
    for (uint64_t step = 1; step <= steps; step++) {
        for (size_t i = 0; i < atoms; i++) {
            vector *x = &position[i], *v = &velocity[i];
            v->x += STEP / 2 * force[i].x, v->y += STEP / 2 * force[i].y, v->z += STEP / 2 * force[i].z;
            x->x = into_box(x->x + STEP * v->x), x->y = into_box(x->y + STEP * v->y),
            x->z = into_box(x->z + STEP * v->z);
        }
        if (step % KEEP == 0)
            make_neighbours();
        potential = make_forces();
        kinetic = 0;
        for (size_t i = 0; i < atoms; i++) {
            vector *v = &velocity[i];
            v->x += STEP / 2 * force[i].x, v->y += STEP / 2 * force[i].y, v->z += STEP / 2 * force[i].z;
            kinetic += 0.5 * (v->x * v->x + v->y * v->y + v->z * v->z);
        }
    }
    printf("md: %zu atoms, energy %.17g, positions %016lx\n", atoms, (potential + kinetic) / (double)atoms,
           checksum(position, atoms * sizeof *position));
}

// A step of explicit hydrodynamics as LULESH does it: of each step's arrays, all of medium size, some are allocated,
// filled in order, read and freed again within the step, so that malloc trims the heap and grows it anew.
//   hydro ELEMENTS-PER-EDGE STEPS
// Prints a checksum.
#include <stdio.h>
#include <stdlib.h>

enum { CORNERS = 8, TEMPORARY = 6 };

static double *array(long count) {
    double *made = malloc(count * sizeof *made);
    if (!made)
        exit(1);
    return made;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const long edge = atol(argv[1]), elements = edge * edge * edge, steps = atol(argv[2]);
    double *energy = array(elements), *volume = array(elements), *force = array(elements * CORNERS);
    for (long i = 0; i < elements; i++) {
        energy[i] = 1.0 / (i + 1);
        volume[i] = 1.0;
    }
    for (long i = 0; i < elements * CORNERS; i++)
        force[i] = 0;
    for (long step = 0; step < steps; step++) {
        double *stress[TEMPORARY];
        for (int t = 0; t < TEMPORARY; t++)
            stress[t] = array(elements);
        for (long i = 0; i < elements; i++)
            for (int t = 0; t < TEMPORARY; t++)
                stress[t][i] = energy[i] * (t + 1) + volume[i];
        double *corners = array(elements * CORNERS);
        for (long i = 0; i < elements; i++)
            for (int c = 0; c < CORNERS; c++)
                corners[i * CORNERS + c] = stress[c % TEMPORARY][i] * 0.125;
        for (long i = 0; i < elements * CORNERS; i++)
            force[i] = 0.9 * force[i] + corners[i];
        free(corners);
        for (int t = TEMPORARY; t-- > 0;)
            free(stress[t]);
        for (long i = 0; i < elements; i++) {
            energy[i] += 1e-6 * force[i * CORNERS];
            volume[i] = 1.0 + 1e-9 * energy[i];
        }
    }
    double sum = 0;
    for (long i = 0; i < elements; i++)
        sum += energy[i] + volume[i];
    printf("%.12g\n", sum);
    return 0;
}

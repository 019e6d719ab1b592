// checkpoint DIR PARTICLES_PER_RANK STEPS EVERY REREAD [mpiio]: an MPI program that writes checkpoints, after GTC (2D
// arrays of electrons and ions), BTIO (all ranks together through MPI-IO, with `mpiio`) and MADbench (a unique file per
// rank, by POSIX calls, written and read again). Each EVERY steps the ranks write their particles to the older of two
// checkpoints, read each of the other one REREAD times to compare with, and check every byte of it.
#include <mpi.h>

#include "program.h"

enum { SPECIES = 2, ATTRIBUTES = 6 };

struct particles {
    size_t count;
    double *value[SPECIES]; // [particle][attribute]: x, y, z, vx, vy, vz
};

struct storage {
    const char *directory;
    int rank;
    int together; // one file of all ranks through MPI-IO
};

static size_t array_bytes(const struct particles *particles) {
    return particles->count * ATTRIBUTES * sizeof(double);
}

static void scatter(struct particles *particles, int rank) {
    for (int s = 0; s < SPECIES; s++) {
        particles->value[s] = allocate(array_bytes(particles));
        for (size_t i = 0; i < particles->count * ATTRIBUTES; i++)
            particles->value[s][i] = (double)(noise(i * SPECIES + s + ((uint64_t)rank << 40)) >> 11) * 0x1p-53;
    }
}

// Moves every particle in a field that depends on where it is, on a periodic grid.
static void push(struct particles *particles) {
    const double dt = 0x1p-8;
    for (int s = 0; s < SPECIES; s++) {
        double charge = s ? 0.01 : -1.0;
        for (size_t i = 0; i < particles->count; i++) {
            double *p = particles->value[s] + i * ATTRIBUTES;
            for (int d = 0; d < 3; d++) {
                double x = p[d], y = p[(d + 1) % 3];
                p[d + 3] += dt * charge * (x * (1 - x) * (0.5 - y));
                x += dt * p[d + 3];
                p[d] = x - (double)(long)x + (x < 0);
            }
        }
    }
}

static uint64_t checksum(const double *values, size_t count, uint64_t sum) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = (sum << 1 | sum >> 63) ^ bits;
    }
    return sum;
}

static uint64_t checksum_all(const struct particles *particles) {
    uint64_t sum = 0;
    for (int s = 0; s < SPECIES; s++)
        sum = checksum(particles->value[s], particles->count * ATTRIBUTES, sum);
    return sum;
}

static void file_name(const struct storage *storage, int slot, char *path, size_t size) {
    if (storage->together)
        snprintf(path, size, "%s/checkpoint.%d", storage->directory, slot);
    else
        snprintf(path, size, "%s/checkpoint.%d.rank%d", storage->directory, slot, storage->rank);
}

static void write_together(const struct storage *storage, const struct particles *particles, const char *path) {
    MPI_File file;
    MPI_Offset at = (MPI_Offset)storage->rank * SPECIES * (MPI_Offset)array_bytes(particles);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file))
        fail(path);
    for (int s = 0; s < SPECIES; s++, at += (MPI_Offset)array_bytes(particles))
        MPI_File_write_at_all(file, at, particles->value[s], (int)(particles->count * ATTRIBUTES), MPI_DOUBLE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void write_checkpoint(const struct storage *storage, const struct particles *particles, int slot) {
    char path[4096];
    file_name(storage, slot, path, sizeof path);
    if (storage->together) {
        write_together(storage, particles, path);
        return;
    }
    int fd = open_or_fail(path, O_WRONLY | O_CREAT);
    for (int s = 0; s < SPECIES; s++)
        write_whole(fd, particles->value[s], array_bytes(particles));
    close(fd);
}

static uint64_t read_checkpoint(const struct storage *storage, const struct particles *particles, int slot) {
    static double block[MIB / sizeof(double)];
    char path[4096];
    file_name(storage, slot, path, sizeof path);
    int fd = open_or_fail(path, O_RDONLY);
    size_t size = SPECIES * array_bytes(particles);
    off_t from = storage->together ? (off_t)((size_t)storage->rank * size) : 0;
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += sizeof block) {
        size_t bytes = size - at < sizeof block ? size - at : sizeof block;
        read_whole(fd, block, bytes, from + (off_t)at);
        sum = checksum(block, bytes / sizeof *block, sum);
    }
    close(fd);
    return sum;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 6) {
        fputs("usage: checkpoint DIR PARTICLES_PER_RANK STEPS EVERY REREAD [mpiio]\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct storage storage = {.directory = argv[1], .together = argc > 6 && strcmp(argv[6], "mpiio") == 0};
    MPI_Comm_rank(MPI_COMM_WORLD, &storage.rank);
    struct particles particles = {.count = strtoul(argv[2], NULL, 10)};
    long steps = atol(argv[3]), every = atol(argv[4]), reread = atol(argv[5]);
    scatter(&particles, storage.rank);
    uint64_t sums[2] = {0, 0};
    long written = 0;
    for (long step = 1; step <= steps; step++) {
        push(&particles);
        if (step % every)
            continue;
        sums[written % 2] = checksum_all(&particles);
        write_checkpoint(&storage, &particles, (int)(written % 2));
        MPI_Barrier(MPI_COMM_WORLD);
        for (long r = 0; written > 0 && r < reread; r++) {
            if (read_checkpoint(&storage, &particles, (int)((written + 1) % 2)) != sums[(written + 1) % 2]) {
                errno = 0;
                fail("the checkpoint read back");
            }
        }
        written++;
    }
    uint64_t mine = checksum_all(&particles), all;
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (storage.rank == 0)
        printf("checkpoint: %ld steps, %ld checkpoints of %zu MiB per rank, state %016lx, valid\n", steps, written,
               SPECIES * array_bytes(&particles) / MIB, (unsigned long)all);
    MPI_Finalize();
}

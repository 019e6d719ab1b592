// Tells what a process that was provisioned tells, with numbers of our choice, and stays a while: tell DEMAND [SECONDS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../preload/abi.h"

static unsigned long start_ticks(void) {
    char stat[1024] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    if (!file || !fgets(stat, sizeof stat, file))
        exit(1);
    fclose(file);
    char *field = strrchr(stat, ')');
    for (int skipped = 0; skipped < 20; skipped++)
        field = strchr(field + 1, ' ');
    return strtoul(field, NULL, 10);
}

int main(int argc, char **argv) {
    const char *folder = getenv("BURSAR_PROVISION");
    if (!folder || argc < 2)
        return 2;
    struct stat space;
    if (stat("/proc/self/ns/pid", &space))
        return 1;
    struct provision_told told = {
        .magic = PROVISION_MAGIC,
        .bytes = sizeof told,
        .pid = getpid(),
        .parent = getppid(),
        .ticks = start_ticks(),
        .rank_plus_1 = 4,
        .node_plus_1 = 2,
        .leased_bytes = 64 << 20,
        .pool_bytes = 10,
        .pool_bytes_peak = 32 << 20,
        .demand_bytes = 20,
        .demand_bytes_peak = strtoul(argv[1], NULL, 10),
        .served_calls = 30,
        .served_bytes = 48 << 20,
        .start_ns = 1000000,
        .lease_ns = 2000000,
        .populate_ns = 3000000,
        .zeroed_bytes = 40,
        .zeroed_beside_bytes = 50,
        .forks = 5,
        .fork_ns = 50,
        .fallbacks = 6,
        .failed = 7,
        .copied_bytes = 60,
        .unwritten_bytes = 70,
        .namespace = space.st_ino,
        .executable = "by-hand",
    };
    for (int reason = 0; reason < PASSED_REASONS; reason++) {
        told.passed[reason].calls = 100 + reason;
        told.passed[reason].bytes = 1000 + reason;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/provision.by-hand.%d.%lu", folder, getpid(), (unsigned long)space.st_ino);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(&told, sizeof told, 1, file) != 1 || fclose(file))
        return 1;
    puts("told");
    return argc > 2 ? (usleep(atof(argv[2]) * 1e6), 0) : 0;
}

/*
 * Memory by the block: all zeroes when it is got, then what was written to it. A shell runs the command while it is
 * held, with the process as $PPID; a forked child writes to its copy.
 *
 *   memory hold BLOCKS MIB [COMMAND]
 *   memory fork BLOCKS MIB
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, WORDS_PER_MIB = (1 << 20) / sizeof(uint64_t) };

static uint64_t *blocks[MOST];
static size_t block_count, words;

static void expect(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "memory: %s\n", what);
        _exit(1);
    }
}

static uint64_t word(uint64_t writer, size_t block, size_t at) {
    return (at + 1) * 0x9e3779b97f4a7c15 ^ block << 8 ^ writer;
}

static void write_all(uint64_t writer) {
    for (size_t block = 0; block < block_count; block++)
        for (size_t at = 0; at < words; at++)
            blocks[block][at] = word(writer, block, at);
}

static bool written_by(uint64_t writer) {
    uint64_t different = 0;
    for (size_t block = 0; block < block_count; block++)
        for (size_t at = 0; at < words; at++)
            different |= blocks[block][at] ^ word(writer, block, at);
    return different == 0;
}

static void get_all(void) {
    for (size_t block = 0; block < block_count; block++) {
        blocks[block] = calloc(words, sizeof(uint64_t));
        expect(blocks[block] != NULL, "there is no memory");
        const volatile uint64_t *got = blocks[block]; // else it is known what calloc gives
        uint64_t any = 0;
        for (size_t at = 0; at < words; at++)
            any |= got[at];
        expect(any == 0, "not all of it is zero");
    }
}

static void fork_beside(void) {
    pid_t child = fork();
    expect(child >= 0, "no fork");
    if (child == 0) {
        expect(written_by(1), "the child has not what its parent had");
        write_all(2);
        expect(written_by(2), "the child has not what it wrote");
        _exit(0);
    }
    int status;
    expect(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

int main(int argc, char **argv) {
    bool forks = argc == 4 && strcmp(argv[1], "fork") == 0;
    if (!forks && ((argc != 4 && argc != 5) || strcmp(argv[1], "hold") != 0)) {
        fprintf(stderr, "usage: %s hold BLOCKS MIB [COMMAND] | fork BLOCKS MIB\n", argv[0]);
        return 2;
    }
    block_count = strtoul(argv[2], NULL, 10);
    words = strtoul(argv[3], NULL, 10) * WORDS_PER_MIB;
    expect(block_count <= MOST, "too many blocks");
    get_all();
    write_all(1);
    if (forks)
        fork_beside();
    if (argc == 5)
        expect(system(argv[4]) == 0, "the command failed");
    expect(written_by(1), "it is not what was written");
    puts("right");
    return 0;
}

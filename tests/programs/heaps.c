// heaps COLD HOT ROUNDS: writes so many MiB once, what no swap can make smaller, and goes through so many others again
// and again.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64 };

static uint64_t *filled(size_t bytes) {
    static uint64_t random = 88172645463325252u;
    uint64_t *words = malloc(bytes);
    for (size_t i = 0; words && i < bytes / sizeof *words; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        words[i] = random ^= random << 17;
    }
    return words;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    const size_t cold = strtoul(words[1], NULL, 10) << 20, hot = strtoul(words[2], NULL, 10) << 20;
    uint64_t *never = filled(cold), *again = filled(hot), sum = 0;
    if (!never || !again)
        return 1;
    for (long round = strtol(words[3], NULL, 10); round > 0; round--)
        for (size_t i = 0; i < hot / sizeof *again; i += LINE / sizeof *again)
            sum += again[i]++;
    printf("%lu\n", (unsigned long)(sum + never[0]));
    return 0;
}

// churn [LIVE_MIB] [WRITTEN_MIB] [LEAST] [MOST] [STRIDE]: blocks of LEAST to MOST bytes, of every order of magnitude as
// many, live at random lengths of time, LIVE_MIB of them at once; of each, every STRIDE-th byte is written. It ends
// when WRITTEN_MIB were asked for.
#include "provision.h"

struct block {
    uint8_t *memory;
    size_t bytes;
};

// What was written, as far as it still is.
static uint64_t give_back(struct block *block, size_t stride) {
    uint64_t sum = 0;
    if (block->bytes > 0)
        sum = block->memory[0] + 256u * block->memory[(block->bytes - 1) / stride * stride] + block->bytes;
    free(block->memory);
    *block = (struct block){NULL, 0};
    return sum;
}

int main(int argc, char **argv) {
    (void)argc;
    size_t live = argument(argv, 1, 1024) * MIB, wanted = argument(argv, 2, 24 * 1024) * MIB;
    double least = (double)argument(argv, 3, 16), most = (double)argument(argv, 4, 4 * MIB);
    size_t stride = argument(argv, 5, 1);
    // What sizes are on average, when all logarithms are as likely.
    size_t count = (size_t)((double)live / ((most - least) / log(most / least))) + 1, asked = 0;
    struct block *blocks = allocate(count * sizeof *blocks);
    memset(blocks, 0, count * sizeof *blocks);
    uint64_t sum = 0, number = 0;
    while (asked < wanted) {
        struct block *block = &blocks[noise(2 * number) % count];
        sum += give_back(block, stride);
        block->bytes = (size_t)(least * pow(most / least, (double)(noise(2 * number + 1) >> 11) * 0x1p-53));
        block->memory = allocate(block->bytes);
        if (stride == 1)
            memset(block->memory, (int)(number & 0xFF), block->bytes);
        else
            for (size_t at = 0; at < block->bytes; at += stride)
                block->memory[at] = (uint8_t)number;
        asked += block->bytes;
        number++;
    }
    for (size_t i = 0; i < count; i++)
        sum += give_back(&blocks[i], stride);
    printf("churn: %lu blocks of %zu places, %016lx\n", number, count, sum);
}

// patterns NAME: touches memory in some pattern, slowly enough for a helper to follow, looks whether it holds what was
// written, and says how much of it is huge and how much there is, in KiB. Exit status 1: something was not as it must
// be.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, REGION = 2 << 20, BYTES = 96 << 20, BLOCK = 100 << 10, SPARSE = 16 };

static void require(int true, const char *what) {
    if (true)
        return;
    fprintf(stderr, "not so: %s (errno: %s)\n", what, strerror(errno));
    exit(1);
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static char *map(size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "memory is mapped");
    return memory;
}

static void write_page(char *page, uint64_t number) {
    for (size_t i = 0; i < PAGE / 8; i++) {
        require(((volatile uint64_t *)page)[i] == 0, "new memory is zero");
        ((volatile uint64_t *)page)[i] = number * 8 + i + 1;
    }
}

static void check_page(const char *page, uint64_t number) {
    for (size_t i = 0; i < PAGE / 8; i++)
        require(((const uint64_t *)page)[i] == number * 8 + i + 1, "memory holds what was written");
}

// Pages from `from` on, each `step` further, which may be downwards.
static void fill(char *memory, int64_t from, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; i++) {
        int64_t page = from + i * step;
        write_page(memory + page * PAGE, page);
        if (page * PAGE % REGION < labs(step) * PAGE)
            nap();
    }
}

static void check(const char *memory, size_t pages, size_t step) {
    for (size_t i = 0; i < pages; i += step)
        check_page(memory + i * PAGE, i);
}

static char *whole(void) {
    char *memory = map(BYTES);
    fill(memory, 0, BYTES / PAGE, 1);
    check(memory, BYTES / PAGE, 1);
    return memory;
}

static void forward(void) {
    whole();
}

static void waits(void) {
    whole();
    pause();
}

static void backward(void) {
    char *memory = map(BYTES);
    fill(memory, BYTES / PAGE - 1, BYTES / PAGE, -1);
    check(memory, BYTES / PAGE, 1);
}

static void sparse(void) {
    char *memory = map(BYTES);
    fill(memory, 0, BYTES / PAGE / SPARSE, SPARSE);
    check(memory, BYTES / PAGE, SPARSE);
}

// What begins like a range that is filled, and is not.
static void turns_sparse(void) {
    const size_t dense = BYTES / PAGE / 3;
    char *memory = map(BYTES);
    fill(memory, 0, dense, 1);
    fill(memory, dense, 2 * dense / SPARSE, SPARSE);
    check(memory, dense, 1);
    nap();
}

static char *shared;

static void *half(void *number) {
    const size_t pages = BYTES / PAGE / 2;
    fill(shared, (uintptr_t)number * pages, pages, 1);
    return NULL;
}

static void threads(void) {
    pthread_t other;
    shared = map(BYTES);
    pthread_create(&other, NULL, half, (void *)1);
    half(0);
    pthread_join(other, NULL);
    check(shared, BYTES / PAGE, 1);
}

static void zeroes(void) {
    char *memory = map(BYTES);
    for (size_t at = 0; at < BYTES; at += REGION) {
        memset(memory + at, 0, REGION);
        nap();
    }
}

static char *blocks[BYTES / BLOCK];

static void allocate(size_t pages) {
    for (size_t i = 0; i < BYTES / BLOCK; i++) {
        require((blocks[i] = malloc(BLOCK)) != NULL, "there is memory");
        for (size_t j = 0; j < pages; j++)
            memset(blocks[i] + j * PAGE, i % 255 + 1, PAGE);
        if (i % (REGION / BLOCK) == 0)
            nap();
    }
    for (size_t i = 0; i < BYTES / BLOCK; i++)
        for (size_t at = 0; at < pages * PAGE; at++)
            require(blocks[i][at] == (char)(i % 255 + 1), "the heap holds what was written");
}

static void heap(void) {
    allocate(BLOCK / PAGE);
}

static void sparse_heap(void) {
    allocate(1);
}

// Grown and given back by steps, with zeroes where it comes again.
static void moving_break(void) {
    char *begin = sbrk(0);
    for (int round = 0; round < 4; round++) {
        for (size_t at = 0; at < BYTES / 2; at += REGION) {
            require(sbrk(REGION) == begin + at && sbrk(0) == begin + at + REGION, "the break is where it was put");
            for (size_t page = at; page < at + REGION; page += PAGE)
                write_page(begin + page, page);
            nap();
        }
        require(brk(begin) == 0 && sbrk(0) == begin, "the break goes back");
    }
}

// Given back and had again, and filled in no order: who looks for an order sees none.
static void again(size_t step) {
    char *begin = sbrk(0);
    for (int round = 0; round < 2; round++) {
        require(sbrk(BYTES) == begin, "the break is where it was");
        for (size_t page = 0; page < BYTES / PAGE / step; page++)
            write_page(begin + page * 4099 % (BYTES / PAGE / step) * step * PAGE, page);
        if (round == 0)
            require(brk(begin) == 0, "the break goes back");
    }
}

static void heap_again(void) {
    again(1);
}

static void sparse_again(void) {
    again(16);
}

// By mremap, as large reallocations are.
static void reallocated(void) {
    size_t bytes = REGION + 3 * PAGE;
    uint64_t *memory = malloc(bytes);
    size_t count = 0;
    for (; bytes < BYTES; bytes += bytes / 2) {
        require((memory = realloc(memory, bytes)) != NULL, "there is memory");
        for (; count < bytes / 8; count++) {
            memory[count] = count;
            if (count % (REGION / 8) == 0)
                nap();
        }
    }
    for (size_t i = 0; i < count; i++)
        require(memory[i] == i, "what was moved is as it was");
}

// Mapped, filled and given back by several at once, so that what was unmapped is something else at once.
static void *churns(void *seed) {
    unsigned state = (uintptr_t)seed;
    for (int round = 0; round < 80; round++) {
        size_t bytes = (1 + rand_r(&state) % 12) * REGION + rand_r(&state) % 500 * PAGE;
        char *memory = map(bytes);
        size_t filled = bytes / PAGE / (1 + rand_r(&state) % 3);
        for (size_t i = 0; i < filled; i++)
            write_page(memory + i * PAGE, i);
        check(memory, filled, 1);
        munmap(memory, bytes);
    }
    return NULL;
}

static void churn(void) {
    pthread_t others[3];
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, churns, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
}

// The child goes on by itself, and sees what its parent had.
static void forked(void) {
    char *memory = whole();
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (!child) {
            check(memory, BYTES / PAGE, 1);
            whole();
            _exit(0);
        }
        int status;
        require(waitpid(child, &status, 0) == child && status == 0, "the child's memory is as it must be");
    }
    check(memory, BYTES / PAGE, 1);
}

static void fork_storm(void) {
    char *memory = map(BYTES);
    for (size_t i = 0; i < 300; i++) {
        fill(memory, i * 64, 64, 1);
        pid_t child = i % 2 ? fork() : vfork();
        if (!child)
            _exit(0);
        int status;
        require(waitpid(child, &status, 0) == child && status == 0, "the child has ended");
    }
    check(memory, 300 * 64, 1);
}

static void executes(void) {
    whole();
    execl("/proc/self/exe", "patterns", "forward", NULL);
    require(0, "the program is begun anew");
}

// As redis does.
static void disabled(void) {
    require(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0, "huge pages are switched off");
    whole();
}

// Whether only what is advised may be huge here.
static void limited(void) {
    printf("%d ", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
}

// What it has said itself stays said, while the helper looks for where it goes on.
static void limits_itself(void) {
    require(prctl(PR_SET_THP_DISABLE, 1, 2 /* PR_THP_DISABLE_EXCEPT_ADVISED */, 0, 0) == 0, "it limits itself");
    char *memory = map(64 << 20);
    for (int i = 0; i < 25; i++) {
        fill(memory, i * 400, 400, 1);
        usleep(100000);
    }
    limited();
}

// As many small mappings as an allocator makes, and then a large one.
static void arenas(void) {
    for (int i = 0; i < 2000; i++)
        *map(1 << 20) = 1;
    memset(map(64 << 20), 1, 64 << 20);
}

// Two mappings of one size and one of another, for rules; then of each the KiB that are huge.
static void mapped(void) {
    const size_t sizes[] = {16 << 20, 16 << 20, 8 << 20};
    for (int i = 0; i < 3; i++)
        memset(map(sizes[i]), 1, sizes[i]);
}

// It begins in the middle of a region.
static void amid(void) {
    char *room = map(32 << 20);
    munmap(room, 32 << 20);
    uintptr_t place = (((uintptr_t)room + REGION) & -(uintptr_t)REGION) + REGION / 2;
    char *memory =
        mmap((void *)place, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    require(memory == (char *)place, "memory is mapped where it is asked for");
    memset(memory, 1, 16 << 20);
}

static char bss[32 << 20];

static void fills_bss(void) {
    for (size_t at = 0; at < sizeof bss; at += PAGE)
        write_page(bss + at, at / PAGE);
    check(bss, sizeof bss / PAGE, 1);
}

static long kib(const char *name) {
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            found = atol(line + strlen(name));
    fclose(file);
    return found;
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } patterns[] = {
        {"forward", forward},
        {"waits", waits},
        {"backward", backward},
        {"sparse", sparse},
        {"turns-sparse", turns_sparse},
        {"threads", threads},
        {"zeroes", zeroes},
        {"heap", heap},
        {"sparse-heap", sparse_heap},
        {"moving-break", moving_break},
        {"heap-again", heap_again},
        {"sparse-again", sparse_again},
        {"reallocated", reallocated},
        {"churn", churn},
        {"forked", forked},
        {"fork-storm", fork_storm},
        {"executes", executes},
        {"disabled", disabled},
        {"limited", limited},
        {"limits-itself", limits_itself},
        {"arenas", arenas},
        {"mapped", mapped},
        {"amid", amid},
        {"bss", fills_bss},
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && count > 1; i++) {
        if (strcmp(words[1], patterns[i].name))
            continue;
        patterns[i].run();
        nap();
        printf("%ld %ld %ld\n", kib("AnonHugePages:"), kib("Rss:"), kib("Anonymous:"));
        return 0;
    }
    return 2;
}

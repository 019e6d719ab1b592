// Random changes of the address space against a model of it: what each page must hold, and how many are resident.
// Prints the truth, "/components/application/at_end_bytes=BYTES", and fails at the first difference.
//
//   soak CALLS SEED
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PLACES = 64, LONGEST = 1024, BRK_PAGES = 512 };

// One mapping, or a hole where `at` is NULL. A page's value is in each of its words; 0: never written, or given back.
struct place {
    char *at;
    size_t pages;
    uint64_t values[LONGEST];
};

static struct place places[PLACES];
static char *brk_begin;
static size_t brk_pages;
static uint64_t brk_values[BRK_PAGES];
static uint64_t state;

static uint64_t random_below(uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % bound;
}

static void fail(const char *what) {
    fprintf(stderr, "soak: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void expect(const char *at, uint64_t value) {
    if (*(const uint64_t *)at != value || *(const uint64_t *)(at + PAGE - 8) != value)
        fail("a page does not hold what was written to it");
}

static void write_page(char *at, uint64_t *value) {
    expect(at, *value);
    *value = random_below(UINT64_MAX - 1) + 1;
    *(uint64_t *)at = *(uint64_t *)(at + PAGE - 8) = *value;
}

static void map_new(struct place *place) {
    place->pages = 1 + random_below(LONGEST);
    place->at = mmap(NULL, place->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place->at == MAP_FAILED)
        fail("mmap");
    memset(place->values, 0, sizeof place->values);
}

// From one end, or all of it; from the middle, what is behind goes too, in two calls.
static void unmap(struct place *place) {
    size_t keep = random_below(2) ? 0 : random_below(place->pages);
    if (keep + 2 < place->pages && munmap(place->at + (keep + 1) * PAGE, PAGE))
        fail("munmap of the middle");
    if (munmap(place->at + keep * PAGE, (place->pages - keep) * PAGE))
        fail("munmap");
    place->pages = keep;
    if (!keep)
        place->at = NULL;
}

static void remap(struct place *place) {
    size_t pages = 1 + random_below(LONGEST);
    char *moved, *there = NULL;
    if (random_below(4)) {
        moved = mremap(place->at, place->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
    } else {
        there = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        moved = mremap(place->at, place->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    }
    // The kernel may have kept apart what was mapped over or protected; it moves no more than one mapping.
    if (moved == MAP_FAILED && errno == EFAULT) {
        if (there)
            munmap(there, pages * PAGE);
        return;
    }
    if (moved == MAP_FAILED)
        fail("mremap");
    for (size_t i = place->pages; i < pages; i++)
        place->values[i] = 0;
    place->at = moved;
    place->pages = pages;
}

static void give_back(struct place *place) {
    size_t from = random_below(place->pages), count = 1 + random_below(place->pages - from);
    if (madvise(place->at + from * PAGE, count * PAGE, MADV_DONTNEED))
        fail("madvise");
    memset(place->values + from, 0, count * sizeof *place->values);
}

static void protect(struct place *place) {
    if (mprotect(place->at, place->pages * PAGE, PROT_READ))
        fail("mprotect");
    size_t page = random_below(place->pages);
    expect(place->at + page * PAGE, place->values[page]);
    if (mprotect(place->at, place->pages * PAGE, PROT_READ | PROT_WRITE))
        fail("mprotect");
}

static void map_over(struct place *place) {
    size_t page = random_below(place->pages);
    if (mmap(place->at + page * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        fail("mmap over");
    place->values[page] = 0;
}

static void move_brk(void) {
    size_t pages = random_below(BRK_PAGES);
    if (random_below(2) ? brk(brk_begin + pages * PAGE) != 0
                        : sbrk(((long)pages - (long)brk_pages) * PAGE) != brk_begin + brk_pages * PAGE)
        fail("brk");
    for (size_t i = brk_pages; i < pages; i++)
        brk_values[i] = 0;
    brk_pages = pages;
    if (pages)
        write_page(brk_begin + (pages - 1) * PAGE, &brk_values[pages - 1]);
}

static void check_all(void) {
    for (struct place *place = places; place < places + PLACES; place++)
        for (size_t i = 0; place->at && i < place->pages; i++)
            expect(place->at + i * PAGE, place->values[i]);
    for (size_t i = 0; i < brk_pages; i++)
        expect(brk_begin + i * PAGE, brk_values[i]);
}

static void fork_once(void) {
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (!child) {
        check_all();
        for (int i = 0; i < 100; i++)
            if (places[i % PLACES].at)
                write_page(places[i % PLACES].at, &places[i % PLACES].values[0]);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        fail("the child");
}

static void one_call(struct place *place) {
    switch (random_below(8)) {
    case 0:
        unmap(place);
        break;
    case 1:
        remap(place);
        break;
    case 2:
        give_back(place);
        break;
    case 3:
        protect(place);
        break;
    case 4:
        map_over(place);
        break;
    default:
        for (int i = 0; i < 32; i++) {
            size_t page = random_below(place->pages);
            write_page(place->at + page * PAGE, &place->values[page]);
        }
    }
}

int main(int count, char **arguments) {
    long calls = count > 1 ? atol(arguments[1]) : 100000;
    state = count > 2 ? strtoull(arguments[2], NULL, 10) + 1 : 1;
    // What is resident is what was written, and no more.
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    // Anything that libc keeps on its heap would end what is ours of it.
    brk_begin = (char *)(((uintptr_t)sbrk(PAGE) + PAGE - 1) & -PAGE);
    if (brk(brk_begin))
        fail("brk");
    for (long i = 0; i < calls; i++) {
        struct place *place = &places[random_below(PLACES)];
        if (!place->at)
            map_new(place);
        else if (i % 5000 == 4999)
            fork_once();
        else if (i % 50 == 49)
            move_brk();
        else
            one_call(place);
    }
    check_all();
    // Reading what was never written leaves the page of zeros there, which is nobody's.
    size_t resident = 0;
    for (struct place *place = places; place < places + PLACES; place++)
        for (size_t i = 0; place->at && i < place->pages; i++)
            resident += place->values[i] != 0;
    char text[80];
    int length = snprintf(text, sizeof text, "/components/application/at_end_bytes=%zu\n", resident * PAGE);
    if (write(1, text, length) != length)
        fail("write");
    usleep(300000);
    return 0;
}

// Random changes of the address space against a model of it: of each page what it must hold, and what may be done to
// it. Fails at the first difference.
//
//   soak [--threads N] [--no-probe] [--lenient] CALLS SEED
//
// What was unmapped is probed at once: nobody else has got it then. With --lenient, a page of a 2 MiB unit of which
// something is left may still be accessible; such pages are counted.
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    UNIT = 512,      // pages
    PLACES = 48,     // of each thread
    LONGEST = 16384, // pages: 64 MiB
    TOGETHER = 65536,
    BRK_PAGES = 8192,
    FILE_PAGES = 1024,
    EVERY = 5000, // calls, after which everything is looked at, by a child too
    RW = PROT_READ | PROT_WRITE
};

static const uint64_t file_value = 0x66696c65; // of all of the file's pages
static const size_t words[] = {0, 170, 341, 511};

// What the program did with a page.
struct page {
    uint64_t value; // each of `words`
    uint8_t protection;
    bool lazy;   // given back with MADV_FREE: it holds its value, or zeroes
    bool backed; // by the file
};

// One range of pages, or none where `at` is NULL.
struct place {
    char *at;
    size_t count;
    bool uneven; // the kernel may have it as several mappings, and does not move those together
    struct page *pages;
};

struct thread {
    pthread_t id;
    int number;
    uint64_t state;
    long calls;
    size_t total; // pages mapped
    size_t accessible;
    struct place places[PLACES];
    int ends[2]; // a pipe
};

static struct thread *threads;
static int thread_count = 1, file;
static bool probing = true, lenient;
static long calls = 100000;
static char *brk_begin;
static struct place heap;
// Whoever unmaps and probes has it alone; whoever gets addresses shares it.
static pthread_rwlock_t addresses = PTHREAD_RWLOCK_INITIALIZER;

static uint64_t random_below(struct thread *thread, uint64_t bound) {
    thread->state ^= thread->state << 13;
    thread->state ^= thread->state >> 7;
    thread->state ^= thread->state << 17;
    return (thread->state >> 11) % bound;
}

// As often below 64 KiB as between 4 and 64 MiB.
static size_t random_count(struct thread *thread, size_t most) {
    size_t count = (size_t)1 << random_below(thread, 15);
    count += random_below(thread, count);
    return count < most ? count : most;
}

_Noreturn static void fail(struct thread *thread, const char *what, const char *at) {
    char text[300];
    int error = errno;
    int length = snprintf(text, sizeof text, "soak: thread %d, call %ld, at %p: %s (errno: %s)\n", thread->number,
                          thread->calls, (void *)at, what, strerrordesc_np(error));
    _exit(write(2, text, length) == length ? 1 : 2);
}

static int protect_all(struct place *place, size_t from, size_t count, int protection) {
    for (size_t i = from; i < from + count; i++)
        place->pages[i].protection = protection;
    return mprotect(place->at + from * PAGE, count * PAGE, protection);
}

static bool can_be_read(struct thread *thread, const char *at) {
    char byte;
    ssize_t written = write(thread->ends[1], at, 1);
    if (written == 1 && read(thread->ends[0], &byte, 1) != 1)
        fail(thread, "the pipe", at);
    return written == 1;
}

static bool can_be_written(struct thread *thread, char *at) {
    char byte = *at;
    if (write(thread->ends[1], &byte, 1) != 1)
        fail(thread, "the pipe", at);
    ssize_t got = read(thread->ends[0], at, 1);
    if (got != 1 && read(thread->ends[0], &byte, 1) != 1)
        fail(thread, "the pipe", at);
    return got == 1;
}

static void look(struct thread *thread, struct place *place, size_t index) {
    struct page *page = &place->pages[index];
    char *at = place->at + index * PAGE;
    if (!(page->protection & PROT_READ))
        return;
    uint64_t value = page->value;
    if (page->lazy && !*(uint64_t *)at)
        value = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (((uint64_t *)at)[words[i]] != value)
            fail(thread, "it does not hold what was written to it", at);
}

static void probe(struct thread *thread, struct place *place, size_t index) {
    struct page *page = &place->pages[index];
    char *at = place->at + index * PAGE;
    bool readable = page->protection & PROT_READ;
    if (can_be_read(thread, at) != readable)
        fail(thread, readable ? "it cannot be read" : "it can be read though it is protected", at);
    if (readable && !page->lazy && can_be_written(thread, at) != (page->protection == RW))
        fail(thread, page->protection == RW ? "it cannot be written" : "it can be written though it is protected", at);
}

static void write_page(struct thread *thread, struct place *place, size_t index) {
    struct page *page = &place->pages[index];
    if (page->protection != RW)
        return probe(thread, place, index);
    look(thread, place, index);
    page->value = random_below(thread, UINT64_MAX - 1) + 1;
    page->lazy = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ((uint64_t *)(place->at + index * PAGE))[words[i]] = page->value;
}

static void sample(struct thread *thread, struct place *place) {
    for (int i = 0; i < 4 && place->count; i++)
        look(thread, place, random_below(thread, place->count));
    if (place->count)
        probe(thread, place, random_below(thread, place->count));
}

static void set_pages(struct place *place, size_t from, size_t count, struct page page) {
    for (size_t i = from; i < from + count; i++)
        place->pages[i] = page;
}

static void check_gone(struct thread *thread, const char *at, size_t count) {
    if (!probing)
        return;
    for (size_t i = 0; i < count; i += count < 16 ? 1 : 1 + random_below(thread, count / 4)) {
        const char *page = at + i * PAGE;
        uintptr_t unit = (uintptr_t)page & -(uintptr_t)(UNIT * PAGE);
        unsigned char there;
        bool gone = !can_be_read(thread, page) && errno == EFAULT;
        gone = mincore((void *)page, PAGE, &there) == -1 && errno == ENOMEM && gone;
        if (gone)
            continue;
        bool whole = unit >= (uintptr_t)at && unit + UNIT * PAGE <= (uintptr_t)at + count * PAGE;
        if (!lenient || whole)
            fail(thread, "it was unmapped and is still there", page);
        thread->accessible++;
    }
}

static void map_new(struct thread *thread, struct place *place, char *fixed, size_t count) {
    const int protections[] = {RW, RW, RW, RW, RW, RW, PROT_READ, PROT_NONE}, kinds[] = {0, 0, 0, MAP_NORESERVE};
    int protection = protections[random_below(thread, 8)];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | kinds[random_below(thread, 4)] | (fixed ? MAP_FIXED_NOREPLACE : 0);
    char *at = mmap(fixed, count * PAGE, protection, flags, -1, 0);
    if (fixed && lenient && at == MAP_FAILED && errno == EEXIST)
        return;
    if (at == MAP_FAILED || (fixed && at != fixed))
        fail(thread, "mmap", fixed);
    *place = (struct place){at, count, false, place->pages};
    set_pages(place, 0, count, (struct page){.protection = protection});
    thread->total += count;
}

static struct place *empty_place(struct thread *thread) {
    for (struct place *place = thread->places; place < thread->places + PLACES; place++)
        if (!place->at)
            return place;
    return NULL;
}

// From either end, from the middle, or all of it; sometimes something is mapped there at once.
static void unmap(struct thread *thread, struct place *place) {
    size_t from = 0, count = place->count;
    struct place *rest = empty_place(thread);
    if (random_below(thread, 3))
        from = random_below(thread, place->count);
    if (random_below(thread, 2) && rest)
        count = 1 + random_count(thread, place->count - from) - 1;
    if (from + count > place->count || !rest)
        count = place->count - from;
    char *at = place->at + from * PAGE;
    pthread_rwlock_wrlock(&addresses);
    if (munmap(at, count * PAGE - random_below(thread, PAGE)))
        fail(thread, "munmap", at);
    check_gone(thread, at, count);
    size_t behind = place->count - from - count;
    if (behind) {
        *rest = (struct place){at + count * PAGE, behind, place->uneven, rest->pages};
        memcpy(rest->pages, place->pages + from + count, behind * sizeof *rest->pages);
    }
    thread->total -= count;
    place->count = from;
    if (!from)
        place->at = NULL;
    if (!random_below(thread, 4) && (rest = empty_place(thread)))
        map_new(thread, rest, at, count);
    pthread_rwlock_unlock(&addresses);
}

// Two that lie one behind the other, by one call.
static void unmap_two(struct thread *thread, struct place *place) {
    struct place *next = thread->places;
    while (next < thread->places + PLACES && (!next->at || next->at != place->at + place->count * PAGE))
        next++;
    if (next == thread->places + PLACES)
        return;
    size_t kept = random_below(thread, place->count), taken = 1 + random_below(thread, next->count);
    size_t count = place->count - kept + taken;
    char *at = place->at + kept * PAGE;
    pthread_rwlock_wrlock(&addresses);
    if (munmap(at, count * PAGE))
        fail(thread, "munmap of two", at);
    check_gone(thread, at, count);
    pthread_rwlock_unlock(&addresses);
    thread->total -= count;
    place->count = kept;
    if (!kept)
        place->at = NULL;
    next->count -= taken;
    memmove(next->pages, next->pages + taken, next->count * sizeof *next->pages);
    next->at = next->count ? next->at + taken * PAGE : NULL;
    next->uneven = true;
}

static bool is_even(struct place *place) {
    for (size_t i = 0; i < place->count; i++)
        if (place->pages[i].protection != place->pages[0].protection || place->pages[i].backed)
            return false;
    return true;
}

static void remap(struct thread *thread, struct place *place) {
    // More than one mapping: all that is known is that a growth succeeds, or fails and changes nothing.
    if (!is_even(place))
        return;
    size_t count = random_count(thread, LONGEST), had = place->count;
    if (random_below(thread, 3) == 0 || (place->uneven && count < had))
        count = had + random_below(thread, had / 8 + 1);
    if (count > LONGEST || thread->total + count > TOGETHER / (size_t)thread_count)
        return;
    int kind = place->uneven ? 0 : random_below(thread, 6);
    char *there = NULL, *moved, *at = place->at;
    struct place *left = empty_place(thread);
    pthread_rwlock_wrlock(&addresses);
    if (kind == 1) {
        there = mmap(NULL, count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        moved = mremap(at, had * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    } else if (kind == 2 && left && thread->total + had <= TOGETHER / (size_t)thread_count) {
        moved = mremap(at, had * PAGE, had * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        if (moved == MAP_FAILED)
            fail(thread, "mremap that leaves it mapped", at);
        *left = (struct place){at, had, false, left->pages};
        set_pages(left, 0, had, (struct page){.protection = place->pages[0].protection});
        thread->total += had;
        count = had;
    } else if (kind == 3) {
        moved = mremap(at, had * PAGE, count * PAGE, 0);
        if (moved == MAP_FAILED && errno == ENOMEM && count > had)
            goto done;
    } else {
        moved = mremap(at, had * PAGE, count * PAGE, MREMAP_MAYMOVE);
    }
    if (moved == MAP_FAILED && errno == EFAULT && place->uneven)
        goto done;
    if (moved == MAP_FAILED || (there && moved != there))
        fail(thread, "mremap", at);
    if (moved == at && count < had)
        check_gone(thread, at + count * PAGE, had - count);
    if (moved + count * PAGE <= at || at + had * PAGE <= moved)
        if (kind != 2 || !left || left->at != at)
            check_gone(thread, at, had);
    if (count > had)
        set_pages(place, had, count - had, (struct page){.protection = place->pages[0].protection});
    thread->total += count - had;
    place->at = moved;
    place->count = count;
done:
    pthread_rwlock_unlock(&addresses);
}

static void some_of(struct thread *thread, struct place *place, size_t *from, size_t *count) {
    *from = random_below(thread, 4) ? random_below(thread, place->count) : 0;
    *count = random_below(thread, 4) ? random_count(thread, place->count - *from) : place->count - *from;
}

static void give_back(struct thread *thread, struct place *place) {
    size_t from, count;
    some_of(thread, place, &from, &count);
    char *at = place->at + from * PAGE;
    bool lazily = !random_below(thread, 3), backed = false;
    for (size_t i = from; i < from + count; i++)
        backed |= place->pages[i].backed;
    if (lazily && backed)
        return;
    if (madvise(at, count * PAGE, lazily ? MADV_FREE : MADV_DONTNEED))
        fail(thread, "madvise", at);
    for (size_t i = from; i < from + count; i++) {
        struct page *page = &place->pages[i];
        page->lazy = lazily;
        if (!lazily)
            page->value = page->backed ? file_value : 0;
    }
}

static void advise(struct thread *thread, struct place *place) {
    const int advice[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLD, MADV_WILLNEED, MADV_DONTDUMP, MADV_DODUMP};
    size_t from, count;
    some_of(thread, place, &from, &count);
    if (madvise(place->at + from * PAGE, count * PAGE, advice[random_below(thread, 6)]))
        fail(thread, "madvise that only advises", place->at + from * PAGE);
    place->uneven = true;
}

static void protect(struct thread *thread, struct place *place) {
    const int protections[] = {PROT_NONE, PROT_READ, RW, RW};
    size_t from, count;
    some_of(thread, place, &from, &count);
    if (protect_all(place, from, count, protections[random_below(thread, 4)]))
        fail(thread, "mprotect", place->at + from * PAGE);
    if (count < place->count)
        place->uneven = true;
    probe(thread, place, from);
    probe(thread, place, from + count - 1);
    if (from)
        probe(thread, place, from - 1);
    if (from + count < place->count)
        probe(thread, place, from + count);
}

static void map_over(struct thread *thread, struct place *place) {
    size_t from, count;
    some_of(thread, place, &from, &count);
    bool backed = !random_below(thread, 3);
    if (backed && count > FILE_PAGES)
        count = FILE_PAGES;
    char *at = place->at + from * PAGE;
    int flags = MAP_PRIVATE | MAP_FIXED | (backed ? 0 : MAP_ANONYMOUS);
    size_t offset = random_below(thread, FILE_PAGES - (count < FILE_PAGES ? count : FILE_PAGES) + 1);
    if (mmap(at, count * PAGE, RW, flags, backed ? file : -1, backed ? offset * PAGE : 0) != at)
        fail(thread, "mmap over", at);
    set_pages(place, from, count, (struct page){backed ? file_value : 0, RW, false, backed});
    place->uneven = true;
}

// The heap is one thread's; it has nothing else that would grow it.
static void move_brk(struct thread *thread) {
    size_t count = random_below(thread, BRK_PAGES), had = heap.count;
    char *at = brk_begin + count * PAGE;
    pthread_rwlock_wrlock(&addresses);
    if (random_below(thread, 2) ? brk(at) != 0
                                : sbrk(((long)count - (long)had) * PAGE) != brk_begin + had * PAGE || sbrk(0) != at)
        fail(thread, "brk", at);
    if (count < had)
        check_gone(thread, at, had - count);
    pthread_rwlock_unlock(&addresses);
    heap.count = count;
    if (count > had)
        set_pages(&heap, had, count - had, (struct page){.protection = RW});
    for (int i = 0; i < 16 && count; i++)
        write_page(thread, &heap, random_below(thread, count));
}

static void look_at_all(struct thread *thread) {
    for (struct place *place = thread->places; place < thread->places + PLACES; place++)
        for (size_t i = 0; place->at && i < place->count; i++)
            look(thread, place, i);
    for (size_t i = 0; !thread->number && i < heap.count; i++)
        look(thread, &heap, i);
}

// The model is shared with the child, which therefore leaves it alone.
static void fork_once(struct thread *thread) {
    pid_t pid = fork();
    if (pid < 0)
        fail(thread, "fork", NULL);
    if (!pid) {
        look_at_all(thread);
        for (struct place *place = thread->places; place < thread->places + PLACES; place++)
            for (size_t i = 0; place->at && i < place->count; i += 1 + i / 2)
                if (place->pages[i].protection == RW)
                    memset(place->at + i * PAGE, 0xee, PAGE);
        if (thread->places->at && munmap(thread->places->at, thread->places->count * PAGE))
            fail(thread, "munmap in the child", thread->places->at);
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status)
        fail(thread, "the child", NULL);
}

static void one_call(struct thread *thread, struct place *place) {
    switch (random_below(thread, 12)) {
    case 0:
        return unmap(thread, place);
    case 1:
        return unmap_two(thread, place);
    case 2:
    case 3:
        return remap(thread, place);
    case 4:
    case 5:
        return give_back(thread, place);
    case 6:
        return protect(thread, place);
    case 7:
        return map_over(thread, place);
    case 8:
        return advise(thread, place);
    default:
        for (int i = 0; i < 16; i++)
            write_page(thread, place, random_below(thread, place->count));
    }
}

static void *soak(void *argument) {
    struct thread *thread = argument;
    size_t most = TOGETHER / thread_count;
    for (; thread->calls < calls; thread->calls++) {
        struct place *place = &thread->places[random_below(thread, PLACES)];
        if (thread->calls % EVERY == EVERY - 1) {
            fork_once(thread);
            look_at_all(thread);
        } else if (!thread->number && thread->calls % 50 == 49) {
            move_brk(thread);
        } else if (place->at) {
            one_call(thread, place);
        } else if (thread->total < most) {
            pthread_rwlock_rdlock(&addresses);
            map_new(thread, place, NULL,
                    random_count(thread, most - thread->total < LONGEST ? most - thread->total : LONGEST));
            pthread_rwlock_unlock(&addresses);
        } else {
            continue;
        }
        if (place->at)
            sample(thread, place);
    }
    for (struct place *place = thread->places; place < thread->places + PLACES; place++)
        if (place->at && protect_all(place, 0, place->count, RW))
            fail(thread, "mprotect", place->at);
    look_at_all(thread);
    return NULL;
}

// What is of no account here: shared, and so never the pool's.
static void *model(size_t bytes) {
    void *at = mmap(NULL, bytes, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        exit(2);
    return at;
}

int main(int count, char **arguments) {
    const struct option options[] = {{"threads", required_argument, NULL, 't'},
                                     {"no-probe", no_argument, NULL, 'n'},
                                     {"lenient", no_argument, NULL, 'l'},
                                     {0}};
    for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        if (option == '?')
            return 2;
        thread_count = option == 't' ? atoi(optarg) : thread_count;
        probing = option == 'n' ? false : probing;
        lenient = option == 'l' ? true : lenient;
    }
    calls = optind < count ? atol(arguments[optind]) : calls;
    uint64_t seed = optind + 1 < count ? strtoull(arguments[optind + 1], NULL, 10) : 1, *values;
    file = memfd_create("file", 0);
    if (thread_count < 1 || file < 0 || ftruncate(file, FILE_PAGES * PAGE))
        return 2;
    values = mmap(NULL, FILE_PAGES * PAGE, RW, MAP_SHARED, file, 0);
    for (size_t i = 0; i < FILE_PAGES * PAGE / 8; i++)
        values[i] = file_value;
    threads = model(thread_count * sizeof *threads);
    heap.pages = model(BRK_PAGES * sizeof *heap.pages);
    for (struct thread *thread = threads; thread < threads + thread_count; thread++) {
        thread->number = thread - threads;
        thread->state = (seed * 100 + thread->number + 1) * 0x9e3779b97f4a7c15;
        for (struct place *place = thread->places; place < thread->places + PLACES; place++)
            place->pages = model(LONGEST * sizeof *place->pages);
        if (pipe(thread->ends))
            return 2;
    }
    // Threads are made before the heap is ours: anything that libc keeps there would end what is.
    pthread_rwlock_wrlock(&addresses);
    for (struct thread *thread = threads + 1; thread < threads + thread_count; thread++)
        if (pthread_create(&thread->id, NULL, soak, thread))
            return 2;
    brk_begin = (char *)(((uintptr_t)sbrk(PAGE) + PAGE - 1) & -PAGE);
    if (brk(brk_begin))
        fail(threads, "brk", brk_begin);
    heap.at = brk_begin;
    pthread_rwlock_unlock(&addresses);
    soak(threads);
    size_t accessible = threads->accessible;
    for (struct thread *thread = threads + 1; thread < threads + thread_count; thread++) {
        pthread_join(thread->id, NULL);
        accessible += thread->accessible;
    }
    char text[100];
    int length = snprintf(text, sizeof text, "%ld calls, %zu unmapped pages found accessible\n", calls * thread_count,
                          accessible);
    return write(1, text, length) != length;
}

/*
 * faults WHAT COUNT [FILE]: makes exactly COUNT page faults of one kind, beside those that starting and ending take.
 *
 * base, huge, zero, cow, file, shared, hugetlb: one kind each (file: COUNT pages written through a shared mapping of
 * FILE) kernel: COUNT base faults taken by read(2) into memory that was never touched threads, children: COUNT base
 * faults in each of 4 threads; one base fault in each of COUNT children executes: becomes `faults base COUNT`
 * interrupted: SIGSEGV COUNT times, caught; segv: the same until it is fatal
 * swapped: COUNT pages of anonymous memory, paged out before they are read
 * collapsed: a thread touches memory while another collapses it, COUNT times
 * populated: COUNT pages by each of MAP_POPULATE, MADV_POPULATE_WRITE, mlock, and mmap after mlockall(MCL_FUTURE)
 * populates-under-limit: COUNT pages by MADV_POPULATE_WRITE with the page cache of FILE in the way
 * collapses: 2 MiB of base pages made a huge page by MADV_COLLAPSE, COUNT times
 * userfault: COUNT pages that a handler thread places, 1 ms after each fault
 * userfault-protected: COUNT pages whose write protection a handler thread lifts
 * reclaiming: COUNT base faults with the page cache of FILE in the way, under the caller's limit
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define HUGE (2ul << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Memory at a multiple of 2 MiB. */
static volatile char *map(size_t bytes, int flags, int fd) {
    char *at = mmap(0, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    at = (char *)(((unsigned long)at + HUGE - 1) & ~(HUGE - 1));
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED)
        fail("mmap");
    return at;
}

static volatile char *anonymous(size_t bytes, int advice) {
    volatile char *at = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (madvise((void *)at, bytes, advice))
        fail("madvise");
    return at;
}

static void write_each(volatile char *at, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++)
        at[i * step] = 1;
}

static void base(size_t count) {
    write_each(anonymous(count * PAGE, MADV_NOHUGEPAGE), count, PAGE);
}

static void copy(size_t count) {
    volatile char *at = anonymous(count * PAGE, MADV_NOHUGEPAGE);
    if (madvise((void *)at, count * PAGE, MADV_POPULATE_WRITE))
        fail("madvise");
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        write_each(at, count, PAGE);
        _exit(0);
    }
    waitpid(child, 0, 0);
}

static void of_kernel(size_t count) {
    volatile char *at = anonymous(count * PAGE, MADV_NOHUGEPAGE);
    int zeros = open("/dev/zero", O_RDONLY);
    for (size_t i = 0; i < count; i++)
        if (read(zeros, (void *)(at + i * PAGE), 1) != 1)
            fail("/dev/zero");
}

static void *base_in_thread(void *count) {
    base((size_t)count);
    return 0;
}

static void in_threads(size_t count) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, base_in_thread, (void *)count);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
}

static void in_children(size_t count) {
    volatile char *at = anonymous(PAGE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            *at = 1;
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

static sigjmp_buf back;

static void caught(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void interrupt(size_t count) {
    volatile size_t left = count;
    volatile char *at = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (mprotect((void *)at, PAGE, PROT_NONE))
        fail("mprotect");
    signal(SIGSEGV, caught);
    sigsetjmp(back, 1);
    while (left > 0) {
        left--;
        *at = 1;
    }
}

static void swap(size_t count) {
    volatile char *at = anonymous(count * PAGE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count; i++)
        memset((char *)at + i * PAGE, (int)i | 1, PAGE);
    if (madvise((void *)at, count * PAGE, MADV_PAGEOUT))
        fail("madvise");
    for (size_t i = 0; i < count; i++)
        (void)at[i * PAGE];
}

static volatile char *region;
static atomic_uint round_of, done;

static void *touch_meanwhile(void *count) {
    for (size_t i = 1; i <= (size_t)count; i++) {
        while (atomic_load(&round_of) != i)
            ;
        for (size_t page = 1; page < HUGE / PAGE; page += 2) {
            region[page * PAGE] = 1;
            /* Spread over the time that a collapse takes to begin. */
            for (volatile int spin = 0; spin < 5000; spin++)
                ;
        }
        atomic_store(&done, i);
    }
    return 0;
}

static void collapse(size_t count) {
    pthread_t toucher;
    region = anonymous(HUGE, MADV_HUGEPAGE);
    pthread_create(&toucher, 0, touch_meanwhile, (void *)count);
    for (size_t i = 1; i <= count; i++) {
        madvise((void *)region, HUGE, MADV_DONTNEED);
        madvise((void *)region, HUGE, MADV_NOHUGEPAGE);
        for (size_t page = 0; page < HUGE / PAGE; page += 2)
            region[page * PAGE] = 1;
        madvise((void *)region, HUGE, MADV_HUGEPAGE);
        atomic_store(&round_of, i);
        madvise((void *)region, HUGE, MADV_COLLAPSE);
        while (atomic_load(&done) != i)
            ;
    }
    pthread_join(toucher, 0);
}

static void populate(size_t count) {
    size_t bytes = count * PAGE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (mmap(0, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, -1, 0) == MAP_FAILED)
        fail("mmap");
    if (madvise((void *)anonymous(bytes, MADV_NOHUGEPAGE), bytes, MADV_POPULATE_WRITE))
        fail("madvise");
    if (mlock((void *)anonymous(bytes, MADV_NOHUGEPAGE), bytes))
        fail("mlock");
    if (mlockall(MCL_FUTURE) || mmap(0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        fail("mlockall");
}

static void collapses(size_t count) {
    region = anonymous(HUGE, MADV_HUGEPAGE);
    for (size_t i = 0; i < count; i++) {
        madvise((void *)region, HUGE, MADV_DONTNEED);
        madvise((void *)region, HUGE, MADV_NOHUGEPAGE);
        write_each(region, HUGE / PAGE, PAGE);
        madvise((void *)region, HUGE, MADV_HUGEPAGE);
        if (madvise((void *)region, HUGE, MADV_COLLAPSE))
            fail("MADV_COLLAPSE");
    }
}

static int handled;
static int is_protected;

static void *handle_faults(void *count) {
    static char page[PAGE];
    for (size_t i = 0; i < (size_t)count; i++) {
        struct uffd_msg message;
        if (read(handled, &message, sizeof(message)) != sizeof(message))
            fail("userfaultfd");
        usleep(1000);
        unsigned long at = message.arg.pagefault.address & ~(PAGE - 1);
        struct uffdio_copy copy = {.dst = at, .src = (unsigned long)page, .len = PAGE};
        struct uffdio_writeprotect lift = {.range = {at, PAGE}};
        if (is_protected ? ioctl(handled, UFFDIO_WRITEPROTECT, &lift) : ioctl(handled, UFFDIO_COPY, &copy))
            fail("userfaultfd");
    }
    return 0;
}

static void userfault(size_t count) {
    pthread_t handler;
    volatile char *at = anonymous(count * PAGE, MADV_NOHUGEPAGE);
    struct uffdio_api api = {.api = UFFD_API, .features = is_protected ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0};
    struct uffdio_register range = {.range = {(unsigned long)at, count * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    handled = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (handled < 0 || ioctl(handled, UFFDIO_API, &api))
        fail("userfaultfd");
    if (is_protected) {
        if (madvise((void *)at, count * PAGE, MADV_POPULATE_WRITE))
            fail("madvise");
        range.mode = UFFDIO_REGISTER_MODE_WP;
    }
    if (ioctl(handled, UFFDIO_REGISTER, &range))
        fail("userfaultfd");
    struct uffdio_writeprotect protect = {.range = range.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (is_protected && ioctl(handled, UFFDIO_WRITEPROTECT, &protect))
        fail("userfaultfd");
    pthread_create(&handler, 0, handle_faults, (void *)count);
    write_each(at, count, PAGE);
    pthread_join(handler, 0);
}

static void cache(const char *path) {
    static char buffer[1 << 20];
    int file = open(path, O_RDWR);
    /* Whoever wrote it had its page cache charged. */
    if (file < 0 || fdatasync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
        fail(path);
    while (read(file, buffer, sizeof(buffer)) > 0)
        ;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const char *what = argv[1];
    size_t count = strtoul(argv[2], 0, 10);
    if (!strcmp(what, "base"))
        base(count);
    else if (!strcmp(what, "huge"))
        write_each(anonymous(count * HUGE, MADV_HUGEPAGE), count, HUGE);
    else if (!strcmp(what, "zero")) {
        volatile char *at = anonymous(count * PAGE, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < count; i++)
            (void)at[i * PAGE];
    } else if (!strcmp(what, "cow"))
        copy(count);
    else if (!strcmp(what, "file") && argc > 3) {
        int file = open(argv[3], O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, (off_t)(count * PAGE)))
            fail(argv[3]);
        write_each(map(count * PAGE, MAP_SHARED, file), count, PAGE);
    } else if (!strcmp(what, "shared"))
        write_each(map(count * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), count, PAGE);
    else if (!strcmp(what, "hugetlb"))
        write_each(map(count * HUGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1), count, HUGE);
    else if (!strcmp(what, "kernel"))
        of_kernel(count);
    else if (!strcmp(what, "threads"))
        in_threads(count);
    else if (!strcmp(what, "children"))
        in_children(count);
    else if (!strcmp(what, "executes"))
        execl(argv[0], argv[0], "base", argv[2], (char *)0);
    else if (!strcmp(what, "interrupted"))
        interrupt(count);
    else if (!strcmp(what, "segv"))
        *(volatile char *)count = 1;
    else if (!strcmp(what, "swapped"))
        swap(count);
    else if (!strcmp(what, "collapsed"))
        collapse(count);
    else if (!strcmp(what, "reclaiming") && argc > 3) {
        cache(argv[3]);
        base(count);
    } else if (!strcmp(what, "populates-under-limit") && argc > 3) {
        cache(argv[3]);
        if (madvise((void *)anonymous(count * PAGE, MADV_NOHUGEPAGE), count * PAGE, MADV_POPULATE_WRITE))
            fail("madvise");
    } else if (!strcmp(what, "populated"))
        populate(count);
    else if (!strcmp(what, "collapses"))
        collapses(count);
    else if (!strncmp(what, "userfault", 9)) {
        is_protected = !strcmp(what, "userfault-protected");
        userfault(count);
    } else
        return 2;
    return 0;
}

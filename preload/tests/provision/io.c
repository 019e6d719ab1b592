// The kernel and other processes read and write such memory as any other.
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RW = PROT_READ | PROT_WRITE };

// In the working directory, and already without a name.
static int open_file(int flags) {
    char name[] = "provision.XXXXXX";
    int file = mkostemp(name, flags);
    if (file < 0 && flags)
        skip("this file system has no O_DIRECT");
    check(file >= 0 && unlink(name) == 0);
    return file;
}

CASE(files_are_read_and_written) {
    int file = open_file(0);
    FOR_SIZES(bytes) {
        char *at = map(bytes), *other = malloc(bytes);
        fill(at, 0, bytes, 1);
        check(pwrite(file, at, bytes, 0) == (ssize_t)bytes);
        check(pread(file, other, bytes, 0) == (ssize_t)bytes);
        check_filled(other, 0, bytes, 1);
        // From and to odd places, across units, in pieces.
        struct iovec pieces[] = {{at + 1, 100}, {at + 5000, bytes - 6000}, {other + 3, 17}};
        check(pwritev(file, pieces, 3, 0) == (ssize_t)(bytes - 6000 + 117));
        memset(other, 0, bytes);
        struct iovec back[] = {{other + 1, 100}, {other + 5000, bytes - 6000}};
        check(preadv(file, back, 2, 0) == (ssize_t)(bytes - 6000 + 100));
        check(!memcmp(at + 1, other + 1, 100) && !memcmp(at + 5000, other + 5000, bytes - 6000));
        unmap(at, bytes);
        free(other);
    }
}

CASE(files_are_read_and_written_directly) {
    int file = open_file(O_DIRECT);
    FOR_SIZES(bytes) {
        char *at = map(bytes), *other = map(bytes);
        fill(at, 0, bytes, 1);
        check(pwrite(file, at, bytes, 0) == (ssize_t)bytes);
        check(pread(file, other, bytes, 0) == (ssize_t)bytes);
        check_filled(other, 0, bytes, 1);
        check(pread(file, other + PAGE, PAGE, 0) == PAGE);
        check_filled(other, 0, PAGE, 1);
        check(!memcmp(other + PAGE, at, PAGE));
        unmap(at, bytes);
        unmap(other, bytes);
    }
}

CASE(a_read_stops_at_a_guard_page) {
    int file = open_file(0);
    char *at = map(4 * MIB);
    fill(at, 0, 4 * MIB, 1);
    check(pwrite(file, at, 4 * MIB, 0) == 4 * (ssize_t)MIB);
    check(mprotect(at + MIB, PAGE, PROT_NONE) == 0);
    check(pread(file, at + MIB - 64 * KIB, 128 * KIB, MIB - 64 * KIB) == 64 * (ssize_t)KIB);
    check_error(pread(file, at + MIB, PAGE, 0), EFAULT);
    check_error(pwrite(file, at + MIB, PAGE, 0), EFAULT);
    check(mprotect(at + MIB, PAGE, PROT_READ) == 0);
    check_error(pread(file, at + MIB, PAGE, 0), EFAULT);
    check(pwrite(file, at + MIB, PAGE, 0) == PAGE);
    check_filled(at, 0, 4 * MIB, 1);
    // Unmapped.
    unmap(at + 2 * MIB, 2 * MIB);
    char *edge = (char *)(((uintptr_t)at + 2 * MIB + UNIT - 1) & -UNIT);
    if (edge < at + 4 * MIB)
        check(mprotect(edge, PAGE, PROT_READ) && errno == ENOMEM);
}

static void *write_all(void *argument) {
    struct iovec *what = argument;
    for (size_t done = 0; done < what[1].iov_len;) {
        ssize_t written =
            write((int)(intptr_t)what[0].iov_base, (char *)what[1].iov_base + done, what[1].iov_len - done);
        check(written > 0);
        done += written;
    }
    return NULL;
}

static void transfer(int from, int to) {
    FOR_SIZES(bytes) {
        char *at = map(bytes), *other = map(bytes);
        fill(at, 0, bytes, 1);
        struct iovec what[] = {{(void *)(intptr_t)to, 0}, {at, bytes}};
        pthread_t thread;
        check(pthread_create(&thread, NULL, write_all, what) == 0);
        for (size_t done = 0; done < bytes;) {
            ssize_t received = read(from, other + done, bytes - done);
            check(received > 0);
            done += received;
        }
        check(pthread_join(thread, NULL) == 0);
        check_filled(other, 0, bytes, 1);
        unmap(at, bytes);
        unmap(other, bytes);
    }
}

CASE(pipes_and_sockets) {
    int ends[2];
    check(pipe(ends) == 0);
    transfer(ends[0], ends[1]);
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    transfer(ends[0], ends[1]);
}

CASE(vmsplice_and_tee) {
    int ends[2];
    check(pipe(ends) == 0);
    char *at = map(4 * MIB), *other = map(4 * MIB);
    fill(at, 0, 4 * MIB, 1);
    for (size_t done = 0; done < 4 * MIB;) {
        ssize_t given = vmsplice(ends[1], &(struct iovec){at + done, 4 * MIB - done}, 1, SPLICE_F_NONBLOCK);
        check(given > 0);
        for (ssize_t received, left = given; left; left -= received, done += received)
            check((received = read(ends[0], other + done, left)) > 0);
    }
    check_filled(other, 0, 4 * MIB, 1);
    // In the pipe are pages, not copies: they outlive their mapping.
    check(vmsplice(ends[1], &(struct iovec){at + MIB, 2 * PAGE}, 1, 0) == 2 * PAGE);
    unmap(at, 4 * MIB);
    for (int i = 0; i < 4; i++) {
        char *used = map(4 * MIB);
        fill(used, 0, 4 * MIB, 2);
        unmap(used, 4 * MIB);
    }
    memset(other + MIB, 0, 2 * PAGE);
    check(read(ends[0], other + MIB, 2 * PAGE) == 2 * PAGE);
    check_filled(other, MIB, MIB + 2 * PAGE, 1);
    // And the other way round.
    check(write(ends[1], other, 8 * PAGE) == 8 * PAGE);
    check(vmsplice(ends[0], &(struct iovec){other + 2 * MIB, 8 * PAGE}, 1, 0) == 8 * PAGE);
    check(!memcmp(other + 2 * MIB, other, 8 * PAGE));
}

static long futex(int *at, int operation, int value) {
    struct timespec long_enough = {20, 0};
    return syscall(SYS_futex, at, operation, value, operation == FUTEX_WAKE ? NULL : &long_enough, NULL, 0);
}

static int wait_for(int *at, int wait, int value) {
    while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != value)
        check(futex(at, wait, value - 1) == 0 || errno == EAGAIN || errno == EINTR);
    return value;
}

static void play(int *at, int first, int wait, int wake) {
    for (int i = 0; i < 200; i++) {
        wait_for(at, wait, 2 * i + first);
        __atomic_store_n(at, 2 * i + first + 1, __ATOMIC_RELEASE);
        futex(at, wake, 1);
    }
}

static void *play_second(void *at) {
    play(at, 1, FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE);
    return NULL;
}

static void *play_second_shared(void *at) {
    play(at, 1, FUTEX_WAIT, FUTEX_WAKE);
    return NULL;
}

CASE(futexes_between_threads) {
    FOR_SIZES(bytes)
    for (int kind = 0; kind < 2; kind++) {
        char *at = map(bytes);
        int *word = (int *)(at + bytes / 2);
        pthread_t thread;
        check(pthread_create(&thread, NULL, kind ? play_second_shared : play_second, word) == 0);
        play(word, 0, kind ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, kind ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE);
        check(pthread_join(thread, NULL) == 0);
        unmap(at, bytes);
    }
}

CASE(futexes_between_processes) {
    int *word = mmap(NULL, 4 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (!pid) {
        play_second_shared(word + 1000);
        _exit(0);
    }
    play(word + 1000, 0, FUTEX_WAIT, FUTEX_WAKE);
    check_ends_well(pid);
}

CASE(mutexes_and_conditions_shared_by_processes) {
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        int count;
    } *shared = mmap(NULL, 4 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_condattr_t of_condition;
    check(!pthread_mutexattr_init(&attributes) && !pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    check(!pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    check(!pthread_condattr_init(&of_condition) && !pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED));
    check(!pthread_mutex_init(&shared->mutex, &attributes) && !pthread_cond_init(&shared->condition, &of_condition));
    pid_t pid = fork();
    if (!pid) {
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&shared->mutex);
            shared->count++;
            pthread_cond_signal(&shared->condition);
            pthread_mutex_unlock(&shared->mutex);
        }
        // It dies with the lock held.
        pthread_mutex_lock(&shared->mutex);
        _exit(0);
    }
    check_ends_well(pid);
    check(pthread_mutex_lock(&shared->mutex) == EOWNERDEAD && shared->count == 100);
}

CASE(robust_mutex_in_private_memory) {
    pthread_mutex_t *mutex = (pthread_mutex_t *)(map(4 * MIB) + MIB);
    pthread_mutexattr_t attributes;
    check(!pthread_mutexattr_init(&attributes) && !pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    check(!pthread_mutex_init(mutex, &attributes));
    pthread_t thread;
    check(!pthread_create(&thread, NULL, (void *(*)(void *))(void *)pthread_mutex_lock, mutex));
    check(!pthread_join(thread, NULL));
    check(pthread_mutex_lock(mutex) == EOWNERDEAD);
}

CASE(other_processes_read_and_write_it) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        pid_t parent = getpid(), pid = fork();
        if (!pid) {
            char *own = map(bytes);
            ssize_t done = process_vm_readv(parent, &(struct iovec){own, bytes}, 1, &(struct iovec){at, bytes}, 1, 0);
            if (done < 0 && (errno == EPERM || errno == ENOSYS))
                _exit(0);
            check(done == (ssize_t)bytes);
            check_filled(own, 0, bytes, 1);
            fill(own, 0, bytes, 2);
            done = process_vm_writev(parent, &(struct iovec){own, bytes}, 1, &(struct iovec){at, bytes}, 1, 0);
            check(done == (ssize_t)bytes);
            check_filled(at, 0, bytes, 1);
            _exit(0);
        }
        check_ends_well(pid);
        check_filled(at, 0, bytes, 2);
        unmap(at, bytes);
    }
}

CASE(proc_self_mem) {
    int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    check(mem >= 0);
    FOR_SIZES(bytes) {
        char *at = map(bytes), *other = malloc(bytes);
        fill(at, 0, bytes, 1);
        check(pread(mem, other, bytes, (off_t)at) == (ssize_t)bytes);
        check_filled(other, 0, bytes, 1);
        fill(other, 0, bytes, 2);
        check(pwrite(mem, other, bytes, (off_t)at) == (ssize_t)bytes);
        check_filled(at, 0, bytes, 2);
        unmap(at, bytes);
        free(other);
    }
}

CASE(system_calls_fill_it) {
    char *at = map(4 * MIB) + 2 * MIB - 50;
    check(getrandom(at, 200, 0) == 200);
    check(getcwd(at, 4096) == at && at[0] == '/');
    struct pollfd *polled = (struct pollfd *)(at + 2);
    polled[0] = polled[1] = (struct pollfd){.fd = -1, .events = POLLIN};
    check(poll(polled, 2, 0) == 0);
    FILE *file = fopen("/proc/self/status", "r");
    check(file && setvbuf(file, at, _IOFBF, MIB) == 0 && fgets(at + MIB, 100, file) && !strncmp(at + MIB, "Name:", 5));
    fclose(file);
}

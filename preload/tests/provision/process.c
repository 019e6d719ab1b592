// The process around its memory: descriptors, limits, privileges, libraries, what is told of it, its core.
#include "check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void use(size_t bytes) {
    char *at = map(bytes), *block = malloc(bytes);
    check(block);
    check_zero(at, 0, bytes);
    fill(at, 0, bytes, 1);
    fill(block, 0, bytes, 2);
    check_filled(at, 0, bytes, 1);
    check_filled(block, 0, bytes, 2);
    unmap(at, bytes);
    free(block);
}

// Whoever runs this leaves no more open than the first three.
CASE(descriptors_are_those_of_the_program) {
    for (int round = 0; round < 2; round++) {
        int file = open("/dev/null", O_RDONLY);
        check(file == 3 && close(3) == 0);
        use(16 * MIB);
        use(64 * MIB);
    }
    DIR *open_ones = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(open_ones));)
        check(entry->d_name[0] == '.' || atoi(entry->d_name) <= 3);
    closedir(open_ones);
}

CASE(all_descriptors_closed_and_opened_anew) {
    use(16 * MIB);
    check(close_range(3, ~0u, 0) == 0);
    // Whatever number the runtime had now is a file's.
    enum { FILES = 200 };
    char text[16], name[] = "provision.XXXXXX";
    int files[FILES];
    for (int i = 0; i < FILES; i++) {
        strcpy(name + 10, "XXXXXX");
        files[i] = mkstemp(name);
        check(files[i] == i + 3 && unlink(name) == 0);
        check(write(files[i], text, snprintf(text, sizeof text, "%d", i)) > 0);
    }
    for (int i = 0; i < 5; i++)
        use(64 * MIB);
    in_child((void (*)(void *))(void *)use, (void *)(64 * MIB));
    for (int i = 0; i < FILES; i++) {
        char read_back[16] = "";
        struct stat state;
        ssize_t length = pread(files[i], read_back, sizeof read_back - 1, 0);
        check(length == snprintf(text, sizeof text, "%d", i) && !strcmp(text, read_back));
        check(fstat(files[i], &state) == 0 && state.st_size == length && fcntl(files[i], F_GETFD) == 0);
        check(lseek(files[i], 0, SEEK_CUR) == length);
    }
}

CASE(no_more_descriptors_allowed) {
    struct rlimit limit = {3, 3};
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    FOR_SIZES(bytes)
    use(bytes);
}

CASE(no_files_may_be_written) {
    struct rlimit limit = {0, 0};
    check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    FOR_SIZES(bytes)
    use(bytes);
    in_child((void (*)(void *))(void *)use, (void *)(64 * MIB));
}

CASE(no_files_or_sockets_may_be_opened) {
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvmsg, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog filter = {COUNT(rules), rules};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        skip("this kernel has no seccomp filters");
    FOR_SIZES(bytes)
    use(bytes);
    in_child((void (*)(void *))(void *)use, (void *)(64 * MIB));
}

CASE(privileges_dropped) {
    use(MIB);
    if (getuid() == 0)
        check(setgid(65534) == 0 && setuid(65534) == 0);
    check(prctl(PR_SET_DUMPABLE, 0) == 0);
    FOR_SIZES(bytes)
    use(bytes);
    in_child((void (*)(void *))(void *)use, (void *)(64 * MIB));
}

CASE(another_root_directory) {
    if (chroot("/proc/self/fdinfo") || chdir("/"))
        skip("chroot is not allowed");
    FOR_SIZES(bytes)
    use(bytes);
    in_child((void (*)(void *))(void *)use, (void *)(64 * MIB));
}

// In use now, by /proc/self/statm: 0: addresses, 5: what RLIMIT_DATA is about.
static size_t used(int field) {
    size_t values[7] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    check(file);
    for (int i = 0; i < 7; i++)
        check(fscanf(file, "%zu", &values[i]) == 1);
    fclose(file);
    return values[field] * PAGE;
}

static void limited(int resource, size_t bytes) {
    use(MIB);
    struct rlimit limit = {bytes, RLIM_INFINITY};
    check(setrlimit(resource, &limit) == 0);
    volatile size_t too_much = 128 * MIB;
    for (int i = 0; i < 3; i++) {
        errno = 0;
        check(!malloc(too_much) && errno == ENOMEM);
        check_error(mmap(NULL, too_much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
        check_error(sbrk(too_much), ENOMEM);
        use(16 * MIB);
    }
    // Bit by bit.
    size_t taken = 0;
    while (mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        taken += MIB;
    check(errno == ENOMEM && taken >= 32 * MIB && taken <= 64 * MIB);
    limit.rlim_cur = RLIM_INFINITY;
    check(setrlimit(resource, &limit) == 0);
    use(too_much);
}

CASE(addresses_limited) {
    limited(RLIMIT_AS, used(0) + 64 * MIB);
}

// Whoever keeps account of memory by its address has no room to do so where nothing has been before.
CASE(room_for_no_more_than_what_is_asked_for) {
    use(16 * MIB);
    struct rlimit limit = {used(0) + 2 * MIB + 4 * PAGE, RLIM_INFINITY};
    check(setrlimit(RLIMIT_AS, &limit) == 0);
    char *at = mmap((void *)0x250000000000, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    limit.rlim_cur = RLIM_INFINITY;
    check(setrlimit(RLIMIT_AS, &limit) == 0);
    check_zero(at, 0, 2 * MIB);
    fill(at, 0, 2 * MIB, 1);
    check(mprotect(at + MIB, PAGE, PROT_NONE) == 0);
    check_faults_only(at, 2 * MIB, MIB, MIB + PAGE, false);
    unmap(at, 2 * MIB);
    check_gone(at, 0, 2 * MIB);
}

CASE(data_limited) {
    limited(RLIMIT_DATA, used(5) + 64 * MIB);
}

CASE(library_with_much_bss) {
    char path[sizeof "/libprovision.so" + 4096];
    snprintf(path, sizeof path, "%.*s/libprovision.so", (int)(strrchr(program, '/') - program), program);
    for (int i = 0; i < 10; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        check(library);
        char *zeroes = ((char *(*)(void))dlsym(library, "library_zeroes"))();
        char *values = ((char *(*)(void))dlsym(library, "library_values"))();
        check(values[0] == 1 && values[1] == 2 && values[2] == 3);
        check_zero(zeroes, 0, 24 * MIB);
        check_zero(values, 8, 5 * MIB);
        fill(zeroes, 0, 24 * MIB, i);
        use(4 * MIB);
        check_filled(zeroes, 0, 24 * MIB, i);
        check(dlclose(library) == 0);
    }
}

CASE(what_proc_tells_is_readable) {
    char *at = map(64 * MIB);
    fill(at, 0, 64 * MIB, 1);
    const char *names[] = {"maps", "smaps", "smaps_rollup", "numa_maps", "status", "statm", "stat"};
    static char text[1 << 20];
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/self/%s", names[i]);
        int file = open(path, O_RDONLY);
        if (file < 0 && errno == ENOENT)
            continue;
        check(file >= 0);
        ssize_t length, all = 0;
        while ((length = read(file, text, sizeof text)) > 0)
            all += length;
        check(length == 0 && all > 0 && close(file) == 0);
    }
    struct rusage usage;
    check(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0 && usage.ru_minflt > 0);
    check_filled(at, 0, 64 * MIB, 1);
}

// Not among the names that are run by themselves: for the core and for gdb.
char *heap_text, *mapped_text;

static void write_texts(void) {
    heap_text = malloc(24 * MIB);
    mapped_text = map(24 * MIB);
    check(heap_text);
    strcpy(heap_text + 12 * MIB, "this was in the heap");
    strcpy(mapped_text + 12 * MIB, "this was in a mapping");
}

CASE(core) {
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    check(setrlimit(RLIMIT_CORE, &all) == 0);
    write_texts();
    abort();
}

CASE(waits) {
    write_texts();
    char byte;
    check(write(1, "ready\n", 6) == 6);
    // A debugger that calls a function stops it in the middle of read, and then goes on with it; some kernels (6.18.44)
    // tell the program what they tell themselves instead, that it is to be called again.
    const int call_again = 512;
    ssize_t got;
    do
        got = read(0, &byte, 1);
    while (got < 0 && errno == call_again);
    check(got == 0);
    use(64 * MIB);
}

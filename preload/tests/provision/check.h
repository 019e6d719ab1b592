// What the cases share: patterns in memory, what faults and what does not, and how a case fails: with a sentence.
//
//   PROGRAM                    the names of its cases
//   PROGRAM [--lenient] NAME   exit status 0: all is as on Linux; 1: it is not; 77: it cannot be told here
//
// With --lenient, unmapped pages of a 2 MiB unit of which something is left may still be accessible; they are counted.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096, SKIPPED = 77 };
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define UNIT (2 * MIB)
#define COUNT(array) (sizeof(array) / sizeof *(array))

// Whole units, parts of them, and what ends within one.
static const size_t sizes[] = {64 * KIB, 1 * MIB, 2 * MIB, 3 * MIB + PAGE, 16 * MIB, 64 * MIB};
#define FOR_SIZES(bytes)                                                                                               \
    for (size_t size_index = 0, bytes; size_index < COUNT(sizes) && (bytes = sizes[size_index]); size_index++)

struct test_case {
    const char *name;
    void (*run)(void);
};

#define CASE(name)                                                                                                     \
    static void name(void);                                                                                            \
    static const struct test_case case_##name = {#name, name};                                                         \
    __attribute__((section("cases"), used)) static const struct test_case *const entry_##name = &case_##name;          \
    static void name(void)

#define check(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            failed(__FILE__, __LINE__, #condition);                                                                    \
    } while (0)

// The call fails, and with this error.
#define check_error(call, error)                                                                                       \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        if ((intptr_t)(call) != -1 || errno != (error))                                                                \
            failed(__FILE__, __LINE__, #call " is " #error);                                                           \
    } while (0)

_Noreturn void failed(const char *file, int line, const char *what);
_Noreturn void skip(const char *why);

// The program itself, to be run again with `name` as its case.
extern char program[];

char *map(size_t bytes); // private, anonymous, read and write
void unmap(char *at, size_t bytes);

// Each word of [from, to) of what begins at `at`, by its offset and the seed.
void fill(char *at, size_t from, size_t to, uint64_t seed);
void check_filled(const char *at, size_t from, size_t to, uint64_t seed);
void check_zero(const char *at, size_t from, size_t to);

// What a read or a write of one byte there gets: 0 or a signal.
int signal_of_read(const char *at);
int signal_of_write(char *at);

// Neither readable nor there, each page of it.
void check_gone(const char *at, size_t from, size_t to);

// Exactly [from, to) of `bytes` faults at a read (at a write, if `writes`).
void check_faults_only(char *at, size_t bytes, size_t from, size_t to, bool writes);

// In a child that fork makes, which ends with 0 if all of its checks hold.
void in_child(void (*run)(void *), void *argument);
void check_ends_well(int pid);

// Of these a failure is told with the line of the case that called them.
extern __thread int line_of_case;
#define check_filled(...) (line_of_case = __LINE__, (check_filled)(__VA_ARGS__))
#define check_zero(...) (line_of_case = __LINE__, (check_zero)(__VA_ARGS__))
#define check_gone(...) (line_of_case = __LINE__, (check_gone)(__VA_ARGS__))
#define check_faults_only(...) (line_of_case = __LINE__, (check_faults_only)(__VA_ARGS__))
#define check_ends_well(...) (line_of_case = __LINE__, (check_ends_well)(__VA_ARGS__))
#define in_child(...) (line_of_case = __LINE__, (in_child)(__VA_ARGS__))

// The runtime's life in a process: it begins before the program does, follows it through fork, and ends with it.
#pragma once

#include <stdbool.h>

// What was asked for: who holds the memory; to give it from a pool, or at once.
extern bool attributing, provisioning;

// Detours of libc's functions that end a process or make another program of it.
extern void (*next_exit_now)(int);
extern int (*next_execve)(const char *, char *const *, char *const *);
extern int (*next_libc_execve)(const char *, char *const *, char *const *);
extern int (*next_fexecve)(int, char *const *, char *const *);
extern int (*next_execveat)(int, const char *, char *const *, char *const *, int);
void on_exit_now(int status);
int on_execve(const char *path, char *const *arguments, char *const *environment);
int on_libc_execve(const char *path, char *const *arguments, char *const *environment);
int on_fexecve(int file, char *const *arguments, char *const *environment);
int on_execveat(int directory, const char *path, char *const *arguments, char *const *environment, int flags);

// Whether the runtime's file is in bursar's memory, for want of a folder that can be written.
bool runtime_in_memory(void);

// The library will be able to do nothing more.
void tell_of_sandbox(void);

// MPI comes to its end, and with it the last way to other nodes.
void on_finalize(void);

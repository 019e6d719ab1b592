// Detours of libc's functions that make another program of a process.
#pragma once

#include <stdbool.h>

extern int (*next_execve)(const char *, char *const *, char *const *);
extern int (*next_libc_execve)(const char *, char *const *, char *const *);
extern int (*next_fexecve)(int, char *const *, char *const *);
extern int (*next_execveat)(int, const char *, char *const *, char *const *, int);
int on_execve(const char *path, char *const *arguments, char *const *environment);
int on_libc_execve(const char *path, char *const *arguments, char *const *environment);
int on_fexecve(int file, char *const *arguments, char *const *environment);
int on_execveat(int directory, const char *path, char *const *arguments, char *const *environment, int flags);

// Before the first of them.
void exec_begin(void);

// Whether the runtime's file is in bursar's memory, for want of a folder that can be written.
bool runtime_in_memory(void);

// Each library has its own of these two. `own`: it is not the child of a vfork, whose variables are its parent's;
// `hidden`: the runtime's file, if the program is started where it cannot be read; else NULL.
void before_exec(bool own, const char *path, const char *hidden);
void exec_failed(void); // of `own`

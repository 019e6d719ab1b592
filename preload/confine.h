// Programs that confine themselves: to another user, to fewer capabilities, to namespaces, to some system calls. What
// they give up no thread of the runtime may keep: those there are leave, and come back with what the program has then.
// libc carries a change of user to the threads that it knows (man 7 nptl), and the kernel gives a user namespace to
// programs of one thread alone (man 2 unshare).
//
// Where a filter of system calls (Documentation/userspace-api/seccomp_filter.rst) is set they do not come back, and
// only what any program asks for goes through to the kernel: one that nobody foresaw may be the program's end.
#pragma once

// Between `patch_begin` and `patch_done`.
void confine_detour(void);

// Filters of system calls alone: of a library that has no threads.
void confine_filters_detour(void);

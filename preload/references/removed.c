#include "removed.h"

#include <fcntl.h>

#include "../detour.h"
#include "../space.h"
#include "note.h"

static int (*next_unlink)(const char *);
static int (*next_unlinkat)(int, const char *, int);
static int (*next_rename)(const char *, const char *);
static int (*next_renameat)(int, const char *, int, const char *);
static int (*next_renameat2)(int, const char *, int, const char *, unsigned);
static int (*next_truncate)(const char *, off_t);
static int (*next_ftruncate)(int, off_t);

static int removed(uint32_t file, int result) {
    if (!result)
        references_removed(file, 0);
    return result;
}

static int on_unlink(const char *path) {
    uint32_t file = references_removable(AT_FDCWD, path);
    return removed(file, next_unlink(path));
}

static int on_unlinkat(int directory, const char *path, int flags) {
    uint32_t file = references_removable(directory, path);
    return removed(file, next_unlinkat(directory, path, flags));
}

// What had the name before: where the same file has it still, both names were of one, and nothing was done.
static int replaced(uint32_t file, int directory, const char *path, int result) {
    return file && file == references_removable(directory, path) ? result : removed(file, result);
}

static int on_rename(const char *from, const char *to) {
    uint32_t file = references_removable(AT_FDCWD, to);
    return replaced(file, AT_FDCWD, to, next_rename(from, to));
}

static int on_renameat(int from_directory, const char *from, int to_directory, const char *to) {
    uint32_t file = references_removable(to_directory, to);
    return replaced(file, to_directory, to, next_renameat(from_directory, from, to_directory, to));
}

static int on_renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    uint32_t file = flags & 2 /* RENAME_EXCHANGE */ ? 0 : references_removable(to_directory, to);
    return replaced(file, to_directory, to, next_renameat2(from_directory, from, to_directory, to, flags));
}

static int on_truncate(const char *path, off_t bytes) {
    int result = next_truncate(path, bytes);
    if (!result)
        references_removed(references_number(AT_FDCWD, path), up(bytes, PAGE) / PAGE);
    return result;
}

static int on_ftruncate(int file, off_t bytes) {
    int result = next_ftruncate(file, bytes);
    if (!result)
        references_removed(references_number(file, ""), up(bytes, PAGE) / PAGE);
    return result;
}

#define DETOUR(name)                                                                                                   \
    { #name, on_##name, (void **)&next_##name, NULL, FIRST_IF_ANY }
static struct detour detours[] = {
    DETOUR(unlink),    DETOUR(unlinkat), DETOUR(rename),    DETOUR(renameat),
    DETOUR(renameat2), DETOUR(truncate), DETOUR(ftruncate),
};

void removed_detour(void) {
    detours_patch(detours, sizeof detours / sizeof *detours);
}

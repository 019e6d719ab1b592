#include "gather.h"

#include <errno.h>
#include <string.h>

#include "arena.h"
#include "log.h"
#include "mpi.h"
#include "sys.h"
#include "text.h"

enum { TAG = 32011, PIECE = 1 << 20, NAME = 256 };

// A file that only those can see whose run directory is rank 0's.
static void token_path(char *path, size_t bytes, const char *run_directory, const char *token) {
    text_format(path, bytes, "%s/.%s", run_directory, token);
}

static bool sees(const char *run_directory, const char *token) {
    char path[4096];
    token_path(path, sizeof path, run_directory, token);
    return !sys_failed(sys(SYS_faccessat, AT_FDCWD, path, 0));
}

static void send_log(char *piece, uint64_t bytes) {
    const uint64_t world = mpi()->world, byte = mpi()->byte;
    char name[NAME] = "";
    text_format(name, sizeof name, "%s", text_base(log_path()));
    mpi()->send(name, NAME, byte, 0, TAG, world);
    int file = sys(SYS_openat, AT_FDCWD, log_path(), O_RDONLY | O_CLOEXEC);
    for (uint64_t sent = 0; sent < bytes; sent += PIECE) {
        uint64_t count = least(bytes - sent, PIECE);
        // What cannot be read is zeros, which no reader takes for an entry.
        memset(piece, 0, count);
        sys(SYS_pread64, file, piece, count, sent);
        mpi()->send(piece, count, byte, 0, TAG, world);
    }
    sys(SYS_close, file);
}

static void receive_log(char *piece, uint64_t bytes, int rank, const char *run_directory) {
    const uint64_t world = mpi()->world, byte = mpi()->byte;
    char name[NAME], path[4096], status[256];
    mpi()->receive(name, NAME, byte, rank, TAG, world, status);
    name[NAME - 1] = 0;
    // A program that called exec on its way here may have left a log of this name.
    int file = -EEXIST;
    for (uint32_t life = 0; file == -EEXIST; life++) {
        text_format(path, sizeof path, life ? "%s/%s.%u.log" : "%s/%s", run_directory, text_base(name), life);
        file = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    for (uint64_t got = 0; got < bytes; got += PIECE) {
        uint64_t count = least(bytes - got, PIECE);
        mpi()->receive(piece, count, byte, rank, TAG, world, status);
        sys(SYS_write, file, piece, count);
    }
    sys(SYS_close, file);
}

// In MPI_COMM_WORLD itself: of a copy, the program's own functions for copying attributes would be called.
bool gather(const char *run_directory) {
    if (!mpi())
        return false;
    struct mpi_call before = mpi_begin();
    const uint64_t world = mpi()->world, byte = mpi()->byte;
    char token[32] = "", path[4096], *piece = arena_pages(PIECE);
    int rank = 0, ranks = 0;
    mpi()->comm_rank(world, &rank);
    mpi()->comm_size(world, &ranks);
    uint64_t bytes = 0, *sizes = rank ? NULL : arena(ranks * sizeof *sizes);
    if (sizes && piece) {
        text_format(token, sizeof token, "%lu.%u", now_ns(), (uint32_t)sys(SYS_getpid));
        token_path(path, sizeof path, run_directory, token);
        sys(SYS_close, sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    }
    mpi()->broadcast(token, sizeof token, byte, 0, world);
    if (*token) {
        bytes = sees(run_directory, token) || !piece ? 0 : log_bytes();
        mpi()->gather(&bytes, sizeof bytes, byte, sizes, sizeof bytes, byte, 0, world);
        if (rank && bytes)
            send_log(piece, bytes);
        for (int from = 1; !rank && from < ranks; from++)
            if (sizes[from])
                receive_log(piece, sizes[from], from, run_directory);
    }
    if (!rank && *token)
        sys(SYS_unlinkat, AT_FDCWD, path, 0);
    mpi_done(before);
    return bytes;
}

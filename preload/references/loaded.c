#include "loaded.h"

#include <string.h>

#include "../symbols.h"
#include "../sys.h"
#include "../text.h"
#include "note.h"

// Bytes of their headers that the kernel and glibc's loader read, most often.
enum { READ_OF_PROGRAM = 1580, READ_OF_LIBRARY = 2400 };
enum { WINDOW = 2048 };                                         // pages that are asked for at once
static const uint64_t present = 1UL << 63, of_file = 1UL << 61; // or of shared memory

// A part of the process's pagemap, which is empty by /proc/self once its first thread has ended
// (Documentation/admin-guide/mm/pagemap.rst); whether a page is present needs no right.
static struct {
    int file;
    uint64_t begin, end; // pages
    uint64_t last;       // that is worth to be asked for
    uint64_t entries[WINDOW];
} window;

static uint64_t entry_of(uint64_t page) {
    if (page < window.begin || page >= window.end) {
        uint64_t wanted = least(WINDOW, window.last - page + 1) * sizeof(uint64_t);
        long bytes = sys(SYS_pread64, window.file, window.entries, wanted, page * sizeof(uint64_t));
        window.begin = page;
        window.end = page + (bytes > 0 ? bytes / sizeof(uint64_t) : 0);
        references_read(bytes > 0 ? bytes : 0);
    }
    return page < window.end ? window.entries[page - window.begin] : 0;
}

static bool is_present(uint64_t page) {
    return entry_of(page) & present;
}

static void add_own(struct own_pages *own, uint64_t begin, uint64_t end) {
    window.last = (end - 1) / PAGE;
    for (uint64_t page = begin / PAGE; page <= window.last; page++) {
        bool is_there = is_present(page);
        own->all += is_there;
        own->heap += is_there && !(entry_of(page) & of_file);
    }
}

static struct own_pages own_pages(const struct link_map *own) {
    struct own_pages pages = {0};
    uint64_t begin, end;
    if (references_memory(&begin, &end))
        add_own(&pages, begin, end);
    uint32_t count;
    const ElfW(Phdr) *segments = own ? segments_of(own, &count) : NULL;
    for (uint32_t i = 0; segments && i < count; i++)
        if (segments[i].p_type == PT_LOAD)
            add_own(&pages, own->l_addr + segments[i].p_vaddr, own->l_addr + segments[i].p_vaddr + segments[i].p_memsz);
    return pages;
}

static void note_segment(uint32_t file, uint64_t base, const ElfW(Phdr) * segment) {
    uint64_t begin = (base + segment->p_vaddr) / PAGE;
    uint64_t end = up(base + segment->p_vaddr + segment->p_filesz, PAGE) / PAGE;
    uint64_t in_file = segment->p_offset / PAGE;
    for (uint64_t page = begin; page < end;) {
        uint64_t from = page;
        while (page < end && is_present(page))
            page++;
        if (page > from)
            references_touched(file, in_file + from - begin, in_file + page - begin);
        else
            page++;
    }
}

static void note_object(const struct link_map *map) {
    const char *path = map == loader()->r_map ? "/proc/self/exe" : map->l_name;
    uint32_t count, file = *path == '/' ? references_file(path) : 0;
    const ElfW(Phdr) *segments = file ? segments_of(map, &count) : NULL;
    for (uint32_t i = 0; segments && i < count; i++)
        if (segments[i].p_type == PT_LOAD)
            window.last = (map->l_addr + segments[i].p_vaddr + segments[i].p_filesz) / PAGE;
    for (uint32_t i = 0; segments && i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_filesz)
            note_segment(file, map->l_addr, &segments[i]);
}

struct own_pages loaded_note(void) {
    static bool busy;
    struct own_pages pages = {0};
    if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
        return pages;
    window.begin = window.end = 0;
    window.file = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    const struct link_map *program = loader()->r_map, *own = runtime_map();
    if (window.file >= 0 && program) {
        // The loader has touched the libraries before the program did anything.
        bool with_io_uring = false;
        uint32_t libraries = 0;
        for (const struct link_map *map = program->l_next; map; map = map->l_next) {
            libraries++;
            if (map != own)
                note_object(map);
            with_io_uring |= !strncmp(text_base(map->l_name), "liburing", strlen("liburing"));
        }
        note_object(program);
        if (references_ended(with_io_uring))
            references_read(READ_OF_PROGRAM + libraries * READ_OF_LIBRARY);
        pages = own_pages(own);
    }
    if (window.file >= 0)
        sys(SYS_close, window.file);
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    return pages;
}

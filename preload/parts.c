#include "parts.h"

#include <link.h>
#include <string.h>

#include "arena.h"
#include "text.h"

static void hex_of(const struct dl_phdr_info *info, char id[BUILD_ID + 1]) {
    text_format(id, BUILD_ID + 1, "-");
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)info->dlpi_addr + header->p_vaddr, *end = at + header->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const char *name = at + sizeof *note, *text = name + up(note->n_namesz, 4);
            at = text + up(note->n_descsz, 4);
            if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || memcmp(name, "GNU", 4) || at > end)
                continue;
            static const char digits[] = "0123456789abcdef";
            uint32_t length = 0;
            for (uint32_t j = 0; j < note->n_descsz && length + 2 <= BUILD_ID; j++) {
                id[length++] = digits[(unsigned char)text[j] >> 4];
                id[length++] = digits[(unsigned char)text[j] & 15];
            }
            id[length] = 0;
            return;
        }
    }
}

static int of_executable(struct dl_phdr_info *info, size_t bytes, void *id) {
    (void)bytes;
    hex_of(info, id);
    return 1;
}

void parts_build_id(char id[BUILD_ID + 1]) {
    dl_iterate_phdr(of_executable, id);
}

static char own;

struct visit {
    void (*each)(enum advice_kind, const char *, uint64_t, uint64_t);
    bool later;
};

static int visit(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct visit *visit = context;
    char id[BUILD_ID + 1], object[512] = "-";
    if (visit->later) {
        hex_of(info, id);
        text_format(object, sizeof object, "%s:%s", text_base(info->dlpi_name), id);
    }
    visit->later = true;
    uint64_t bytes = strlen(object) + 1;
    char *kept = arena(bytes);
    if (!kept)
        return 0;
    memcpy(kept, object, bytes);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        uint64_t begin = info->dlpi_addr + header->p_vaddr, file_end = begin + header->p_filesz;
        uint64_t bss = up(file_end, PAGE), end = up(begin + header->p_memsz, PAGE);
        // Our own is no part of the program.
        if ((uint64_t)&own >= begin && (uint64_t)&own < begin + header->p_memsz)
            return 0;
        visit->each(ADVICE_DATA, kept, begin & -(uint64_t)PAGE, bss);
        if (end > bss)
            visit->each(ADVICE_BSS, kept, bss, end);
    }
    return 0;
}

void parts_each(void (*each)(enum advice_kind kind, const char *object, uint64_t begin, uint64_t end)) {
    struct visit context = {each, false};
    dl_iterate_phdr(visit, &context);
}

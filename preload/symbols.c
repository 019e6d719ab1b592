#include "symbols.h"

#include <string.h>
#include <sys/auxv.h>

#include "space.h"

// The loader makes them absolute, but in objects that it cannot write to.
static const void *address_in(const struct link_map *map, uint64_t address) {
    return (const void *)(address < map->l_addr ? map->l_addr + address : address);
}

struct tables tables_of(const struct link_map *map) {
    struct tables tables = {.soname = ""};
    uint64_t soname = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *address = address_in(map, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = address;
            break;
        case DT_STRTAB:
            tables.strings = address;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = address;
            break;
        case DT_HASH:
            tables.hash = address;
            break;
        case DT_VERSYM:
            tables.versions = address;
            break;
        case DT_SONAME:
            soname = entry->d_un.d_val;
            break;
        case DT_TEXTREL:
            tables.code_is_relocated = true;
            break;
        case DT_FLAGS:
            tables.code_is_relocated |= (entry->d_un.d_val & DF_TEXTREL) != 0;
            break;
        }
    }
    if (soname && tables.strings)
        tables.soname = tables.strings + soname;
    return tables;
}

// The names that an object needs, one by one: `*entry` is where to go on.
const char *next_needed(const struct link_map *map, const char *strings, const ElfW(Dyn) * *entry) {
    for (*entry = *entry ? *entry + 1 : map->l_ld; (*entry)->d_tag != DT_NULL; ++*entry)
        if ((*entry)->d_tag == DT_NEEDED)
            return strings + (*entry)->d_un.d_val;
    return NULL;
}

const ElfW(Phdr) * segments_of(const struct link_map *map, uint32_t *count) {
    if (map == loader()->r_map) {
        *count = getauxval(AT_PHNUM);
        return (const void *)getauxval(AT_PHDR);
    }
    const ElfW(Ehdr) *header = (const void *)map->l_addr;
    *count = 0;
    if (!is_mapped(map->l_addr) || memcmp(header->e_ident, ELFMAG, SELFMAG))
        return NULL;
    *count = header->e_phnum;
    return (const void *)(map->l_addr + header->e_phoff);
}

uint32_t symbol_count(const struct tables *tables) {
    if (tables->hash)
        return tables->hash[1];
    if (!tables->gnu_hash)
        return 0;
    uint32_t bucket_count = tables->gnu_hash[0], first = tables->gnu_hash[1];
    const uint32_t *buckets = tables->gnu_hash + 4 + tables->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t last = 0;
    for (uint32_t i = 0; i < bucket_count; i++)
        if (buckets[i] > last)
            last = buckets[i];
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

static void *symbol_at(const struct link_map *map, const struct tables *tables, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    uint32_t type = ELF64_ST_TYPE(symbol->st_info);
    bool hidden = tables->versions && tables->versions[index] & 0x8000;
    if (symbol->st_shndx == SHN_UNDEF || hidden || type == STT_TLS || strcmp(tables->strings + symbol->st_name, name))
        return NULL;
    void *address = (void *)(map->l_addr + symbol->st_value);
    return type == STT_GNU_IFUNC ? ((void *(*)(void))address)() : address;
}

void *object_symbol(const struct link_map *map, const char *name) {
    struct tables tables = tables_of(map);
    if (!tables.symbols || !tables.strings)
        return NULL;
    if (!tables.gnu_hash) {
        uint32_t count = symbol_count(&tables);
        for (uint32_t i = 0; i < count; i++) {
            void *found = symbol_at(map, &tables, i, name);
            if (found)
                return found;
        }
        return NULL;
    }
    uint32_t hash = 5381;
    for (const char *letter = name; *letter; letter++)
        hash = hash * 33 + (uint8_t)*letter;
    uint32_t bucket_count = tables.gnu_hash[0], first = tables.gnu_hash[1], words = tables.gnu_hash[2];
    const ElfW(Addr) *filter = (const void *)(tables.gnu_hash + 4);
    const uint32_t bits = sizeof *filter * 8;
    // Most objects do not have it, and say so here.
    ElfW(Addr) word = words ? filter[hash / bits % words] : ~(ElfW(Addr))0;
    if (!(word >> hash % bits & word >> (hash >> tables.gnu_hash[3]) % bits & 1))
        return NULL;
    const uint32_t *buckets = (const void *)(filter + words);
    const uint32_t *chain = buckets + bucket_count;
    for (uint32_t i = bucket_count ? buckets[hash % bucket_count] : 0; i >= first && i; i++) {
        void *found = (chain[i - first] ^ hash) < 2 ? symbol_at(map, &tables, i, name) : NULL;
        if (found || chain[i - first] & 1)
            return found;
    }
    return NULL;
}

// musl has none of that name.
extern struct r_debug _r_debug __attribute__((weak));

const struct r_debug *loader(void) {
    static const struct r_debug nobody;
    static const struct r_debug *found;
    if (&_r_debug)
        return &_r_debug;
    // The loader has left it in the program's own table.
    const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR), *end = header + getauxval(AT_PHNUM);
    uint64_t base = 0;
    for (; !found && header < end; header++) {
        if (header->p_type == PT_PHDR)
            base = getauxval(AT_PHDR) - header->p_vaddr;
        if (header->p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *entry = (const void *)(base + header->p_vaddr); entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_DEBUG)
                found = (const void *)entry->d_un.d_ptr;
    }
    return found ? found : &nobody;
}

const struct link_map *next_definer(const char *name) {
    for (const struct link_map *map = loader()->r_map; map; map = map->l_next)
        if (map->l_ld != own_dynamic && object_symbol(map, name))
            return map;
    return NULL;
}

const struct link_map *runtime_map(void) {
    const struct link_map *map = loader()->r_map;
    while (map && map->l_ld != own_dynamic)
        map = map->l_next;
    return map;
}

void *next_symbol(const char *name) {
    void *found = NULL;
    for (const struct link_map *map = loader()->r_map; map && !found; map = map->l_next)
        found = map->l_ld == own_dynamic ? NULL : object_symbol(map, name);
    return found;
}

void object_functions(const struct link_map *map, void (*each)(const char *name, void *address, size_t bytes, void *),
                      void *context) {
    struct tables tables = tables_of(map);
    if (!tables.symbols || !tables.strings || tables.code_is_relocated)
        return;
    uint32_t segment_count, count = symbol_count(&tables);
    const ElfW(Phdr) *segments = segments_of(map, &segment_count);
    for (uint32_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &tables.symbols[i];
        bool code = false;
        for (uint32_t s = 0; s < segment_count && !code; s++)
            code = segments[s].p_type == PT_LOAD && (segments[s].p_flags & (PF_X | PF_R)) == (PF_X | PF_R) &&
                   symbol->st_value - segments[s].p_vaddr < segments[s].p_filesz;
        if (code && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF)
            each(tables.strings + symbol->st_name, (void *)(map->l_addr + symbol->st_value), symbol->st_size, context);
    }
}

bool object_code(uint64_t address, uint64_t *begin, uint64_t *end) {
    const struct link_map *nearest = NULL;
    for (const struct link_map *map = loader()->r_map; map; map = map->l_next)
        if (map->l_addr <= address && (!nearest || map->l_addr > nearest->l_addr))
            nearest = map;
    uint32_t count = 0;
    const ElfW(Phdr) *segments = nearest ? segments_of(nearest, &count) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = nearest->l_addr + segments[i].p_vaddr;
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X) || address - from >= segments[i].p_memsz)
            continue;
        *begin = from & -PAGE;
        *end = up(from + segments[i].p_memsz, PAGE);
        return true;
    }
    return false;
}

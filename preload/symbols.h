// What the dynamic loader's list of objects says of one of them: its symbols, its segments, what it needs.
#pragma once

#include <link.h>

#include "runtime.h"

// The loader's tables of an object.
struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash;
    const uint16_t *versions;
    const char *soname;
    bool code_is_relocated;
};

struct tables tables_of(const struct link_map *map);

// The names that an object needs, one by one: `*entry` is where to go on, at first NULL; NULL: no more.
const char *next_needed(const struct link_map *map, const char *strings, const ElfW(Dyn) * *entry);

// Its program headers; none if its own header is not mapped.
const ElfW(Phdr) * segments_of(const struct link_map *map, uint32_t *count);

uint32_t symbol_count(const struct tables *tables);

// The code of the object that holds an address, in pages; false: it is in none.
bool object_code(uint64_t address, uint64_t *begin, uint64_t *end);

// A defined function or variable of the dynamic symbols of an object; NULL: none. Versions: the default one.
void *object_symbol(const struct link_map *map, const char *name);

// What the loader tells of itself, and of what it has loaded.
const struct r_debug *loader(void);

// The first definition in the order of the loader, leaving out the runtime itself.
void *next_symbol(const char *name);

// The object that definition is in; NULL: none.
const struct link_map *next_definer(const char *name);

// The runtime itself, among the objects.
const struct link_map *runtime_map(void);

// Every defined function of an object's dynamic symbols whose code can be read and is as it was in the file.
void object_functions(const struct link_map *map, void (*each)(const char *name, void *address, size_t bytes, void *),
                      void *context);

// By the linker: the runtime's own table.
extern const ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

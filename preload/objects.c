#include "objects.h"

#include <string.h>

#include "arena.h"
#include "frames.h"
#include "log.h"
#include "owners.h"
#include "shadow.h"
#include "symbols.h"
#include "sys.h"
#include "text.h"

enum { GLOBS = 64, UNDECIDED = COMPONENTS };

struct glob {
    const char *pattern;
    uint32_t component;
};

struct place {
    uint64_t begin, end;
    uint32_t id;
};

// Sorted by address. What is read stays as it is while the other is written.
struct places {
    uint32_t count;
    struct place place[OBJECTS];
};

struct object objects[OBJECTS + 1];
uint32_t object_count;
const char *component_names[COMPONENTS] = {"application"};
uint32_t component_count = 1;

static struct glob globs[GLOBS];
static uint32_t glob_count;
static struct places places[2];
static struct places *current = places;
static bool logging;

static const char *copy(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *kept = arena(bytes);
    return kept ? memcpy(kept, text, bytes) : "";
}

uint32_t object_of(uint64_t address) {
    const struct places *all = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    uint32_t low = 0, high = all->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (all->place[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < all->count && all->place[low].begin <= address ? all->place[low].id : 0;
}

uint32_t object_gone_since(uint64_t ns, uint64_t address) {
    for (uint32_t id = 1; id <= object_count; id++)
        if (objects[id].gone_ns >= ns && objects[id].begin <= address && address < objects[id].end)
            return id;
    return 0;
}

static void publish(void) {
    struct places *next = current == places ? places + 1 : places;
    next->count = 0;
    // What is loaded later is mostly mapped below what is there.
    for (uint32_t id = object_count; id; id--) {
        if (!objects[id].map || objects[id].begin == objects[id].end)
            continue;
        uint32_t at = next->count++;
        for (; at && next->place[at - 1].begin > objects[id].begin; at--)
            next->place[at] = next->place[at - 1];
        next->place[at] = (struct place){objects[id].begin, objects[id].end, id};
    }
    __atomic_store_n(&current, next, __ATOMIC_RELEASE);
}

static bool matches(const char *pattern, const char *text) {
    for (; *pattern && *pattern != '*'; pattern++, text++)
        if (!*text || (*pattern != '?' && *pattern != *text))
            return false;
    if (!*pattern)
        return !*text;
    for (;; text++) {
        if (matches(pattern + 1, text))
            return true;
        if (!*text)
            return false;
    }
}

void components_parse(const char *text) {
    char *rest = (char *)copy(text), *list, *save, *inner;
    for (; (list = strtok_r(rest, ";", &save)) && component_count < COMPONENTS; rest = NULL) {
        char *patterns = strchr(list, '=');
        if (!patterns)
            continue;
        *patterns++ = 0;
        component_names[component_count] = list;
        for (; glob_count < GLOBS && (list = strtok_r(patterns, ":", &inner)); patterns = NULL)
            globs[glob_count++] = (struct glob){list, component_count};
        component_count++;
    }
}

static bool starts(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

// By itself; UNDECIDED when it depends on who needs it.
static uint32_t component_of(struct object *object) {
    const char *base = text_base(object->path);
    if (object->map == loader()->r_map || object->map->l_ld == own_dynamic || starts(base, "libc.so.") ||
        starts(base, "libc-2") || starts(base, "ld-") || starts(base, "linux-vdso"))
        return APPLICATION;
    for (uint32_t i = 0; i < glob_count; i++) {
        if (matches(globs[i].pattern, base)) {
            object->named = true;
            return globs[i].component;
        }
    }
    return object->loaded_in ? object->loaded_in : UNDECIDED;
}

static bool is_called(const struct object *object, const char *name) {
    return !strcmp(object->soname, name) || !strcmp(text_base(object->path), text_base(name));
}

// What only objects of one component need is that component's; what nobody needs was asked for by the application.
static void decide(void) {
    bool all_decided = true;
    for (uint32_t id = 1; id <= object_count; id++)
        all_decided &= objects[id].component != UNDECIDED;
    if (all_decided)
        return;
    static uint32_t needed_by[OBJECTS + 1]; // a bit for each component, and one for whoever is undecided
    static uint32_t undecided_ids[OBJECTS];
    uint32_t undecided_count = 0;
    memset(needed_by, 0, sizeof needed_by);
    for (uint32_t id = 1; id <= object_count; id++)
        if (objects[id].map && objects[id].component == UNDECIDED)
            undecided_ids[undecided_count++] = id;
    for (bool again = true, first = true; again; first = false) {
        again = false;
        for (uint32_t by = 1; by <= object_count; by++) {
            const struct object *object = &objects[by];
            if (!object->map)
                continue;
            bool undecided = object->component == UNDECIDED;
            uint32_t whose = undecided ? needed_by[by] | 1U << UNDECIDED : 1U << object->component;
            const char *strings = tables_of(object->map).strings, *name;
            for (const ElfW(Dyn) *entry = NULL; (name = next_needed(object->map, strings, &entry));) {
                for (uint32_t i = 0; i < undecided_count; i++) {
                    uint32_t id = undecided_ids[i];
                    if (!(whose & ~needed_by[id]) || !is_called(&objects[id], name))
                        continue;
                    needed_by[id] |= whose;
                    again = true;
                }
            }
        }
        for (uint32_t id = 1; first && id <= object_count; id++)
            if (objects[id].component == UNDECIDED && !needed_by[id])
                needed_by[id] = 1U << APPLICATION;
        again |= first;
    }
    for (uint32_t id = 1; id <= object_count; id++) {
        if (objects[id].component != UNDECIDED)
            continue;
        uint32_t components = needed_by[id] & ~(1U << UNDECIDED);
        bool one = components && !(components & (components - 1));
        objects[id].component = one ? __builtin_ctz(components) : APPLICATION;
    }
}

// Its number; 0: it is new. They are mostly listed as they are numbered: `*next` is where to look first.
static uint32_t known(const struct link_map *map, uint32_t *next) {
    for (uint32_t i = 0; i < object_count; i++) {
        uint32_t id = (*next - 1 + i) % object_count + 1;
        if (objects[id].map == map && objects[id].base == map->l_addr) {
            *next = id + 1;
            return id;
        }
    }
    return 0;
}

// What comes again has its number again.
static uint32_t number_for(const char *path) {
    for (uint32_t id = 1; id <= object_count; id++) {
        if (!objects[id].map && !strcmp(objects[id].path, path)) {
            objects[id].again = true;
            return id;
        }
    }
    if (object_count == OBJECTS) {
        static bool noted;
        if (!noted && logging)
            log_note("more than %u shared objects: what those loaded later obtain counts as the application's",
                     OBJECTS);
        noted |= logging;
        return 0;
    }
    objects[object_count + 1].path = copy(path);
    return object_count + 1;
}

static uint64_t frames_table(const struct link_map *map, const ElfW(Phdr) * segments, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_GNU_EH_FRAME)
            return map->l_addr + segments[i].p_vaddr;
    return 0;
}

// What it obtains is never for itself.
static bool passes_on(const struct object *object) {
    static const char *const names[] = {"libc.so.", "libc-2",     "ld-",    "linux-vdso", "libpthread", "libgcc_s.",
                                        "libdl.",   "libstdc++.", "librt.", "libm.so.",   "libm-2"};
    if (object->map->l_ld == own_dynamic)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts(text_base(object->path), names[i]))
            return true;
    return false;
}

static uint32_t add(const struct link_map *map) {
    char path[4096];
    text_format(path, sizeof path, "%s", map->l_name);
    if (map == loader()->r_map) {
        long length = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
    }
    uint32_t id = number_for(path);
    if (!id)
        return 0;
    struct object *object = &objects[id];
    object->map = map;
    object->base = map->l_addr;
    object->loaded_in = inside(&self, (uint64_t)__builtin_frame_address(0));
    if (!object->again)
        object->soname = copy(tables_of(map).soname);
    uint32_t count;
    const ElfW(Phdr) *segments = segments_of(map, &count);
    uint64_t begin = -1, end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        uint64_t from = map->l_addr + segments[i].p_vaddr;
        begin = least(from, begin);
        end = from + segments[i].p_memsz > end ? from + segments[i].p_memsz : end;
    }
    object->begin = end ? begin & -PAGE : 0;
    object->end = up(end, PAGE);
    object->frames = frames_table(map, segments, count);
    object->needed_by = object->serves = 0;
    object->passes = passes_on(object);
    code_of(object->begin, object->end, id);
    object->component = component_of(object);
    if (id > object_count)
        object_count = id;
    return id;
}

static void log_object(uint32_t id) {
    const struct object *object = &objects[id];
    const char *strings = object->map ? tables_of(object->map).strings : NULL, *name;
    const ElfW(Dyn) *entry = NULL;
    uint32_t count = 0;
    while (strings && next_needed(object->map, strings, &entry))
        count++;
    log_begin(ENTRY_OBJECT);
    log_number(id);
    log_number(object->component);
    log_number(object->loaded_in);
    log_string(object->path);
    log_string(object->soname);
    log_number(count);
    entry = NULL;
    while (strings && (name = next_needed(object->map, strings, &entry)))
        log_string(name);
    log_end();
    if (object->unseen)
        log_note("%s", object->unseen);
}

// What an object needs is needed by its component, and by those that need it. Of thousands of objects few have any.
static void spread_need(uint32_t by) {
    const struct object *object = &objects[by];
    uint16_t whose = object->needed_by | (object->component ? 1U << object->component : 0);
    const char *strings = whose && object->map ? tables_of(object->map).strings : NULL, *name;
    for (const ElfW(Dyn) *entry = NULL; strings && (name = next_needed(object->map, strings, &entry));) {
        for (uint32_t id = 1; id <= object_count; id++) {
            if (!objects[id].map || !(whose & ~objects[id].needed_by) || !is_called(&objects[id], name))
                continue;
            objects[id].needed_by |= whose;
            spread_need(id);
        }
    }
}

const char *object_wants(const struct link_map *map, bool (*is_one)(const char *name)) {
    struct tables tables = tables_of(map);
    uint32_t count = tables.symbols && tables.strings ? symbol_count(&tables) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (tables.symbols[i].st_shndx == SHN_UNDEF && is_one(tables.strings + tables.symbols[i].st_name))
            return tables.strings + tables.symbols[i].st_name;
    return NULL;
}

// Whether it calls a function of another by its name. An allocator that is part of the program serves everybody, and is
// no sign.
static bool calls_by_name(const struct link_map *map, const struct link_map *other) {
    static const char *const heap[] = {"malloc",        "free",   "calloc",         "realloc", "memalign",
                                       "aligned_alloc", "valloc", "posix_memalign", "pvalloc", "malloc_usable_size"};
    struct tables tables = tables_of(map);
    uint32_t count = tables.symbols && tables.strings ? symbol_count(&tables) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &tables.symbols[i];
        const char *name = tables.strings + symbol->st_name;
        bool wanted = symbol->st_shndx == SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT && *name;
        for (size_t n = 0; wanted && n < sizeof heap / sizeof *heap; n++)
            wanted = strcmp(name, heap[n]) != 0;
        if (wanted && !starts(name, "_Zn") && !starts(name, "_Zd") && object_symbol(other, name))
            return true;
    }
    return false;
}

// Plug-ins call functions of the program, or of what it needs, without saying that they need it (Python's modules).
static void find_servers(uint32_t id) {
    const struct link_map *program = loader()->r_map;
    const char *strings = tables_of(program).strings, *name;
    if (calls_by_name(objects[id].map, program))
        objects[1].serves |= 1U << objects[id].component;
    for (const ElfW(Dyn) *entry = NULL; strings && (name = next_needed(program, strings, &entry));) {
        for (uint32_t other = 2; other <= object_count; other++) {
            struct object *server = &objects[other];
            uint32_t known = (server->needed_by | server->serves) >> objects[id].component & 1;
            if (server->map && !server->component && !server->passes && !known && is_called(server, name) &&
                calls_by_name(objects[id].map, server->map))
                server->serves |= 1U << objects[id].component;
        }
    }
}

void objects_scan(void (*found)(uint32_t id, const struct link_map *map)) {
    static uint32_t news[OBJECTS];
    static bool listed[OBJECTS + 1];
    uint32_t count = 0, next = 1;
    memset(listed, 0, sizeof listed);
    for (const struct link_map *map = loader()->r_map; map; map = map->l_next)
        listed[known(map, &next)] = true;
    for (uint32_t id = 1; id <= object_count; id++) {
        if (objects[id].map && !listed[id]) {
            code_of(objects[id].begin, objects[id].end, 0);
            objects[id].map = NULL;
            frames_forget();
            objects[id].gone_ns = now_ns();
            objects[id].gone_component = objects[id].component;
        }
    }
    next = 1;
    for (const struct link_map *map = loader()->r_map; map; map = map->l_next) {
        uint32_t id = known(map, &next) ? 0 : add(map);
        if (id)
            news[count++] = id;
    }
    decide();
    publish();
    for (uint32_t i = 0; i < count; i++)
        spread_need(news[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (objects[news[i]].component && objects[news[i]].named)
            find_servers(news[i]);
        found(news[i], objects[news[i]].map);
        if (logging)
            log_object(news[i]);
    }
}

void objects_log(void) {
    logging = true;
    for (uint32_t id = 1; id <= object_count; id++)
        log_object(id);
}

void objects_forget(void) {
    logging = false;
}

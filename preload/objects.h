// The shared objects of the process, as the dynamic loader lists them.
#pragma once

#include <link.h>

#include "runtime.h"
#include "symbols.h"

struct object {
    uint64_t begin, end;     // its mappings, from the first to the last; where they were, when it is unloaded
    uint64_t gone_ns;        // when it was last seen to be unloaded
    uint32_t gone_component; // whose it was then; when it comes again, that is not decided at once
    uint64_t base;           // what its addresses are relative to
    const char *path;        // of the loader; of the executable, what the kernel says
    const char *soname;      // "": none
    uint32_t component;      // that it belongs to: by name, by who loaded it, or because only such need it
    uint32_t loaded_in;      // the component inside which it was loaded
    bool named;              // it belongs to its component by name
    bool again;              // it has been unloaded before
    const char *unseen; // which of its entries could not be patched, as a sentence; NULL: all were, or none need be
    const struct link_map *map; // NULL when it is unloaded
    uint64_t frames;            // its table of frames (.eh_frame_hdr); 0: none
    bool passes;                // libc and its kind: what it obtains is for whoever called it
    uint16_t needed_by;         // a bit for each component whose libraries need it, through others too
    uint16_t serves;            // and for each that calls functions of it by their names without that
};

extern struct object objects[OBJECTS + 1]; // 1 up: 1 is the executable; 0 is nobody
extern uint32_t object_count;

// Takes in what the loader has mapped since, and what is gone; of one thread at a time (the loader's lock is held, or
// nothing else runs). Calls `found` for every object that is new, and logs it when a log is there.
void objects_scan(void (*found)(uint32_t id, const struct link_map *map));

// The object that holds an address; 0: none.
uint32_t object_of(uint64_t address);

// The object that held it, if it was unloaded after a time; 0: none.
uint32_t object_gone_since(uint64_t ns, uint64_t address);

// A name that an object wants of others, and that is one; NULL: none.
const char *object_wants(const struct link_map *map, bool (*is_one)(const char *name));

// Components by name: "NAME=GLOB:GLOB;NAME=GLOB", numbered from MPI = 1, of which the first is always mpi.
void components_parse(const char *text);
extern const char *component_names[COMPONENTS];
extern uint32_t component_count;

// Logs all there are: a new log knows none. Those that come later are logged as they come.
void objects_log(void);

// The process is a new one: until `objects_log`, there is no log.
void objects_forget(void);

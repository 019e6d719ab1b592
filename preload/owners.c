#include "owners.h"

#include "lock.h"
#include "objects.h"
#include "text.h"

uint8_t owner_ids[COMPONENTS][OBJECTS + 1];
uint8_t owner_component[OWNERS];
static uint16_t owner_object[OWNERS];
static uint32_t count, logged;
static uint32_t left_out; // the first object that has no owner of its own; 0: all have
static bool left_out_logged;
struct lock owners_lock;

// Code and data of objects take so many at most: those that obtain memory are to be told apart above all.
enum { OF_FILES = (OWNERS - OWNERS_BEGIN) * 2 / 3 };

static uint8_t add(uint32_t component, uint32_t object) {
    uint8_t owner = OWNERS_BEGIN + count;
    owner_component[owner] = component;
    owner_object[owner] = object;
    __atomic_store_n(&owner_ids[component][object], owner, __ATOMIC_RELEASE);
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    return owner;
}

void owners_begin(void) {
    for (uint32_t component = 0; component < component_count; component++)
        add(component, 0);
}

static uint8_t owner_below(uint32_t component, uint32_t object, uint32_t most) {
    if (unlikely(!count))
        return OWNERS_BEGIN + component; // before the runtime has begun
    lock_take(&owners_lock);
    uint8_t owner = owner_ids[component][object];
    if (!owner && count < most) {
        owner = add(component, object);
    } else if (!owner) {
        owner = owner_ids[component][0];
        left_out = left_out ? left_out : object;
    }
    lock_release(&owners_lock);
    return owner;
}

uint8_t owner_made(uint32_t component, uint32_t object) {
    return owner_below(component, object, OWNERS - OWNERS_BEGIN);
}

uint8_t owner_of_file(uint32_t component, uint32_t object) {
    uint8_t owner = owner_ids[component][object];
    return owner ? owner : owner_below(component, object, OF_FILES);
}

void owners_log(void) {
    for (uint32_t now = __atomic_load_n(&count, __ATOMIC_ACQUIRE); logged < now; logged++) {
        uint8_t owner = OWNERS_BEGIN + logged;
        log_begin(ENTRY_OWNER);
        log_number(owner);
        log_number(owner_component[owner]);
        log_number(owner_object[owner]);
        log_end();
    }
    if (left_out && !left_out_logged)
        log_note(
            "by library: at most %u shared objects have a line of their own, of which %u by their code and data alone; "
            "what others hold is \"(not known which)\" of their component, that of %s first",
            OWNERS - OWNERS_BEGIN - component_count, OF_FILES - component_count, text_base(objects[left_out].path));
    left_out_logged |= left_out != 0;
}

void owners_forget(void) {
    logged = 0;
    left_out_logged = false;
}

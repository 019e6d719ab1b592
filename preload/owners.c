#include "owners.h"

#include "lock.h"
#include "objects.h"

uint8_t owner_ids[COMPONENTS][OBJECTS + 1];
uint8_t owner_component[OWNERS];
static uint16_t owner_object[OWNERS];
static uint32_t count, logged;
struct lock owners_lock;

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

uint8_t owner_made(uint32_t component, uint32_t object) {
    if (unlikely(!count))
        return OWNERS_BEGIN + component; // before the runtime has begun
    lock_take(&owners_lock);
    uint8_t owner = owner_ids[component][object];
    if (!owner)
        owner = count < OWNERS - OWNERS_BEGIN ? add(component, object) : owner_ids[component][0];
    lock_release(&owners_lock);
    return owner;
}

void owners_log(void) {
    for (uint32_t now = __atomic_load_n(&count, __ATOMIC_ACQUIRE); logged < now; logged++) {
        uint8_t owner = OWNERS_BEGIN + logged;
        log_begin('W');
        log_number(owner);
        log_number(owner_component[owner]);
        log_number(owner_object[owner]);
        log_end();
    }
}

void owners_forget(void) {
    logged = 0;
}

// To whom memory belongs: a component, and the shared object whose code asked for it, as one byte.
#pragma once

#include "log.h"
#include "runtime.h"
#include "shadow.h"

extern uint8_t owner_ids[COMPONENTS][OBJECTS + 1]; // 0: not seen yet
extern uint8_t owner_component[OWNERS];

// Every component has an owner for what is not told apart.
void owners_begin(void);

// The owner, made if need be; when there are too many, the component's own.
uint8_t owner_made(uint32_t component, uint32_t object);

// The same for the code and data of an object itself: its component's own, when not many are left.
uint8_t owner_of_file(uint32_t component, uint32_t object);

static inline uint8_t owner_of(uint32_t component, uint32_t object) {
    uint8_t owner = owner_ids[component][object];
    return likely(owner) ? owner : owner_made(component, object);
}

// Logs those that have not been, of one thread at a time.
void owners_log(void);

// The process is a new one, with a log of its own.
void owners_forget(void);

// The component whose call the thread is in. A call that was left by longjmp or an exception is over.
static inline uint32_t inside(struct thread *thread, uint64_t stack) {
    if (likely(!thread->inside))
        return APPLICATION;
    if (unlikely(stack >= thread->frame))
        thread->inside = APPLICATION;
    return thread->inside;
}

#include "whose.h"

#include "frames.h"
#include "objects.h"
#include "owners.h"
#include "shadow.h"

enum { OWN_FRAMES = 12, FRAMES = 48 };

// Code that asks for others, as far as a component is concerned; of APPLICATION, as far as any is.
static bool asks_for(uint32_t object, uint32_t component) {
    const struct object *of = &objects[object];
    if (component)
        return of->passes || (of->needed_by | of->serves) >> component & 1;
    return object != 1 && of->needed_by;
}

bool asks_for_itself(uint32_t object) {
    return objects[object].component || !asks_for(object, APPLICATION);
}

// Up to the caller, through frames of the runtime.
static bool find_caller(struct frame *frame, uint64_t caller) {
    for (int i = 0; i < OWN_FRAMES; i++) {
        if (frame->pc == caller)
            return true;
        if (!frame_up(frame))
            return false;
    }
    return false;
}

// The first that decides, of those within the call of a component, or of all. None: object 0.
static __attribute__((noinline)) struct whose walk(uint32_t component, uint64_t end, uint64_t caller) {
    struct frame frame = FRAME_HERE();
    if (!find_caller(&frame, caller))
        return (struct whose){component, 0};
    for (int i = 0; i < FRAMES && frame.sp < end; i++) {
        uint32_t object = coder(frame.pc);
        if (!object)
            break;
        if (objects[object].component)
            return (struct whose){objects[object].component, object};
        if (!asks_for(object, component) && !objects[object].passes)
            return (struct whose){APPLICATION, object};
        if (!frame_up(&frame))
            break;
    }
    return (struct whose){component, 0};
}

struct whose whose(struct thread *thread, uint64_t caller, uint64_t stack) {
    uint32_t component = inside(thread, stack), object = coder(caller), by = objects[object].component;
    if (by)
        return (struct whose){by, object};
    if (!object || (!component && !asks_for(object, APPLICATION)))
        return (struct whose){component, object};
    if (component && !asks_for(object, component))
        return (struct whose){APPLICATION, object};
    struct whose found = walk(component, component ? thread->frame : UINT64_MAX, caller);
    return (struct whose){found.component, object};
}

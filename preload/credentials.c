#include "credentials.h"

#include <grp.h>
#include <linux/capability.h>
#include <unistd.h>

#include "helper.h"
#include "log.h"
#include "objects.h"
#include "patch.h"
#include "sys.h"

enum { GROUPS = 1024 };

struct credentials {
    uid_t uid[3]; // real, effective, saved
    gid_t gid[3], groups[GROUPS];
    long group_count;
    struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

static struct credentials programs; // as the helpers have them, or are to

static long capabilities(long call, struct credentials *of) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return sys(call, &header, of->capabilities);
}

static void read_own(struct credentials *own) {
    sys(SYS_getresuid, &own->uid[0], &own->uid[1], &own->uid[2]);
    sys(SYS_getresgid, &own->gid[0], &own->gid[1], &own->gid[2]);
    own->group_count = sys(SYS_getgroups, GROUPS, own->groups);
    // More than anybody has: then none.
    if (sys_failed(own->group_count))
        own->group_count = 0;
    capabilities(SYS_capget, own);
}

// In a helper.
static void adopt(void) {
    struct credentials raised = programs;
    capabilities(SYS_capget, &raised);
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        raised.capabilities[i].effective = raised.capabilities[i].permitted;
    capabilities(SYS_capset, &raised);
    sys(SYS_setgroups, programs.group_count, programs.groups);
    sys(SYS_setresgid, programs.gid[0], programs.gid[1], programs.gid[2]);
    sys(SYS_setresuid, programs.uid[0], programs.uid[1], programs.uid[2]);
    // To change the user may have taken what the program was allowed to keep.
    if (sys_failed(capabilities(SYS_capset, &programs))) {
        struct credentials none = {0};
        capabilities(SYS_capset, &none);
    }
}

static bool may_as_before(void) {
    struct credentials now;
    capabilities(SYS_capget, &now);
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        if (now.capabilities[i].permitted != programs.capabilities[i].permitted)
            return false;
    return true;
}

static void follow(void) {
    if (may_as_before())
        return;
    read_own(&programs);
    helpers_do(adopt);
}

// All take up to three words.
#define FOLLOWED(name)                                                                                                 \
    static int (*next_##name)(long, long, long);                                                                       \
    static int on_##name(long a, long b, long c) {                                                                     \
        int failed = next_##name(a, b, c);                                                                             \
        if (!failed)                                                                                                   \
            follow();                                                                                                  \
        return failed;                                                                                                 \
    }
FOLLOWED(setuid)
FOLLOWED(setgid)
FOLLOWED(seteuid)
FOLLOWED(setegid)
FOLLOWED(setreuid)
FOLLOWED(setregid)
FOLLOWED(setresuid)
FOLLOWED(setresgid)
FOLLOWED(setgroups)
FOLLOWED(capset)

#define DETOUR(name)                                                                                                   \
    { #name, on_##name, (void **)&next_##name }
static const struct {
    const char *name;
    void *target;
    void **next;
} detours[] = {
    DETOUR(setuid),   DETOUR(setgid),    DETOUR(seteuid),   DETOUR(setegid),   DETOUR(setreuid),
    DETOUR(setregid), DETOUR(setresuid), DETOUR(setresgid), DETOUR(setgroups), DETOUR(capset),
};

void credentials_begin(void) {
    read_own(&programs);
    uint32_t may = 0;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        may |= programs.capabilities[i].permitted;
    if (!may)
        return;
    patch_begin();
    for (size_t i = 0; i < sizeof detours / sizeof *detours; i++) {
        void *entry = next_symbol(detours[i].name);
        const char *why = entry ? patch(entry, detours[i].target, detours[i].next) : "libc does not have it";
        if (why)
            log_note("calls of %s are not seen: %s", detours[i].name, why);
    }
    patch_done();
}

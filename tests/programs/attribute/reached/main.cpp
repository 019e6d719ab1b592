// reached CASE BYTES: code of a library that is reached by its address, and code of the program that a library calls back.
#include "reached.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

static const size_t STEP = 64 << 10;

static void say(const char *component, const char *kind, size_t bytes) {
    printf("/components/%s/%s=%zu\n", component, kind, bytes);
}

// In steps that the allocator does not map one by one.
static void in_steps(size_t bytes, void *(*get)(size_t)) {
    for (size_t done = 0; done < bytes; done += STEP)
        get(STEP);
}

static plug *made;

// The same library, which finds libc's functions before those that are preloaded.
static plug *deep_plug() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    std::string file(path, length > 0 ? length : 0);
    file.resize(file.rfind('/') + 1);
    void *library = dlopen((file + "libdeep.so").c_str(), RTLD_NOW | RTLD_DEEPBIND);
    void *make = library ? dlsym(library, "plug_make") : nullptr;
    if (!make)
        abort();
    return reinterpret_cast<plug *(*)()>(make)();
}

static void by_pointer(std::string way, size_t bytes) {
    const bool deep = way.rfind("deep-", 0) == 0;
    made = deep ? deep_plug() : plug_make();
    way.erase(0, deep ? strlen("deep-") : 0);
    if (way == "block")
        in_steps(bytes, [](size_t n) { return made->block(n); });
    if (way == "small")
        for (size_t done = 0; done < bytes; done += 1000)
            made->block(1000);
    if (way == "copy")
        in_steps(bytes, [](size_t n) { return made->copy(std::string(n, 'x').c_str()); });
    if (way == "text")
        in_steps(bytes, [](size_t n) { return made->text(n); });
    if (way == "array")
        in_steps(bytes, [](size_t n) { return made->array(n); });
    if (way == "given-back") {
        for (int i = 0; i < 20; i++) {
            void *block = made->block(bytes + 1);
            i % 2 ? free(block) : made->give_back(block);
        }
        made->block(bytes + 1);
    }
    if (way == "mapping")
        made->mapping(bytes + 1);
    // Each side gives back what the other has obtained.
    if (way == "crossing") {
        for (int i = 0; i < 1000000; i++) {
            free(made->block(40 + i % 3000));
            made->give_back(malloc(40 + i % 3000));
        }
        in_steps(bytes, [](size_t n) { return made->block(n); });
    }
    say("plug", way == "mapping" ? "mapped" : "heap", bytes);
}

static void call_malloc(size_t bytes) {
    in_steps(bytes, [](size_t n) { return memset(malloc(n), 1, n); });
}

static void call_strdup(size_t bytes) {
    in_steps(bytes, [](size_t n) -> void * { return strdup(std::string(n, 'x').c_str()); });
}

static void call_string(size_t bytes) {
    in_steps(bytes, [](size_t n) -> void * { return new std::string(n, 'x'); });
}

static void call_plug(size_t bytes) {
    in_steps(bytes, [](size_t n) { return made->copy(std::string(n, 'x').c_str()); });
}

static size_t compared_bytes;

static int compare(const void *a, const void *b) {
    call_strdup(compared_bytes);
    compared_bytes = 0;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void called_back(const std::string &way, size_t bytes) {
    const size_t own = bytes / 2;
    if (way == "called")
        back_call(call_malloc, bytes, own);
    if (way == "called-strdup")
        back_call(call_strdup, bytes, own);
    if (way == "called-string")
        back_call(call_string, bytes, own);
    if (way == "called-in-a-thread")
        back_in_a_thread(call_strdup, bytes, own);
    if (way == "called-in-a-comparison") {
        compared_bytes = bytes;
        back_in_a_comparison(compare, own);
    }
    if (way == "called-plug") {
        made = plug_make();
        back_call(call_plug, bytes, own);
        say("plug", "heap", bytes);
        say("back", "heap", own);
        return;
    }
    say("application", "heap", bytes);
    say("back", "heap", own);
}

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    const std::string way = arguments[1];
    const size_t bytes = strtoul(arguments[2], nullptr, 10);
    if (way.rfind("called", 0) == 0)
        called_back(way, bytes);
    else
        by_pointer(way, bytes);
    fflush(stdout);
    usleep(300000);
    return 0;
}

// thrower: small blocks by operator new, after the C++ library has asked for one of its own: an exception's.
#include <cstdlib>
#include <cstring>

int main(int, char **arguments) {
    try {
        throw 1;
    } catch (int) {
    }
    const long bytes = std::atol(arguments[1]), each = 1000;
    for (long made = 0; made < bytes; made += each)
        std::memset(new char[each], 1, each);
    return 0;
}

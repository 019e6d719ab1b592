// nothing: obtains a block and ends: what is left is starting.
#include "../program.h"

int main(void) {
    *(volatile char *)allocate(MIB) = 1;
}

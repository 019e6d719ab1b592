// A library of which much can be in memory.
const char large[8 << 20] = {1};

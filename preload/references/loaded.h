// What the dynamic loader has mapped: it comes before the library, and calls the kernel by itself.
#pragma once

// Notes the pages of the program and its shared objects that the process has in its page table: those that it has
// touched, with those around them that the kernel maps at the same time, and what fork has copied of libc's for its
// code is patched. At the end of the program or process.
void loaded_note(void);

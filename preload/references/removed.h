// Files that a call removes, replaces or cuts off: their pages leave the page cache. What is removed while it is open
// goes when it is closed (note.c).
#pragma once

// Puts the library before these calls. Between `patch_begin` and `patch_done`.
void removed_detour(void);

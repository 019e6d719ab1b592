// The runtime's threads may do no more than the program's. libc carries a change of user, group or capabilities to all
// threads that it knows, which ours are not: when the program gives something up for good they follow before it goes on.
// What it can take back, it still may.
// Documentation/security/credentials.rst; man 7 nptl
#pragma once

// Where the process may do nothing that it could give up, nothing is done.
void credentials_begin(void);

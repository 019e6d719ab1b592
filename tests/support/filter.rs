//! A seccomp filter like a container's: it refuses bpf() and perf_event_open(), and allows all other system calls.

/// Both calls are allowed, too.
pub const ALLOWS: &str = "0x7fff0000";
/// Both calls fail with EPERM.
pub const EPERM: &str = "0x00050001";
/// Both calls fail with ENOSYS.
pub const ENOSYS: &str = "0x00050026";

const INSTALL: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
bpf, perf_event_open = {'x86_64': (321, 298), 'aarch64': (280, 241)}[os.uname().machine]
LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
steps = [
    (LOAD_NUMBER, 0, 0, 0),
    (IF_EQUAL, 2, 0, bpf),
    (IF_EQUAL, 1, 0, perf_event_open),
    (RETURN, 0, 0, 0x7fff0000),
    (RETURN, 0, 0, int(sys.argv[1], 16)),
]
rules = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(steps), ctypes.addressof(rules)))
if libc.prctl(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
";

/// The prefix that runs a command under such a filter; only root may use it.
pub fn under(filter: &'static str) -> Vec<&'static str> {
    vec!["python3", "-c", INSTALL, filter, "env"]
}

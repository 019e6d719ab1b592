//! Children that wait for a signal to begin, and memory that they share with their parent.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Held while programs are loaded into the kernel. Meanwhile all kernel types are mapped (11 MiB), which a child forked
/// by another test would inherit.
pub static LOADING: Mutex<()> = Mutex::new(());

/// A child process, and the usage that `wait4` returned once it was waited for.
pub struct Child {
    pub pid: i32,
    pub usage: Option<libc::rusage>,
    go: [i32; 2],
}

/// Forks a child that does `work` after [`Child::go`] and then exits at once, without destructors.
pub fn fork(work: impl FnOnce()) -> Child {
    let mut go = [0; 2];
    // SAFETY: `go` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(go.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let none_loads = LOADING.lock();
    // SAFETY: the child does what a test asks for; glibc keeps its allocator usable in the child of a process with threads.
    let pid = unsafe { libc::fork() };
    drop(none_loads);
    assert!(pid >= 0);
    if pid == 0 {
        let mut byte = 0u8;
        // SAFETY: room for one byte.
        unsafe { libc::read(go[0], (&raw mut byte).cast(), 1) };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        exit(if ended.is_ok() { 0 } else { 99 });
    }
    Child { pid, usage: None, go }
}

impl Child {
    pub fn go(&mut self) {
        // SAFETY: one byte is there.
        assert_eq!(unsafe { libc::write(self.go[1], [1u8].as_ptr().cast(), 1) }, 1);
        // SAFETY: both are ours and are not used again.
        self.go.iter().for_each(|fd| assert_eq!(unsafe { libc::close(*fd) }, 0));
    }

    pub fn wait(&mut self) -> libc::rusage {
        let mut status = 0;
        // SAFETY: plain data, for which 0 is valid.
        let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
        // SAFETY: both are valid for writing.
        assert_eq!(unsafe { libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) }, self.pid);
        assert_ne!(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), Some(99), "the child has failed");
        self.usage = Some(usage);
        usage
    }
}

/// A failed test leaves nothing running.
impl Drop for Child {
    fn drop(&mut self) {
        if self.usage.is_none() {
            // SAFETY: our own child, not waited for, so that its number is its own still.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            // SAFETY: the status is not asked for.
            unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
        }
    }
}

/// Words that parent and child share: the child writes `word(0)`, the parent `word(1)`.
#[derive(Clone, Copy)]
pub struct Shared(*const AtomicU64);

impl Shared {
    pub fn new() -> Shared {
        // SAFETY: a new mapping, never unmapped.
        Shared(unsafe { map(PAGE, libc::MAP_SHARED) }.cast())
    }

    pub fn word(self, index: usize) -> &'static AtomicU64 {
        // SAFETY: within the page, zeroed by the kernel, never unmapped.
        unsafe { &*self.0.add(index) }
    }

    pub fn wait_for(self, index: usize, value: u64) {
        let begin = Instant::now();
        while self.word(index).load(Ordering::SeqCst) < value {
            assert!(begin.elapsed() < PATIENCE, "the child makes no progress");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Maps new anonymous memory.
///
/// # Safety
/// The caller must use the returned memory only within its length.
pub unsafe fn map(bytes: usize, kind: i32) -> *mut u8 {
    // SAFETY: a new mapping at a place of the kernel's choice.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

pub fn exit(status: i32) -> ! {
    // SAFETY: ends this process only.
    unsafe { libc::_exit(status) }
}

pub fn kill_self() {
    // SAFETY: ends this process only.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Executes a program found by PATH with one argument.
pub fn exec(program: &str, argument: &str) {
    let [program, argument] = [program, argument].map(|text| std::ffi::CString::new(text).unwrap());
    let arguments = [program.as_ptr(), argument.as_ptr(), std::ptr::null()];
    // SAFETY: the list is ended by null and outlives the call.
    unsafe { libc::execvp(program.as_ptr(), arguments.as_ptr()) };
}

/// Maps the whole file, reads a byte of every page (or stores one), and unmaps it.
pub fn touch_mapped(file: &File, bytes: usize, store: bool) {
    let protection = if store { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: a new mapping of an open file, unmapped below and used nowhere else.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        let first = at.cast::<u8>();
        for page in (0..bytes).step_by(4096) {
            if store {
                first.add(page).write_volatile(1)
            } else {
                std::hint::black_box(first.add(page).read_volatile());
            }
        }
        libc::munmap(at, bytes);
    }
}

/// Reads the file from its begin into memory aligned for direct I/O.
pub fn read_aligned(file: &File, bytes: usize) {
    let layout = std::alloc::Layout::from_size_align(bytes, 4096).unwrap();
    // SAFETY: the memory has the length that is read, and is freed with the same layout.
    unsafe {
        let memory = std::alloc::alloc(layout);
        assert_eq!(libc::pread(file.as_raw_fd(), memory.cast(), bytes, 0), bytes as isize);
        std::alloc::dealloc(memory, layout);
    }
}

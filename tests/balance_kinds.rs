//! `bursar balance --balance-kinds`: idle heap is swapped out for a file that is read in a loop; heap in use is not.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::zram::Zram;
use support::{bursar, is_root, need};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 144 * MIB;

/// Has 96 MiB of idle heap and 8 MiB of heap in use, and reads a file of 96 MiB in a loop. Prints the addresses of both parts of the heap.
const READS: &str = "
import ctypes, mmap, os, random, sys
def heap(mib, of_its_own):
    memory = mmap.mmap(-1, mib << 20, mmap.MAP_PRIVATE)
    memory.madvise(of_its_own)
    noise = random.randbytes(4096)
    for at in range(0, mib << 20, 4096): memory[at:at + 4096] = noise
    return memory
idle, used = heap(96, mmap.MADV_DONTFORK), heap(8, mmap.MADV_DONTDUMP)
print(*(hex(ctypes.addressof(ctypes.c_char.from_buffer(one)))[2:] for one in (idle, used)), flush=True)
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    for part in range(96):
        os.pread(file, 1 << 20, part << 20)
        for at in range(0, 8 << 20, 4096): used[at] = part
";

/// A cgroup (version 1) from which the kernel reclaims only files, with the program in it; dropping it ends and removes both.
struct Job {
    dir: PathBuf,
    child: Child,
    idle: String,
    used: String,
}

impl Job {
    fn start(file: &Path) -> Job {
        let dir = PathBuf::from(format!("/sys/fs/cgroup/memory/test-kinds-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("memory.limit_in_bytes"), LIMIT.to_string()).unwrap();
        fs::write(dir.join("memory.swappiness"), "0").unwrap();
        let script = format!("echo 0 > {}/cgroup.procs; exec python3 -c \"$0\" \"$@\"", dir.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, READS]).arg(file).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (idle, used) = line.trim().split_once(' ').unwrap();
        Job { dir, child, idle: idle.into(), used: used.into() }
    }

    /// Bytes of a part of the heap that are swapped out.
    fn swapped(&self, start: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/smaps", self.child.id())).unwrap();
        let mapping = text.split_once(&format!("{start}-")).unwrap().1;
        let line = mapping.lines().find(|line| line.starts_with("Swap:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir(&self.dir);
    }
}

#[test]
fn idle_heap_makes_room_for_a_looped_file() {
    let v1 = Path::new("/sys/fs/cgroup/memory/memory.swappiness").exists();
    if !is_root() || !need("the memory controller of cgroup v1", v1) {
        return;
    }
    let Some(_zram) = Zram::of(512) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, vec![7; 96 << 20]).unwrap();
    // Evict the file, so that it is charged to the job that reads it.
    let written = fs::File::open(&file).unwrap();
    written.sync_all().unwrap();
    rustix::fs::fadvise(&written, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let job = Job::start(&file);
    let json = folder.path().join("intervals.json");
    let mut command = bursar();
    command.args(["balance", "-q", "--balance-kinds", "--interval", "300ms", "--total"]).arg(LIMIT.to_string());
    let mut live = command.arg("--json").arg(&json).arg(&job.dir).spawn().unwrap();
    let began = Instant::now();
    let intervals = || fs::read_to_string(&json).unwrap_or_default();
    while job.swapped(&job.idle) < 40 * MIB || !intervals().contains("made room for files") {
        assert!(began.elapsed() < Duration::from_secs(300), "{}", intervals());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        job.swapped(&job.used) < MIB,
        "heap in use stays in memory: {} bytes are swapped out",
        job.swapped(&job.used)
    );
    rustix::process::kill_process(rustix::process::Pid::from_child(&live), rustix::process::Signal::INT).unwrap();
    assert!(live.wait().unwrap().success());
}

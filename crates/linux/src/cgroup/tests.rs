//! Tests on recorded kernel files, see `tests/trees/README.md`.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

struct Tree(PathBuf);

impl Tree {
    fn of(name: &str) -> Tree {
        Tree(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(name))
    }

    fn dir(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn mounts(&self) -> Vec<Mount> {
        let mut mounts = mounts::parse(&fs::read(self.dir("proc/self/mountinfo")).unwrap());
        for mount in &mut mounts {
            mount.point = self.0.join(mount.point.strip_prefix("/").unwrap());
        }
        mounts
    }

    /// The cgroup of the recorded job: the only process with a number.
    fn job(&self) -> Cgroup {
        let is_number = |dir: &PathBuf| name(dir).parse::<i32>().is_ok();
        let process = file::subdirectories(&self.dir("proc")).unwrap().into_iter().find(is_number).unwrap();
        let memberships = mounts::parse_memberships(&fs::read(process.join("cgroup")).unwrap());
        Cgroup::find(&self.mounts(), &memberships).unwrap()
    }
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// What the kernel may keep in its batches: 64 pages for each of two processors.
const BATCHES: u64 = 2 * 64 * 4096;

fn sum(state: &MemoryState) -> u64 {
    state.anon.unwrap() + state.file.unwrap() + state.shmem.unwrap() + state.kernel.unwrap()
}

#[test]
fn a_hybrid_system_has_memory_on_v1_and_pressure_on_v2() {
    let tree = Tree::of("linux-6.18-v1/hybrid");
    let job = tree.job();
    assert_eq!(job.version(), Version::V1);
    assert_eq!(job.dir(), tree.dir("sys/fs/cgroup/memory/bursar-record/inner"));
    assert_eq!(job.pressure_dir().unwrap(), tree.dir("sys/fs/cgroup/unified/bursar-record/inner"));
    assert_eq!(job.pressure().unwrap().memory_some_seconds, Some(0.0));
    assert_eq!(job.effective_limit(), Some(60 << 20), "the parent's limit holds");
    assert_eq!(job.top(&tree.mounts()).dir(), tree.dir("sys/fs/cgroup/memory"));
    assert!(job.top(&tree.mounts()).is_root() && !job.is_root() && job.is_ours());
    assert_eq!(job.top(&tree.mounts()).pressure(), None, "the root's is the machine's");
}

#[test]
fn the_writable_one_of_two_mounts_is_used() {
    let tree = Tree::of("linux-6.18-v1/hybrid");
    let memberships = mounts::parse_memberships(b"5:memory:/bursar-record/inner\n");
    let memory = tree.mounts().into_iter().find(is_memory_v1).unwrap();
    let own = tree.dir("sys/fs/cgroup/memory/bursar-record/inner");
    // The second mount shows only the cgroup bursar-record.
    let second = |read_only| Mount {
        root: "/bursar-record".into(),
        point: memory.point.join("bursar-record"),
        read_only,
        ..memory.clone()
    };
    for (mounts, top) in [
        (vec![memory.clone(), second(true)], &memory),
        (vec![second(true), memory.clone()], &memory),
        (vec![memory.clone(), second(false)], &memory),
    ] {
        let found = Cgroup::find(&mounts, &memberships).unwrap();
        assert_eq!(found.dir(), own);
        assert_eq!(mounts::best_first(&mounts, is_memory_v1)[0].point, top.point);
    }
    let read_only = Mount { read_only: true, ..memory.clone() };
    let mounts = [second(false), read_only];
    assert_eq!(mounts::best_first(&mounts, is_memory_v1)[0].point, mounts[0].point, "the other one cannot be written");
}

#[test]
fn v1_sums_over_the_cgroups_beneath() {
    let job = Cgroup::at(&Tree::of("linux-6.18-v1/hybrid").dir("sys/fs/cgroup/memory/bursar-record")).unwrap();
    let state = job.memory().unwrap();
    assert_eq!((state.anon, state.file, state.shmem), (Some(25280512), Some(30420992), Some(0)));
    assert_eq!((state.kernel, state.sock), (Some(1040384), Some(0)));
    assert_eq!((state.usage, state.peak), (Some(56827904), Some(62914560)));
    assert!(sum(&state).abs_diff(state.usage.unwrap()) < BATCHES);
    assert_eq!((state.oom_kills, state.limit_hits), (Some(1), Some(1680)));
    assert_eq!((state.refault_file, state.refault_anon, state.swap), (Some(3), Some(0), Some(0)));
    assert_eq!((state.slab, state.pgscan, state.hugetlb), (None, None, None), "v1 lacks these");
}

#[test]
fn v2_under_a_limit() {
    let tree = Tree::of("debian-6.1-v2/plain");
    let job = tree.job();
    assert_eq!((job.version(), job.dir()), (Version::V2, tree.dir("sys/fs/cgroup/jobs/job").as_path()));
    assert_eq!(job.effective_limit(), Some(60 << 20));
    let state = job.memory().unwrap();
    assert_eq!((state.anon, state.file, state.shmem), (Some(25477120), Some(37089280), Some(0)));
    assert_eq!((state.kernel, state.slab, state.page_tables), (Some(319488), Some(219800), Some(77824)));
    assert_eq!((state.usage, state.peak), (Some(62816256), Some(62914560)));
    assert!(sum(&state).abs_diff(state.usage.unwrap()) < BATCHES);
    assert_eq!((state.oom_kills, state.limit_hits), (Some(0), Some(1771)));
    assert_eq!((state.refault_file, state.pgscan, state.pgsteal), (Some(98901), Some(111819), Some(111372)));
    assert_eq!((state.hugetlb, state.hugetlb_peak), (Some(0), None), "v2 keeps no peak of hugetlb");
    assert_eq!((state.swap, state.swap_peak), (Some(0), None), "memory.swap.peak came with 6.5");
    assert_eq!(job.pressure().unwrap().memory_some_seconds, Some(0.477773));
}

#[test]
fn in_a_container_the_own_cgroup_is_at_the_mount_point() {
    let tree = Tree::of("debian-6.1-v2/container");
    let job = tree.job();
    assert_eq!(job.dir(), tree.dir("sys/fs/cgroup"));
    assert!(!job.is_root(), "it is not the machine's root, though it looks like one by its path");
    assert_eq!(job.effective_limit(), Some(60 << 20));
    let state = job.memory().unwrap();
    assert_eq!((state.shmem, state.file), (Some(237568), Some(36200448 - 237568)), "tmpfs is not file");
    assert!(sum(&state).abs_diff(state.usage.unwrap()) < BATCHES);
}

#[test]
fn a_users_scope_beneath_systemd() {
    let tree = Tree::of("debian-6.1-v2/systemd-user");
    let job = tree.job();
    assert_eq!(name(job.dir()), "job.scope");
    assert_eq!(job.effective_limit(), Some(60 << 20));
    let state = job.memory().unwrap();
    assert!(sum(&state).abs_diff(state.usage.unwrap()) < BATCHES, "{state:?}");
}

#[test]
fn the_root_of_v2_stands_for_the_machine() {
    let root = Cgroup::at(&Tree::of("debian-6.1-v2/plain").dir("sys/fs/cgroup")).unwrap();
    assert!(root.is_root());
    assert_eq!(root.effective_limit(), None);
    assert_eq!(root.memory().unwrap().usage, None);
}

#[test]
fn a_directory_without_a_memory_controller_is_refused_by_name() {
    let unified = Tree::of("linux-6.18-v1/hybrid").dir("sys/fs/cgroup/unified/bursar-record");
    let error = Cgroup::at(&unified).unwrap_err();
    assert!(matches!(&error, Error::NotAMemoryCgroup(path) if *path == unified));
    assert!(Cgroup::at(Path::new("/no/such/cgroup")).is_err());
}

/// A kernel whose files are those of a newer one without the lines and files added since.
#[test]
fn lines_and_files_that_an_older_kernel_lacks_are_absent_or_summed() {
    let from = Tree::of("debian-6.1-v2/plain").dir("sys/fs/cgroup/jobs/job");
    let older = tempfile::tempdir().unwrap();
    for name in ["cgroup.procs", "cgroup.controllers", "memory.current", "memory.max"] {
        fs::copy(from.join(name), older.path().join(name)).unwrap();
    }
    let stat = fs::read_to_string(from.join("memory.stat")).unwrap();
    let newer = ["kernel", "sec_pagetables", "vmalloc", "zswap", "zswapped", "swapcached"];
    let refaults = |line: &str| line.replace("workingset_refault_file", "workingset_refault");
    let kept = stat.lines().filter(|line| !newer.contains(&line.split(' ').next().unwrap()));
    let kept: String = kept.filter(|line| !line.contains("refault_anon")).map(|line| refaults(line) + "\n").collect();
    fs::write(older.path().join("memory.stat"), kept).unwrap();

    let state = Cgroup::at(older.path()).unwrap().memory().unwrap();
    assert_eq!(
        state.kernel,
        Some(219800 + 77824),
        "slab and page tables; stacks, per-processor data and sockets were 0"
    );
    assert_eq!((state.refault_file, state.refault_anon), (Some(98901), None));
    assert_eq!(
        (state.peak, state.swap, state.oom_kills, state.limit_hits, state.hugetlb),
        (None, None, None, None, None)
    );
}

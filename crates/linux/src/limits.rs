//! Resource limits (`ulimit`). They are meant for the command: bursar raises its own to have room to work, and gives the command the
//! original ones.

use std::sync::OnceLock;

/// The number of resources since Linux 2.6.25.
const COUNT: usize = 16;

/// Limits that this process may need to be higher than the command does, and the value that is enough.
const RAISED: [(Resource, u64); 6] = [
    (libc::RLIMIT_AS, UNLIMITED),
    (libc::RLIMIT_DATA, UNLIMITED),
    (libc::RLIMIT_CPU, UNLIMITED),
    (libc::RLIMIT_STACK, 8 << 20),
    (libc::RLIMIT_NOFILE, 1024),
    (libc::RLIMIT_NPROC, UNLIMITED),
];

/// With less, a command cannot be observed.
const LEAST: [(Resource, u64, &str); 3] = [
    (libc::RLIMIT_AS, 384 << 20, "ulimit -v"),
    (libc::RLIMIT_DATA, 256 << 20, "ulimit -d"),
    (libc::RLIMIT_NOFILE, 64, "ulimit -n"),
];

const UNLIMITED: u64 = libc::RLIM_INFINITY;

type Resource = libc::__rlimit_resource_t;

/// Soft and hard.
type Limit = (u64, u64);

/// The limits at the start of this process, before it raised any.
static FOUND: OnceLock<[Option<Limit>; COUNT]> = OnceLock::new();

/// Raises soft limits to the hard ones, and hard limits too with `CAP_SYS_RESOURCE`.
pub fn raise() {
    FOUND.get_or_init(|| std::array::from_fn(|resource| get(resource as Resource)));
    for (resource, enough) in RAISED {
        let Some((soft, hard)) = get(resource).filter(|(soft, _)| *soft < enough) else { continue };
        if !set(resource, (enough, hard.max(enough))) && soft < hard {
            set(resource, (hard.min(enough), hard));
        }
    }
}

/// The limits changed since, in the format of the stub: `RESOURCE:SOFT:HARD,…` in hexadecimal.
pub fn to_put_back() -> String {
    let found = FOUND.get().into_iter().flatten().enumerate();
    let changed = found.filter_map(|(resource, found)| {
        let (soft, hard) = (*found)?;
        (get(resource as Resource)? != (soft, hard)).then(|| format!("{resource:x}:{soft:x}:{hard:x}"))
    });
    changed.collect::<Vec<_>>().join(",")
}

/// A sentence about a limit that is too low for bursar and could not be raised.
pub fn shortage() -> Option<String> {
    LEAST.into_iter().find_map(|(resource, least, option)| {
        let (soft, _) = get(resource).filter(|(soft, _)| *soft < least)?;
        let (soft, least) = match resource {
            libc::RLIMIT_NOFILE => (format!("{soft} open files"), least.to_string()),
            _ => (format!("{} KiB of memory", soft >> 10), format!("{} KiB", least >> 10)),
        };
        Some(format!(
            "{option} allows {soft}, and bursar needs {least} for itself. Set the limit for the command alone: \
             bursar ... -- sh -c '{option} N; exec COMMAND'"
        ))
    })
}

/// A sentence about the limit that refuses another process or thread.
pub fn processes() -> String {
    let allowed = get(libc::RLIMIT_NPROC).map(|(soft, _)| soft).filter(|soft| *soft != UNLIMITED);
    match allowed {
        Some(allowed) => format!(
            "ulimit -u allows this user {allowed} processes and threads, or pids.max of the cgroup is reached: raise the limit, or end some"
        ),
        None => "pids.max of the cgroup is reached: raise it, or end some processes".into(),
    }
}

fn get(resource: Resource) -> Option<Limit> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: valid for writes during the call.
    (unsafe { libc::getrlimit(resource, &raw mut found) } == 0).then_some((found.rlim_cur, found.rlim_max))
}

fn set(resource: Resource, (soft, hard): Limit) -> bool {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: valid for reads during the call.
    unsafe { libc::setrlimit(resource, &raw const limit) == 0 }
}

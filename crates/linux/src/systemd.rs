//! A scope from systemd over D-Bus, which gives a cgroup without root.
//!
//! The interface is org.freedesktop.systemd1(5); the rules for a delegated subtree are systemd's CGROUP_DELEGATION.md.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use zbus::blocking::connection::Builder;
use zbus::blocking::{Connection, Proxy};
use zbus::zvariant::{OwnedObjectPath, Value};

use crate::cgroup::Cgroup;
use crate::{Error, environment, place};

/// Time limit for an answer on the bus, and then for the scope.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the user's manager, which does not answer now, would answer if lingering were enabled: systemd runs this machine (as in
/// sd_booted(3)), and lingering is off.
pub(crate) fn would_answer_if_lingering() -> bool {
    let user = std::env::var_os("USER").filter(|user| !user.is_empty());
    let lingers = user.map(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    let has_bus = Path::new("/usr/lib/systemd/user/dbus.socket").exists();
    let is_booted = Path::new("/run/systemd/system").is_dir();
    is_booted && sockets().is_empty() && has_bus && lingers == Some(false)
}

/// Whether the service manager for this user answers: the system's for root, else the user's own. The reason if not.
pub(crate) fn available() -> Result<(), String> {
    with_manager(|manager| manager.get_property::<String>("Version").map(drop))
}

/// Moves this process to a new delegated scope and waits for it. Returns the scope's cgroup.
pub(crate) fn enter_scope() -> Result<Cgroup, Error> {
    let pid = std::process::id();
    let unit = format!("{}{pid}.scope", place::PREFIX);
    let name = unit.clone();
    with_manager(move |manager| {
        let properties: Vec<(&str, Value<'_>)> = vec![
            ("Description", Value::from("bursar: memory account of a command")),
            ("Delegate", Value::from(true)),
            ("MemoryAccounting", Value::from(true)),
            ("CollectMode", Value::from("inactive-or-failed")),
            ("PIDs", Value::from(vec![pid])),
        ];
        let auxiliary: Vec<(&str, Vec<(&str, Value<'_>)>)> = Vec::new();
        manager
            .call::<_, _, OwnedObjectPath>("StartTransientUnit", &(name.as_str(), "fail", properties, auxiliary))
            .map(drop)
    })
    .map_err(Error::Systemd)?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let found = Cgroup::of(pid as i32)?.filter(|cgroup| cgroup.dir().ends_with(&unit));
        if let Some(scope) = found.filter(Cgroup::is_writable) {
            return Ok(scope);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(Error::Systemd(format!("{unit} did not appear within {} s", PATIENCE.as_secs())))
}

/// Connecting may hang on a socket without a server, so it happens in a thread that may be left behind.
fn with_manager<T: Send + 'static>(ask: impl Fn(&Proxy<'_>) -> zbus::Result<T> + Send + 'static) -> Result<T, String> {
    let sockets = sockets();
    if sockets.is_empty() {
        return Err("no D-Bus socket was found".into());
    }
    let (answer, answered) = mpsc::channel();
    let asking = move || {
        let mut reason = String::new();
        for address in sockets {
            let result = connect(&address).and_then(|connection| {
                let manager = Proxy::new(
                    &connection,
                    "org.freedesktop.systemd1",
                    "/org/freedesktop/systemd1",
                    "org.freedesktop.systemd1.Manager",
                )?;
                ask(&manager)
            });
            match result {
                Ok(value) => {
                    let _ = answer.send(Ok(value));
                    return;
                }
                Err(error) => reason = format!("systemd does not answer on {address} ({error})"),
            }
        }
        let _ = answer.send(Err(reason));
    };
    thread::Builder::new().spawn(asking).map_err(|error| format!("no thread to ask systemd can be had ({error})"))?;
    answered
        .recv_timeout(PATIENCE * 2)
        .unwrap_or_else(|_| Err(format!("D-Bus did not answer within {} s", PATIENCE.as_secs() * 2)))
}

fn connect(address: &str) -> zbus::Result<Connection> {
    Builder::address(address)?.method_timeout(PATIENCE).build()
}

/// Addresses of the buses on which the manager may be found.
fn sockets() -> Vec<String> {
    let is_socket = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if geteuid().is_root() {
        let named = std::env::var("DBUS_SYSTEM_BUS_ADDRESS").ok();
        let usual = Some(PathBuf::from("/run/dbus/system_bus_socket")).filter(is_socket);
        return named.into_iter().chain(usual.map(unix)).collect();
    }
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok();
    let runtime = environment::folder("XDG_RUNTIME_DIR");
    let usual = Path::new("/run/user").join(geteuid().as_raw().to_string());
    let found = runtime.into_iter().chain([usual]).map(|dir| dir.join("bus")).filter(is_socket).map(unix);
    let mut addresses: Vec<String> = named.into_iter().chain(found).collect();
    addresses.dedup();
    addresses
}

fn unix(path: PathBuf) -> String {
    format!("unix:path={}", path.display())
}

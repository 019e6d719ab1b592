//! Looks up users, groups and hosts by name.
//!
//! The C library's own lookup loads the system's modules (`nsswitch.conf`), which is unsafe in a static binary built with another version
//! of the library. `getent` is the system's program for this.

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use crate::children;

/// UID and primary GID of a user.
#[must_use]
pub fn user(name: &str) -> Option<(u32, u32)> {
    let entry = entry("passwd", name)?;
    let mut fields = entry.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// GID of a group.
#[must_use]
pub fn group(name: &str) -> Option<u32> {
    entry("group", name)?.split(':').nth(2)?.parse().ok()
}

/// The first address of a host; numeric addresses are returned as they are.
#[must_use]
pub fn host(name: &str) -> Option<IpAddr> {
    name.parse().ok().or_else(|| getent("ahosts", name)?.split_whitespace().next()?.parse().ok())
}

/// The entry of a name or a number: from the file in `/etc`, else from the database, which may have more.
fn entry(database: &str, key: &str) -> Option<String> {
    let file = fs::read_to_string(format!("/etc/{database}")).unwrap_or_default();
    let has_key = |line: &&str| {
        let mut fields = line.split(':');
        !key.is_empty() && (fields.next() == Some(key) || fields.nth(1) == Some(key))
    };
    file.lines().find(has_key).map(String::from).or_else(|| getent(database, key))
}

fn getent(database: &str, key: &str) -> Option<String> {
    // An empty key lists all entries, and a dash begins an option.
    if key.is_empty() || key.starts_with('-') {
        return None;
    }
    let output = children::output(Command::new("getent").args([database, key])).ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    text.lines().next().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_root_by_name_and_by_number() {
        assert_eq!((user("root"), user("0")), (Some((0, 0)), Some((0, 0))));
        assert_eq!((group("root"), group("0")), (Some(0), Some(0)));
    }

    #[test]
    fn knows_no_entry_of_a_foreign_or_empty_key() {
        for key in ["", "no-such-name", "-s", "x", "root:x"] {
            assert_eq!((user(key), group(key)), (None, None), "{key}");
        }
    }

    #[test]
    fn an_address_is_its_own_host() {
        assert_eq!(host("127.0.0.1"), Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(host("::1").map(|address| address.is_loopback()), Some(true));
        assert_eq!(host("localhost").map(|address| address.is_loopback()), Some(true));
        assert_eq!((host(""), host("no.such.host.invalid")), (None, None));
    }
}

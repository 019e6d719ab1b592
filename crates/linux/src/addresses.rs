//! The addresses by which other machines may reach this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::file;

/// All addresses in this network namespace, except loopback and link-local ones.
pub fn own() -> Vec<IpAddr> {
    let read = |path: &str| file::read_if_present(Path::new(path)).unwrap_or_default();
    let four = v4(&read("/proc/net/fib_trie")).into_iter().map(IpAddr::V4);
    four.chain(v6(&read("/proc/net/if_inet6")).into_iter().map(IpAddr::V6)).collect()
}

/// The leaves of the routes of type `host LOCAL`; each is in two tables.
fn v4(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut leaf = None;
    for line in fib_trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(leaf.filter(|leaf| !leaf.is_loopback() && !leaf.is_link_local() && !found.contains(leaf)));
        }
    }
    found
}

/// Fields: address, index, length, scope, flags, name; scope 0 is global.
fn v6(if_inet6: &str) -> Vec<Ipv6Addr> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(2)? == "00").then(|| Ipv6Addr::from(address))
    };
    if_inet6.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_found_once_without_loopback() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 10.1.0.0/16 2 0 2\n        \
                    |-- 10.1.0.0\n           /16 link UNICAST\n        |-- 10.1.2.3\n           /32 host LOCAL\n     \
                    |-- 127.0.0.1\n        /32 host LOCAL\nLocal:\n        |-- 10.1.2.3\n           /32 host LOCAL\n        \
                    |-- 10.1.255.255\n           /32 link BROADCAST\n";
        assert_eq!(v4(text), [Ipv4Addr::new(10, 1, 2, 3)]);
        let text = "00000000000000000000000000000001 01 80 10 80       lo\n\
                    fe8000000000000000000000000000aa 02 40 20 80     eth0\n\
                    20010db8000000000000000000000007 02 40 00 80     eth0\n";
        assert_eq!(v6(text), ["2001:db8::7".parse::<Ipv6Addr>().unwrap()]);
        assert!(v4("nonsense\n|-- x\n/32 host LOCAL").is_empty() && v6("zz\n\n1").is_empty());
    }
}

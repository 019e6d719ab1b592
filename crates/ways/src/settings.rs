//! Where to set what, so that a way of having huge pages is kept.

use linux::{pools, thp};
use model::{ArmSetting, Bytes};
use report::shell_word;

use crate::program::Family;
use crate::way::Way;

/// Lines that keep a way, by where they go. `variable`: what the way sets in the environment, as `NAME=VALUE`.
pub(crate) fn settings(way: Way, variable: Option<&str>, command: &[String], families: &[Family]) -> Vec<ArmSetting> {
    let typed = command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let of_bursar = |words: &str| {
        vec![
            set("shell", [format!("{words} -- {typed}")]),
            set("systemd unit", [format!("ExecStart=/usr/bin/{words} -- {typed}")]),
            set("Docker, Kubernetes", [format!("the command of the image: {words} -- {typed}")]),
        ]
    };
    let of_machine = |file: String, mode: &str| {
        vec![
            set("machine, until it restarts", [format!("echo {mode} | sudo tee {file}")]),
            set("/etc/tmpfiles.d/thp.conf", [format!("w {file} - - - - {mode}")]),
        ]
    };
    let mut all = match way {
        Way::Plain => Vec::new(),
        Way::Tunable => variable.map(of_environment).unwrap_or_default(),
        Way::Advise => of_bursar("bursar advise run"),
        Way::Provision => of_bursar("bursar provision"),
        Way::Pool => {
            let mut lines =
                vec![set("machine, once", [format!("sudo bursar pool create SIZE --name {}", pools::DEFAULT)])];
            lines.extend(of_bursar("bursar provision"));
            lines
        }
        Way::Profiled => {
            let name = command.first().map_or("command", |word| word.rsplit('/').next().unwrap_or(word));
            let profile = shell_word(&format!("{name}.profile"));
            let mut lines = vec![set("once", [format!("bursar advise profile -o {profile} -- {typed}")])];
            lines.extend(of_bursar(&format!("bursar advise run --profile {profile}")));
            lines
        }
        Way::Always => {
            let mut lines = of_machine(thp::setting(None).display().to_string(), "always");
            lines.push(set("kernel command line", ["transparent_hugepage=always".into()]));
            lines
        }
        Way::Sized(bytes) => {
            let mut lines = of_machine(thp::setting(Some(bytes)).display().to_string(), "always");
            lines.push(set("kernel command line", [format!("thp_anon={}K:always", bytes >> 10)]));
            lines
        }
        Way::Never => vec![set("systemd unit, from version 260 on", ["MemoryTHP=disable".into()])],
    };
    if way != Way::Plain {
        all.extend(families.iter().filter_map(|family| of_family(*family, way == Way::Never)));
    }
    all
}

/// A variable of the environment, everywhere.
fn of_environment(assignment: &str) -> Vec<ArmSetting> {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    vec![
        set("shell", [format!("export {name}={}", shell_word(value))]),
        set("systemd unit", [format!("Environment=\"{assignment}\"")]),
        set("Docker", [format!("docker run -e {}", shell_word(assignment))]),
        set("Kubernetes", ["env:".into(), format!("- name: {name}"), format!("  value: \"{value}\"")]),
    ]
}

/// The switch that a program or a runtime has itself, which was not measured.
fn of_family(family: Family, is_off: bool) -> Option<ArmSetting> {
    let (place, line) = match (family, is_off) {
        (Family::Java, false) => ("JVM", "java -XX:+UseTransparentHugePages -XX:+AlwaysPreTouch"),
        (Family::Java, true) => ("JVM", "java -XX:-UseTransparentHugePages"),
        (Family::Jemalloc, false) => ("jemalloc", "MALLOC_CONF=thp:always,metadata_thp:auto"),
        (Family::Jemalloc, true) => ("jemalloc", "MALLOC_CONF=thp:never"),
        // From 2.1 on MIMALLOC_ALLOW_LARGE_OS_PAGES.
        (Family::Mimalloc, is_off) => {
            ("mimalloc 2.0", if is_off { "MIMALLOC_LARGE_OS_PAGES=0" } else { "MIMALLOC_LARGE_OS_PAGES=1" })
        }
        (Family::Postgres, false) => ("postgresql.conf, with vm.nr_hugepages for shared_buffers", "huge_pages = try"),
        (Family::Postgres, true) => ("postgresql.conf", "huge_pages = off"),
        (Family::Redis, false) => ("redis.conf", "disable-thp no"),
        (Family::Redis, true) => ("redis.conf", "disable-thp yes"),
        (Family::Go, true) => ("Go", "GODEBUG=disablethp=1"),
        // Its runtime has no switch that asks for them.
        (Family::Go, false) => return None,
    };
    Some(set(&format!("{place} (its own switch, not measured here)"), [line.into()]))
}

fn set<const LINES: usize>(place: &str, lines: [String; LINES]) -> ArmSetting {
    ArmSetting { place: place.into(), lines: lines.into() }
}

/// What a pool should have, as a word for the lines; the size is what the arm held at most.
pub(crate) fn with_pool_size(settings: &mut [ArmSetting], peak_bytes: Option<u64>) {
    let Some(size) = peak_bytes.map(|bytes| format!("{}M", Bytes(bytes).mib_ceil())) else { return };
    for line in settings.iter_mut().flat_map(|setting| &mut setting.lines) {
        *line = line.replace("create SIZE", &format!("create {size}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(way: Way, families: &[Family]) -> String {
        let variable = Some("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
        let all = settings(way, variable, &["./a b".into(), "-x".into()], families);
        let lines: Vec<String> = all.iter().map(|set| format!("{}: {}", set.place, set.lines.join("\n"))).collect();
        lines.join("\n")
    }

    #[test]
    fn the_variable_is_set_where_programs_are_started() {
        let told = lines(Way::Tunable, &[]);
        for line in [
            "shell: export GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
            "systemd unit: Environment=\"GLIBC_TUNABLES=glibc.malloc.hugetlb=1\"",
            "Docker: docker run -e GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
            "- name: GLIBC_TUNABLES\n  value: \"glibc.malloc.hugetlb=1\"",
        ] {
            assert!(told.contains(line), "{line} is not in {told}");
        }
    }

    #[test]
    fn a_program_of_bursars_is_typed_as_it_was_and_quoted() {
        assert!(lines(Way::Advise, &[]).contains("shell: bursar advise run -- './a b' -x"));
        assert!(lines(Way::Profiled, &[]).contains("bursar advise run --profile 'a b.profile' -- './a b' -x"));
        assert!(lines(Way::Pool, &[]).contains("sudo bursar pool create SIZE"));
    }

    #[test]
    fn settings_of_the_machine_name_their_file() {
        assert!(lines(Way::Always, &[]).contains("w /sys/kernel/mm/transparent_hugepage/enabled - - - - always"));
        let sized = lines(Way::Sized(64 << 10), &[]);
        assert!(sized.contains("hugepages-64kB/enabled") && sized.contains("thp_anon=64K:always"), "{sized}");
        assert!(lines(Way::Never, &[]).contains("MemoryTHP=disable"));
    }

    #[test]
    fn programs_with_a_switch_of_their_own_are_told_it() {
        assert!(lines(Way::Always, &[Family::Java]).contains("-XX:+UseTransparentHugePages -XX:+AlwaysPreTouch"));
        assert!(lines(Way::Always, &[Family::Redis]).contains("disable-thp no"));
        assert!(lines(Way::Never, &[Family::Go]).contains("GODEBUG=disablethp=1"));
        assert_eq!(settings(Way::Plain, None, &[], &[Family::Java]), []);
    }

    #[test]
    fn a_pool_is_as_large_as_what_was_held() {
        let mut pool = settings(Way::Pool, None, &["a".into()], &[]);
        with_pool_size(&mut pool, Some((100 << 20) + 1));
        assert_eq!(pool[0].lines, ["sudo bursar pool create 101M --name default"]);
    }
}

//! What a person can do here, and how well: one line for each main command, from the rungs that were found.

use history::prune::Pruned;
use linux::probe::Finding;
use report::terminal::paragraph;
use schemars::JsonSchema;
use serde::Serialize;

/// How well a command works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it is meant to.
    Yes,
    /// With less exact sources, or with less of them.
    Partly,
    /// Not at all.
    No,
}

/// One command here.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Ability {
    /// The command's name.
    pub command: &'static str,
    /// How well it works.
    pub works: Level,
    /// Why, as a clause.
    pub why: String,
    /// What would make it better; `None` if it works, or if nothing is known to help.
    pub next: Option<String>,
}

/// What `bursar doctor --json` writes.
#[derive(JsonSchema, Serialize)]
pub struct Json<'a> {
    /// One for each main command.
    pub abilities: &'a [Ability],
    /// One for each rung of each ladder.
    pub findings: &'a [Finding],
    /// What `--repair` put back, as sentences; null without it.
    pub repaired: Option<&'a [String]>,
    /// The records that `--prune` removed; null without it.
    pub pruned: Option<Pruned>,
}

/// The five main commands, in this order.
pub fn all(findings: &[Finding]) -> [Ability; 5] {
    let found = Found(findings);
    [run(&found), budget(&found), watch(&found), attribute(&found), provision(&found)]
}

impl Ability {
    /// In a line, or in some where it is wider than this. The next step stays in one, to be pasted.
    pub fn text(&self, width: usize) -> String {
        let works = match self.works {
            Level::Yes => "yes",
            Level::Partly => "partly",
            Level::No => "no",
        };
        let line = format!("{:<10} {works:<7} {}", self.command, self.why);
        let Some(next) = &self.next else { return paragraph(&line, INDENT, width) };
        let whole = format!("{line}; next: {next}");
        if whole.chars().count() <= width {
            whole
        } else {
            format!("{}\n{INDENT}next: {next}", paragraph(&line, INDENT, width))
        }
    }
}

/// Of lines after the first.
const INDENT: &str = "    ";

const PLACEMENT: &str = "placement";
const REFERENCES: &str = "page cache references";
const MAPPED: &str = "mapped memory";
const ATTRIBUTION: &str = "attribution";
const PROVISIONING: &str = "provisioning";
const SLURM: &str = "Slurm";

/// Commands longer than this are left to the verbose list.
const MOST_COMMAND_CHARS: usize = 60;

struct Found<'a>(&'a [Finding]);

impl Found<'_> {
    fn get(&self, ladder: &str, rung: &str) -> Option<&Finding> {
        self.0.iter().find(|finding| finding.ladder == ladder && finding.rung == rung)
    }

    fn has(&self, ladder: &str, rung: &str) -> bool {
        self.get(ladder, rung).is_some_and(|finding| finding.there)
    }

    fn can_limit(&self) -> bool {
        self.0.iter().any(|finding| finding.ladder == PLACEMENT && finding.there && finding.rung.starts_with("cgroup"))
    }

    fn sees_references(&self) -> bool {
        self.has(REFERENCES, "filemap tracepoints") || self.has(REFERENCES, "system call tracepoints")
    }

    /// The first command that would enable something of a ladder, the best rung first.
    fn next(&self, ladder: &str) -> Option<String> {
        let enable =
            self.0.iter().filter(|finding| finding.ladder == ladder).find_map(|finding| finding.enable.as_ref())?;
        // Some findings give two ways.
        let first = enable.split(", or ").next().unwrap_or(enable);
        Some(match first.chars().count() {
            0..=MOST_COMMAND_CHARS => first.to_string(),
            _ => format!("the command under \"{ladder}\" in bursar doctor -v"),
        })
    }
}

fn run(found: &Found) -> Ability {
    let ability = |works, why: &str, next| Ability { command: "run", works, why: why.into(), next };
    let references = || found.next(REFERENCES);
    let is_seen_inside = found.has(REFERENCES, "inside the processes");
    match (found.can_limit(), found.sees_references()) {
        (true, true) => {
            ability(Level::Yes, "peak, page cache and floor, counted by the kernel; every process is seen", None)
        }
        (true, false) => {
            let used_again = match is_seen_inside {
                true => "seen in programs that are linked with glibc",
                false => "not seen",
            };
            let why =
                format!("peak and floor, counted by the kernel; what of the page cache is used again is {used_again}");
            ability(Level::Partly, &why, references())
        }
        (false, _) if found.has(PLACEMENT, "own cgroup, read only") => {
            let why = "peak and floor from bursar's own cgroup, less what is not the command's";
            ability(Level::Partly, why, found.next(PLACEMENT).or_else(references))
        }
        (false, true) => {
            let why = "heap, mapped files and floor by process, and which file pages are used; not what page cache is charged";
            ability(Level::Partly, why, found.next(PLACEMENT))
        }
        (false, false) => {
            let why = match is_seen_inside {
                true => {
                    "heap, mapped files and floor by process, and which file pages glibc's programs use; not what is charged"
                }
                false => "heap, mapped files and floor by process; the page cache is not seen",
            };
            ability(Level::Partly, why, found.next(PLACEMENT).or_else(references))
        }
    }
}

fn budget(found: &Found) -> Ability {
    let ability = |works, why: &str, next| Ability { command: "budget", works, why: why.into(), next };
    let has_steps = found.has(SLURM, "memory constrained") && found.has(SLURM, "srun");
    match (found.can_limit(), found.sees_references()) {
        (true, true) => ability(Level::Yes, "limits can be set, and file references predict where to try", None),
        (true, false) => {
            let why = "limits can be set; without file references it takes more runs";
            ability(Level::Partly, why, found.next(REFERENCES))
        }
        (false, _) if has_steps => ability(Level::Partly, "limits are set on Slurm job steps", None),
        (false, _) => {
            let next = found.next(PLACEMENT).or_else(|| found.next(SLURM));
            match found.has(REFERENCES, "inside the processes") {
                true => ability(Level::Partly, "limits are emulated, for programs that are linked with glibc", next),
                false => ability(Level::No, "no memory limit can be set", next),
            }
        }
    }
}

fn watch(found: &Found) -> Ability {
    let ability = |works, why: &str, next| Ability { command: "watch", works, why: why.into(), next };
    if found.has(MAPPED, "Accessed bits in page tables") {
        return ability(Level::Yes, "the working set by page, from Accessed bits", None);
    }
    if found.has(MAPPED, "clear_refs and smaps") {
        return ability(Level::Partly, "the working set by mapping, known after 6 s", found.next(MAPPED));
    }
    ability(Level::No, "the kernel does not show which memory is accessed", found.next(MAPPED))
}

fn attribute(found: &Found) -> Ability {
    let ability = |works, why: &str, next| Ability { command: "attribute", works, why: why.into(), next };
    if !found.has(ATTRIBUTION, "by owner: patched entries of libraries") {
        return ability(Level::No, "bursar knows the instructions of x86-64 alone", None);
    }
    if found.has(ATTRIBUTION, "by touch: page-fault events") {
        return ability(Level::Yes, "by the library that allocated and by the code that touched first", None);
    }
    let why = match found.has(ATTRIBUTION, "by touch: page-fault events of user space") {
        true => "by the library that allocated; by touch without pages that system calls touch first",
        false => "by the library that allocated; not by the code that touched first",
    };
    ability(Level::Partly, why, found.next(ATTRIBUTION))
}

fn provision(found: &Found) -> Ability {
    let ability = |works, why: &str, next| Ability { command: "provision", works, why: why.into(), next };
    if found.has(PROVISIONING, "pool") {
        return ability(Level::Yes, "a pool of huge pages answers", None);
    }
    let next = found.next(PROVISIONING);
    if found.has(PROVISIONING, "the kernel's huge pages") {
        return ability(Level::Partly, "the kernel's huge pages; no pool answers", next);
    }
    match found.has(PROVISIONING, "populated 4 KiB pages") {
        true => ability(Level::Partly, "populated 4 KiB pages; no pool and no huge pages", next),
        false => ability(Level::No, "this kernel cannot populate memory ahead", next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rungs of a machine: ladder, rung, and the command that would enable it. `yes`: it is there.
    fn machine(lines: &[(&str, &str, &str)]) -> String {
        let finding = |(ladder, rung, enable): &(&str, &str, &str)| Finding {
            ladder: ladder.to_string(),
            rung: rung.to_string(),
            there: *enable == "yes",
            why: "a reason".into(),
            enable: Some(enable.to_string()).filter(|enable| enable != "yes" && !enable.is_empty()),
        };
        let findings: Vec<Finding> = lines.iter().map(finding).collect();
        all(&findings).map(|ability| ability.text(usize::MAX) + "\n").concat()
    }

    #[test]
    fn root_with_cgroup_v2_and_a_pool_can_do_everything() {
        let told = machine(&[
            (PLACEMENT, "cgroup v2 as root", "yes"),
            (REFERENCES, "filemap tracepoints", "yes"),
            (MAPPED, "Accessed bits in page tables", "yes"),
            (ATTRIBUTION, "by owner: patched entries of libraries", "yes"),
            (ATTRIBUTION, "by touch: page-fault events", "yes"),
            (PROVISIONING, "pool", "yes"),
        ]);
        let expected = "\
run        yes     peak, page cache and floor, counted by the kernel; every process is seen
budget     yes     limits can be set, and file references predict where to try
watch      yes     the working set by page, from Accessed bits
attribute  yes     by the library that allocated and by the code that touched first
provision  yes     a pool of huge pages answers
";
        assert_eq!(told, expected);
    }

    #[test]
    fn a_user_without_rights_is_told_the_next_step() {
        let lend = "sudo bursar …, or sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v bursar)\"; a caveat";
        let told = machine(&[
            (PLACEMENT, "cgroup v2 by systemd", &"sudo mkdir -p /etc/systemd/system/user@.service.d && ".repeat(3)),
            (PLACEMENT, "process tree", "yes"),
            (REFERENCES, "filemap tracepoints", lend),
            (REFERENCES, "inside the processes", "yes"),
            (MAPPED, "Accessed bits in page tables", "sudo bursar …"),
            (MAPPED, "clear_refs and smaps", "yes"),
            (ATTRIBUTION, "by owner: patched entries of libraries", "yes"),
            (ATTRIBUTION, "by touch: page-fault events", "sudo sysctl kernel.perf_event_paranoid=1"),
            (ATTRIBUTION, "by touch: page-fault events of user space", "yes"),
            (PROVISIONING, "pool", "sudo bursar pool create SIZE"),
            (PROVISIONING, "the kernel's huge pages", "yes"),
        ]);
        let expected = "\
run        partly  heap, mapped files and floor by process, and which file pages glibc's programs use; not what is charged; next: the command under \"placement\" in bursar doctor -v
budget     partly  limits are emulated, for programs that are linked with glibc; next: the command under \"placement\" in bursar doctor -v
watch      partly  the working set by mapping, known after 6 s; next: sudo bursar …
attribute  partly  by the library that allocated; by touch without pages that system calls touch first; next: sudo sysctl kernel.perf_event_paranoid=1
provision  partly  the kernel's huge pages; no pool answers; next: sudo bursar pool create SIZE
";
        assert_eq!(told, expected);
    }

    #[test]
    fn a_narrow_terminal_has_the_next_step_in_a_line_of_its_own() {
        let works = Level::Partly;
        let ability = Ability {
            command: "watch",
            works,
            why: "seen after six seconds".into(),
            next: Some("sudo bursar watch".into()),
        };
        assert_eq!(ability.text(40), "watch      partly  seen after six\n    seconds\n    next: sudo bursar watch");
    }

    #[test]
    fn a_container_in_which_nothing_helps_has_no_next_step() {
        let told =
            machine(&[(PLACEMENT, "own cgroup, read only", "yes"), (PROVISIONING, "populated 4 KiB pages", "yes")]);
        let expected = "\
run        partly  peak and floor from bursar's own cgroup, less what is not the command's
budget     no      no memory limit can be set
watch      no      the kernel does not show which memory is accessed
attribute  no      bursar knows the instructions of x86-64 alone
provision  partly  populated 4 KiB pages; no pool and no huge pages
";
        assert_eq!(told, expected);
    }

    #[test]
    fn a_slurm_allocation_has_limits_by_its_steps() {
        let told = machine(&[(SLURM, "srun", "yes"), (SLURM, "memory constrained", "yes")]);
        assert!(told.contains("budget     partly  limits are set on Slurm job steps\n"), "{told}");
        let outside = machine(&[(SLURM, "inside an allocation", "salloc --mem=SIZE bursar …"), (SLURM, "srun", "yes")]);
        assert!(outside.contains("no memory limit can be set; next: salloc --mem=SIZE bursar …\n"), "{outside}");
    }
}

//! Runtimes that size their heap by the limit that they see: which one a job has, and how it is told its part of a limit.
//!
//! Such a program is another one under each limit. Where an environment variable sets its heap, each trial sets it to a share of the
//! limit, so that the answer is a limit and a setting. What the person has set stays.

use std::ffi::OsString;

use model::{Bytes, Observation};
use object::read::elf::FileHeader;
use object::{Endianness, ReadCache, elf::FileHeader64};

/// A runtime that reads its limit, or can be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// The Java virtual machine.
    Jvm,
    Node,
    DotNet,
    Go,
    DuckDb,
    PostgreSql,
}

/// How a job's runtime learns of its limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizing {
    /// Each trial sets the variable.
    Set(Runtime),
    /// The person set a share of the limit, or no variable sets it: the program reads the limit itself.
    Reads(Runtime),
    /// A setting that does not follow the limit: the person's, or the program's own.
    Fixed(Runtime),
}

/// A runtime that a process of the job has.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    runtime: Runtime,
    /// The words of that process, and the variables of its environment (`NAME=VALUE`) that may hold a setting.
    set: Vec<String>,
}

/// A process with less than this part of the largest one's peak RSS does not decide how the job sizes itself.
const LEAST_PART: u64 = 4;

/// Words before which nothing is the program.
const WRAPPERS: [&str; 14] = [
    "sh", "bash", "dash", "exec", "env", "nice", "ionice", "nohup", "timeout", "time", "taskset", "setsid", "stdbuf",
    "chrt",
];

impl Sizing {
    /// Of a command, and of the processes that its first run had; `None`: no runtime is known.
    pub fn of(command: &[OsString], first: Option<&Observation>) -> Option<Sizing> {
        let runtime = of_words(&words(command)).or_else(|| first.and_then(of_processes))?;
        Sizing::of_running(command, Running { runtime, set: Vec::new() })
    }

    /// Of a command, one of whose processes had this runtime.
    pub fn of_running(command: &[OsString], running: Running) -> Option<Sizing> {
        let Running { runtime, set } = running;
        let variables = runtime.variables().iter().filter_map(|v| std::env::var(v).ok());
        let set: Vec<String> = words(command).into_iter().chain(variables).chain(set).collect();
        Some(runtime.sizing(&set))
    }

    /// Whether what the program does follows the limit.
    pub fn follows_limit(&self) -> bool {
        !matches!(self, Sizing::Fixed(_))
    }

    /// What a trial sets in the environment.
    pub fn environment(&self, limit_bytes: u64) -> Option<(String, OsString)> {
        let Sizing::Set(runtime) = self else { return None };
        let (name, value) = runtime.setting(limit_bytes)?;
        // What is there already stays before it: these variables hold a list of options.
        let value = match std::env::var(name) {
            Ok(set) if !set.is_empty() && *runtime != Runtime::Go && *runtime != Runtime::DotNet => {
                format!("{set} {value}")
            }
            _ => value,
        };
        Some((name.into(), value.into()))
    }

    /// The setting that a trial at this limit had, for the reader to make.
    pub fn setting(&self, tried_bytes: u64) -> Option<String> {
        let Sizing::Set(runtime) = self else { return None };
        runtime.setting(tried_bytes).map(|(name, value)| format!("{name}={value}"))
    }

    /// What the reader should do, as a sentence; `budget_bytes` is the limit proposed and `tried_bytes` the one tried.
    pub fn advice(&self, budget_bytes: u64, tried_bytes: u64) -> Option<String> {
        Some(match self {
            Sizing::Set(runtime) => {
                let setting = self.setting(tried_bytes)?;
                format!(
                    "{} sizes its heap by its limit. The trials set it by the limit, so the answer is two values: the limit of {} and \
                     {setting}.",
                    runtime.name(),
                    Bytes(budget_bytes)
                )
            }
            Sizing::Reads(runtime) => format!(
                "{} sizes itself by the limit that it sees ({}): the answer holds for that setting only, and it uses more where it gets \
                 more. A fixed size makes it certain.",
                runtime.name(),
                runtime.how()
            ),
            Sizing::Fixed(runtime) => {
                format!("{} keeps the size that is set for it ({}), whatever the limit.", runtime.name(), runtime.how())
            }
        })
    }
}

impl Runtime {
    fn name(self) -> &'static str {
        match self {
            Runtime::Jvm => "The JVM",
            Runtime::Node => "Node.js",
            Runtime::DotNet => ".NET",
            Runtime::Go => "Go's runtime",
            Runtime::DuckDb => "DuckDB",
            Runtime::PostgreSql => "PostgreSQL",
        }
    }

    fn how(self) -> &'static str {
        match self {
            Runtime::Jvm => "-Xmx, -XX:MaxRAMPercentage",
            Runtime::Node => "--max-old-space-size",
            Runtime::DotNet => "DOTNET_GCHeapHardLimit, DOTNET_GCHeapHardLimitPercent",
            Runtime::Go => "GOMEMLIMIT",
            Runtime::DuckDb => "memory_limit, 80 % of the limit by default",
            Runtime::PostgreSql => "shared_buffers, work_mem",
        }
    }

    /// Variables that may hold the person's own setting.
    fn variables(self) -> &'static [&'static str] {
        match self {
            Runtime::Jvm => &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"],
            Runtime::Node => &["NODE_OPTIONS"],
            Runtime::DotNet => &["DOTNET_GCHeapHardLimit", "DOTNET_GCHeapHardLimitPercent", "COMPlus_GCHeapHardLimit"],
            Runtime::Go => &["GOMEMLIMIT"],
            Runtime::DuckDb | Runtime::PostgreSql => &[],
        }
    }

    /// `set`: the words of the command, and the values of its variables.
    fn sizing(self, set: &[String]) -> Sizing {
        let has = |texts: &[&str]| set.iter().any(|word| texts.iter().any(|text| word.contains(text)));
        let is_set = |names: &[&str]| names.iter().any(|name| std::env::var_os(name).is_some());
        match self {
            Runtime::Jvm if has(&["-Xmx", "-XX:MaxHeapSize"]) => Sizing::Fixed(self),
            Runtime::Jvm if has(&["RAMPercentage", "RAMFraction", "-XX:MaxRAM="]) => Sizing::Reads(self),
            Runtime::Node if has(&["max-old-space-size", "max_old_space_size", "max-heap-size"]) => Sizing::Fixed(self),
            Runtime::DotNet if is_set(&["DOTNET_GCHeapHardLimitPercent"]) || has(&["GCHeapHardLimitPercent="]) => {
                Sizing::Reads(self)
            }
            Runtime::DotNet if is_set(self.variables()) || has(&["GCHeapHardLimit="]) => Sizing::Fixed(self),
            Runtime::Go if is_set(self.variables()) || has(&["GOMEMLIMIT="]) => Sizing::Fixed(self),
            Runtime::DuckDb if has(&["memory_limit", "max_memory"]) => Sizing::Fixed(self),
            Runtime::DuckDb => Sizing::Reads(self),
            Runtime::PostgreSql => Sizing::Fixed(self),
            _ => Sizing::Set(self),
        }
    }

    /// The variable and its value under a limit: three quarters of it for the heap, since code, stacks and the collector take the rest.
    fn setting(self, limit_bytes: u64) -> Option<(&'static str, String)> {
        let heap = limit_bytes / 4 * 3;
        Some(match self {
            Runtime::Jvm => ("JAVA_TOOL_OPTIONS", format!("-Xmx{}m", (heap >> 20).max(2))),
            Runtime::Node => ("NODE_OPTIONS", format!("--max-old-space-size={}", (heap >> 20).max(1))),
            Runtime::DotNet => ("DOTNET_GCHeapHardLimit", format!("0x{heap:x}")),
            // All that Go's runtime has, not only its heap.
            Runtime::Go => ("GOMEMLIMIT", format!("{}MiB", ((limit_bytes / 10 * 9) >> 20).max(1))),
            Runtime::DuckDb | Runtime::PostgreSql => return None,
        })
    }
}

/// The command's words, those of a shell's script one by one.
fn words(command: &[OsString]) -> Vec<String> {
    let all = command.iter().map(|word| word.to_string_lossy().into_owned());
    all.flat_map(|word| word.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

/// The program after its wrappers: the first word that is no wrapper, no option, no assignment and no number.
fn of_words(words: &[String]) -> Option<Runtime> {
    let is_program = |word: &&String| {
        let name = file_name(word);
        !WRAPPERS.contains(&name)
            && !word.starts_with('-')
            && !word.contains('=')
            && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    let program = words.iter().find(is_program)?;
    named(file_name(program)).or_else(|| is_go(program).then_some(Runtime::Go))
}

/// The runtime of the processes that a run had, by their names; of those that were large.
fn of_processes(run: &Observation) -> Option<Runtime> {
    let largest = run.processes.iter().filter_map(|process| process.max_rss_bytes).max().unwrap_or(0);
    let is_large = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes >= largest / LEAST_PART);
    run.processes.iter().filter(|process| is_large(process.max_rss_bytes)).find_map(|process| named(&process.command))
}

/// The runtime that a process of the job has now, by its name, its program or a library that it has mapped.
pub fn running() -> Option<Running> {
    let pages = |pid: i32| Some((pid, linux::procfs::stat(pid).ok()?.rss_pages));
    let living = linux::procfs::descendants(std::process::id() as i32).into_iter().filter_map(pages);
    let living: Vec<(i32, u64)> = living.collect();
    let largest = living.iter().map(|(_, pages)| *pages).max()?;
    living.into_iter().filter(|(_, pages)| *pages >= largest / LEAST_PART).find_map(|(pid, _)| {
        let runtime = of_process(pid)?;
        let strings = |file: &str| {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>()
        };
        let is_setting =
            |entry: &String| entry.split_once('=').is_some_and(|(name, _)| runtime.variables().contains(&name));
        let set = strings("cmdline").into_iter().chain(strings("environ").into_iter().filter(is_setting)).collect();
        Some(Running { runtime, set })
    })
}

fn of_process(pid: i32) -> Option<Runtime> {
    let by_name = || named(&linux::procfs::stat(pid).ok()?.comm);
    let by_library = || {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        maps.lines().filter_map(|line| line.rsplit('/').next()).find_map(of_library)
    };
    let by_program = || is_go(&format!("/proc/{pid}/exe")).then_some(Runtime::Go);
    by_name().or_else(by_library).or_else(by_program)
}

fn of_library(name: &str) -> Option<Runtime> {
    let known = [
        ("libjvm.so", Runtime::Jvm),
        ("libcoreclr.so", Runtime::DotNet),
        ("libduckdb", Runtime::DuckDb),
        ("_duckdb.", Runtime::DuckDb),
        ("duckdb.", Runtime::DuckDb),
    ];
    known.into_iter().find(|(start, _)| name.starts_with(start)).map(|(_, runtime)| runtime)
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn named(name: &str) -> Option<Runtime> {
    Some(match name {
        "java" => Runtime::Jvm,
        "node" | "nodejs" | "node-MainThread" | "npm" | "npx" => Runtime::Node,
        "dotnet" => Runtime::DotNet,
        "duckdb" => Runtime::DuckDb,
        "postgres" | "postmaster" => Runtime::PostgreSql,
        _ => return None,
    })
}

/// Whether a program's file has the section that Go's linker writes.
fn is_go(program: &str) -> bool {
    let find = || {
        let path = if program.contains('/') {
            program.into()
        } else {
            let folders = std::env::var_os("PATH")?;
            std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())?
        };
        let file = ReadCache::new(std::fs::File::open(path).ok()?);
        let header = FileHeader64::<Endianness>::parse(&file).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &file).ok()?;
        Some(
            sections
                .iter()
                .any(|section| sections.section_name(endian, section).is_ok_and(|name| name == b".go.buildinfo")),
        )
    };
    find().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizing(command: &[&str]) -> Option<Sizing> {
        Sizing::of(&command.iter().map(OsString::from).collect::<Vec<_>>(), None)
    }

    #[test]
    fn a_runtime_is_found_behind_its_wrappers() {
        for command in [
            &["java", "-jar", "x.jar"][..],
            &["/usr/lib/jvm/bin/java", "X"],
            &["env", "A=b", "nice", "-n", "5", "java", "X"],
            &["sh", "-c", "exec java -cp java Alloc"],
            &["timeout", "60", "java", "X"],
        ] {
            assert_eq!(sizing(command), Some(Sizing::Set(Runtime::Jvm)), "{command:?}");
        }
        assert_eq!(sizing(&["node", "x.js"]), Some(Sizing::Set(Runtime::Node)));
        assert_eq!(sizing(&["sort", "java"]), None);
    }

    #[test]
    fn a_runtime_within_a_program_is_found_by_its_library() {
        assert_eq!(of_library("libjvm.so"), Some(Runtime::Jvm));
        assert_eq!(of_library("_duckdb.cpython-311-x86_64-linux-gnu.so"), Some(Runtime::DuckDb));
        assert_eq!(of_library("libduckdb.so"), Some(Runtime::DuckDb));
        assert_eq!(of_library("libc.so.6"), None);
    }

    #[test]
    fn a_runtime_is_known_by_the_processes_that_ran() {
        let process = |name: &str, mib: u64| model::ProcessRecord {
            command: name.into(),
            max_rss_bytes: Some(mib << 20),
            ..model::ProcessRecord::new(model::ProcessKey { pid: 1, start_ticks: 1 }, "sampled")
        };
        let run = |processes: Vec<model::ProcessRecord>| Observation {
            processes,
            ..Observation::begun(0, model::RunRole::Reference, model::Target::Command, String::new(), 0)
        };
        let command: Vec<OsString> = ["sh", "-c", ": ; ./start"].map(OsString::from).into();
        let of = |processes| Sizing::of(&command, Some(&run(processes)));
        assert_eq!(of(vec![process("sh", 1), process("java", 90)]), Some(Sizing::Set(Runtime::Jvm)));
        assert_eq!(of(vec![process("python3", 40), process("node", 60)]), Some(Sizing::Set(Runtime::Node)));
        assert_eq!(of(vec![process("python3", 900), process("node", 60)]), None, "a helper decides nothing");
    }

    #[test]
    fn the_settings_of_the_process_that_ran_stay() {
        let command: Vec<OsString> = ["./start"].map(OsString::from).into();
        let of = |set: &[&str]| {
            let set = set.iter().map(|word| word.to_string()).collect();
            Sizing::of_running(&command, Running { runtime: Runtime::Jvm, set })
        };
        assert_eq!(of(&["java", "-Xmx2g", "X"]), Some(Sizing::Fixed(Runtime::Jvm)));
        assert_eq!(of(&["java", "X", "JAVA_TOOL_OPTIONS=-XX:MaxRAMPercentage=50"]), Some(Sizing::Reads(Runtime::Jvm)));
        assert_eq!(of(&["java", "X"]), Some(Sizing::Set(Runtime::Jvm)));
    }

    #[test]
    fn what_the_person_set_stays() {
        assert_eq!(sizing(&["java", "-Xmx1g", "X"]), Some(Sizing::Fixed(Runtime::Jvm)));
        let share = sizing(&["java", "-XX:MaxRAMPercentage=70", "X"]).unwrap();
        assert_eq!(share, Sizing::Reads(Runtime::Jvm));
        assert!(share.follows_limit() && share.environment(1 << 30).is_none());
        assert_eq!(sizing(&["node", "--max-old-space-size=99", "x.js"]), Some(Sizing::Fixed(Runtime::Node)));
        assert!(!sizing(&["postgres", "-D", "db"]).unwrap().follows_limit());
    }

    #[test]
    fn a_trial_sets_the_heap_by_its_limit() {
        let (name, value) = sizing(&["java", "X"]).unwrap().environment(400 << 20).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap().ends_with("-Xmx300m")), ("JAVA_TOOL_OPTIONS", true));
        let advice = sizing(&["java", "X"]).unwrap().advice(404 << 20, 400 << 20).unwrap();
        assert!(advice.contains("404 MiB") && advice.contains("JAVA_TOOL_OPTIONS=-Xmx300m"), "{advice}");
    }
}

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

/// Words before which nothing is the program.
const WRAPPERS: [&str; 14] = [
    "sh", "bash", "dash", "exec", "env", "nice", "ionice", "nohup", "timeout", "time", "taskset", "setsid", "stdbuf",
    "chrt",
];

impl Sizing {
    /// Of a command, and of the processes that its first run had; `None`: no runtime is known.
    pub fn of(command: &[OsString], first: Option<&Observation>) -> Option<Sizing> {
        let words = words(command);
        let names = first.into_iter().flat_map(|run| &run.processes).map(|process| process.command.as_str());
        let runtime = of_words(&words).or_else(|| names.filter_map(named).next())?;
        Sizing::of_runtime(command, runtime)
    }

    /// Of a command that is known to have this runtime.
    pub fn of_runtime(command: &[OsString], runtime: Runtime) -> Option<Sizing> {
        let words = words(command);
        let set: Vec<String> =
            words.into_iter().chain(runtime.variables().iter().filter_map(|v| std::env::var(v).ok())).collect();
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

    /// What the reader should do, as a sentence; `budget_bytes` is the limit proposed and `tried_bytes` the one tried.
    pub fn advice(&self, budget_bytes: u64, tried_bytes: u64) -> Option<String> {
        Some(match self {
            Sizing::Set(runtime) => {
                let (name, value) = runtime.setting(tried_bytes)?;
                format!(
                    "{} sizes its heap by its limit. The trials set it by the limit, so the answer is two values: the limit of {} and \
                     {name}={value}.",
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
            Runtime::DotNet if is_set(&["DOTNET_GCHeapHardLimitPercent"]) => Sizing::Reads(self),
            Runtime::DotNet if is_set(self.variables()) => Sizing::Fixed(self),
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

/// The runtime whose library a running process of the job has mapped.
pub fn loaded() -> Option<Runtime> {
    let own = std::process::id() as i32;
    let maps = linux::procfs::descendants(own)
        .into_iter()
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    maps.into_iter().find_map(|maps| maps.lines().filter_map(|line| line.rsplit('/').next()).find_map(of_library))
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

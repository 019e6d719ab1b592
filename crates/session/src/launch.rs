//! How a command comes to run with the library in it: by its own environment, or, where it only launches, by what the
//! launcher gives to what it launches. A launcher itself, and what it uses to reach other nodes, is left alone.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

/// The variable of the dynamic loader that names what is loaded into every program.
const PRELOAD: &str = "LD_PRELOAD";

/// The parameter of Open MPI that lists variables for ranks.
const ENV_LIST: &str = "mca_base_env_list";

/// What is to be started, and with what in its environment.
#[derive(Debug, PartialEq)]
pub struct Launch {
    /// The command and its arguments.
    pub words: Vec<OsString>,
    /// Variables beside those that it inherits.
    pub environment: Vec<(String, OsString)>,
}

/// Programs that start others, each with its own way to give them an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Launcher {
    /// `-x NAME=VALUE`, for each part of the command that a `:` ends.
    OpenMpi,
    /// `-genv NAME VALUE`, once: MPICH, Intel MPI, MVAPICH.
    Hydra,
    /// `--export=NAME=VALUE,…`, for each part that a `:` ends.
    Srun,
}

/// Whether a program, by its name, is part of a launcher; the library stays out of it.
pub fn is_launcher(name: &str) -> bool {
    let known = [
        "mpirun",
        "mpiexec",
        "orterun",
        "orted",
        "prterun",
        "prte",
        "prun",
        "hydra_",
        "pmi_proxy",
        "srun",
        "slurmstep",
        "ssh",
        "rsh",
        "mpispawn",
        "bursar",
    ];
    known.iter().any(|known| name.starts_with(known))
}

impl Launcher {
    /// Whether a command launches others, and how. One that is called like one is asked who it is.
    pub fn of(command: &[OsString]) -> Option<Launcher> {
        let program = command.first()?;
        let name = Path::new(program).file_name()?.to_string_lossy().into_owned();
        if name == "srun" {
            return Some(Launcher::Srun);
        }
        let known = ["mpirun", "mpiexec", "orterun", "prterun"];
        if !known.contains(&name.split('.').next()?) {
            return None;
        }
        let asked = linux::children::output(Command::new(program).arg("--version")).ok()?;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned() + &String::from_utf8_lossy(&asked.stderr);
        if ["Open MPI", "OpenRTE", "PRRTE"].iter().any(|who| said.contains(who)) {
            Some(Launcher::OpenMpi)
        } else {
            ["HYDRA", "Intel(R) MPI"].iter().any(|who| said.contains(who)).then_some(Launcher::Hydra)
        }
    }
}

/// The command with the library and the variables that the library reads. What is preloaded already stays, behind it.
pub fn launch(
    command: &[OsString],
    launcher: Option<Launcher>,
    library: &Path,
    mut variables: Vec<(String, OsString)>,
) -> Launch {
    let inherited = std::env::var_os(PRELOAD).filter(|set| !set.is_empty());
    variables.push((PRELOAD.into(), with_inherited(inherited.as_deref(), library)));
    let (Some(launcher), Some((program, rest))) = (launcher, command.split_first()) else {
        return Launch { words: command.to_vec(), environment: variables };
    };
    if refuses_options(launcher, rest) {
        return Launch { words: command.to_vec(), environment: variables };
    }
    let parts: Vec<&[OsString]> = match launcher {
        Launcher::Hydra => vec![rest],
        Launcher::OpenMpi | Launcher::Srun => rest.split_inclusive(|word| word == ":").collect(),
    };
    let mut words = vec![program.clone()];
    for part in parts {
        words.extend(match launcher {
            Launcher::OpenMpi => open_mpi(part, library, &variables),
            Launcher::Hydra => hydra(part, library, &variables),
            Launcher::Srun => srun(part, &variables),
        });
    }
    Launch { words, environment: Vec::new() }
}

/// Whether the launcher takes no variables by options here: a file describes the job, and other options are ignored, or
/// Open MPI has a list of variables (`mca_base_env_list`) and aborts when there is `-x` too. Its own environment then is
/// what ranks inherit on this node, with Hydra on all nodes.
fn refuses_options(launcher: Launcher, words: &[OsString]) -> bool {
    let has = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word == name));
    match launcher {
        Launcher::OpenMpi => {
            let files = linux::environment::folder("HOME").map(|home| home.join(".openmpi/mca-params.conf"));
            let files = files.into_iter().chain(["/etc/openmpi/openmpi-mca-params.conf".into()]);
            has(&["--app", "-app", "--tune", "-tune", ENV_LIST])
                || std::env::var_os(format!("OMPI_MCA_{ENV_LIST}")).is_some_and(|list| !list.is_empty())
                || files.filter_map(|file| std::fs::read_to_string(file).ok()).any(|text| sets_env_list(&text))
        }
        Launcher::Hydra => has(&["-configfile", "--configfile"]),
        Launcher::Srun => false,
    }
}

/// Whether a file of Open MPI's parameters sets the list of variables.
fn sets_env_list(text: &str) -> bool {
    text.lines().any(|line| line.split('=').next().is_some_and(|name| name.trim() == ENV_LIST))
}

fn open_mpi(part: &[OsString], library: &Path, variables: &[(String, OsString)]) -> Vec<OsString> {
    let mut part = part.to_vec();
    let own = part.windows(2).position(|two| two[0] == "-x" && has_name(&two[1]));
    if let Some(at) = own {
        let value = value_of(&part[at + 1]).map(OsStr::to_owned).or_else(|| std::env::var_os(PRELOAD));
        part[at + 1] = assignment(PRELOAD, &with_inherited(value.as_deref(), library));
    }
    let ours = variables.iter().filter(|(name, _)| own.is_none() || name != PRELOAD);
    ours.flat_map(|(name, value)| ["-x".into(), assignment(name, value)]).chain(part).collect()
}

fn hydra(part: &[OsString], library: &Path, variables: &[(String, OsString)]) -> Vec<OsString> {
    let mut part = part.to_vec();
    let mut general = false;
    for at in 2..part.len() {
        if part[at - 1] == PRELOAD && (part[at - 2] == "-genv" || part[at - 2] == "-env") {
            general |= part[at - 2] == "-genv";
            part[at] = with_inherited(Some(&part[at]), library);
        }
    }
    let ours = variables.iter().filter(|(name, _)| !general || name != PRELOAD);
    ours.flat_map(|(name, value)| ["-genv".into(), name.into(), value.clone()]).chain(part).collect()
}

/// `srun` exports everything unless it is told what; then that, and ours.
fn srun(part: &[OsString], variables: &[(String, OsString)]) -> Vec<OsString> {
    let mut part = part.to_vec();
    let told = match part.iter().position(|word| word.as_bytes().starts_with(b"--export=") || word == "--export") {
        Some(at) if part[at] == "--export" && at + 1 < part.len() => {
            part.remove(at);
            Some(part.remove(at))
        }
        Some(at) => value_of(&part.remove(at)).map(OsStr::to_owned),
        None => std::env::var_os("SLURM_EXPORT_ENV"),
    };
    let mut export = OsString::from("--export=");
    // To export nothing is to export nothing else.
    match told {
        Some(told) if told == "NONE" || told == "NIL" => {}
        told => {
            export.push(told.unwrap_or_else(|| "ALL".into()));
            export.push(",");
        }
    }
    let ours: Vec<OsString> = variables.iter().map(|(name, value)| assignment(name, value)).collect();
    export.push(ours.join(OsStr::new(",")));
    [export].into_iter().chain(part).collect()
}

/// The library, and then what is preloaded already: so an allocator that is preloaded is called by the library. Only a
/// sanitizer has to come before everything else.
fn with_inherited(inherited: Option<&OsStr>, library: &Path) -> OsString {
    // The loader takes either.
    let is_separator = |byte: &u8| *byte == b':' || *byte == b' ';
    let parts = inherited.map_or(&b""[..], OsStr::as_bytes).split(is_separator).filter(|part| !part.is_empty());
    let (first, rest): (Vec<_>, Vec<_>) = parts.partition(|part| is_sanitizer(part));
    let all = first.into_iter().chain([library.as_os_str().as_bytes()]).chain(rest);
    OsString::from_vec(all.collect::<Vec<_>>().join(&b':'))
}

/// Whether it is libasan.so.8, libtsan.so or their kind.
fn is_sanitizer(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    ["libasan.", "libtsan.", "libmsan.", "libhwasan.", "liblsan.", "libclang_rt."]
        .iter()
        .any(|sanitizer| name.starts_with(sanitizer.as_bytes()))
}

fn assignment(name: &str, value: &OsStr) -> OsString {
    [OsStr::new(name), OsStr::new("="), value].into_iter().collect()
}

fn has_name(word: &OsStr) -> bool {
    word.as_bytes().strip_prefix(PRELOAD.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'=')
}

/// What stands behind the first `=`.
fn value_of(word: &OsStr) -> Option<&OsStr> {
    let at = word.as_bytes().iter().position(|byte| *byte == b'=')?;
    Some(OsStr::from_bytes(&word.as_bytes()[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(Into::into).collect()
    }

    /// In one string; nothing here has a space in it.
    fn launched(command: &str, launcher: Option<Launcher>) -> (String, usize) {
        let variables = vec![("BURSAR_RUN".to_string(), OsString::from("/r"))];
        let launch = launch(&words(command), launcher, Path::new("/l.so"), variables);
        (launch.words.join(OsStr::new(" ")).into_string().unwrap(), launch.environment.len())
    }

    #[test]
    fn a_command_has_it_in_its_environment() {
        assert_eq!(launched("./app -x 1", None), ("./app -x 1".into(), 2));
    }

    #[test]
    fn inherited_preloads_keep_their_order_behind_the_library() {
        let all =
            |inherited: &str| with_inherited(Some(OsStr::new(inherited)), Path::new("/l.so")).into_string().unwrap();
        assert_eq!(all("/a.so:/b.so"), "/l.so:/a.so:/b.so");
        assert_eq!(all("/a.so /b.so"), "/l.so:/a.so:/b.so");
        assert_eq!(all("/a.so:/usr/lib/libasan.so.8"), "/usr/lib/libasan.so.8:/l.so:/a.so");
        assert_eq!(all(""), "/l.so");
    }

    #[test]
    fn open_mpi_is_told_for_every_part_and_keeps_what_was_preloaded() {
        let (said, environment) = launched("mpirun -n 1 a : -n 2 -x LD_PRELOAD=/t.so b", Some(Launcher::OpenMpi));
        let first = "mpirun -x BURSAR_RUN=/r -x LD_PRELOAD=/l.so -n 1 a : ";
        assert_eq!(said, format!("{first}-x BURSAR_RUN=/r -n 2 -x LD_PRELOAD=/l.so:/t.so b"));
        assert_eq!(environment, 0);
    }

    #[test]
    fn a_job_described_by_a_file_or_a_list_gets_it_by_the_environment() {
        let file = "mpirun --app jobs";
        assert_eq!(launched(file, Some(Launcher::OpenMpi)), (file.into(), 2));
        let list = "mpirun --mca mca_base_env_list FOO -n 2 a";
        assert_eq!(launched(list, Some(Launcher::OpenMpi)), (list.into(), 2));
        let hydra = "mpiexec -configfile jobs";
        assert_eq!(launched(hydra, Some(Launcher::Hydra)), (hydra.into(), 2));
        assert!(sets_env_list("# a\nmca_base_env_list = FOO=1;BAR\n"));
        assert!(!sets_env_list("# mca_base_env_list = FOO=1\nmca_base_env_list_delimiter = ,\n"));
    }

    #[test]
    fn hydra_is_told_once_and_keeps_what_was_preloaded() {
        let (said, _) = launched("mpiexec -n 1 a : -n 2 b", Some(Launcher::Hydra));
        assert_eq!(said, "mpiexec -genv BURSAR_RUN /r -genv LD_PRELOAD /l.so -n 1 a : -n 2 b");
        let (said, _) = launched("mpiexec -genv LD_PRELOAD /t.so -n 1 a", Some(Launcher::Hydra));
        assert_eq!(said, "mpiexec -genv BURSAR_RUN /r -genv LD_PRELOAD /l.so:/t.so -n 1 a");
    }

    #[test]
    fn srun_exports_what_it_was_told_and_ours() {
        let ours = "BURSAR_RUN=/r,LD_PRELOAD=/l.so";
        let said = |command: &str| launched(command, Some(Launcher::Srun)).0;
        assert_eq!(said("srun -n 2 a"), format!("srun --export=ALL,{ours} -n 2 a"));
        assert_eq!(said("srun --export=A=1 -n 2 a"), format!("srun --export=A=1,{ours} -n 2 a"));
        assert_eq!(said("srun --export NONE a"), format!("srun --export={ours} a"));
    }
}

//! How each launcher is brought to start its daemon on another node beneath `bursar node`.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, bail};
use linux::secure_file::temporary_base;
use tempfile::TempDir;

use super::line::Meeting;
use crate::launch::Launcher;
use crate::slurm::BY_SRUN;

/// What stands before the name of a node that has no bursar, on standard error.
const WITHOUT: &str = "bursar-is-not-on:";

/// A launcher's environment, in which its daemons start beneath bursar.
pub struct Beneath {
    pub environment: Vec<(String, OsString)>,
    /// bursar, as every node must have it.
    pub program: String,
    _folder: Option<TempDir>,
}

impl Beneath {
    pub fn bursar(launcher: Launcher, command: &[OsString], meeting: &Meeting) -> anyhow::Result<Beneath> {
        let program = std::env::current_exe().context("our own program file could not be found")?;
        let program = program.to_string_lossy().into_owned();
        if !program.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)) {
            bail!("{program} has characters in its path that a shell on another node would not leave as they are");
        }
        let node = format!("{program} node {meeting}");
        // Slurm's srun starts the daemons in an allocation, and no shell.
        let in_slurm = std::env::var_os("SLURM_JOB_ID").is_some();
        let words = if in_slurm { node } else { format!("{} ; {node}", tell_without(&program)) };
        leaves_to_us(command)?;
        let (environment, folder) = match launcher {
            Launcher::Hydra => {
                let folder = temporary_base()
                    .and_then(tempfile::tempdir_in)
                    .context("no folder for a launcher can be made; set TMPDIR to one that can be written")?;
                let script = folder.path().join("launcher");
                // ssh's words become a line for the other shell; a word is enough for all of ours.
                let words = if in_slurm { words } else { format!("\"{words}\"") };
                std::fs::write(&script, hydra_script(&words, &reaches(command, in_slurm)?))?;
                std::fs::set_permissions(&script, Permissions::from_mode(0o755))?;
                (vec![("HYDRA_LAUNCHER_EXEC".to_string(), script.into_os_string())], Some(folder))
            }
            Launcher::OpenMpi => (open_mpi(&words), None),
            Launcher::Srun => bail!(BY_SRUN),
        };
        Ok(Beneath { environment, program, _folder: folder })
    }
}

/// The nodes that had no bursar, by what a launcher passed on of their standard error.
pub fn without_bursar(errors: &str) -> Vec<String> {
    let mut hosts: Vec<String> =
        errors.lines().filter_map(|line| Some(line.split_once(WITHOUT)?.1.trim().to_string())).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// For a shell of any kind, within double quotes or without. The node's name is written in one piece, as several nodes write to one place.
fn tell_without(program: &str) -> String {
    format!("sh -c 'test -x {program} || uname -n | sed s/^/{WITHOUT}/ >&2'")
}

/// Open MPI 4, and 5 with PRRTE. A daemon that left its session would be out of our sight.
fn open_mpi(words: &str) -> Vec<(String, OsString)> {
    let of = |family: &str, daemon: &str| {
        let agent = format!("{family}_launch_agent");
        let own = std::env::var(&agent).unwrap_or_else(|_| daemon.into());
        [(agent, format!("{words} {own}").into()), (format!("{family}_leave_session_attached"), "1".into())]
    };
    [of("OMPI_MCA_orte", "orted"), of("PRTE_MCA_prte", "prted")].concat()
}

/// Hydra takes one program for what reaches another node, and gives it options, the host, its proxy and the proxy's arguments.
fn hydra_script(words: &str, reaches: &str) -> String {
    format!(
        "#!/bin/sh\nfor word do\n  shift\n  case $word in *hydra_*proxy*)\n    if [ -z \"$met\" ]; then met=1; set -- \"$@\" {words}; fi ;;\n  \
         esac\n  set -- \"$@\" \"$word\"\ndone\nexec {reaches} \"$@\"\n"
    )
}

/// What would reach another node without us.
fn reaches(command: &[OsString], in_slurm: bool) -> anyhow::Result<String> {
    if let Ok(own) = std::env::var("HYDRA_LAUNCHER_EXEC") {
        return Ok(own);
    }
    let told = command.windows(2).find(|two| ["-launcher", "-bootstrap"].iter().any(|name| is_option(&two[0], name)));
    let told = told.map(|two| two[1].to_string_lossy().into_owned()).or_else(|| std::env::var("HYDRA_LAUNCHER").ok());
    match told.as_deref() {
        Some("slurm") => Ok("srun".into()),
        None if in_slurm => Ok("srun".into()),
        None | Some("ssh") => Ok("ssh".into()),
        Some("rsh") => Ok("rsh".into()),
        Some(other) => {
            bail!("how {other} starts Hydra on other nodes is not known; set HYDRA_LAUNCHER_EXEC to its program")
        }
    }
}

/// What is ours to set must not be set by the command: that would win.
fn leaves_to_us(command: &[OsString]) -> anyhow::Result<()> {
    let ours = ["orte_launch_agent", "prte_launch_agent", "-launch-agent", "-launcher-exec", "-bootstrap-exec"];
    match command.iter().find(|word| ours.iter().any(|name| is_option(word, name))) {
        Some(word) => bail!(
            "bursar budget needs {} for itself; set it in the environment, where it is kept",
            word.to_string_lossy()
        ),
        None => Ok(()),
    }
}

/// With one hyphen or two.
fn is_option(word: &OsStr, name: &str) -> bool {
    word.to_str().is_some_and(|word| word == name || word.strip_prefix('-') == Some(name))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn hydras_proxy_is_started_beneath_bursar_and_what_stands_before_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("launcher");
        std::fs::write(&script, hydra_script("'a ; /b node K'", "printf '<%s>'")).unwrap();
        let given =
            ["-x", "host", "\"/usr/bin/hydra_pmi_proxy\"", "--launcher-exec", "/tmp/a b", "--rmk", "hydra_x_proxy"];
        let said = Command::new("sh").arg(script).args(given).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let before = "<-x><host><a ; /b node K><\"/usr/bin/hydra_pmi_proxy\">";
        assert_eq!(said, format!("{before}<--launcher-exec></tmp/a b><--rmk><hydra_x_proxy>"));
    }

    #[test]
    fn a_node_without_bursar_says_its_name() {
        let said = |program: &str| Command::new("sh").arg("-c").arg(tell_without(program)).output().unwrap();
        let missing = String::from_utf8(said("/nowhere/bursar").stderr).unwrap();
        assert_eq!(without_bursar(&format!("x\n{missing}sh: not found\n{missing}")), [linux::procfs::hostname()]);
        assert!(said("/bin/sh").stderr.is_empty());
    }

    #[test]
    fn what_is_ours_to_set_is_refused_in_the_command() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(leaves_to_us(&words("mpirun --mca orte_launch_agent x a")).is_err());
        assert!(leaves_to_us(&words("mpiexec -launcher-exec /x -n 2 a")).is_err());
        assert!(leaves_to_us(&words("mpiexec -launcher ssh -n 2 a")).is_ok());
        assert_eq!(reaches(&words("mpiexec -bootstrap rsh a"), false).unwrap(), "rsh");
        assert_eq!(reaches(&words("mpiexec a"), true).unwrap(), "srun");
        assert!(reaches(&words("mpiexec --launcher sge a"), false).is_err());
    }
}

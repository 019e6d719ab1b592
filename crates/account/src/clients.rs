//! Commands that have their work done by a server, which is no process of the job.

/// Programs whose work is done by a server: container engines, service and job managers, remote shells.
const CLIENTS: [&str; 35] = [
    "docker",
    "docker-compose",
    "podman",
    "podman-remote",
    "nerdctl",
    "ctr",
    "crictl",
    "kubectl",
    "oc",
    "lxc",
    "incus",
    "flatpak-spawn",
    "toolbox",
    "distrobox",
    "systemd-run",
    "machinectl",
    "srun",
    "sbatch",
    "salloc",
    "qsub",
    "qrsh",
    "qlogin",
    "bsub",
    "condor_submit",
    "flux",
    "oarsub",
    "at",
    "batch",
    "ssh",
    "rsh",
    "mosh",
    "bazel",
    "gradle",
    "gradlew",
    "mvnd",
];

/// Of these, a job may use one beside work of its own: as a process of a script they do not mean that the work is elsewhere.
/// Some of the names are anybody's.
const HELPERS: [&str; 8] = ["ssh", "rsh", "at", "batch", "flux", "ctr", "oc", "toolbox"];

/// Where clients are installed. A program of the user's own that has the name of one is in another folder.
const INSTALLED: [&str; 6] = ["/usr/", "/bin/", "/sbin/", "/opt/", "/snap/", "/nix/"];

/// Programs that start the command that follows their options, with the options that take a word of their own.
const WRAPPERS: [(&str, &[&str]); 17] = [
    ("env", &["-u", "-C", "-S"]),
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("time", &["-f", "-o"]),
    ("timeout", &["-k", "-s"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("taskset", &[]),
    ("chrt", &[]),
    ("numactl", &["-N", "-m", "-C", "-i"]),
    ("sudo", &["-u", "-g", "-C", "-h", "-p"]),
    ("doas", &["-u", "-C"]),
    ("unbuffer", &[]),
    ("exec", &["-a"]),
    ("command", &[]),
    ("catchsegv", &[]),
];

/// Wrappers whose first word is not yet the command: a duration, a mask, a priority.
const WITH_A_WORD: [&str; 3] = ["timeout", "taskset", "chrt"];

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"];

/// How a command uses a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is one.
    Is(String),
    /// One of the programs of a shell's line is one.
    Has(String),
}

/// Whether a command is a client, behind wrappers such as `env`, `nice` and `sh -c`.
pub fn of_command(words: &[String]) -> Option<Use> {
    let words = unwrapped(words);
    let program = base(words.first()?);
    if SHELLS.contains(&program) {
        let at =
            words.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))?;
        let commands = simple_commands(words.get(at + 1)?);
        let clients: Vec<Use> = commands.iter().filter_map(|words| of_command(words)).collect();
        let named = |used: &Use| match used {
            Use::Is(name) | Use::Has(name) => name.clone(),
        };
        let first = clients.first().map(named)?;
        return Some(if commands.len() == 1 { Use::Is(first) } else { Use::Has(first) });
    }
    // In a scope of its own the command is below us, and is seen to be in another cgroup.
    let is_scope = program == "systemd-run" && words.iter().any(|word| word == "--scope");
    // Gradle's wrapper is in each project's folder.
    let is_installed = program == "gradlew" || is_installed(words.first()?);
    (CLIENTS.contains(&program) && is_installed && !is_scope).then(|| Use::Is(program.into()))
}

/// Whether a command is found on `PATH` or is in a folder of installed programs.
fn is_installed(word: &str) -> bool {
    !word.contains('/') || INSTALLED.iter().any(|folder| word.starts_with(folder))
}

/// Whether a command is a shell behind wrappers such as `env` and `nice`.
pub fn is_shell(words: &[String]) -> bool {
    unwrapped(words).first().is_some_and(|word| SHELLS.contains(&base(word)))
}

/// Whether a process of the job is a client, by the name that the kernel has of it.
pub fn is_client(name: &str) -> bool {
    CLIENTS.contains(&name) && !HELPERS.contains(&name)
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Without wrappers and assignments before the command.
fn unwrapped(mut words: &[String]) -> &[String] {
    loop {
        while words.first().is_some_and(|word| is_assignment(word)) {
            words = &words[1..];
        }
        let Some((first, rest)) = words.split_first() else { return words };
        let Some((name, with_value)) = WRAPPERS.iter().find(|(name, _)| *name == base(first)) else { return words };
        let mut at = 0;
        while let Some(word) = rest.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
            at += if with_value.contains(&word.as_str()) { 2 } else { 1 };
        }
        if WITH_A_WORD.contains(name) {
            at += 1;
        }
        words = rest.get(at..).unwrap_or_default();
    }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// The simple commands of a shell's line, word by word. Quotes hide what they hold; what is beyond that is not understood, and
/// finds no client.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t') => push(&mut commands, &mut word),
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '`') => {
                push(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            (None, c) => word.push(c),
        }
    }
    push(&mut commands, &mut word);
    let keywords = ["if", "then", "else", "elif", "do", "while", "until", "!", "{"];
    for command in &mut commands {
        while command.first().is_some_and(|word| keywords.contains(&word.as_str())) {
            command.remove(0);
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn push(commands: &mut [Vec<String>], word: &mut String) {
    if let Some(last) = commands.last_mut().filter(|_| !word.is_empty()) {
        last.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[&str]) -> Option<Use> {
        of_command(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn finds_clients_behind_wrappers() {
        let docker = || Some(Use::Is("docker".into()));
        assert_eq!(found(&["/usr/bin/docker", "run", "x"]), docker());
        assert_eq!(found(&["env", "-u", "A", "B=1", "nice", "-n", "5", "docker", "run", "x"]), docker());
        assert_eq!(found(&["timeout", "-k", "1", "10s", "docker", "run"]), docker());
        assert_eq!(found(&["sh", "-c", "exec docker run x"]), docker());
        assert_eq!(found(&["bash", "-ec", "cd /x && docker run x | sort"]), Some(Use::Has("docker".into())));
        assert_eq!(found(&["systemd-run", "--wait", "x"]), Some(Use::Is("systemd-run".into())));
        assert_eq!(found(&["./gradlew", "build"]), Some(Use::Is("gradlew".into())));
    }

    #[test]
    fn takes_nothing_else_for_a_client() {
        for words in [
            &["./docker-tool", "run"][..],
            &["./flux", "solve"],
            &["/home/me/bin/batch"],
            &["sh", "-c", "exec ../at"],
            &["sh", "-c", "echo 'docker run'"],
            &["sh", "-c", "cat docker"],
            &["systemd-run", "--scope", "x"],
            &["env"],
            &["timeout"],
            &["sh"],
            &["sh", "-c"],
            &[],
        ] {
            assert_eq!(found(words), None, "{words:?}");
        }
        assert!(is_client("podman") && !is_client("ssh"));
    }
}

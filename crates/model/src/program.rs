//! The program that a command runs: behind wrappers (`env`, `nice`, `timeout`, `sh -c` …), and, of an interpreter, its script.

use std::path::Path;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// For people: the file's name, of a script without its extension; the module of `python -m`, the class of `java`.
    pub name: String,
    /// Two commands with the same key run the same program, be it with other arguments. The path as it stands, the interpreter
    /// before it; all words where the program is not known (a script with several commands, a launcher).
    pub key: String,
}

/// What comes before the command of a wrapper.
struct Wrapper {
    name: &'static str,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Words before the command that are no options.
    operands: usize,
}

const fn wrapper(name: &'static str, valued: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { name, valued, operands }
}

const WRAPPERS: [Wrapper; 20] = [
    wrapper("env", &["-u", "--unset", "-C", "--chdir", "-a", "--argv0"], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "--class", "-n", "--classdata"], 0),
    wrapper("chrt", &["-T", "-P", "-D"], 1),
    wrapper("taskset", &[], 1),
    wrapper("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    wrapper("time", &["-f", "--format", "-o", "--output"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("stdbuf", &["-i", "--input", "-o", "--output", "-e", "--error"], 0),
    wrapper("numactl", &["-m", "-N", "-C", "-i", "-p", "-P", "-w"], 0),
    wrapper("flock", &["-w", "--timeout", "-E", "--conflict-exit-code"], 1),
    wrapper("setpriv", &["--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set"], 0),
    wrapper("sudo", &["-u", "-g", "-C", "-D", "-h", "-p", "-R", "-T"], 0),
    wrapper("exec", &["-a"], 0),
    wrapper("command", &[], 0),
    wrapper("chroot", &[], 1),
    wrapper("prlimit", &[], 0),
    wrapper("tini", &["-p", "-e"], 0),
    wrapper("dumb-init", &["-r", "--rewrite"], 0),
];

/// Programs that run another, with more options than anybody could list: they are told apart by all words.
const LAUNCHERS: [&str; 12] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "srun",
    "docker",
    "podman",
    "apptainer",
    "singularity",
    "ssh",
    "make",
    "xargs",
    "systemd-run",
];

/// `NAME run COMMAND`.
const RUNNERS: [&str; 5] = ["uv", "poetry", "pipenv", "pdm", "hatch"];

/// Options of interpreters whose value is the next word.
const VALUED: [&str; 14] = [
    "-W",
    "-X",
    "-r",
    "--require",
    "--import",
    "--loader",
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--add-modules",
    "-I",
    "-d",
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Commands of a script that only prepare for another.
const PREPARING: [&str; 12] =
    ["cd", "export", "set", "ulimit", "umask", "trap", "source", ".", "true", ":", "mkdir", "unset"];

/// Wrappers within wrappers, at most.
const DEPTH: u32 = 16;

impl Program {
    /// Of a command's words; `None` where there are none. O(n) of n words.
    pub fn of(command: &[String]) -> Option<Program> {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        found(&words, DEPTH).or_else(|| Some(unknown(&words)).filter(|_| !words.is_empty()))
    }
}

fn found(words: &[&str], depth: u32) -> Option<Program> {
    let (first, rest) = words.split_first()?;
    if depth == 0 {
        return None;
    }
    if is_assignment(first) {
        return found(rest, depth - 1);
    }
    let name = file_name(first);
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return found(behind(wrapper, rest), depth - 1).or_else(|| Some(plain(first)));
    }
    if RUNNERS.contains(&name) && rest.first() == Some(&"run") {
        return found(after_options(&rest[1..], &[]), depth - 1);
    }
    if LAUNCHERS.contains(&name) {
        return Some(unknown(words));
    }
    if SHELLS.contains(&name) {
        return match shell(rest) {
            Some(Shell::Script(text)) => script(text, depth).or_else(|| Some(unknown(words))),
            Some(Shell::File(file)) => Some(interpreted(name, file)),
            None => Some(plain(first)),
        };
    }
    Some(interpreter(name, rest).unwrap_or_else(|| plain(first)))
}

enum Shell<'a> {
    Script(&'a str),
    File(&'a str),
}

/// What a shell is to run: `-c` may stand among other letters (`-ec`).
fn shell<'a>(words: &[&'a str]) -> Option<Shell<'a>> {
    let mut is_script = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            Some("o" | "O" | "-rcfile" | "-init-file") => _ = words.next(),
            Some(letters) => is_script |= !letters.starts_with('-') && letters.contains('c'),
            None if is_script => return Some(Shell::Script(word)),
            None => return Some(Shell::File(word)),
        }
    }
    None
}

/// The program of a script that runs one; `None` of several.
fn script(text: &str, depth: u32) -> Option<Program> {
    let commands = text.split([';', '\n', '|', '&']).map(|part| part.split_whitespace().map(unquoted).collect());
    let mut running =
        commands.filter(|words: &Vec<&str>| words.first().is_some_and(|first| !PREPARING.contains(first)));
    let only = running.next()?;
    // Syntax and substitutions are for a shell to understand.
    let is_plain =
        !text.contains(['`', '(', '{', '<', '>']) && !["if", "for", "while", "case", "until"].contains(only.first()?);
    if running.next().is_some() || !is_plain || only.iter().any(|word| word.contains('$')) {
        return None;
    }
    found(&only, depth - 1)
}

/// The command behind a wrapper's own words.
fn behind<'a>(wrapper: &Wrapper, words: &'a [&'a str]) -> &'a [&'a str] {
    let words = after_options(words, wrapper.valued);
    let is_env = wrapper.name == "env";
    let assignments = if is_env { words.iter().take_while(|word| is_assignment(word)).count() } else { 0 };
    &words[(wrapper.operands + assignments).min(words.len())..]
}

fn after_options<'a>(words: &'a [&'a str], valued: &[&str]) -> &'a [&'a str] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match *word {
            "--" => return &words[at + 1..],
            word if !word.starts_with('-') || word == "-" => break,
            word => at += if valued.contains(&word) { 2 } else { 1 },
        }
    }
    &words[at.min(words.len())..]
}

/// The script, module, class or archive that an interpreter runs; `None` if it is none, or runs no file.
fn interpreter(name: &str, words: &[&str]) -> Option<Program> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_java = stem == "java";
    match stem {
        "python" | "pypy" | "node" | "nodejs" | "java" | "Rscript" | "R" | "ruby" | "perl" | "php" | "lua"
        | "luajit" | "julia" | "dotnet" | "deno" | "bun" | "guile" | "tclsh" | "wish" | "octave" => {}
        _ => return None,
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-m" | "-jar" | "--module" | "-f" => return words.next().map(|what| interpreted(name, what)),
            "-c" | "-e" | "-E" | "--eval" | "-" => {
                let code = words.next().unwrap_or(&"");
                return Some(Program { name: name.into(), key: format!("{name} {word} {code}") });
            }
            "run" | "exec" if matches!(stem, "deno" | "bun" | "dotnet") => {}
            word if word.starts_with("--file=") => return Some(interpreted(name, &word["--file=".len()..])),
            word if VALUED.contains(&word) && (is_java || !matches!(word, "-p" | "-cp")) => _ = words.next(),
            word if word.starts_with('-') => {}
            what => return Some(interpreted(name, what)),
        }
    }
    None
}

fn interpreted(interpreter: &str, what: &str) -> Program {
    let file = file_name(what);
    let is_class = interpreter.starts_with("java") && !file.ends_with(".jar");
    let name = match is_class {
        true => file.rsplit('.').next().unwrap_or(file),
        false => Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file),
    };
    Program { name: name.into(), key: format!("{interpreter} {what}") }
}

fn plain(word: &str) -> Program {
    Program { name: file_name(word).into(), key: word.into() }
}

/// Known by all its words.
fn unknown(words: &[&str]) -> Program {
    Program { name: words.first().map_or("", |first| file_name(first)).into(), key: words.join(" ") }
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

/// `NAME=VALUE`
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(words: &[&str]) -> String {
        Program::of(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>()).unwrap().name
    }

    fn key(command: &str) -> String {
        Program::of(&command.split(' ').map(str::to_string).collect::<Vec<_>>()).unwrap().key
    }

    #[test]
    fn wrappers_are_passed_over() {
        for command in [
            "./serve --port 1",
            "env FOO=1 BAR= ./serve",
            "env -i -u HOME -- PATH=/bin /usr/bin/serve",
            "nice -n 5 ./serve",
            "nice -5 ./serve",
            "ionice -c 3 ./serve",
            "timeout -k 5 10m ./serve x",
            "timeout --signal=KILL 10 ./serve",
            "/usr/bin/time -v ./serve",
            "/usr/bin/time -f %M -o out ./serve",
            "taskset -c 0-3 ./serve",
            "numactl --cpunodebind=0 -m 0 ./serve",
            "stdbuf -oL ./serve",
            "nohup nice env A=1 timeout 5 ./serve",
            "sudo -u www ./serve",
            "flock /tmp/lock ./serve",
            "FOO=1 ./serve",
            "tini -- ./serve",
        ] {
            assert_eq!(name(&command.split(' ').collect::<Vec<_>>()), "serve", "{command}");
        }
    }

    #[test]
    fn interpreters_run_their_script() {
        for (command, expected) in [
            ("/usr/bin/python3 web.py", "web"),
            ("python3.11 -u -W ignore /srv/worker.py 8", "worker"),
            ("python3 -m http.server 80", "http"),
            ("node --max-old-space-size=512 -r dotenv/config server.js", "server"),
            ("java -Xmx1g -cp a.jar:b.jar -Dx=y com.example.Main arg", "Main"),
            ("java -Xmx1g -jar /opt/app/app.jar", "app"),
            ("Rscript --vanilla fit.R", "fit"),
            ("R --no-save --file=fit.R", "fit"),
            ("perl -w count.pl", "count"),
            ("bash -e run.sh all", "run"),
            ("uv run python train.py", "train"),
            ("deno run --allow-net main.ts", "main"),
            ("dotnet Shop.dll", "Shop"),
            ("python3", "python3"),
        ] {
            assert_eq!(name(&command.split(' ').collect::<Vec<_>>()), expected, "{command}");
        }
    }

    #[test]
    fn a_shell_script_with_one_command_is_that_command() {
        assert_eq!(name(&["sh", "-c", "exec python3 web.py"]), "web");
        assert_eq!(name(&["bash", "-ec", "cd /srv && export A=1; nice ./serve --port 1"]), "serve");
        assert_eq!(name(&["sh", "-c", "A=1 'serve' x"]), "serve");
        for script in ["./a; ./b", "./a | ./b", "for f in *; do ./a; done", "./$TOOL", "$(which a)", ""] {
            assert_eq!(name(&["sh", "-c", script]), "sh", "{script}");
        }
    }

    #[test]
    fn other_programs_have_other_keys_and_other_arguments_do_not() {
        assert_ne!(key("python3 web.py"), key("python3 worker.py"));
        assert_ne!(key("python3 a/main.py"), key("python3 b/main.py"));
        assert_ne!(key("python3 -c print(1)"), key("python3 -c print(2)"));
        assert_ne!(key("mpirun -n 2 ./a"), key("mpirun -n 2 ./b"));
        assert_ne!(key("bash -c ./a;./b"), key("bash -c ./a;./c"));
        assert_eq!(key("nice python3 web.py 1"), key("timeout 5 python3 web.py 2"));
    }

    #[test]
    fn nothing_that_people_write_makes_it_panic() {
        assert_eq!(Program::of(&[]), None);
        for command in [
            "env",
            "env A=1",
            "timeout",
            "timeout 5",
            "sh -c",
            "sh -c ",
            "java -jar",
            "nice -n",
            "",
            "/",
            "uv run",
            "-",
        ] {
            Program::of(&command.split(' ').map(str::to_string).collect::<Vec<_>>());
        }
        let nested = vec!["nice".to_string(); 100];
        assert!(Program::of(&nested).is_some());
    }
}

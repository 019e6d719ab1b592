//! Which commands are of one kind: the same program with the same options. Numbers and file names are parameters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::Program;

/// What a command is, and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The same for all commands of the kind.
    pub name: String,
    /// Numbers by the option before them, else by their place (`#1`).
    pub numbers: BTreeMap<String, f64>,
    /// Files that it may read.
    pub files: Vec<PathBuf>,
    /// The program as the command names it; `None` where an interpreter runs a script.
    pub program: Option<String>,
}

/// Options of launchers whose value is the next word.
const LAUNCHER_VALUED: [&str; 18] = [
    "-n",
    "-np",
    "-c",
    "-N",
    "-H",
    "--host",
    "--hostfile",
    "-hostfile",
    "-f",
    "-machinefile",
    "--map-by",
    "--bind-to",
    "-x",
    "-p",
    "-t",
    "-A",
    "-J",
    "-w",
];
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "srun"];
/// The number of ranks.
const RANKS: &str = "ranks";

impl Kind {
    /// Of a command started in `folder`; `None` of no words.
    pub fn of(command: &[String], folder: &Path) -> Option<Kind> {
        let (ranks, command) = behind_launcher(command);
        let program = Program::of(command)?;
        // A script that a shell runs (`sh -c`) is one word.
        let words: Vec<&str> = command
            .iter()
            .flat_map(|word| word.split_whitespace())
            .map(|word| word.trim_matches(['"', '\'']))
            .collect();
        let last = program.key.split_whitespace().last()?;
        let at = words.iter().position(|word| *word == last)?;
        let mut kind = Kind {
            name: located(&program.key, last, folder),
            numbers: BTreeMap::new(),
            files: Vec::new(),
            program: (program.key == last).then(|| last.to_string()),
        };
        // `env OMP_NUM_THREADS=4 fit`
        let set = words[..at].iter().filter_map(|word| word.split_once('='));
        kind.numbers.extend(set.filter_map(|(name, value)| Some((name.to_string(), number(value)?))));
        if let Some(ranks) = ranks {
            kind.numbers.insert(RANKS.into(), ranks);
        }
        kind.arguments(&words[at + 1..], folder);
        Some(kind)
    }

    fn arguments(&mut self, words: &[&str], folder: &Path) {
        let mut option: Option<String> = None;
        let mut is_after_file = false;
        for (place, word) in words.iter().enumerate() {
            if word.starts_with('>') || word.starts_with("2>") {
                option = Some("-o".into());
                continue;
            }
            if *word == "<" {
                continue;
            }
            let is_option = word.len() > 1 && word.starts_with('-') && number(word).is_none();
            let (name, value) = match word.split_once('=').filter(|_| is_option) {
                Some((name, value)) => (Some(name.to_string()), value),
                None if is_option => {
                    match word.find(|c: char| c.is_ascii_digit()).filter(|at| number(&word[*at..]).is_some()) {
                        Some(at) => (Some(word[..at].to_string()), &word[at..]),
                        None => {
                            self.literal(word);
                            option = Some((*word).to_string());
                            is_after_file = false;
                            continue;
                        }
                    }
                }
                None => (None, *word),
            };
            if let Some(name) = &name {
                self.literal(name);
                is_after_file = false;
            }
            let owner = name.or(option.take());
            let path = folder.join(value);
            if let Some(number) = number(value) {
                self.numbers.insert(owner.unwrap_or_else(|| format!("#{}", place + 1)), number);
            } else if value.contains(['/', '.']) || path.is_file() || (owner.is_none() && place > 0) {
                let is_output =
                    owner.is_some_and(|owner| matches!(&*owner, "-o" | "--output" | "--out" | "--outfile" | "-O"));
                if !is_output {
                    self.files.push(path);
                }
                if !is_after_file {
                    self.literal("FILE");
                }
                is_after_file = true;
                continue;
            } else {
                self.literal(value);
            }
            is_after_file = false;
        }
    }

    fn literal(&mut self, word: &str) {
        self.name.push(' ');
        self.name.push_str(word);
    }
}

/// The key, its program's path being absolute: `./a` of two folders are two programs.
fn located(key: &str, last: &str, folder: &Path) -> String {
    if !last.contains('/') {
        return key.to_string();
    }
    let path = folder.join(last);
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    format!("{}{}", &key[..key.len() - last.len()], path.display())
}

fn behind_launcher(command: &[String]) -> (Option<f64>, &[String]) {
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_string();
    if !command.first().is_some_and(|first| LAUNCHERS.contains(&name(first).as_str())) {
        return (None, command);
    }
    let mut ranks = None;
    let mut at = 1;
    while let Some(word) = command.get(at).filter(|word| word.starts_with('-')) {
        let value = match word.split_once('=') {
            Some((_, value)) => Some(value),
            None if LAUNCHER_VALUED.contains(&word.as_str()) || matches!(word.as_str(), "--ntasks" | "--np") => {
                at += 1;
                command.get(at).map(String::as_str)
            }
            None => None,
        };
        if ["-n", "-np", "--ntasks", "--np"].contains(&word.split('=').next().unwrap_or_default()) {
            ranks = value.and_then(number);
        }
        at += if word == "--mca" { 3 } else { 1 };
    }
    (ranks, command.get(at..).unwrap_or_default())
}

/// `8`, `-1.5`, `4G`.
fn number(text: &str) -> Option<f64> {
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let starts_as_one = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let with_unit = || text.parse::<model::Bytes>().ok().map(|bytes| bytes.0 as f64);
    if starts_as_one { plain().or_else(with_unit) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(command: &str) -> Kind {
        let words: Vec<String> = command.split(' ').map(str::to_string).collect();
        Kind::of(&words, Path::new("/nowhere")).unwrap()
    }

    #[test]
    fn numbers_and_file_names_are_parameters() {
        let kind = kind("sort -k 2 --parallel=8 -S1G data/a.txt b.txt");
        assert_eq!(kind.name, "sort -k --parallel -S FILE");
        assert_eq!(kind.files, [PathBuf::from("/nowhere/data/a.txt"), PathBuf::from("/nowhere/b.txt")]);
        let numbers: Vec<_> = kind.numbers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(numbers, [("--parallel", 8.0), ("-S", (1u64 << 30) as f64), ("-k", 2.0)]);
    }

    #[test]
    fn subcommands_and_words_after_options_are_not() {
        assert_ne!(kind("samtools sort a.bam").name, kind("samtools view a.bam").name);
        assert_ne!(kind("tool --mode fast a.bam").name, kind("tool --mode exact a.bam").name);
        assert_eq!(kind("bwa mem ref.fa reads.fq").name, kind("bwa mem ref2.fa reads2.fq more.fq").name);
    }

    #[test]
    fn wrappers_interpreters_and_launchers_are_passed_over() {
        for command in [
            "nice ./fit x.dat",
            "env A=1 ./fit y.dat",
            "timeout 5 ./fit x.dat",
            "mpirun -n 4 ./fit x.dat",
            "srun --ntasks=2 ./fit z.dat",
        ] {
            assert_eq!(kind(command).name, "/nowhere/./fit FILE", "{command}");
        }
        assert_eq!(kind("python3 fit.py x.dat").name, "python3 fit.py FILE");
        assert_eq!(kind("java -Xmx1g -jar fit.jar x.dat").name, "java fit.jar FILE");
        assert_eq!(kind("Rscript fit.R x.dat").name, "Rscript fit.R FILE");
        assert_eq!(kind("mpirun -n 4 ./fit x.dat").numbers["ranks"], 4.0);
        let script = Kind::of(&["sh".into(), "-c".into(), "fit x.dat".into()], Path::new("/")).unwrap();
        assert_eq!(script.name, "fit FILE");
    }

    #[test]
    fn numbers_that_env_sets_are_parameters() {
        assert_eq!(
            kind("env OMP_NUM_THREADS=4 MODE=fast ./fit x.dat").numbers,
            [("OMP_NUM_THREADS".into(), 4.0)].into()
        );
        let script =
            Kind::of(&["sh".into(), "-c".into(), "OMP_NUM_THREADS=8 fit x.dat".into()], Path::new("/")).unwrap();
        assert_eq!(script.numbers["OMP_NUM_THREADS"], 8.0);
    }

    #[test]
    fn output_files_are_no_input() {
        assert!(kind("cc -o a.out").files.is_empty());
        assert_eq!(kind("cc -o a.out a.c").files, [PathBuf::from("/nowhere/a.c")]);
    }
}

//! Which commands are of one kind: the same program with the same options. Numbers and file names are parameters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::Program;

use crate::words::{self, Source, Word};

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

/// The last part of options, such as `--out-prefix`, whose value is a file or folder that need not be there.
const OF_PATHS: [&str; 10] = ["out", "output", "outfile", "outdir", "input", "file", "dir", "path", "prefix", "tmpdir"];
/// The part of options whose value is written.
const OF_OUTPUTS: [&str; 4] = ["out", "output", "outfile", "outdir"];
/// The same of one letter, and of `dd`.
const SHORT_OUTPUTS: [&str; 3] = ["-o", "-O", "of"];

impl Kind {
    /// Of a command started in `folder`; `None` of no words.
    pub fn of(command: &[String], folder: &Path) -> Option<Kind> {
        let (ranks, command) = behind_launcher(command);
        let program = Program::of(command)?;
        let words = words::of(command, folder);
        let last = program.key.split_whitespace().last()?;
        let (name, at) = match text_at(&program, command) {
            Some(at) => (program.name.clone(), words::of(&command[..at], folder).len()),
            None => {
                let at = words.iter().position(|word| word.text == last || word.text == program.key)?;
                (located(&program.key, last, folder), at + 1)
            }
        };
        let own = (program.key == last).then(|| last.to_string());
        let mut kind = Kind { name, numbers: BTreeMap::new(), files: Vec::new(), program: own };
        // `env OMP_NUM_THREADS=4 fit`
        let set = words[..at].iter().filter_map(|word| word.text.split_once('='));
        kind.numbers.extend(set.filter_map(|(name, value)| Some((name.to_string(), number(value)?))));
        if let Some(ranks) = ranks {
            kind.numbers.insert(RANKS.into(), ranks);
        }
        kind.arguments(&words[at..], folder);
        Some(kind)
    }

    fn arguments(&mut self, words: &[Word], folder: &Path) {
        let mut option: Option<String> = None;
        let mut is_after_file = false;
        for (place, word) in words.iter().enumerate() {
            let is_argument = word.from == Source::Argument;
            if is_argument && word.text == ">" {
                option = Some("-o".into());
                continue;
            }
            if is_argument && word.text == "<" {
                continue;
            }
            let (name, value) = if is_argument { named(word.text) } else { (None, Some(word.text)) };
            if let Some(name) = name {
                self.literal(name);
                is_after_file = false;
            }
            let Some(value) = value else {
                option = name.map(str::to_string);
                continue;
            };
            let owner = name.map(str::to_string).or(option.take());
            let path = folder.join(value);
            let is_file = match word.from {
                Source::Argument => {
                    looks_like_path(value) || path.is_file() || owner.as_deref().is_some_and(takes_path)
                }
                Source::Quoted => looks_like_path(value) || path.is_file(),
                Source::Code => looks_like_path(value) && path.is_file(),
            };
            if let Some(number) = number(value) {
                self.numbers.insert(owner.unwrap_or_else(|| format!("#{}", place + 1)), number);
            } else if is_file {
                if !owner.as_deref().is_some_and(is_output) {
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

/// Where the words begin that tell commands apart that are known by a text alone: a script of several commands (`sh -c`), code of an
/// interpreter (`python3 -c`), what a launcher is given.
fn text_at(program: &Program, command: &[String]) -> Option<usize> {
    let is_code = |at: &usize| program.key == format!("{} {} {}", program.name, command[at - 1], command[*at]);
    if let Some(at) = (2..command.len()).find(is_code) {
        return Some(at - 1);
    }
    let mut bytes = 0;
    let fits = |argument: &&String| {
        bytes += argument.len() + 1;
        bytes <= program.key.len() + 1
    };
    let at = command.len() - command.iter().rev().take_while(fits).count();
    (command.len() - at > 2 && command[at..].join(" ") == program.key).then_some(at + 1)
}

/// The name and the value of `--name=value`, `name=value`, `-S1G`, `--name` and `value`.
fn named(word: &str) -> (Option<&str>, Option<&str>) {
    let is_option = word.len() > 1 && word.starts_with('-') && number(word).is_none();
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_option || is_name(name)) {
        return (Some(name), Some(value));
    }
    if !is_option {
        return (None, Some(word));
    }
    match word.find(|c: char| c.is_ascii_digit()).filter(|at| number(&word[*at..]).is_some()) {
        Some(at) => (Some(&word[..at]), Some(&word[at..])),
        None => (Some(word), None),
    }
}

/// Whether a word is a file name though there may be no such file.
fn looks_like_path(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some_and(|extension| !extension.is_empty())
}

fn parts(option: &str) -> impl DoubleEndedIterator<Item = &str> {
    option.split(['-', '_'])
}

fn takes_path(option: &str) -> bool {
    SHORT_OUTPUTS.contains(&option) || parts(option).next_back().is_some_and(|part| OF_PATHS.contains(&part))
}

fn is_output(option: &str) -> bool {
    SHORT_OUTPUTS.contains(&option) || parts(option).any(|part| OF_OUTPUTS.contains(&part))
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
    fn a_word_after_a_file_separates_kinds() {
        assert_ne!(kind("ctool in20.dat eval").name, kind("ctool in20.dat train").name);
        assert_ne!(kind("python3 tr.py in20.dat eval").name, kind("python3 tr.py in20.dat train").name);
        assert_eq!(kind("ctool in5.dat eval").name, kind("ctool in20.dat eval").name);
        assert_ne!(kind("ctool in.dat mode=eval").name, kind("ctool in.dat mode=train").name);
    }

    #[test]
    fn outputs_that_are_not_there_yet_separate_no_kinds() {
        for (one, other) in [
            ("sort -o out.txt a.txt", "sort -o other.txt b.txt"),
            ("sort a.txt -o out", "sort b.txt -o other"),
            ("samtools sort a.bam out.bam", "samtools sort b.bam other.bam"),
            ("fit a.dat --out-prefix one", "fit b.dat --out-prefix two"),
            ("fit a.dat results/one", "fit b.dat results/two"),
            ("dd if=a.dat of=one bs=1M", "dd if=b.dat of=two bs=4M"),
        ] {
            assert_eq!(kind(one).name, kind(other).name, "{one}");
        }
        assert_eq!(kind("dd if=a.dat of=one.dat").files, [PathBuf::from("/nowhere/a.dat")]);
        assert_ne!(kind("fit a.dat --output-format csv").name, kind("fit a.dat --output-format xml").name);
    }

    fn with_text(words: &[&str]) -> Kind {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        Kind::of(&words, Path::new("/nowhere")).unwrap()
    }

    #[test]
    fn another_text_is_another_kind() {
        for (program, one, other) in [
            (&["sqlite3", "a.db"][..], "select 1", "select * from t order by x"),
            (&["sqlite3", "a.db"], "select t.a from t", "select t.b from t"),
            (&["awk"], "{ sum += $1 }", "{ seen[$1] }"),
            (&["python3", "-c"], "import np; np.sum(x)", "import np; np.sort(x)"),
            (&["sh", "-c"], "cat a.txt | sort", "cat a.txt | wc"),
            (&["sh", "-c"], "./fit a.dat eval", "./fit a.dat train"),
        ] {
            let name = |text| with_text(&[program, &[text, "x.txt"]].concat()).name;
            assert_ne!(name(one), name(other), "{one}");
        }
    }

    #[test]
    fn files_and_numbers_in_a_text_are_parameters() {
        for (program, one, other) in [
            (&["sqlite3", "a.db"][..], "select x from t limit 10", "select x from t limit 20"),
            (&["awk"], "$1>5{print}", "$1>6{print}"),
            (&["python3", "-c"], "open('a.txt').read(8)", "open('b.txt').read(9)"),
            (&["sh", "-c"], "cat a.txt | sort >out.txt", "cat b.txt | sort >other.txt"),
            (&["bash", "-ec"], "./fit a.dat 2>&1; ./fit b.dat", "./fit c.dat 2>&1; ./fit d.dat"),
        ] {
            let name = |text, file| with_text(&[program, &[text, file]].concat()).name;
            assert_eq!(name(one, "x.txt"), name(other, "y.txt"), "{one}");
        }
        assert_eq!(with_text(&["sh", "-c", "cat a.txt | sort >b.txt"]).files, [PathBuf::from("/nowhere/a.txt")]);
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

//! What `preload/abi.h` declares, by the C preprocessor, and what its values and offsets are, by the C compiler.

mod python;
mod rust;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

#[derive(Default)]
pub struct Abi {
    /// Of `#define NAME "text"`: the text as C writes it.
    pub strings: Vec<(String, String)>,
    pub constants: Vec<(String, i64)>,
    pub enums: Vec<(String, Vec<(String, i64)>)>,
    pub structs: Vec<Struct>,
    pub reason_texts: Vec<(String, String)>,
}

pub struct Struct {
    pub name: String,
    pub bytes: usize,
    pub fields: Vec<Field>,
}

pub struct Field {
    /// Of an element: `char`, `uint64_t`, `struct pool_segment`.
    pub of: String,
    pub name: String,
    pub at: usize,
    /// `None`: no array.
    pub elements: Option<usize>,
    /// Bytes of one element.
    pub bytes: usize,
}

fn header() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../preload/abi.h").into()
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The header's own lines behind the preprocessor.
fn preprocessed() -> String {
    let mut is_own = false;
    let mut own = String::new();
    for line in run(Command::new("cc").args(["-std=gnu11", "-E", &header()])).lines() {
        if line.starts_with("# ") {
            is_own = line.contains("/preload/abi.h\"");
        } else if is_own {
            own.push_str(line);
            own.push(' ');
        }
    }
    own
}

/// A declaration: `enum` or `struct`, its tag, and what is between its braces.
fn declarations(source: &str) -> Vec<(&str, &str, &str)> {
    let blocks = source.split("};").filter_map(|block| block.split_once('{'));
    let named = blocks.map(|(head, body)| {
        let (keyword, tag) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
        (keyword, tag.trim(), body)
    });
    named.collect()
}

/// Type and name of each field, without the brackets of an array, and whether it is one.
fn fields(body: &str) -> Vec<(String, String, bool)> {
    let mut all = Vec::new();
    for declaration in body.split(';').map(str::trim).filter(|declaration| !declaration.is_empty()) {
        let mut names = declaration.split(',');
        let (of, first) = names.next().unwrap().trim().rsplit_once(' ').unwrap();
        for name in std::iter::once(first).chain(names.map(str::trim)) {
            let (name, array) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
            all.push((of.into(), name.into(), array));
        }
    }
    all
}

fn members(body: &str) -> impl Iterator<Item = &str> {
    body.split(',').filter_map(|member| member.split('=').next()).map(str::trim).filter(|name| !name.is_empty())
}

/// The value of each C expression.
fn values(expressions: &[String]) -> HashMap<String, i64> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("probe.c"), folder.path().join("probe"));
    let mut text = format!("#include <stddef.h>\n#include <stdio.h>\n#include \"{}\"\nint main(void) {{\n", header());
    for expression in expressions {
        writeln!(text, "printf(\"%lld\\n\", (long long)({expression}));").unwrap();
    }
    std::fs::write(&source, text + "}\n").unwrap();
    run(Command::new("cc").args([Path::new("-std=gnu11"), &source, Path::new("-o"), &program]));
    let printed = run(&mut Command::new(program));
    expressions.iter().cloned().zip(printed.lines().map(|line| line.parse().unwrap())).collect()
}

impl Abi {
    pub fn of_header() -> Abi {
        let source = preprocessed();
        let mut abi = Abi::default();
        let mut expressions = Vec::new();
        for (keyword, tag, body) in declarations(&source) {
            match keyword {
                "enum" => expressions.extend(members(body).map(String::from)),
                _ => {
                    expressions.push(format!("sizeof(struct {tag})"));
                    for (_, name, array) in fields(body) {
                        expressions.push(format!("offsetof(struct {tag}, {name})"));
                        expressions.push(element(tag, &name, array));
                        expressions.push(format!("sizeof(((struct {tag} *)0)->{name})"));
                    }
                }
            }
        }
        let value = values(&expressions);
        for (keyword, tag, body) in declarations(&source) {
            let mut members: Vec<(String, i64)> =
                if keyword == "enum" { members(body).map(|name| (name.into(), value[name])).collect() } else { vec![] };
            if keyword == "struct" {
                let fields = fields(body).into_iter().map(|(of, name, array)| {
                    let bytes = value[&element(tag, &name, array)] as usize;
                    let all = value[&format!("sizeof(((struct {tag} *)0)->{name})")] as usize;
                    let at = value[&format!("offsetof(struct {tag}, {name})")] as usize;
                    Field { of, at, elements: array.then_some(all / bytes), bytes, name }
                });
                let fields = fields.collect();
                abi.structs.push(Struct {
                    name: tag.into(),
                    bytes: value[&format!("sizeof(struct {tag})")] as usize,
                    fields,
                });
            } else if tag.is_empty() {
                abi.constants.append(&mut members);
            } else {
                if members.last().is_some_and(|(name, _)| name.ends_with("_REASONS")) {
                    abi.constants.extend(members.pop());
                }
                abi.enums.push((tag.into(), members));
            }
        }
        abi.take_macros();
        abi
    }

    fn take_macros(&mut self) {
        let text = std::fs::read_to_string(header()).unwrap();
        for line in text.lines() {
            let words = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' '));
            if let Some((name, value)) = words.filter(|(_, value)| value.starts_with('"')) {
                self.strings.push((name.into(), value.trim().trim_matches('"').into()));
            }
            let reason = line.trim().strip_prefix("REASON(").and_then(|rest| rest.split_once(')'));
            if let Some((name, text)) = reason.and_then(|(inner, _)| inner.split_once(", ")) {
                self.reason_texts.push((name.into(), text.trim_matches('"').into()));
            }
        }
    }
}

fn element(tag: &str, name: &str, array: bool) -> String {
    format!("sizeof(((struct {tag} *)0)->{name}{})", if array { "[0]" } else { "" })
}

/// Names of the members without what they have in common, up to an underscore.
fn short(members: &[(String, i64)]) -> Vec<&str> {
    let first = members[0].0.as_str();
    let common = first.match_indices('_').map(|(at, _)| &first[..=at]);
    let mut common = common.filter(|start| members.iter().all(|(name, _)| name.starts_with(start)));
    let cut = common.next_back().map_or(0, str::len);
    members.iter().map(|(name, _)| &name[cut..]).collect()
}

/// `two_words` as `TwoWords`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..].to_lowercase();
    name.split('_').map(word).collect()
}

//! As Rust.

use std::fmt::Write;

use super::{Abi, Field, Struct, camel, short};

const HEAD: &str = "// Generated from preload/abi.h by `UPDATE_ABI=1 cargo test -p runtime-abi`. Do not edit.
#![allow(missing_docs)]

use schemars::JsonSchema;
use serde::Serialize;

use crate::{field, put};
";

impl Abi {
    pub fn rust(&self) -> String {
        let mut out = HEAD.to_string();
        for (name, text) in &self.strings {
            // C's octal escape of one byte.
            let text = text.replace("\\211", "\\x89");
            writeln!(out, "\npub const {name}: [u8; 8] = *b\"{text}\";").unwrap();
        }
        out.push('\n');
        for (name, value) in &self.constants {
            writeln!(out, "pub const {name}: usize = {value};").unwrap();
        }
        self.enums.iter().for_each(|(name, members)| enumeration(&mut out, name, members));
        self.structs.iter().for_each(|of| structure(&mut out, of));
        out
    }
}

fn enumeration(out: &mut String, tag: &str, members: &[(String, i64)]) {
    let (name, count) = (camel(tag), members.len());
    let short = short(members);
    let derives = "Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize";
    writeln!(out, "\n/// `enum {tag}`.\n#[derive({derives})]\n#[serde(rename_all = \"snake_case\")]").unwrap();
    writeln!(out, "#[repr(u32)]\npub enum {name} {{").unwrap();
    for (short, (_, value)) in short.iter().zip(members) {
        writeln!(out, "    {} = {value},", camel(short)).unwrap();
    }
    let all: Vec<String> = short.iter().map(|short| format!("{name}::{}", camel(short))).collect();
    let names: Vec<String> = short.iter().map(|short| format!("{:?}", short.to_lowercase())).collect();
    writeln!(out, "}}\n\nimpl {name} {{").unwrap();
    writeln!(out, "    pub const ALL: [{name}; {count}] = [{}];", all.join(", ")).unwrap();
    writeln!(out, "    /// In the order of [`Self::ALL`].").unwrap();
    writeln!(out, "    pub const NAMES: [&'static str; {count}] = [{}];\n", names.join(", ")).unwrap();
    writeln!(out, "    pub fn from_number(number: u64) -> Option<{name}> {{").unwrap();
    writeln!(out, "        {name}::ALL.into_iter().find(|value| *value as u64 == number)\n    }}\n").unwrap();
    writeln!(out, "    pub fn name(self) -> &'static str {{\n        match self {{").unwrap();
    for (value, text) in all.iter().zip(&names) {
        writeln!(out, "            {value} => {text},").unwrap();
    }
    writeln!(out, "        }}\n    }}\n}}").unwrap();
}

fn structure(out: &mut String, of: &Struct) {
    let Struct { name: tag, bytes, fields } = of;
    let name = camel(tag);
    writeln!(out, "\n/// `struct {tag}`.\n#[derive(Clone, Debug, Default, PartialEq)]\npub struct {name} {{").unwrap();
    for field in fields {
        writeln!(out, "    pub {}: {},", field.name, of_field(field)).unwrap();
    }
    writeln!(out, "}}\n\nimpl {name} {{\n    pub const BYTES: usize = {bytes};").unwrap();
    for field in fields {
        writeln!(out, "    pub const {}_AT: usize = {};", field.name.to_uppercase(), field.at).unwrap();
    }
    writeln!(out, "\n    /// `None`: too few bytes.\n    pub fn read(bytes: &[u8]) -> Option<{name}> {{").unwrap();
    writeln!(out, "        let bytes = bytes.get(..Self::BYTES)?;\n        Some({name} {{").unwrap();
    fields.iter().for_each(|field| writeln!(out, "            {}: {},", field.name, reading(field)).unwrap());
    writeln!(out, "        }})\n    }}\n\n    pub fn to_bytes(&self) -> Vec<u8> {{").unwrap();
    writeln!(out, "        let mut bytes = vec![0; Self::BYTES];").unwrap();
    fields.iter().for_each(|field| writeln!(out, "        {}", writing(field)).unwrap());
    writeln!(out, "        bytes\n    }}\n}}").unwrap();
}

fn scalar(of: &str) -> String {
    match of {
        "char" | "uint8_t" => "u8".into(),
        "uint32_t" => "u32".into(),
        "int32_t" => "i32".into(),
        "uint64_t" => "u64".into(),
        other => camel(other.strip_prefix("struct ").unwrap_or_else(|| panic!("a field of type {other}"))),
    }
}

fn of_field(field: &Field) -> String {
    let of = scalar(&field.of);
    if field.elements.is_some() { format!("Vec<{of}>") } else { of }
}

fn reading(field: &Field) -> String {
    let (of, at, bytes) = (scalar(&field.of), field.at, field.bytes);
    let one = |at: String| match field.of.starts_with("struct ") {
        true => format!("{of}::read(&bytes[{at}..])?"),
        false => format!("{of}::from_le_bytes(field(bytes, {at}))"),
    };
    match field.elements {
        None => one(at.to_string()),
        Some(count) if bytes == 1 => format!("bytes[{at}..{}].to_vec()", at + count),
        Some(count) => {
            let one = one(format!("{at} + i * {bytes}"));
            // What may fail is an Option as it is.
            let one = one.strip_suffix('?').map_or_else(|| format!("Some({one})"), str::to_string);
            format!("(0..{count}).map(|i| {one}).collect::<Option<_>>()?")
        }
    }
}

fn writing(field: &Field) -> String {
    let Field { name, at, bytes, .. } = field;
    let form = if field.of.starts_with("struct ") { "to_bytes" } else { "to_le_bytes" };
    match field.elements {
        None => format!("put(&mut bytes, {at}, {bytes}, &self.{name}.{form}());"),
        Some(count) if *bytes == 1 => format!("put(&mut bytes, {at}, {count}, &self.{name});"),
        Some(count) => format!(
            "self.{name}.iter().take({count}).enumerate().for_each(|(i, one)| put(&mut bytes, {at} + i * {bytes}, {bytes}, &one.{form}()));"
        ),
    }
}

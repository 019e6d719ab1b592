//! As Python, for the tests of the runtime.

use std::fmt::Write;

use super::{Abi, Field, short};

const HEAD: &str = "\"\"\"Generated from preload/abi.h by `UPDATE_ABI=1 cargo test -p runtime-abi`. Do not edit.\"\"\"

import struct
";

const TAIL: &str = "

def read(name, data, start=0):
    \"\"\"The fields of a struct by name: numbers, bytes up to the first zero for text, lists of dicts.\"\"\"
    size, fields = STRUCTS[name]
    if len(data) < start + size:
        raise ValueError(f\"{name}: {len(data) - start} bytes of {size}\")
    found = {}
    for field, kind, at, count in fields:
        at += start
        if kind in STRUCTS:
            found[field] = [read(kind, data, at + i * STRUCTS[kind][0]) for i in range(count)]
        else:
            values = struct.unpack_from(f\"<{count}{kind}\", data, at)
            found[field] = values[0].split(b\"\\0\")[0] if kind == \"s\" else values[0] if count == 1 else values
    return found


def pack(name, **values):
    \"\"\"A struct of these fields; the others are zero.\"\"\"
    size, fields = STRUCTS[name]
    data = bytearray(size)
    for field, kind, at, count in fields:
        if field in values:
            struct.pack_into(f\"<{count}{kind}\", data, at, values[field])
    return bytes(data)
";

impl Abi {
    pub fn python(&self) -> String {
        let mut out = HEAD.to_string();
        out.push('\n');
        for (name, text) in &self.strings {
            writeln!(out, "{name} = b\"{}\"", text.replace("\\211", "\\x89")).unwrap();
        }
        for (name, value) in &self.constants {
            writeln!(out, "{name} = {value}").unwrap();
        }
        for (tag, members) in &self.enums {
            writeln!(out, "{} = {{", tag.to_uppercase()).unwrap();
            for (short, (_, value)) in short(members).iter().zip(members) {
                writeln!(out, "    {value}: \"{}\",", short.to_lowercase()).unwrap();
            }
            out.push_str("}\n");
        }
        out.push_str("# Bytes, and of each field its name, type, offset and number of elements.\nSTRUCTS = {\n");
        for of in &self.structs {
            writeln!(out, "    \"{}\": ({}, [", of.name, of.bytes).unwrap();
            for field in &of.fields {
                let (kind, count) = (format(field), field.elements.unwrap_or(1));
                writeln!(out, "        (\"{}\", \"{kind}\", {}, {count}),", field.name, field.at).unwrap();
            }
            out.push_str("    ]),\n");
        }
        out.push_str("}\n");
        out.push_str(TAIL);
        out
    }
}

fn format(field: &Field) -> &str {
    match field.of.as_str() {
        "char" => "s",
        "uint8_t" => "B",
        "int32_t" => "i",
        "uint32_t" => "I",
        "uint64_t" => "Q",
        other => other.strip_prefix("struct ").unwrap_or(other),
    }
}

//! The kernel's type information (BTF): which tracepoints exist, and the part that relocating a program needs.
//!
//! libbpf searches all kernel types for each type that a program uses, which takes half of the load time. In this reduced BTF there is
//! almost nothing to search.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::slice;

use libbpf_rs::{AsRawLibbpf, Object, ObjectBuilder, OpenObject, PrintLevel};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The kinds of types and the format: Documentation/bpf/btf.rst.
mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FWD: u32 = 7;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const FLOAT: u32 = 16;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;

/// BTF type information.
pub struct Types {
    bytes: Bytes,
    /// The offset of each type, by its number less 1; number 0 is `void`.
    begins: Vec<u32>,
    /// The offset of the strings.
    names: usize,
}

enum Bytes {
    /// Mapped, readable, and never changed.
    Mapped(NonNull<[u8]>),
    Read(Vec<u8>),
}

/// One type: its header, and the data after it, which depends on the kind.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    info: u32,
    /// The size, or the number of another type.
    size_or_type: u32,
    rest: &'a [u8],
}

/// An opened object that is not loaded yet, and the types for its relocation.
pub struct Opened {
    object: OpenObject,
    _types: File,
}

impl Bytes {
    /// Since Linux 6.16 the kernel's BTF can be mapped, which avoids a copy of 6 MiB.
    fn of_file(path: &str) -> io::Result<Bytes> {
        let file = File::open(path)?;
        let length = file.metadata()?.len() as usize;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
        match at.ok().and_then(|at| NonNull::new(at.cast())) {
            Some(at) => Ok(Bytes::Mapped(NonNull::slice_from_raw_parts(at, length))),
            None => fs::read(path).map(Bytes::Read),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: mapped read-only for as long as self lives.
            Bytes::Mapped(bytes) => unsafe { bytes.as_ref() },
            Bytes::Read(bytes) => bytes,
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Bytes::Mapped(bytes) = self {
            // SAFETY: our own mapping, without remaining borrows.
            let _ = unsafe { munmap(bytes.as_ptr().cast(), bytes.len()) };
        }
    }
}

impl Types {
    /// The BTF of the kernel without modules. Takes 3 ms.
    ///
    /// # Errors
    /// If there is none, or its format is unknown.
    pub fn of_kernel() -> io::Result<Types> {
        Types::parse(Bytes::of_file("/sys/kernel/btf/vmlinux")?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its format is not known"))
    }

    fn parse(bytes: Bytes) -> Option<Types> {
        let head = bytes.get(..HEADER_BYTES)?;
        if u16::from_ne_bytes([head[0], head[1]]) != MAGIC {
            return None;
        }
        let field = |at| word(head, at).map(|word| word as usize);
        let head_bytes = field(4)?;
        let (types, types_end) = (head_bytes + field(8)?, head_bytes + field(8)? + field(12)?);
        let names = head_bytes + field(16)?;
        let mut begins = Vec::with_capacity((types_end - types) / 24);
        let mut at = types;
        while at < types_end {
            begins.push(at as u32);
            at += TYPE_BYTES + rest_bytes(word(&bytes, at + 4)?)?;
        }
        (types_end <= bytes.len() && names <= bytes.len()).then_some(Types { bytes, begins, names })
    }

    /// For each name, whether the kernel itself has that tracepoint, that is, a type `btf_trace_NAME`.
    pub fn tracepoints(&self, names: &[&str]) -> Vec<bool> {
        let known: HashSet<&[u8]> = self
            .all()
            .filter(|of| of.kind == kind::TYPEDEF)
            .filter_map(|of| self.name(of.name).strip_prefix(b"btf_trace_"))
            .collect();
        names.iter().map(|name| known.contains(name.as_bytes())).collect()
    }

    /// The types of these names (also with a `___flavour`) and the types of their members; pointers lead to `void`.
    fn part(&self, wanted: &HashSet<Vec<u8>>) -> Vec<u8> {
        let mut part = Part { of: self, numbers: HashMap::new(), queue: Vec::new(), types: Vec::new(), names: vec![0] };
        for (index, of) in self.all().enumerate() {
            if matches!(of.kind, kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64)
                && wanted.contains(without_flavour(self.name(of.name)))
            {
                part.number(index as u32 + 1);
            }
        }
        part.finish()
    }

    fn all(&self) -> impl Iterator<Item = Type<'_>> {
        self.begins.iter().map(|begin| self.at(*begin as usize))
    }

    /// A type at an offset that [`Types::parse`] has found.
    fn at(&self, begin: usize) -> Type<'_> {
        let word = |at| word(&self.bytes, begin + at).unwrap_or(0);
        let (name, info, size_or_type) = (word(0), word(4), word(8));
        let rest = begin + TYPE_BYTES;
        let rest = self.bytes.get(rest..rest + rest_bytes(info).unwrap_or(0)).unwrap_or_default();
        Type { name, kind: kind_of(info), info, size_or_type, rest }
    }

    fn name(&self, offset: u32) -> &[u8] {
        let rest = self.bytes.get(self.names + offset as usize..).unwrap_or_default();
        CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes)
    }
}

/// A reduced BTF under construction.
struct Part<'a> {
    of: &'a Types,
    /// From the original type numbers to the new ones.
    numbers: HashMap<u32, u32>,
    /// The original numbers, in order of the new ones.
    queue: Vec<u32>,
    types: Vec<u8>,
    names: Vec<u8>,
}

impl Part<'_> {
    /// The new number of a type, which is added if missing.
    fn number(&mut self, old: u32) -> u32 {
        if old == 0 {
            return 0;
        }
        *self.numbers.entry(old).or_insert_with(|| {
            self.queue.push(old);
            self.queue.len() as u32
        })
    }

    fn name(&mut self, old: u32) -> u32 {
        if old == 0 {
            return 0;
        }
        let new = self.names.len() as u32;
        self.names.extend_from_slice(self.of.name(old));
        self.names.push(0);
        new
    }

    fn finish(mut self) -> Vec<u8> {
        let mut done = 0;
        while let Some(old) = self.queue.get(done) {
            done += 1;
            let begin = self.of.begins.get(*old as usize - 1).copied().unwrap_or_default();
            self.take(self.of.at(begin as usize));
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.types.len() + self.names.len());
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let (types, names) = (self.types.len() as u32, self.names.len() as u32);
        for word in [HEADER_BYTES as u32, 0, types, types, names] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(self.types);
        bytes.extend(self.names);
        bytes
    }

    fn take(&mut self, of: Type<'_>) {
        let name = self.name(of.name);
        let size_or_type = match of.kind {
            kind::PTR => 0,
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.number(of.size_or_type)
            }
            _ => of.size_or_type,
        };
        [name, of.info, size_or_type].into_iter().for_each(|word| self.put(word));
        let rest = of.rest.chunks_exact(4).filter_map(|chunk| word(chunk, 0));
        for (index, word) in rest.enumerate() {
            let word = match (of.kind, index) {
                (kind::ARRAY, 0 | 1) => self.number(word),
                (kind::STRUCT | kind::UNION, index) if index % 3 == 1 => self.number(word),
                (kind::STRUCT | kind::UNION | kind::ENUM64, index) if index % 3 == 0 => self.name(word),
                (kind::ENUM, index) if index % 2 == 0 => self.name(word),
                _ => word,
            };
            self.put(word);
        }
    }

    fn put(&mut self, word: u32) {
        self.types.extend(word.to_ne_bytes());
    }
}

/// Opens an object for relocation by the needed part of the kernel's types.
///
/// # Errors
/// If it is not an object, or memory is short.
pub fn open(object: &[u8], kernel: &Types) -> Result<Opened, libbpf_rs::Error> {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |_, line| tracing::debug!(target: "libbpf", "{}", line.trim_end()))));
    let mut types = File::from(memfd_create(c"types", MemfdFlags::CLOEXEC).map_err(io::Error::from)?);
    let path = CString::new(format!("/proc/self/fd/{}", types.as_raw_fd())).map_err(io::Error::from)?;
    let mut builder = ObjectBuilder::default();
    // SAFETY: the options belong to the builder, which is not used meanwhile; the path outlives the call, which copies it.
    unsafe { builder.as_libbpf_object().as_mut().btf_custom_path = path.as_ptr() };
    let object = builder.open_memory(object)?;
    // The file is read when the object is loaded.
    types.write_all(&kernel.part(&names_of(&object)))?;
    Ok(Opened { object, _types: types })
}

impl Opened {
    /// The object, for setting it up.
    pub fn object(&mut self) -> &mut OpenObject {
        &mut self.object
    }

    /// Loads it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn load(self) -> Result<Object, libbpf_rs::Error> {
        self.object.load()
    }
}

/// All type names in an object's own BTF.
fn names_of(object: &OpenObject) -> HashSet<Vec<u8>> {
    let mut length = 0;
    // SAFETY: the BTF belongs to the object and does not change before loading; without one, both calls return null.
    let bytes = unsafe {
        let own = libbpf_sys::bpf_object__btf(object.as_libbpf_object().as_ptr());
        let bytes = if own.is_null() { ptr::null() } else { libbpf_sys::btf__raw_data(own, &raw mut length) };
        if bytes.is_null() { Vec::new() } else { slice::from_raw_parts(bytes.cast::<u8>(), length as usize).to_vec() }
    };
    let Some(types) = Types::parse(Bytes::Read(bytes)) else { return HashSet::new() };
    types.all().map(|of| without_flavour(types.name(of.name)).to_vec()).collect()
}

/// `folio` of `folio___byte`; see libbpf's `bpf_core_essential_name_len`.
fn without_flavour(name: &[u8]) -> &[u8] {
    let is_border = |at: &usize| name[*at] != b'_' && &name[at + 1..at + 4] == b"___" && name[at + 4] != b'_';
    (0..name.len().saturating_sub(4)).rev().find(is_border).map_or(name, |at| &name[..at + 1])
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_ne_bytes)
}

fn kind_of(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// The size of the data after a type's header; `None` for an unknown kind.
fn rest_bytes(info: u32) -> Option<usize> {
    let length = info as usize & 0xffff;
    Some(match kind_of(info) {
        kind::PTR | kind::FWD | kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT => 0,
        kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::ENUM | kind::FUNC_PROTO => 8 * length,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * length,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a structure, and its members' offsets in bits by their names.
    fn structure(types: &Types, name: &str) -> Option<(u32, Vec<(String, u32)>)> {
        let of = types.all().find(|of| of.kind == kind::STRUCT && types.name(of.name) == name.as_bytes())?;
        let member = |member: &[u8]| {
            let name = String::from_utf8_lossy(types.name(word(member, 0)?)).into_owned();
            Some((name, word(member, 8)?))
        };
        Some((of.size_or_type, of.rest.chunks_exact(12).filter_map(member).collect()))
    }

    #[test]
    fn a_part_of_the_kernels_types_has_the_same_layouts() {
        let Ok(kernel) = Types::of_kernel() else { return };
        let wanted = ["inode", "task_struct"].map(|name| name.as_bytes().to_vec()).into();
        let part = Types::parse(Bytes::Read(kernel.part(&wanted))).unwrap();
        for name in ["inode", "task_struct"] {
            let whole = structure(&kernel, name).unwrap();
            assert!(whole.0 > 100 && whole.1.len() > 10);
            assert_eq!(structure(&part, name), Some(whole));
        }
        assert!(structure(&part, "sched_entity").is_some(), "types of members are included");
        assert!(structure(&part, "dentry").is_none(), "types of pointers are not");
        assert!(part.begins.len() < kernel.begins.len() / 20);
    }

    #[test]
    fn the_kernels_tracepoints_are_known() {
        let Ok(kernel) = Types::of_kernel() else { return };
        assert_eq!(kernel.tracepoints(&["sched_process_fork", "no_such_thing"]), [true, false]);
    }

    #[test]
    fn a_cut_btf_or_unknown_kinds_are_refused() {
        assert!(Types::parse(Bytes::Read(Vec::new())).is_none());
        let mut bytes = Part {
            of: &Types { bytes: Bytes::Read(Vec::new()), begins: Vec::new(), names: 0 },
            numbers: HashMap::new(),
            queue: Vec::new(),
            types: [0u32, 31 << 24, 4].into_iter().flat_map(u32::to_ne_bytes).collect(),
            names: vec![0],
        }
        .finish();
        assert!(Types::parse(Bytes::Read(bytes.clone())).is_none(), "kind 31 is not known");
        bytes.truncate(30);
        assert!(Types::parse(Bytes::Read(bytes)).is_none());
    }

    #[test]
    fn a_flavour_is_what_follows_three_underscores() {
        for (name, essential) in
            [("folio___byte", "folio"), ("__x___y", "__x"), ("inode", "inode"), ("a____b", "a____b")]
        {
            assert_eq!(without_flavour(name.as_bytes()), essential.as_bytes());
        }
    }
}

//! References to the page cache.

/// How a page of a file was referenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// A buffered read.
    Read,
    /// A buffered write.
    Write,
    /// A fault on a mapped file.
    Fault,
}

/// One reference to a run of pages of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileReference {
    /// Nanoseconds since the run began.
    pub t_ns: u64,
    /// Which file, numbered from 0 within the run.
    pub file: u32,
    /// First page.
    pub first_page: u64,
    /// How many pages, at least 1.
    pub pages: u32,
    /// How.
    pub kind: ReferenceKind,
}

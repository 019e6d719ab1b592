//! References to the page cache.

/// How a page of a file was referenced, or that it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// A buffered read.
    Read,
    /// A buffered write.
    Write,
    /// A fault on a mapped file.
    Fault,
    /// No reference: the pages left the page cache for good, cut off or deleted with their file. They take no room any more, and
    /// whoever reads their like reads new ones.
    Removal,
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

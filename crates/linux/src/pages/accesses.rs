//! What DAMON has found accessed, told by a BPF program on its tracepoint (`bpf/pages.bpf.c`).

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use libbpf_rs::{Link, RingBuffer, RingBufferBuilder};

use super::tables::{Error, Tables};

/// A range of pages that was accessed between two looks of DAMON's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number that the process has with DAMON's thread.
    pub target: u64,
    /// Its addresses.
    pub range: Range<u64>,
}

/// Listens to DAMON until dropped.
pub struct Accesses {
    ring: RingBuffer<'static>,
    told: Rc<RefCell<Vec<Access>>>,
    _link: Link,
}

impl Accesses {
    /// Begins to listen. Told is what [`Tables::tell_of`] says.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn listen(tables: &Tables) -> Result<Accesses, Error> {
        let told = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&told);
        let ring = tables.map("accessed")?;
        let mut builder = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            sink.borrow_mut().extend(read(bytes));
            0
        };
        builder.add(&ring, take).map_err(Error::Refused)?;
        let ring = builder.build().map_err(Error::Refused)?;
        Ok(Accesses { ring, told, _link: tables.attach_to_damon()? })
    }

    /// What was told since the last call.
    pub fn take(&self) -> Vec<Access> {
        // What cannot be read now can be at the next call.
        let _ = self.ring.consume();
        self.told.take()
    }
}

/// `struct accessed` of `bpf/pages.h`.
fn read(bytes: &[u8]) -> Option<Access> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Access { range: word(0)?..word(8)?, target: word(16)? })
}

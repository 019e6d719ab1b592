//! References from traces that others have recorded: CSV and plain text, libCacheSim's oracleGeneral, vscsi, valgrind's lackey;
//! each as it is or compressed. Nothing is opened here: a [`Trace`] reads from whatever can be read, one
//! record at a time, in constant memory (names of tenants aside).

mod ahead;
mod binary;
mod error;
mod format;
mod lackey;
mod lines;
mod magic;
mod oracle_general;
mod pages;
mod text;
mod unpack;
mod vscsi;

use std::io::Read;

pub use error::{Bad, Place, TraceError};
pub use format::{Column, Columns, Format};

use pages::Pages;
use unpack::{Unpacked, expect_text, unpack};

/// One reference of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// What is referenced. Of formats with addresses: the page, or without pages the address.
    pub key: u64,
    /// How large it is, if the trace says so.
    pub bytes: Option<u64>,
    /// When, in seconds from the trace's own origin.
    pub seconds: Option<f64>,
    /// By whom: an index into [`Trace::tenants`].
    pub tenant: Option<u32>,
}

/// A format's reader: the next record, `None` at the end. After a [`TraceError::Bad`] it goes on with the record after.
trait Records {
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    fn tenants(&self) -> &[String] {
        &[]
    }
}

/// A trace being read.
pub struct Trace {
    records: Box<dyn Records>,
    pages: Option<Pages>,
    skips_bad: bool,
    skipped: u64,
    first_bad: Option<Bad>,
}

impl Trace {
    /// Begins to read; whether it is compressed is seen from its first bytes. `page_bytes`: cut references to addresses into pages of
    /// this size, a power of two; only for formats with addresses. `skips_bad`: count malformed records instead of stopping.
    pub fn new(
        input: impl Read + Send + 'static,
        format: &Format,
        page_bytes: Option<u64>,
        skips_bad: bool,
    ) -> Result<Trace, TraceError> {
        let is_text = matches!(format, Format::Csv(_) | Format::Lackey);
        let Unpacked { input, head } = unpack(input, is_text)?;
        if is_text {
            expect_text(&head)?;
        }
        let records: Box<dyn Records> = match format {
            Format::Csv(columns) => Box::new(text::Text::new(input, columns)?),
            Format::OracleGeneral => Box::new(oracle_general::OracleGeneral::new(input)),
            Format::Vscsi => Box::new(vscsi::Vscsi::new(input)?),
            Format::Lackey => Box::new(lackey::Lackey::new(input)),
        };
        let pages = page_bytes.filter(|_| format.has_addresses()).map(Pages::of);
        Ok(Trace { records, pages, skips_bad, skipped: 0, first_bad: None })
    }

    /// The next reference, `None` at the end.
    pub fn read(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(page) = self.pages.as_mut().and_then(Pages::next) {
            return Ok(Some(page));
        }
        loop {
            match self.records.next() {
                Err(TraceError::Bad(bad)) if self.skips_bad => {
                    self.skipped += 1;
                    self.first_bad.get_or_insert(bad);
                }
                Ok(Some(record)) => {
                    let Some(pages) = &mut self.pages else { return Ok(Some(record)) };
                    return Ok(pages.cut(record));
                }
                end => return end,
            }
        }
    }

    /// Malformed records passed over, and the first of them.
    pub fn skipped(&self) -> (u64, Option<&Bad>) {
        (self.skipped, self.first_bad.as_ref())
    }

    /// Names of the tenants seen so far.
    pub fn tenants(&self) -> &[String] {
        self.records.tenants()
    }
}

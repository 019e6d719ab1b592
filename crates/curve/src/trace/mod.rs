//! References from traces of other programs: CSV and plain text, libCacheSim's oracleGeneral, vscsi, valgrind's lackey;
//! plain or compressed. This module opens no files: a [`Trace`] reads from any reader, one record at a time, in
//! constant memory (apart from names of tenants).

mod ahead;
mod binary;
mod error;
mod fields;
mod format;
mod input;
mod lackey;
mod layout;
mod lines;
mod magic;
mod oracle_general;
mod pages;
mod plan;
mod shape;
mod text;
mod time;
mod unpack;
mod vscsi;

use std::io::Read;

pub use error::{Bad, Place, TraceError};
pub use format::{Column, Columns, Format};
pub use layout::Layout;
pub use time::TimeUnit;

use crate::item::Object;
use pages::Pages;
use plan::Plan;
use unpack::{SHAPE_BYTES, expect_text, unpack};

/// One reference of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Key of the item. In formats with addresses: the page, or without pages the address.
    pub key: u64,
    /// Its size, if the trace has one.
    pub bytes: Option<u64>,
    /// Time in seconds from the trace's own origin.
    pub seconds: Option<f64>,
    /// Who made it: an index into [`Trace::tenants`].
    pub tenant: Option<u32>,
}

/// Reader of a format: the next record, `None` at the end. After a [`TraceError::Bad`] it continues with the next
/// record.
trait Records {
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// Appends the keys of the next records, until there are `most` in all; fewer at the end. After an error, the keys
    /// before it are there, as if read one by one.
    fn keys(&mut self, into: &mut Vec<u64>, most: usize) -> Result<(), TraceError> {
        while into.len() < most {
            let Some(record) = self.next()? else { break };
            into.push(record.key);
        }
        Ok(())
    }

    /// Like [`keys`](Records::keys), with sizes. The format must have some.
    fn objects(&mut self, into: &mut Vec<Object>, most: usize) -> Result<(), TraceError> {
        while into.len() < most {
            let Some(record) = self.next()? else { break };
            into.push(object(&record)?);
        }
        Ok(())
    }

    /// Place of the last record.
    fn place(&self) -> Place;

    fn tenants(&self) -> &[String] {
        &[]
    }

    /// Number of well-formed records that are not references.
    fn left_out(&self) -> u64 {
        0
    }

    /// Whether a time was a number of unknown unit.
    fn assumes_seconds(&self) -> bool {
        false
    }

    /// Maximum share of malformed records that is tolerated, in percent. 0 for binary records, because all records
    /// after a malformed one may be misaligned.
    fn bad_percent(&self) -> u64 {
        0
    }
}

/// How to read a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Cut references to addresses into pages of this size, a power of two. `None`: the format's default.
    pub page_bytes: Option<u64>,
    /// Skip malformed records, however many.
    pub skips_bad: bool,
    /// Unit of the times. `None`: the format's.
    pub time_unit: Option<TimeUnit>,
    /// The data needed; other columns of text are not parsed.
    pub needs: Needs,
}

/// The data needed besides the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Size.
    pub bytes: bool,
    /// Time.
    pub time: bool,
    /// Tenant.
    pub tenant: bool,
}

/// A trace being read.
pub struct Trace {
    records: Box<dyn Records>,
    format: Format,
    implies: String,
    page_bytes: Option<u64>,
    pages: Option<Pages>,
    skips_bad: bool,
    good: u64,
    skipped: u64,
    first_bad: Option<Bad>,
    ended: bool,
}

/// The share of malformed records is not checked before there are this many, or the trace ends.
const FEW_BAD: u64 = 1000;

impl Trace {
    /// Reads all data of each record; see [`Trace::open`].
    pub fn new(
        input: impl Read + Send + 'static,
        format: &Format,
        page_bytes: Option<u64>,
        skips_bad: bool,
    ) -> Result<Trace, TraceError> {
        let needs = Needs { bytes: true, time: true, tenant: true };
        Trace::open(input, format, &Reading { page_bytes, skips_bad, time_unit: None, needs })
    }

    /// Opens a trace; its first bytes show whether it is compressed, and for [`Format::Auto`] which format it has.
    pub fn open(input: impl Read + Send + 'static, format: &Format, reading: &Reading) -> Result<Trace, TraceError> {
        let mut input = unpack(input, format.may_be_text())?;
        let head = input.peek(SHAPE_BYTES)?;
        let format = match format {
            Format::Auto => shape::of(head)?,
            format => format.clone(),
        };
        if format.may_be_text() {
            expect_text(head)?;
        }
        let paged = |format: Option<u64>| reading.page_bytes.or(format);
        let unit = reading.time_unit;
        let (records, page_bytes, implies): (Box<dyn Records>, _, _) = match &format {
            Format::OracleGeneral => {
                let implies = "24 bytes a record, time in seconds".to_string();
                (Box::new(oracle_general::OracleGeneral::new(input)), no_pages(reading, &format)?, implies)
            }
            Format::Vscsi => {
                let implies = match reading.page_bytes {
                    None => "an object is the address where a request begins; --page 4K counts the pages of it",
                    Some(_) => "addresses in blocks of 512 bytes",
                };
                (Box::new(vscsi::Vscsi::new(input)?), paged(None), format!("{implies}, time in microseconds"))
            }
            Format::Lackey => (
                Box::new(lackey::Lackey::new(input)),
                paged(Some(PROGRAM_PAGE_BYTES)),
                "addresses in bytes".to_string(),
            ),
            Format::Auto | Format::Csv(_) | Format::Layout(_) => {
                let mut plan = Plan::of(head, &format)?;
                if plan.address.is_none() || head.is_empty() {
                    no_pages(reading, &format)?;
                }
                let page_bytes = paged(plan.page_bytes);
                if page_bytes.is_none() {
                    plan.address = plan.address.filter(|_| plan.layout.is_some());
                } else if plan.bytes.is_empty() {
                    let what = "--page needs the bytes of each access; name their column with --size-column";
                    return Err(TraceError::Columns(what.to_string()));
                }
                if !reading.needs.bytes && page_bytes.is_none() {
                    plan.bytes.clear();
                }
                plan.time = plan.time.filter(|_| reading.needs.time).map(|(at, known)| (at, unit.or(known)));
                plan.tenant = plan.tenant.filter(|_| reading.needs.tenant);
                let mut implies = plan.implies.clone();
                if let Some(unit) = plan.time.and_then(|(_, unit)| unit.filter(|_| plan.layout.is_none())) {
                    implies += &format!(" in {unit}");
                }
                let name = plan.layout.map(Format::Layout);
                let records = Box::new(text::Text::new(input, plan));
                return Ok(Trace::of(
                    records,
                    name.unwrap_or(Format::Csv(Columns::default())),
                    page_bytes,
                    implies,
                    reading,
                ));
            }
        };
        if unit.is_some() {
            return Err(TraceError::Columns(format!("--time-unit is for text; {format} has its own")));
        }
        Ok(Trace::of(records, format, page_bytes, implies, reading))
    }

    fn of(
        records: Box<dyn Records>,
        format: Format,
        page_bytes: Option<u64>,
        implies: String,
        reading: &Reading,
    ) -> Trace {
        Trace {
            records,
            format,
            implies,
            page_bytes,
            pages: page_bytes.map(Pages::of),
            skips_bad: reading.skips_bad,
            good: 0,
            skipped: 0,
            first_bad: None,
            ended: false,
        }
    }

    /// The next reference, `None` at the end.
    pub fn read(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(page) = self.pages.as_mut().and_then(Pages::next) {
            return Ok(Some(page));
        }
        loop {
            match self.records.next() {
                Ok(Some(record)) => match self.pages.as_mut().map(|pages| pages.cut(record)) {
                    None => {
                        self.good += 1;
                        return Ok(Some(record));
                    }
                    Some(Ok(page)) => {
                        self.good += 1;
                        return Ok(page);
                    }
                    Some(Err(what)) => self.pass_over(TraceError::Bad(Bad { place: self.records.place(), what }))?,
                },
                Ok(None) => {
                    self.end()?;
                    return Ok(None);
                }
                Err(error) => self.pass_over(error)?,
            }
        }
    }

    /// Appends the keys of the next references, until `into` has `most`; fewer at the end. Much cheaper than
    /// [`read`](Trace::read) one by one, with the same result: after an error the keys before it are there.
    pub fn keys(&mut self, into: &mut Vec<u64>, most: usize) -> Result<(), TraceError> {
        self.many(into, most, |records, into| records.keys(into, most), |record| Ok(record.key))
    }

    /// Like [`keys`](Trace::keys), with the objects' sizes; [`TraceError::Columns`] if the trace has none.
    pub fn objects(&mut self, into: &mut Vec<Object>, most: usize) -> Result<(), TraceError> {
        self.many(into, most, |records, into| records.objects(into, most), object)
    }

    fn many<T>(
        &mut self,
        into: &mut Vec<T>,
        most: usize,
        next: impl Fn(&mut dyn Records, &mut Vec<T>) -> Result<(), TraceError>,
        of: impl Fn(&Record) -> Result<T, TraceError>,
    ) -> Result<(), TraceError> {
        if self.pages.is_some() {
            while into.len() < most {
                let Some(page) = self.read()? else { break };
                into.push(of(&page)?);
            }
            return Ok(());
        }
        while into.len() < most {
            let before = into.len();
            let read = next(&mut *self.records, into);
            self.good += (into.len() - before) as u64;
            match read {
                Ok(()) if into.len() < most => return self.end(),
                Ok(()) => {}
                Err(error) => self.pass_over(error)?,
            }
        }
        Ok(())
    }

    /// Counts a malformed record if such are tolerated, and returns any other error.
    fn pass_over(&mut self, error: TraceError) -> Result<(), TraceError> {
        let is_passed_over = match &error {
            TraceError::Cut(_) => self.skips_bad,
            TraceError::Bad(_) => self.skips_bad || self.records.bad_percent() > 0,
            _ => false,
        };
        match error {
            TraceError::Cut(bad) | TraceError::Bad(bad) if is_passed_over => {
                self.skipped += 1;
                self.first_bad.get_or_insert(bad);
            }
            error => return Err(error),
        }
        if self.skipped > FEW_BAD { self.judge_bad() } else { Ok(()) }
    }

    /// Ends the trace; may be called again.
    fn end(&mut self) -> Result<(), TraceError> {
        if std::mem::replace(&mut self.ended, true) { Ok(()) } else { self.judge_bad() }
    }

    /// Refuses a trace with too many malformed records.
    fn judge_bad(&self) -> Result<(), TraceError> {
        let all = self.good + self.skipped;
        match &self.first_bad {
            Some(first) if !self.skips_bad && self.skipped * 100 > all * self.records.bad_percent() => {
                Err(TraceError::TooMany { first: first.clone(), bad: self.skipped, all })
            }
            _ => Ok(()),
        }
    }

    /// The format that it is read in; never [`Format::Auto`].
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// What the format implies, in words: columns, units.
    pub fn implies(&self) -> &str {
        &self.implies
    }

    /// The size of the pages that references are cut into.
    pub fn page_bytes(&self) -> Option<u64> {
        self.page_bytes
    }

    /// Number of skipped malformed records, and the first of them.
    pub fn skipped(&self) -> (u64, Option<&Bad>) {
        (self.skipped, self.first_bad.as_ref())
    }

    /// Number of well-formed records that are not references: requests to delete an object.
    pub fn left_out(&self) -> u64 {
        self.records.left_out()
    }

    /// Whether times are numbers of unknown unit that were taken for seconds.
    pub fn assumes_seconds(&self) -> bool {
        self.records.assumes_seconds()
    }

    /// Names of the tenants so far.
    pub fn tenants(&self) -> &[String] {
        self.records.tenants()
    }
}

fn object(record: &Record) -> Result<Object, TraceError> {
    let bytes = record.bytes.ok_or_else(|| TraceError::Columns(NO_SIZES.to_string()))?;
    Ok(Object { key: record.key, bytes })
}

/// Error for objects without sizes.
pub(crate) const NO_SIZES: &str =
    "this trace does not say how large an object is; name the column with --size-column, or leave out --bytes";

/// Page size of programs.
const PROGRAM_PAGE_BYTES: u64 = 4096;

fn no_pages(reading: &Reading, format: &Format) -> Result<Option<u64>, TraceError> {
    match reading.page_bytes {
        None => Ok(None),
        Some(_) => Err(TraceError::Columns(format!(
            "--page is for formats with addresses; this {format} has none, unless --key-column names a column of addresses in bytes"
        ))),
    }
}

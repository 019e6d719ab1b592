//! From addresses to pages.

use super::Record;

/// Cuts a reference to a stretch of addresses into references to its pages.
pub struct Pages {
    page_bytes: u64,
    /// What is left of the record at hand: the next page, the last, and the record.
    rest: Option<(u64, u64, Record)>,
}

impl Pages {
    /// `page_bytes` must not be 0.
    pub fn of(page_bytes: u64) -> Pages {
        Pages { page_bytes, rest: None }
    }

    /// Takes the next record, and gives its first page. One of no bytes touches the page it is in.
    pub fn cut(&mut self, record: Record) -> Option<Record> {
        let last = record.key.saturating_add(record.bytes.unwrap_or(0).max(1) - 1);
        self.rest = Some((record.key / self.page_bytes, last / self.page_bytes, record));
        self.next()
    }

    /// The next page of the record at hand.
    pub fn next(&mut self) -> Option<Record> {
        let (page, last, record) = self.rest?;
        self.rest = (page < last).then_some((page + 1, last, record));
        Some(Record { key: page, bytes: Some(self.page_bytes), ..record })
    }
}

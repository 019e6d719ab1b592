//! Converts addresses to pages.

use super::Record;

/// Maximum number of pages of a record (4 GiB of 4 KiB pages): with more, it is no access of a program or a disk, and
/// its size means something else.
const MAX_PAGES: u64 = 1 << 20;

/// Cuts a reference to a range of addresses into references to its pages.
pub struct Pages {
    page_bytes: u64,
    /// The rest of the current record: (next page, last page, record).
    rest: Option<(u64, u64, Record)>,
}

impl Pages {
    /// `page_bytes` must not be 0.
    pub fn of(page_bytes: u64) -> Pages {
        Pages { page_bytes, rest: None }
    }

    /// Takes the next record, and returns its first page. A record of no bytes touches the page it is in.
    ///
    /// # Errors
    /// The record has too many pages or exceeds the last address.
    pub fn cut(&mut self, record: Record) -> Result<Option<Record>, String> {
        let bytes = record.bytes.unwrap_or(0).max(1);
        let Some(last) = record.key.checked_add(bytes - 1) else {
            return Err(format!("{bytes} bytes from the address {} on end beyond the last address", record.key));
        };
        let (first, last) = (record.key / self.page_bytes, last / self.page_bytes);
        if last - first >= MAX_PAGES {
            return Err(format!(
                "an access of {bytes} bytes goes over more than {MAX_PAGES} pages; if this is its size, use larger pages with --page"
            ));
        }
        self.rest = Some((first, last, record));
        Ok(self.next())
    }

    /// The next page of the current record.
    pub fn next(&mut self) -> Option<Record> {
        let (page, last, record) = self.rest?;
        self.rest = (page < last).then_some((page + 1, last, record));
        Some(Record { key: page, bytes: Some(self.page_bytes), ..record })
    }
}

//! Events of BPF programs in a ring buffer.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::tables::Error;

/// A ring buffer, read in order.
pub struct Ring<T> {
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<T>>>,
}

impl<T: 'static> Ring<T> {
    /// The ring buffer of this map; `read` parses each entry, and unparsable ones are skipped.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn of(map: &MapHandle, read: fn(&[u8]) -> Option<T>) -> Result<Ring<T>, Error> {
        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let mut builder = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            sink.borrow_mut().extend(read(bytes));
            0
        };
        builder.add(map, take).map_err(Error::Refused)?;
        Ok(Ring { ring: builder.build().map_err(Error::Refused)?, events })
    }

    /// The events since the last call.
    pub fn take(&self) -> Vec<T> {
        // Events that cannot be read now are read by the next call.
        let _ = self.ring.consume();
        self.events.take()
    }
}

//! What BPF programs tell through a ring buffer.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::tables::Error;

/// Read in its order.
pub struct Ring<T> {
    ring: RingBuffer<'static>,
    told: Rc<RefCell<Vec<T>>>,
}

impl<T: 'static> Ring<T> {
    /// Of this map, each of whose entries is read so; what cannot be is passed over.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn of(map: &MapHandle, read: fn(&[u8]) -> Option<T>) -> Result<Ring<T>, Error> {
        let told = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&told);
        let mut builder = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            sink.borrow_mut().extend(read(bytes));
            0
        };
        builder.add(map, take).map_err(Error::Refused)?;
        Ok(Ring { ring: builder.build().map_err(Error::Refused)?, told })
    }

    /// What was told since the last call.
    pub fn take(&self) -> Vec<T> {
        // What cannot be read now can be at the next call.
        let _ = self.ring.consume();
        self.told.take()
    }
}

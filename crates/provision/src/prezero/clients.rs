//! The thread that receives the messages of clients, and unmaps their memory when they have ended.
//!
//! The zeroing thread cannot do this: with all processors busy it gets none for seconds, and meanwhile the memory could not be leased
//! again.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rustix::event::{PollFd, PollFlags, poll};

use super::client::{Client, Segment};
use crate::socket;

/// Serves clients until `ends` is closed. Sends new segments to the zeroing thread, and wakes it by the bell.
pub(super) fn serve(listener: &OwnedFd, ends: &UnixStream, new: &Sender<Arc<Segment>>, mut bell: &File) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let mut waited = vec![PollFd::new(ends, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        waited.extend(clients.iter().map(|client| PollFd::new(&client.socket, PollFlags::IN)));
        let polled = poll(&mut waited, None);
        let ready: Vec<bool> = waited.iter().map(|one| !one.revents().is_empty()).collect();
        match polled {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if !ready[0] => {}
            _ => return,
        }
        let mut ready = ready.into_iter().skip(2);
        clients.retain_mut(|client| {
            let mut pass_on = |segment| {
                // The zeroing thread does not end before this one; and if the FIFO is full, it will wake up anyway.
                let _ = new.send(segment);
                let _ = bell.write(&[0]);
            };
            !ready.next().unwrap_or(false) || client.receive(&mut pass_on)
        });
        while let Ok(Some(socket)) = socket::accept(listener) {
            clients.push(Client::new(socket));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::mpsc;
    use std::thread;

    use super::super::bell;
    use super::super::tests::{Process, UNIT, message, wait_until};
    use super::*;
    use crate::backing::is_held;

    #[test]
    fn memory_being_zeroed_is_unmapped_when_its_process_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let listener = socket::listen(&folder.path().join("zero"), user, group, 0o600).unwrap();
        let bell = bell(&folder.path().join("bell"), 0o600).unwrap();
        let (end, ends) = UnixStream::pair().unwrap();
        let (send, new) = mpsc::channel();
        let hears = thread::spawn(move || serve(&listener, &ends, &send, &bell));

        let path = folder.path().join("segment");
        std::fs::write(&path, [7; UNIT]).unwrap();
        let process = Process::connect(folder.path());
        let segment = File::options().read(true).write(true).open(&path).unwrap();
        process.send(&message(0, 1, UNIT as u64), &[segment.as_fd()]);
        drop(segment);
        // The test holds the segment like a zeroing thread that gets no processor.
        let being_zeroed = new.recv().unwrap();
        assert!(is_held(&path).unwrap());
        drop(process);
        wait_until(|| !is_held(&path).unwrap());
        assert!(!being_zeroed.memory.zero(0, UNIT), "zeroing continues in a detached mapping");
        assert_eq!(std::fs::read(&path).unwrap(), [7; UNIT]);
        drop(end);
        hears.join().unwrap();
    }
}

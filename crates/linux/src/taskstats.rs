//! Exit records over netlink (Documentation/accounting/taskstats.rst): the usage of every ended thread of the machine. This rung is below
//! the scheduler's tracepoints: it needs CAP_NET_ADMIN in the initial user namespace, and no BPF.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::netlink::{MESSAGE_HEADER, attributes, kind, messages, u16_at, u32_at, u64_at};
use crate::{Error, file, procfs};

/// An ended thread (or, with [`ExitRecord::is_group`], an ended process of several threads). Sums, unless noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRecord {
    /// Whether this is the sum over a process of several threads. Then the kernel fills in only the delays; all other figures are in its
    /// threads' own records.
    pub is_group: bool,
    /// Thread id; for a group, its process id.
    pub pid: i32,
    /// Process id (Linux 5.18; version 12 of the structure).
    pub tgid: Option<i32>,
    /// Parent.
    pub ppid: i32,
    /// Command name.
    pub comm: String,
    /// Exit status as from `wait`, not decoded.
    pub exit_code: u32,
    /// Microseconds from start to end.
    pub elapsed_us: u64,
    /// User time in microseconds.
    pub utime_us: u64,
    /// System time in microseconds.
    pub stime_us: u64,
    /// Time waiting for block I/O in nanoseconds; 0 while delay accounting is off.
    pub blkio_delay_ns: u64,
    /// Time waiting for pages from swap in nanoseconds, likewise.
    pub swapin_delay_ns: u64,
    /// Time waiting for pages that were evicted shortly before, in nanoseconds, likewise (version 9, Linux 4.20).
    pub thrashing_delay_ns: Option<u64>,
    /// Faults without I/O.
    pub minflt: u64,
    /// Faults with I/O.
    pub majflt: u64,
    /// Peak resident set of the address space in bytes.
    pub hiwater_rss: u64,
}

/// Receives the records of all threads that end from now on.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    family: u16,
    buffer: Vec<u8>,
}

/// The result of one [`Listener::poll`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The records in the order of arrival.
    pub records: Vec<ExitRecord>,
    /// Whether records were lost because they were not fetched in time.
    pub lost: bool,
}

// <linux/netlink.h>, <linux/genetlink.h>, <linux/taskstats.h>
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TASKSTATS_TYPE_STATS: u16 = 3;
const TASKSTATS_TYPE_AGGR_PID: u16 = 4;
const TASKSTATS_TYPE_AGGR_TGID: u16 = 5;
const GENERIC_HEADER: usize = 4;
/// Buffer size: a compilation ends thousands of processes while the reader waits for a processor.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

impl Listener {
    /// Registers for all processors.
    ///
    /// # Errors
    /// [`Error::System`] without root, or if the kernel was built without taskstats.
    pub fn open() -> Result<Listener, Error> {
        let socket = open_socket()?;
        let mut listener = Listener { socket, family: GENL_ID_CTRL, buffer: vec![0; 64 << 10] };
        listener.family = listener.find_family()?;
        // All possible processors, in the kernel's format: `0-1`.
        let processors = file::read(Path::new("/sys/devices/system/cpu/possible"))?;
        let mask = format!("{}\0", processors.trim());
        listener.send(TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, mask.as_bytes())?;
        listener.receive_answer()?;
        Ok(listener)
    }

    /// All records that have arrived. Does not wait.
    ///
    /// # Errors
    /// [`Error::System`]; [`Error::Format`] for a version of the structure with an unknown layout.
    pub fn poll(&mut self) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        loop {
            match self.receive(libc::MSG_DONTWAIT) {
                Ok(length) => {
                    for message in messages(&self.buffer[..length]) {
                        batch.records.extend(parse_message(message)?);
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => return Ok(batch),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => batch.lost = true,
                Err(source) => return Err(failed("reading exit records", source)),
            }
        }
    }

    /// The descriptor, to wait for records with poll(2).
    pub fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    fn find_family(&mut self) -> Result<u16, Error> {
        self.send(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")?;
        let length = self.receive_answer()?;
        messages(&self.buffer[..length])
            .flat_map(|message| attributes(message.get(GENERIC_HEADER..).unwrap_or_default()))
            .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
            .and_then(|(_, value)| Some(u16::from_ne_bytes(value.get(..2)?.try_into().ok()?)))
            .ok_or_else(|| failed("looking for taskstats", io::Error::from_raw_os_error(libc::ENOENT)))
    }

    /// Sends one request with one attribute.
    fn send(&self, command: u8, attribute: u16, value: &[u8]) -> Result<(), Error> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Vec::new();
        message.extend([0u8; 4]);
        message.extend(self.family.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0u8; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend((4 + value.len() as u16).to_ne_bytes());
        message.extend(attribute.to_ne_bytes());
        message.extend(value);
        message.resize(message.len().next_multiple_of(4), 0);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        // SAFETY: the message lives through the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent == message.len() as isize {
            Ok(())
        } else {
            Err(failed("asking for exit records", io::Error::last_os_error()))
        }
    }

    /// Waits for the acknowledgement; the buffer then contains the answer, if one preceded it.
    fn receive_answer(&mut self) -> Result<usize, Error> {
        let asking = |source| failed("asking for exit records", source);
        let mut answer = Vec::new();
        loop {
            let length = self.receive(0).map_err(asking)?;
            if kind(&self.buffer[..length]) != Some(libc::NLMSG_ERROR as u16) {
                answer = self.buffer[..length].to_vec();
                continue;
            }
            let status = self.buffer.get(MESSAGE_HEADER..MESSAGE_HEADER + 4).and_then(|bytes| bytes.try_into().ok());
            let status = i32::from_ne_bytes(status.unwrap_or_default());
            if status != 0 {
                return Err(asking(io::Error::from_raw_os_error(-status)));
            }
            self.buffer[..answer.len()].copy_from_slice(&answer);
            return Ok(answer.len());
        }
    }

    fn receive(&mut self, flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: the buffer is valid for writes of its length.
        let received =
            unsafe { libc::recv(self.socket.as_raw_fd(), self.buffer.as_mut_ptr().cast(), self.buffer.len(), flags) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

fn open_socket() -> Result<OwnedFd, Error> {
    let opening = || failed("opening a netlink socket", io::Error::last_os_error());
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC) };
    if fd < 0 {
        return Err(opening());
    }
    // SAFETY: a new descriptor that only this code owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let set = |option: libc::c_int, value: &[u8]| {
        // SAFETY: the value lives through the call.
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, value.as_ptr().cast(), value.len() as libc::socklen_t) }
    };
    // The forced size needs root, but no raised limit; if it is refused, the default buffer only loses records earlier, which is reported.
    set(libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER.to_ne_bytes());
    let patience = [2u64.to_ne_bytes(), 0u64.to_ne_bytes()].concat();
    set(libc::SO_RCVTIMEO, &patience);
    // SAFETY: an all-zero address of the right size; the kernel picks the port.
    let bound = unsafe {
        let mut address: libc::sockaddr_nl = std::mem::zeroed();
        address.nl_family = libc::AF_NETLINK as u16;
        libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_nl>() as libc::socklen_t)
    };
    if bound == 0 { Ok(socket) } else { Err(opening()) }
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::System { what: what.into(), source }
}

fn parse_message(message: &[u8]) -> Result<Vec<ExitRecord>, Error> {
    let mut records = Vec::new();
    for (kind, value) in attributes(message.get(GENERIC_HEADER..).unwrap_or_default()) {
        let is_group = kind == TASKSTATS_TYPE_AGGR_TGID;
        if !is_group && kind != TASKSTATS_TYPE_AGGR_PID {
            continue;
        }
        // First the id that the record is about, as in the initial PID namespace.
        let id = attributes(value).next().and_then(|(_, id)| u32_at(id, 0));
        let stats = attributes(value).find(|(kind, _)| *kind == TASKSTATS_TYPE_STATS).map(|(_, stats)| stats);
        if let (Some(id), Some(stats)) = (id, stats) {
            records.push(parse_stats(stats, id as i32, is_group)?);
        }
    }
    Ok(records)
}

/// `struct taskstats` grows at its end with each version, so offsets stay. Only version 15 (Linux 6.14) inserted fields in the middle;
/// version 16 moved them.
fn parse_stats(stats: &[u8], pid: i32, is_group: bool) -> Result<ExitRecord, Error> {
    let version = u16_at(stats, 0).unwrap_or(0);
    let unknown = || Error::Format {
        path: "taskstats".into(),
        line: format!("version {version}, {} bytes, Linux {}", stats.len(), procfs::kernel_release()),
    };
    let since = |first: u16, at: usize| if version >= first { u64_at(stats, at) } else { None };
    if version == 15 {
        return Err(unknown());
    }
    let read = || {
        let comm = stats.get(80..112)?;
        Some(ExitRecord {
            is_group,
            pid,
            tgid: if version >= 12 { u32_at(stats, 368).map(|tgid| tgid as i32) } else { None },
            ppid: u32_at(stats, 132)? as i32,
            comm: String::from_utf8_lossy(comm.split(|byte| *byte == 0).next()?).into_owned(),
            exit_code: u32_at(stats, 4)?,
            elapsed_us: u64_at(stats, 144)?,
            utime_us: u64_at(stats, 152)?,
            stime_us: u64_at(stats, 160)?,
            blkio_delay_ns: u64_at(stats, 40)?,
            swapin_delay_ns: u64_at(stats, 56)?,
            thrashing_delay_ns: since(9, 336),
            minflt: u64_at(stats, 168)?,
            majflt: u64_at(stats, 176)?,
            hiwater_rss: u64_at(stats, 200)? * 1024,
        })
    };
    read().ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_or_garbled_messages_give_no_records() {
        let mut message = vec![1, 1, 0, 0];
        message.extend([200, 0, 4, 0, 1, 2, 3]);
        assert_eq!(parse_message(&message).unwrap(), []);
        assert_eq!(parse_message(&[]).unwrap(), []);
    }

    #[test]
    fn a_structure_of_an_unknown_layout_is_refused_by_name() {
        let mut stats = [0u8; 400];
        stats[0] = 15;
        assert!(parse_stats(&stats, 1, false).unwrap_err().to_string().contains("version 15"));
        stats[0] = 8;
        assert_eq!(parse_stats(&stats, 1, false).unwrap().tgid, None);
        assert!(parse_stats(&stats[..150], 1, false).is_err());
    }
}

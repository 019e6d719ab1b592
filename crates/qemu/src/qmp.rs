//! QMP, by which QEMU is asked and told: JSON, a line each, over a Unix socket that serves one client at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::{Value, json};

/// A main loop that is held up this long is not there.
const PATIENCE: Duration = Duration::from_secs(3);
/// No answer that is asked for here is as long.
const LONGEST: u64 = 1 << 20;

/// A connection.
#[derive(Debug)]
pub struct Qmp {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
    /// Who serves it.
    pub pid: i32,
    /// Why nothing more will come.
    lost: Option<String>,
}

impl Qmp {
    /// Connects, and is ready for commands.
    ///
    /// # Errors
    /// Why it cannot be, in a sentence.
    pub fn connect(socket: &Path) -> anyhow::Result<Qmp> {
        let name = socket.display();
        let stream = open(socket).with_context(|| format!("nobody serves {name}; is it QEMU's -qmp unix:{name}?"))?;
        let pid = socket_peercred(&stream).with_context(|| format!("cannot find the process that serves {name}"))?.pid;
        let mut qmp =
            Qmp { socket: socket.into(), stream: BufReader::new(stream), pid: pid.as_raw_nonzero().get(), lost: None };
        let greeting = qmp.line().with_context(|| {
            format!(
                "{name} does not greet; QMP serves one client at a time: end the other one, or give QEMU a second -qmp"
            )
        })?;
        anyhow::ensure!(greeting.get("QMP").is_some(), "{name} does not speak QMP; it is another socket");
        qmp.ask("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// What a command returns.
    ///
    /// # Errors
    /// If it is refused, or nobody answers; see [`Qmp::lost`].
    pub fn ask(&mut self, command: &str, arguments: Value) -> anyhow::Result<Value> {
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        if let Err(error) = self.stream.get_mut().write_all(line.as_bytes()) {
            self.lost = Some(error.to_string());
        }
        let due = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.line()?;
            if let Some(returned) = answer.get_mut("return") {
                return Ok(returned.take());
            }
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {}", error["desc"].as_str().unwrap_or("it does not say why"));
            }
            // What is neither is an event.
            if Instant::now() > due {
                self.lost = Some("it sends many events and no answer".into());
            }
        }
    }

    /// Why nothing more will come, if so.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = Vec::new();
        if self.lost.is_none() {
            let read = self.stream.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            self.lost = match read {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    Some(format!("it does not answer within {} s", PATIENCE.as_secs()))
                }
                Err(error) => Some(error.to_string()),
                Ok(_) if line.last() != Some(&b'\n') => Some("it was closed".into()),
                Ok(_) => None,
            };
        }
        match &self.lost {
            Some(why) => bail!("{}: {why}", self.socket.display()),
            None => serde_json::from_slice(&line)
                .with_context(|| format!("{} does not speak QMP; it is another socket", self.socket.display())),
        }
    }
}

/// Guests leave out what they do not know by this figure.
pub fn number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number != u64::MAX)
}

/// Where others wait to be accepted connecting waits, too: for no longer than any other answer.
fn open(path: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for which in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, which, Some(PATIENCE))?;
    }
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// QEMU's side sends what it likes, and ends: nothing waits, nothing panics.
    #[test]
    fn fuzz_qmp() {
        fuzz::run("qmp", &fuzz::corpus("qmp"), |bytes| {
            let (own, mut other) = UnixStream::pair().unwrap();
            other.write_all(bytes).unwrap();
            other.shutdown(std::net::Shutdown::Write).unwrap();
            let mut qmp = Qmp { socket: "socket".into(), stream: BufReader::new(own), pid: 1, lost: None };
            while qmp.lost().is_none() {
                let _ = qmp.ask("query-balloon", json!({}));
            }
        });
    }

    #[test]
    fn what_is_no_qmp_is_told() {
        for line in ["220 mail.example.org", r#"{"hello": 1}"#] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("other");
            let listener = UnixListener::bind(&path).unwrap();
            let other = std::thread::spawn(move || writeln!(listener.accept().unwrap().0, "{line}").unwrap());
            assert!(format!("{:#}", Qmp::connect(&path).unwrap_err()).contains("does not speak QMP"), "{line}");
            other.join().unwrap();
        }
        assert!(Qmp::connect(Path::new("/dev/null")).unwrap_err().to_string().contains("nobody serves"));
    }
}

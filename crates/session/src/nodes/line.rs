//! Messages between a node and the bursar that drives the search: one JSON value per line.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::str::FromStr;
use std::time::Duration;

use model::{Observation, RunRole};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::observe::Progress;
use crate::tier::FastTier;

/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Protocol version: only processes of the same bursar version talk to each other.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// Maximum size of a greeting.
const GREETING_BYTES: u64 = 4096;

/// Address and key with which a node connects to the bursar that drives the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Meeting {
    /// Shared secret: a node that sends it belongs to the job.
    pub key: String,
    /// TCP port on which the bursar that drives the search listens.
    pub port: u16,
    /// IP addresses of the host of that bursar.
    pub addresses: Vec<IpAddr>,
}

/// A node's first message: its key, version and identity.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub key: String,
    pub version: String,
    pub host: String,
    pub boot_id: String,
}

/// Settings of a run, sent to each node. The launcher passes the command itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Purpose of the run.
    pub role: RunRole,
    /// Memory limit of each node, bytes.
    pub limit_bytes: Option<u64>,
    /// The fast memory tier; `None`: the host has one tier.
    pub fast_tier: Option<FastTier>,
    /// State of the page cache before the run.
    pub cache: Cache,
    /// Time between samples.
    pub interval: Option<Duration>,
}

/// A message from a node.
#[derive(Debug, Serialize, Deserialize)]
pub enum NodeMessage {
    Progress(Progress),
    /// The node's part of the run has ended.
    Ended(Box<Observation>),
    /// The node cannot run its part; holds the reason, as a sentence.
    Refused(String),
}

/// One end of the connection.
pub struct Line {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Line {
    /// Connects to the first address that answers, and sends `hello`.
    ///
    /// # Errors
    /// The last address's error if none answers.
    pub fn come(meeting: &Meeting, hello: &Hello) -> io::Result<Line> {
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &meeting.addresses {
            match TcpStream::connect_timeout(&(*address, meeting.port).into(), PATIENCE) {
                Ok(stream) => {
                    let mut line = Line::over(&stream)?;
                    line.say(hello)?;
                    return Ok(line);
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Reads the greeting of a new connection.
    ///
    /// # Errors
    /// `PermissionDenied` if the greeting lacks `key`.
    pub fn answer(stream: &TcpStream, key: &str) -> io::Result<(Line, Hello)> {
        let mut line = Line::over(stream)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut greeting = String::new();
        (&mut line.reader).take(GREETING_BYTES).read_line(&mut greeting)?;
        let hello: Hello = serde_json::from_str(&greeting)?;
        if hello.key != key {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(None)?;
        Ok((line, hello))
    }

    fn over(stream: &TcpStream) -> io::Result<Line> {
        stream.set_nodelay(true)?;
        Ok(Line { reader: BufReader::new(stream.try_clone()?), writer: stream.try_clone()? })
    }

    pub fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        self.writer.write_all(&text)
    }

    /// Reads one message. `None`: the connection is closed, or the message does not parse.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut text = String::new();
        self.reader.read_line(&mut text).ok().filter(|read| *read > 0)?;
        serde_json::from_str(&text).ok()
    }

    /// Blocks until the other end closes its side of the connection.
    pub fn wait_for_end(mut self) {
        let _ = io::copy(&mut self.reader, &mut io::sink());
    }

    /// A second handle of the same connection.
    pub fn another(&self) -> io::Result<Line> {
        Line::over(&self.writer)
    }
}

impl Display for Meeting {
    /// One word that needs no quoting in a shell.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.key, self.port)?;
        self.addresses.iter().try_for_each(|address| write!(f, ",{address}"))
    }
}

impl FromStr for Meeting {
    type Err = String;

    fn from_str(text: &str) -> Result<Meeting, String> {
        let parse = || {
            let mut words = text.split(',');
            let (key, port) = (words.next()?.to_string(), words.next()?.parse().ok()?);
            let addresses = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
            Some(Meeting { key, port, addresses })
        };
        parse().ok_or_else(|| "expected KEY,PORT,ADDRESS…, as bursar budget passes it".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meeting_round_trips_through_one_word() {
        let addresses = vec!["10.0.0.7".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        let meeting = Meeting { key: "0-1".into(), port: 7, addresses };
        assert_eq!(meeting.to_string(), "0-1,7,10.0.0.7,2001:db8::7");
        assert_eq!(meeting.to_string().parse(), Ok(meeting));
        for wrong in ["", "key", "key,port", "key,7,nowhere"] {
            assert!(wrong.parse::<Meeting>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_a_connection_with_a_wrong_key() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let meeting = Meeting { key: "right".into(), port, addresses: vec!["127.0.0.1".parse().unwrap()] };
        let hello = |key: &str| Hello { key: key.into(), version: "v".into(), host: "h".into(), boot_id: "b".into() };
        let come = |key| {
            let line = Line::come(&meeting, &hello(key)).unwrap();
            (line, Line::answer(&listener.accept().unwrap().0, "right"))
        };
        assert!(come("wrong").1.is_err());
        let (_there, answered) = come("right");
        assert_eq!(answered.unwrap().1.host, "h");
    }
}

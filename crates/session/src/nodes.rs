//! Jobs over several nodes, with the same limit on each. The launcher starts `bursar node` on every other node, which starts the command.
//! `bursar node` limits and observes the command, and reports over a connection of its own. When the connection closes, it ends the command.

mod agent;
mod launcher;
mod line;

use std::ffi::OsString;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use linux::{addresses, procfs};
use model::{Observation, Origin, RunRole};

use crate::bench::unix_ns;
use crate::launch::Launcher;
use crate::observe::Progress;
use launcher::Beneath;
use line::{Hello, Line, NodeMessage, OWN};

pub use agent::node;
pub use line::{Meeting, Order};

/// Time limit for a node to report its part after the job has ended; the node evicts the job's page cache meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// Receives the reports of a job's nodes.
pub struct Nodes {
    beneath: Beneath,
    current: Arc<Mutex<Option<Arc<Run>>>>,
}

/// The current run.
struct Run {
    order: Order,
    state: Mutex<State>,
    /// Signalled when a node's message has been handled.
    news: Condvar,
}

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    /// Why the run cannot continue, as a sentence.
    trouble: Option<String>,
}

/// A node that has connected.
struct Node {
    hello: Hello,
    stream: TcpStream,
    came_unix_ns: u64,
    /// The last progress message, and when it arrived.
    progress: Option<(Instant, Progress)>,
    observation: Option<Observation>,
}

impl Nodes {
    /// Listens for nodes if the command is a launcher that can start processes on other nodes; else `None`.
    pub fn of(command: &[OsString]) -> anyhow::Result<Option<Nodes>> {
        let Some(launcher) = Launcher::of(command) else { return Ok(None) };
        let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"));
        let listener = listener.context("cannot listen on a port for the nodes of the job")?;
        let port = listener.local_addr()?.port();
        let meeting = Meeting { key: procfs::uuid()?, port, addresses: addresses::own() };
        let beneath = Beneath::bursar(launcher, command, &meeting)?;
        let current: Arc<Mutex<Option<Arc<Run>>>> = Arc::default();
        let runs = Arc::clone(&current);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                let (runs, key) = (Arc::clone(&runs), meeting.key.clone());
                let answer = move || {
                    let Ok((line, hello)) = Line::answer(&stream, &key) else { return };
                    let run = lock(&runs).clone();
                    if let Some(run) = run {
                        run.serve(line, hello, stream);
                    }
                };
                // If no thread starts, the connection closes and the node reports the error.
                let _ = thread::Builder::new().spawn(answer);
            }
        };
        thread::Builder::new().spawn(serve).context("no thread to listen to the nodes can be had")?;
        Ok(Some(Nodes { beneath, current }))
    }

    /// Environment variables that the launcher needs.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        self.beneath.environment.clone()
    }

    /// Begins a run: nodes that connect from now on belong to it.
    pub fn begin(&self, order: Order) {
        *lock(&self.current) = Some(Arc::new(Run { order, state: Mutex::default(), news: Condvar::new() }));
    }

    /// Progress of the other nodes, on this host's clock. `elapsed`: time since the run began here.
    pub fn progress(&self, elapsed: Duration) -> Vec<Progress> {
        let Some(run) = lock(&self.current).clone() else { return Vec::new() };
        let state = lock(&run.state);
        let received = state.nodes.iter().filter_map(|node| node.progress);
        received
            .map(|(came, progress)| {
                let age = came.elapsed() + progress.elapsed.saturating_sub(progress.sampled);
                Progress { elapsed, sampled: elapsed.saturating_sub(age), ..progress }
            })
            .collect()
    }

    /// Whether a node has failed.
    pub fn is_in_trouble(&self) -> bool {
        lock(&self.current).as_ref().is_some_and(|run| lock(&run.state).trouble.is_some())
    }

    /// Collects the observations of the other nodes after the command has ended here, sorted by host name. `errors`: the standard
    /// error of the command.
    pub fn end(&self, errors: &str) -> anyhow::Result<Vec<Observation>> {
        // Nodes that connect from now on get no answer.
        let Some(run) = lock(&self.current).take() else { return Ok(Vec::new()) };
        let deadline = Instant::now() + PATIENCE;
        let mut state = lock(&run.state);
        for node in &state.nodes {
            // `bursar node` ends its processes when it reads the end of the stream.
            let _ = node.stream.shutdown(Shutdown::Write);
        }
        while state.trouble.is_none() && state.nodes.iter().any(|node| node.observation.is_none()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let silent = state.nodes.iter().filter(|node| node.observation.is_none());
                let silent: Vec<&str> = silent.map(|node| node.hello.host.as_str()).collect();
                state.trouble = Some(format!("{} sent no figures of the run", silent.join(", ")));
            }
            state = run.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let without = launcher::without_bursar(errors);
        if !without.is_empty() {
            bail!("there is no {} on {}: every node must have it", self.beneath.program, without.join(", "));
        }
        if let Some(trouble) = state.trouble.take() {
            bail!(trouble);
        }
        let mut nodes = std::mem::take(&mut state.nodes);
        nodes.sort_by(|a, b| a.hello.host.cmp(&b.hello.host));
        Ok(nodes.into_iter().filter_map(Node::part).collect())
    }
}

impl Run {
    /// Handles the messages of one node until its last.
    fn serve(&self, mut line: Line, hello: Hello, stream: TcpStream) {
        let (host, is_ours) = (hello.host.clone(), hello.version == OWN);
        let at = {
            let mut state = lock(&self.state);
            let node = Node { hello, stream, came_unix_ns: unix_ns(), progress: None, observation: None };
            state.nodes.push(node);
            state.nodes.len() - 1
        };
        let mut message = if is_ours {
            line.say(&self.order).ok().and_then(|()| line.hear())
        } else {
            Some(NodeMessage::Refused(format!("bursar is of another version than {OWN} there")))
        };
        loop {
            let mut state = lock(&self.state);
            let is_last = !matches!(message, Some(NodeMessage::Progress(_)));
            let node = state.nodes.get_mut(at);
            match (message, node) {
                (Some(NodeMessage::Progress(progress)), Some(node)) => node.progress = Some((Instant::now(), progress)),
                (Some(NodeMessage::Ended(observation)), Some(node)) => node.observation = Some(*observation),
                (Some(NodeMessage::Refused(why)), _) => state.trouble = Some(format!("{host}: {why}")),
                (_, Some(_)) => {
                    state.trouble = Some(format!("{host} is lost: bursar has ended there, or cannot be reached"));
                }
                (_, None) => {}
            }
            self.news.notify_all();
            if is_last {
                return;
            }
            drop(state);
            message = line.hear();
        }
    }
}

impl Node {
    fn part(self) -> Option<Observation> {
        let origin = Origin { host: self.hello.host, boot_id: self.hello.boot_id, rank: None };
        // The clocks of nodes need not agree.
        let started_unix_ns = self.came_unix_ns;
        Some(Observation { role: RunRole::Part, started_unix_ns, origin: Some(origin), ..self.observation? })
    }
}

/// Joins the parts of a run: adds up their memory, and keeps the exit and run time of this host's part (the first).
pub fn together(parts: &[Observation]) -> Option<Observation> {
    let here = parts.first()?;
    let sum = account::together(parts)?;
    Some(Observation {
        limit_bytes: here.limit_bytes,
        started_unix_ns: here.started_unix_ns,
        exit: here.exit,
        wall_seconds: here.wall_seconds,
        notes: vec!["Its time lines are those of its nodes, added up; its limit is each node's.".into()],
        ..sum
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Which cgroups are watched, and what clients are answered of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glob::{MatchOptions, Pattern};
use linux::cgroup::{Found, Tree};
use linux::psi::{self, Psi};
use rustix::time::{ClockId, clock_gettime};

use crate::Error;
use crate::exposition::Format;
use crate::http::{Request, Response};
use crate::identity::{Identity, Kind};
use crate::metrics;
use crate::server::Counts;
use crate::watched::{Shown, Watched};

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Cgroups by path or pattern; none: all that are a unit, a pod, a container, a job, a step, or have none beneath them.
    pub patterns: Vec<String>,
    /// At most so many.
    pub most: usize,
}

/// Scans, and remembers the last scan.
pub struct Agent {
    tree: Tree,
    patterns: Vec<Pattern>,
    most: usize,
    watched: BTreeMap<PathBuf, Watched>,
    pub(crate) own: Own,
}

/// The last complete scan; `None` before the first is complete.
pub type Published = Mutex<Option<Arc<Scan>>>;

/// A complete scan.
#[derive(Debug)]
pub struct Scan {
    /// In the order of their paths.
    pub cgroups: Vec<Shown>,
    /// Of bursar itself.
    pub own: Own,
}

/// Answers clients from the last complete scan.
pub struct Answers<'a> {
    published: &'a Published,
    /// The scan that the pages are of.
    scan: Option<Arc<Scan>>,
    pages: BTreeMap<&'static str, Rc<[u8]>>,
    /// How long it took to write the last page.
    written_in: Duration,
}

/// What the agent says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// Found, but not watched.
    pub left_out: u64,
    pub looks: u64,
    pub look: Duration,
    /// Seconds since 1970.
    pub looked_at: f64,
    /// From the begin of a scan to that of the next.
    pub interval: Duration,
    pub pressure: Option<Psi>,
}

/// Units that hold no processes, or nothing but systemd's own.
const NOTHING_IN_IT: [&str; 6] = [".mount", ".automount", ".swap", ".socket", ".device", ".target"];

impl Agent {
    /// One that has not looked yet.
    ///
    /// # Errors
    /// [`Error::Pattern`]; [`Error::Linux`] where no cgroups are to be seen.
    pub fn new(settings: Settings) -> Result<Agent, Error> {
        let tree = Tree::find()?;
        let pattern = |text: &String| {
            // By the path in the file system, or from the root of the hierarchy.
            let within = text.strip_prefix(&*tree.point().to_string_lossy()).unwrap_or(text).trim_matches('/');
            Pattern::new(within).map_err(|error| Error::Pattern(text.clone(), error))
        };
        let patterns = settings.patterns.iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Agent { patterns, most: settings.most, watched: BTreeMap::new(), own: Own::default(), tree })
    }

    /// Scans all there are now, and returns the processor time that it took. `None`: it is over.
    pub fn scan(&mut self, is_over: &AtomicBool) -> Option<Duration> {
        let (begin, cpu) = (Instant::now(), own_cpu());
        let found = self.find(is_over);
        // A cgroup that was made anew has nothing to do with what was seen of the old one.
        self.watched.retain(|path, watched| found.get(path) == Some(&watched.inode));
        self.own.left_out = 0;
        for (path, inode) in found {
            if self.watched.contains_key(&path) {
                continue;
            }
            // A name that is no text has no label.
            match path.to_str().filter(|_| self.watched.len() < self.most) {
                Some(name) if !is_over.load(Ordering::Relaxed) => {
                    let watched = Watched::new(self.tree.cgroup(&path), name, inode);
                    self.watched.insert(path, watched);
                }
                _ => self.own.left_out += 1,
            }
        }
        // What went meanwhile is no failure, and what may not be read is found again each time.
        let before = self.watched.len();
        self.watched.retain(|_, watched| is_over.load(Ordering::Relaxed) || watched.look().is_ok());
        if is_over.load(Ordering::Relaxed) {
            return None;
        }
        self.own.left_out += (before - self.watched.len()) as u64;
        self.own.pressure = psi::system();
        self.own.looks += 1;
        self.own.look = begin.elapsed();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        self.own.looked_at = now.as_secs_f64();
        Some(own_cpu().saturating_sub(cpu))
    }

    /// The last scan, for clients; the next begins after this interval.
    pub fn shown(&self, interval: Duration) -> Arc<Scan> {
        let cgroups = self.watched.values().map(|watched| watched.shown.clone()).collect();
        Arc::new(Scan { cgroups, own: Own { interval, ..self.own } })
    }

    fn find(&self, is_over: &AtomicBool) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        self.tree.walk(&mut |one: Found| {
            let (is_wanted, goes_on) = self.judge(&one);
            if is_wanted {
                found.insert(one.path.to_path_buf(), one.inode);
            }
            goes_on && !is_over.load(Ordering::Relaxed)
        });
        found
    }

    /// Whether a cgroup is to be watched, and whether those beneath it may be.
    fn judge(&self, found: &Found) -> (bool, bool) {
        if !self.patterns.is_empty() {
            let literally = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
            return (self.patterns.iter().any(|pattern| pattern.matches_path_with(found.path, literally)), true);
        }
        let name = found.path.to_string_lossy();
        let kind = Identity::of(&name).kind;
        let is_named = kind != Kind::Other || found.is_leaf;
        (is_named && !NOTHING_IN_IT.iter().any(|end| name.ends_with(end)), !kind.is_whole())
    }

    /// How many are watched.
    pub fn len(&self) -> usize {
        self.watched.len()
    }

    /// How many are watched, as a sentence's begin.
    pub fn sentence(&self) -> String {
        let left_out = match self.own.left_out {
            0 => String::new(),
            more => format!(" ({more} more are left out)"),
        };
        format!("{} cgroups under {}{left_out}", self.watched.len(), self.tree.point().display())
    }
}

impl<'a> Answers<'a> {
    /// From what is published there.
    pub fn new(published: &'a Published) -> Answers<'a> {
        Answers { published, scan: None, pages: BTreeMap::new(), written_in: Duration::ZERO }
    }

    /// The answer to a client.
    pub fn answer(&mut self, request: &Request, counts: &Counts) -> Response {
        match request.path.as_str() {
            "/metrics" => match self.page(request.format, counts) {
                Some(page) => Response::page(request.format.content_type(), page),
                None => Response::text(503, "the first scan of the cgroups is not complete yet: try again\n"),
            },
            "/" => Response::text(200, "bursar serve: metrics of cgroups are at /metrics\n"),
            _ => Response::text(404, "there is nothing here; metrics are at /metrics\n"),
        }
    }

    /// The last complete scan, written once however many ask.
    fn page(&mut self, format: Format, counts: &Counts) -> Option<Rc<[u8]>> {
        let scan = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        if self.scan.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &scan)) {
            self.pages.clear();
            self.scan = Some(scan.clone());
        }
        if let Some(page) = self.pages.get(format.content_type()) {
            return Some(page.clone());
        }
        let begin = Instant::now();
        let page: Rc<[u8]> = metrics::page(&scan, self.written_in, format, counts).into_bytes().into();
        self.written_in = begin.elapsed();
        self.pages.insert(format.content_type(), page.clone());
        Some(page)
    }
}

/// CPU time of this thread.
fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

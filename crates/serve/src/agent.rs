//! Which cgroups are watched, and what is told of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glob::{MatchOptions, Pattern};
use linux::cgroup::{Found, Tree};
use linux::psi::{self, Psi};

use crate::Error;
use crate::exposition::Format;
use crate::http::{Request, Response};
use crate::identity::{Identity, Kind};
use crate::metrics;
use crate::server::Counts;
use crate::watched::Watched;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Cgroups by path or pattern; none: all that are a unit, a pod, a container, a job, a step, or have none beneath them.
    pub patterns: Vec<String>,
    /// At most so many.
    pub most: usize,
}

/// Looks, and remembers what it saw.
pub struct Agent {
    tree: Tree,
    patterns: Vec<Pattern>,
    most: usize,
    watched: BTreeMap<PathBuf, Watched>,
    pages: BTreeMap<&'static str, Rc<[u8]>>,
    pub(crate) own: Own,
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
    pub answer: Duration,
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
        Ok(Agent {
            patterns,
            most: settings.most,
            watched: BTreeMap::new(),
            pages: BTreeMap::new(),
            own: Own::default(),
            tree,
        })
    }

    /// Looks at all there are now.
    pub fn look(&mut self) {
        let begin = Instant::now();
        let found = self.find();
        // A cgroup that was made anew has nothing to do with what was seen of the old one.
        self.watched.retain(|path, watched| found.get(path) == Some(&watched.inode));
        self.own.left_out = 0;
        for (path, inode) in found {
            if self.watched.contains_key(&path) {
                continue;
            }
            // A name that is no text has no label.
            match path.to_str().filter(|_| self.watched.len() < self.most) {
                Some(name) => {
                    let watched = Watched::new(self.tree.cgroup(&path), name, inode);
                    self.watched.insert(path, watched);
                }
                None => self.own.left_out += 1,
            }
        }
        // What went meanwhile is no failure, and what may not be read is found again each time.
        let before = self.watched.len();
        self.watched.retain(|_, watched| watched.look().is_ok());
        self.own.left_out += (before - self.watched.len()) as u64;
        self.own.pressure = psi::system();
        self.own.looks += 1;
        self.own.look = begin.elapsed();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        self.own.looked_at = now.as_secs_f64();
        self.pages.clear();
    }

    fn find(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        self.tree.walk(&mut |one: Found| {
            let (is_wanted, goes_on) = self.judge(&one);
            if is_wanted {
                found.insert(one.path.to_path_buf(), one.inode);
            }
            goes_on
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

    /// All that are watched, in the order of their paths.
    pub fn watched(&self) -> impl Iterator<Item = &Watched> {
        self.watched.values()
    }

    /// How many are watched, as a sentence's begin.
    pub fn sentence(&self) -> String {
        let left_out = match self.own.left_out {
            0 => String::new(),
            more => format!(" ({more} more are left out)"),
        };
        format!("{} cgroups under {}{left_out}", self.watched.len(), self.tree.point().display())
    }

    /// What a client is told.
    pub fn answer(&mut self, request: &Request, counts: &Counts) -> Response {
        match request.path.as_str() {
            "/metrics" => Response::page(request.format.content_type(), self.page(request.format, counts)),
            "/" => Response::text(200, "bursar serve: metrics of cgroups are at /metrics\n"),
            _ => Response::text(404, "there is nothing here; metrics are at /metrics\n"),
        }
    }

    /// What was seen at the last look, written once however many ask.
    fn page(&mut self, format: Format, counts: &Counts) -> Rc<[u8]> {
        if let Some(page) = self.pages.get(format.content_type()) {
            return page.clone();
        }
        let begin = Instant::now();
        let page: Rc<[u8]> = metrics::page(self, format, counts).into_bytes().into();
        self.own.answer = begin.elapsed();
        self.pages.insert(format.content_type(), page.clone());
        page
    }
}

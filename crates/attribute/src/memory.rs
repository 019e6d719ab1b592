//! Memory by line and kind at one moment.

use model::{MemoryKind, lines};
use runtime_abi::Owner;

use crate::log::ProcessLog;

/// Memory of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub rss: u64,
    pub pss: u64,
}

/// Memory by kind, in the order of [`MemoryKind::ALL`].
pub type Row = [Cell; MemoryKind::ALL.len()];

/// How memory that processes share is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// For each of them.
    Rss,
    /// Divided among them, so that over all processes of a host it counts once.
    Pss,
}

/// The lines that memory is told apart by: the components, then those beside them.
#[derive(Clone, Debug)]
pub struct Lines {
    components: Vec<String>,
}

impl Measure {
    pub fn of(self, cell: Cell) -> u64 {
        match self {
            Measure::Rss => cell.rss,
            Measure::Pss => cell.pss,
        }
    }

    pub fn by_kind(self, row: &Row) -> [u64; MemoryKind::ALL.len()] {
        row.map(|cell| self.of(cell))
    }

    pub fn sum(self, row: &Row) -> u64 {
        self.by_kind(row).iter().sum()
    }
}

impl Lines {
    /// With the components of all logs.
    pub fn of(logs: &[ProcessLog]) -> Lines {
        let mut components: Vec<String> = Vec::new();
        for name in logs.iter().flat_map(|log| &log.started.components) {
            if !components.contains(name) && !lines::RESERVED.contains(&name.as_str()) {
                components.push(name.clone());
            }
        }
        Lines { components }
    }

    pub fn components(&self) -> &[String] {
        &self.components
    }

    pub fn unattributed(&self) -> usize {
        self.components.len()
    }

    pub fn retained(&self) -> usize {
        self.components.len() + 1
    }

    pub fn own(&self) -> usize {
        self.components.len() + 2
    }

    pub fn total(&self) -> usize {
        self.components.len() + 3
    }

    /// The names in their order.
    pub fn names(&self) -> Vec<&str> {
        let beside = [lines::UNATTRIBUTED, lines::RETAINED, lines::OWN, lines::TOTAL];
        self.components.iter().map(String::as_str).chain(beside).collect()
    }

    /// The line of a component of a log; what is not known cannot be explained.
    pub fn of_component(&self, log: &ProcessLog, component: u64) -> usize {
        let name = usize::try_from(component).ok().and_then(|at| log.started.components.get(at));
        name.and_then(|name| self.components.iter().position(|known| known == name)).unwrap_or(self.unattributed())
    }

    /// The line that an owner of a log counts to.
    pub fn of_owner(&self, log: &ProcessLog, owner: u64) -> usize {
        match (Owner::from_number(owner), log.owners.get(&owner)) {
            (Some(Owner::Retained), _) => self.retained(),
            (Some(Owner::Own), _) => self.own(),
            (_, Some(owner)) => self.of_component(log, owner.component),
            (_, None) => self.unattributed(),
        }
    }
}

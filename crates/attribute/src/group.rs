//! Which processes make a rank.

use std::collections::BTreeMap;

use crate::replay::Process;

/// The processes of a run.
pub struct Groups<'a> {
    /// Of each rank; in a run without ranks, what one process was before and after `exec`.
    pub ranks: Vec<Vec<&'a Process<'a>>>,
    /// Those of a run with ranks that are of none: shells, launchers.
    pub others: Vec<&'a Process<'a>>,
}

impl<'a> Groups<'a> {
    pub fn of(processes: &'a [Process<'a>]) -> Groups<'a> {
        let has_ranks = processes.iter().any(|process| process.rank.is_some());
        let (counted, others) = processes.iter().partition::<Vec<_>, _>(|process| !has_ranks || process.rank.is_some());
        // In a run without ranks they come in the order of their start.
        let key = |process: &Process| {
            let started = &process.log.started;
            (
                process.rank,
                (!has_ranks).then(|| (started.start_ticks, started.host.clone(), started.pid_namespace, started.pid)),
            )
        };
        let mut ranks: BTreeMap<_, Vec<&Process>> = BTreeMap::new();
        for process in counted {
            ranks.entry(key(process)).or_default().push(process);
        }
        Groups { ranks: ranks.into_values().collect(), others }
    }
}

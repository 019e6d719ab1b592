//! What the planner is told of a run.

use budget::{MethodMemory, Progress, Reference};
use model::{Exit, Method, NodeRun, Observation, Outcome, RunAccount, Trial, names};
use session::tier::FastTier;

use crate::executor::{Executor, Made};
use crate::figures::{cpu_of, lost_to_pressure, pace, peak_of_sum, stall_of};
use crate::runtime::Sizing;
use crate::search::Search;

impl<E: Executor> Search<'_, E> {
    /// One limit holds on every node, so what counts is the node that needs most of each.
    pub(crate) fn learn_reference(&mut self, made: &Made) {
        let (whole, header) = (&made.observation, &self.record.header);
        let nodes: Vec<(&Observation, RunAccount)> =
            made.nodes().iter().map(|node| (node, account::account(node, header))).collect();
        let most = |of: &dyn Fn(&Observation, &RunAccount) -> Option<u64>| {
            nodes.iter().filter_map(|(node, account)| of(node, account)).max()
        };
        let peak = |name: &'static str| {
            move |node: &Observation, _: &RunAccount| {
                node.job_series(name).and_then(|series| series.peak()).map(|bytes| bytes as u64)
            }
        };
        let mapped = peak(names::FILE_MAPPED);
        let in_use = |node: &Observation, account: &RunAccount| {
            mapped(node, account).zip(peak(names::ACTIVE_FILE)(node, account)).map(|(a, b)| a.min(b))
        };
        let account = account::account(whole, header);
        let reference = Reference {
            run: whole.run,
            wall_seconds: whole.wall_seconds,
            stall_seconds: made.stall_seconds(&account),
            peak_charge_bytes: most(&|_, account| account.peak_charge_bytes),
            // Whoever enforces a limit that was emulated may find the most.
            floor_bytes: most(&|_, account| match self.executor.emulates_limits() {
                true => account.floor_at_most_bytes.or(account.floor_bytes),
                false => account.floor_bytes,
            }),
            file_mapped_bytes: most(&mapped),
            mapped_in_use_bytes: most(&in_use),
            held_bytes: most(&|node, _| peak_of_sum(node, [names::HEAP, names::SHARED])),
            dirty_bytes: most(&|node, _| peak_of_sum(node, [names::FILE_DIRTY, names::FILE_WRITEBACK])),
            refaults: account.flow.refaults_file,
            cpu_seconds: cpu_of(whole),
            system_seconds: account.system_seconds,
            io_wait_share: share_of_most(&nodes),
            breakdown: largest(&nodes).map(|account| account.peak_breakdown).unwrap_or_default(),
            pace: pace(whole),
        };
        for (node, account) in &nodes {
            // The curve with the most refaults is the one that was helped least by what others had cached.
            let more = |demand: &&model::FileDemand| {
                self.seen.demand.as_ref().is_none_or(|known| known.distinct_bytes < demand.distinct_bytes)
            };
            if let Some(demand) = node.file_demand.as_ref().filter(more) {
                let known_from_bytes =
                    account.file_demand.as_ref().map_or(0, |above_floor| above_floor.known_from_bytes);
                self.seen.demand = Some(model::FileDemand { known_from_bytes, ..demand.clone() });
            }
            for method in [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited] {
                let Some((memory_bytes, breakdown)) = account::method_memory(account, method) else { continue };
                match self.seen.methods.iter_mut().find(|known| known.method == method) {
                    Some(known) if known.memory_bytes >= memory_bytes => {}
                    Some(known) => *known = MethodMemory { method, memory_bytes, breakdown },
                    None => self.seen.methods.push(MethodMemory { method, memory_bytes, breakdown }),
                }
            }
        }
        self.sizing = self.sizing.take().or_else(|| Sizing::of(&self.options.command, Some(whole)));
        self.settings.sizes_itself = self.sizes_itself();
        self.seen.learn(&self.settings, reference);
    }

    /// A run as a trial.
    pub(crate) fn measured(
        &self,
        made: &Made,
        account: &RunAccount,
        method: Option<Method>,
        predicted_ratio: Option<f64>,
        outcome: Outcome,
        why: String,
    ) -> Trial {
        let observation = &made.observation;
        let nodes: Vec<(&Observation, RunAccount)> =
            made.nodes().iter().map(|node| (node, account::account(node, &self.record.header))).collect();
        let stall_seconds = made.stall_seconds(account);
        let cpu_seconds = cpu_of(observation);
        let refaults = account.flow.refaults_file;
        // A run that was stopped went on to clean up, and that is not counted.
        let is_counted = |(_, at): &(f64, f64)| *at <= observation.wall_seconds;
        let pace: Vec<(f64, f64)> = pace(observation).into_iter().filter(is_counted).collect();
        let furthest = pace.last().and_then(|(most, _)| pace.iter().find(|(cpu, _)| cpu >= most));
        let progress =
            Progress { elapsed_seconds: observation.wall_seconds, stall_seconds, pace: furthest.copied(), refaults };
        let lower_bound = matches!(observation.exit, Exit::StoppedEarly | Exit::TimedOut) && outcome != Outcome::Oom;
        let median = self.seen.reference().map(|spread| spread.median);
        let runtime_ratio = match lower_bound {
            _ if outcome == Outcome::Oom => None,
            true => budget::ratio_at_least(&self.seen, &progress),
            false => median.map(|median| observation.wall_seconds / median),
        };
        let usual = model::Spread::of(&self.seen.references.iter().filter_map(|r| r.stall_seconds).collect::<Vec<_>>());
        let usual_refaults = self.seen.references.iter().filter_map(|r| r.refaults).max().unwrap_or(0);
        // Of a run that is stopped the limit is lifted, so that it can end: what it has from there on it did not have within it.
        let has_fast_node = matches!(self.options.fast_tier, Some(FastTier::Node(_)));
        let enforced = observation.limit_bytes.filter(|_| lower_bound && !has_fast_node).unwrap_or(u64::MAX);
        Trial {
            run: observation.run,
            method,
            limit_bytes: observation.limit_bytes,
            outcome,
            lower_bound,
            wall_seconds: observation.wall_seconds,
            cpu_seconds,
            system_seconds: account.system_seconds.filter(|_| !lower_bound),
            stall_seconds: stall_seconds.zip(usual).map(|(stall, usual)| (stall - usual.min).max(0.0)),
            runtime_ratio,
            predicted_ratio,
            io_wait_share: share_of_most(&nodes),
            refaults: refaults.map(|refaults| refaults.saturating_sub(usual_refaults)),
            peak_charge_bytes: largest(&nodes).and_then(|account| account.peak_charge_bytes).map(|b| b.min(enforced)),
            breakdown: largest(&nodes).map(|account| account.peak_breakdown).unwrap_or_default(),
            exit_status: account.exit_status,
            why,
            nodes: nodes.iter().filter_map(|(node, account)| node_run(node, account)).collect(),
        }
    }
}

impl Made {
    /// Of the node that waited longest; pressure where that says more.
    fn stall_seconds(&self, account: &RunAccount) -> Option<f64> {
        let of_pressure = lost_to_pressure(&account.pressure);
        self.nodes().iter().filter_map(stall_of).chain(of_pressure).reduce(f64::max)
    }
}

/// The account of the node that had most.
fn largest<'a>(nodes: &'a [(&Observation, RunAccount)]) -> Option<&'a RunAccount> {
    nodes.iter().map(|(_, account)| account).max_by_key(|account| account.peak_charge_bytes)
}

/// Of the node that waited most.
fn share_of_most(nodes: &[(&Observation, RunAccount)]) -> Option<f64> {
    nodes.iter().filter_map(|(_, account)| account.io_wait_share).reduce(f64::max)
}

/// A part of a run as its trial tells it.
fn node_run(part: &Observation, account: &RunAccount) -> Option<NodeRun> {
    Some(NodeRun {
        host: part.origin.as_ref()?.host.clone(),
        wall_seconds: part.wall_seconds,
        peak_charge_bytes: account.peak_charge_bytes,
        breakdown: account.peak_breakdown,
        floor_bytes: account.floor_bytes,
        oom_kills: account.oom_kills,
        refaults: account.flow.refaults_file,
        io_wait_share: account.io_wait_share,
    })
}

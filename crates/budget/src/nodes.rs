//! A job over several nodes: what each node needs of the common limit.

use std::collections::BTreeMap;

use model::{Answer, NodeNeed, NodeRun, Outcome, Spread, Trial};

/// Each node's figures in the runs without a limit and under the smallest passing limit, by node name.
pub fn nodes(trials: &[Trial], answer: &Answer) -> Vec<NodeNeed> {
    let mut by_host: BTreeMap<&str, Vec<(&Trial, &NodeRun)>> = BTreeMap::new();
    for trial in trials {
        for node in &trial.nodes {
            by_host.entry(&node.host).or_default().push((trial, node));
        }
    }
    by_host.into_iter().map(|(host, parts)| need(host, &parts, answer)).collect()
}

fn need(host: &str, parts: &[(&Trial, &NodeRun)], answer: &Answer) -> NodeNeed {
    let of = |is: &dyn Fn(&Trial) -> bool| -> Vec<&NodeRun> {
        parts.iter().filter(|(trial, _)| is(trial)).map(|(_, node)| *node).collect()
    };
    let unlimited = of(&|trial| trial.limit_bytes.is_none());
    let passing = of(&|trial| {
        trial.limit_bytes.is_some()
            && trial.limit_bytes == answer.smallest_passing_bytes
            && trial.outcome == Outcome::Ok
    });
    let peak = |nodes: &[&NodeRun]| nodes.iter().filter_map(|node| node.peak_charge_bytes).max();
    let median = |nodes: &[&NodeRun]| {
        Spread::of(&nodes.iter().map(|node| node.wall_seconds).collect::<Vec<_>>()).map(|spread| spread.median)
    };
    NodeNeed {
        host: host.to_string(),
        floor_bytes: unlimited.iter().filter_map(|node| node.floor_bytes).max(),
        peak_charge_bytes: peak(&unlimited),
        reference_seconds: median(&unlimited),
        peak_at_passing_bytes: peak(&passing),
        seconds_at_passing: median(&passing),
        oom_kills: parts.iter().filter_map(|(_, node)| node.oom_kills).reduce(|a, b| a.saturating_add(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(limit: Option<u64>, outcome: Outcome, parts: &[(&str, f64, u64)]) -> Trial {
        let node = |(host, wall_seconds, bytes): &(&str, f64, u64)| NodeRun {
            host: host.to_string(),
            wall_seconds: *wall_seconds,
            peak_charge_bytes: Some(*bytes),
            floor_bytes: Some(bytes / 2),
            oom_kills: Some(u64::from(outcome == Outcome::Oom)),
            ..NodeRun::default()
        };
        Trial { nodes: parts.iter().map(node).collect(), ..Trial::new(0, limit, outcome) }
    }

    #[test]
    fn each_node_has_its_own_figures_of_the_same_runs() {
        let trials = [
            trial(None, Outcome::Ok, &[("south", 1.0, 100), ("north", 2.0, 40)]),
            trial(None, Outcome::Ok, &[("north", 4.0, 44), ("south", 3.0, 90)]),
            trial(Some(80), Outcome::Ok, &[("north", 5.0, 41), ("south", 5.0, 80)]),
            trial(Some(70), Outcome::Oom, &[("north", 5.0, 41), ("south", 5.0, 70)]),
        ];
        let answer = Answer { smallest_passing_bytes: Some(80), ..Answer::default() };
        let [north, south] = &nodes(&trials, &answer)[..] else { panic!() };
        assert_eq!((north.host.as_str(), north.floor_bytes, north.peak_charge_bytes), ("north", Some(22), Some(44)));
        assert_eq!((south.reference_seconds, south.peak_at_passing_bytes), (Some(2.0), Some(80)));
        assert_eq!((north.seconds_at_passing, south.oom_kills), (Some(5.0), Some(1)));
        assert_eq!(nodes(&trials, &Answer::default())[0].peak_at_passing_bytes, None);
        assert!(nodes(&[trial(None, Outcome::Ok, &[])], &answer).is_empty(), "one machine");
    }
}

//! The processes of a run as a tree short enough to read.

use std::collections::{BTreeMap, HashMap};

use model::ProcessRecord;

/// Above this many rows, processes of equal command and place are shown as one row.
pub const MOST_ROWS: usize = 30;

/// One row: a process, or several of the same command at the same place of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Indentation.
    pub depth: usize,
    /// Command name.
    pub command: String,
    /// PID, of a row that is one process.
    pub pid: Option<i32>,
    /// Processes in this row.
    pub count: usize,
    /// Largest peak RSS among them.
    pub max_rss_bytes: Option<u64>,
    /// User and system time, summed.
    pub cpu_seconds: Option<f64>,
    /// Lifetimes, summed.
    pub lifetime_seconds: Option<f64>,
    /// Wait for block I/O, summed.
    pub io_delay_seconds: Option<f64>,
    /// Major faults, summed.
    pub major_faults: Option<u64>,
    /// Where the figures come from.
    pub source: String,
}

/// The tree, children after and below their parent in order of their start.
pub fn rows(processes: &[ProcessRecord]) -> Vec<Row> {
    let children = by_parent(processes);
    let roots = children.get(&None).cloned().unwrap_or_default();
    let mut rows = Vec::new();
    let merge = processes.len() > MOST_ROWS;
    add(processes, &children, &roots, 0, merge, &mut rows);
    shorten(rows)
}

/// Indices of the processes by index of their parent; `None`: the parent is not of the job.
fn by_parent(processes: &[ProcessRecord]) -> BTreeMap<Option<usize>, Vec<usize>> {
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    // A PID may be used again: the parent is the latest of that PID that came before. Records are in order of start.
    let mut latest: HashMap<i32, usize> = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        let parent = process.parent.and_then(|pid| latest.get(&pid).copied());
        children.entry(parent).or_default().push(index);
        latest.insert(process.key.pid, index);
    }
    children
}

fn add(
    processes: &[ProcessRecord],
    children: &BTreeMap<Option<usize>, Vec<usize>>,
    siblings: &[usize],
    depth: usize,
    merge: bool,
    rows: &mut Vec<Row>,
) {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &index in siblings {
        let same = groups.iter_mut().find(|group| processes[group[0]].command == processes[index].command);
        match same {
            Some(group) if merge => group.push(index),
            _ => groups.push(vec![index]),
        }
    }
    for group in groups {
        rows.push(row(processes, &group, depth));
        let below: Vec<usize> = group.iter().filter_map(|i| children.get(&Some(*i))).flatten().copied().collect();
        add(processes, children, &below, depth + 1, merge, rows);
    }
}

fn row(processes: &[ProcessRecord], group: &[usize], depth: usize) -> Row {
    let members = || group.iter().map(|i| &processes[*i]);
    let sum = |of: fn(&ProcessRecord) -> Option<f64>| members().filter_map(of).reduce(|a, b| a + b);
    let first = &processes[group[0]];
    Row {
        depth,
        command: first.command.clone(),
        pid: (group.len() == 1).then_some(first.key.pid),
        count: group.len(),
        max_rss_bytes: members().filter_map(|p| p.max_rss_bytes).max(),
        cpu_seconds: sum(|p| Some(p.user_seconds? + p.system_seconds?)),
        lifetime_seconds: sum(|p| p.lifetime_seconds),
        io_delay_seconds: sum(|p| p.io_delay_seconds),
        major_faults: members().filter_map(|p| p.major_faults).reduce(|a, b| a + b),
        source: first.source.clone(),
    }
}

/// Keeps the rows of the largest processes with what stands above them, and sums the others up in a last row.
fn shorten(rows: Vec<Row>) -> Vec<Row> {
    if rows.len() <= MOST_ROWS {
        return rows;
    }
    let mut by_size: Vec<usize> = (0..rows.len()).collect();
    by_size.sort_by_key(|i| std::cmp::Reverse(rows[*i].max_rss_bytes));
    let mut kept = vec![false; rows.len()];
    let mut many = 0;
    for index in by_size {
        let mut path = Vec::new();
        let mut depth = rows[index].depth + 1;
        for above in (0..=index).rev() {
            if rows[above].depth < depth {
                depth = rows[above].depth;
                path.extend((!kept[above]).then_some(above));
            }
        }
        if many + path.len() < MOST_ROWS {
            many += path.len();
            path.into_iter().for_each(|above| kept[above] = true);
        }
    }
    let (mut shown, mut others) = (Vec::new(), Vec::new());
    for (row, keep) in rows.into_iter().zip(kept) {
        if keep { shown.push(row) } else { others.push(row) }
    }
    let sum = |of: fn(&Row) -> Option<f64>| others.iter().filter_map(of).reduce(|a, b| a + b);
    shown.push(Row {
        depth: 0,
        command: "others".to_string(),
        pid: None,
        count: others.iter().map(|row| row.count).sum(),
        max_rss_bytes: others.iter().filter_map(|row| row.max_rss_bytes).max(),
        cpu_seconds: sum(|row| row.cpu_seconds),
        lifetime_seconds: sum(|row| row.lifetime_seconds),
        io_delay_seconds: sum(|row| row.io_delay_seconds),
        major_faults: others.iter().filter_map(|row| row.major_faults).reduce(|a, b| a + b),
        source: String::new(),
    });
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ProcessKey;

    fn process(pid: i32, parent: i32, command: &str, rss: u64) -> ProcessRecord {
        ProcessRecord {
            key: ProcessKey { pid, start_ticks: pid as u64 },
            parent: Some(parent),
            command: command.to_string(),
            started_seconds: None,
            lifetime_seconds: Some(1.0),
            max_rss_bytes: Some(rss),
            user_seconds: Some(0.5),
            system_seconds: Some(0.25),
            minor_faults: None,
            major_faults: None,
            io_delay_seconds: None,
            thread_seconds: None,
            exit_status: Some(0),
            signal: None,
            largest_seen: None,
            own: None,
            source: "wait4".to_string(),
        }
    }

    #[test]
    fn a_few_processes_are_shown_each() {
        let rows = rows(&[process(1, 0, "sh", 10), process(2, 1, "cc", 20), process(3, 1, "cc", 30)]);
        let shape: Vec<_> = rows.iter().map(|r| (r.depth, r.command.as_str(), r.pid)).collect();
        assert_eq!(shape, [(0, "sh", Some(1)), (1, "cc", Some(2)), (1, "cc", Some(3))]);
    }

    #[test]
    fn many_equal_processes_become_one_row_at_every_depth() {
        let mut processes = vec![process(1, 0, "make", 10)];
        for i in 0..212 {
            processes.push(process(1000 + 2 * i, 1, "cc", 5));
            processes.push(process(1001 + 2 * i, 1000 + 2 * i, "cc1", 60 + i as u64));
        }
        let rows = rows(&processes);
        let shape: Vec<_> = rows.iter().map(|r| (r.depth, r.command.as_str(), r.count, r.max_rss_bytes)).collect();
        assert_eq!(shape, [(0, "make", 1, Some(10)), (1, "cc", 212, Some(5)), (2, "cc1", 212, Some(271))]);
        assert_eq!(rows[2].cpu_seconds, Some(212.0 * 0.75));
        assert_eq!(rows[2].major_faults, None);
    }

    #[test]
    fn a_reused_pid_is_the_child_of_the_process_before_it() {
        let rows = rows(&[
            process(7, 0, "old", 1),
            process(8, 7, "child", 1),
            process(7, 8, "new", 1),
            process(9, 7, "last", 1),
        ]);
        assert_eq!(rows.iter().map(|r| r.depth).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn of_too_many_commands_the_largest_stay_and_the_others_are_summed_up() {
        let processes: Vec<_> = (0..100).map(|i| process(i + 1, 0, &format!("c{i}"), i as u64)).collect();
        let rows = rows(&processes);
        assert_eq!(rows.len(), MOST_ROWS);
        let last = rows.last().unwrap();
        assert_eq!((last.command.as_str(), last.count, last.max_rss_bytes), ("others", 71, Some(70)));
    }
}

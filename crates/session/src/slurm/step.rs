//! `bursar slurm step`: the account of a Slurm step that runs, for the SPANK plugin, which prints it at the step's end.
//!
//! The plugin holds the other end of standard input. It writes the PID of a task when there is one, and ends it when the last task has ended; it ends,
//! too, if Slurm's daemon dies.

use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use budget::jobs::with_margin;
use linux::cgroup::Cgroup;
use linux::procfs;
use model::{Bytes, RunAccount, Target};
use sample::Scope;

use crate::attach::follow;
use crate::status::Status;

/// Watches the step whose task is named on standard input until it ends, and prints its account.
pub fn step() -> Status {
    let mut first = String::new();
    let read = std::io::stdin().lock().read_line(&mut first);
    let told = match read.map(|_| first.trim()) {
        // No task was started.
        Ok("") | Err(_) => Vec::new(),
        // Whoever reads this has the job's output and not our standard error.
        Ok(pid) => watch(pid).unwrap_or_else(|error| vec![format!("no account of the step: {error:#}")]),
    };
    for line in told {
        // Who has waited too long reads no more.
        let _ = writeln!(std::io::stdout(), "{}", model::printable(&format!("bursar: {}: {line}", procfs::hostname())));
    }
    Status::of(0)
}

fn watch(pid: &str) -> anyhow::Result<Vec<String>> {
    let pid: i32 = pid.parse().with_context(|| format!("'{pid}' is no PID"))?;
    let group = step_cgroup(pid)?;
    let (target, scope) = match &group {
        Some(group) => (Target::Cgroup(group.dir().to_string_lossy().into()), Scope::Cgroup(group.clone())),
        None => (Target::Tree(pid), Scope::Tree { root: pid, within: None }),
    };
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    let wait = move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        end.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().spawn(wait).context("no thread to wait for the step's end can be had")?;
    let limit = group.and_then(|group| group.effective_limit());
    let (record, path) = follow(target, scope, None, None, &|_| ended.load(Ordering::Relaxed))?;
    let account = record.accounts.values().next().context("nothing was seen")?;
    Ok(lines(account, limit, path.as_deref()))
}

/// The cgroup that Slurm holds the step to, where it made one: each task has one of its own beneath it.
fn step_cgroup(pid: i32) -> anyhow::Result<Option<Cgroup>> {
    let Some(own) = Cgroup::of(pid)? else { return Ok(None) };
    let is_step = |dir: &&Path| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step_"));
    let dir: Option<PathBuf> = own.dir().ancestors().find(is_step).map(Into::into);
    let step = dir.map(|dir| Cgroup::at(&dir)).transpose()?;
    Ok(step.map(|step| step.slurm_tasks().unwrap_or(step)))
}

fn lines(account: &RunAccount, limit: Option<u64>, record: Option<&Path>) -> Vec<String> {
    let needed = account.peak_charge_bytes.or(account.tree_max_rss_bytes).or(account.app_max_rss_bytes);
    let Some(needed) = needed else { return vec!["the step ended before anything could be seen of it".into()] };
    let mut peak = format!("at most {}", Bytes(needed));
    if let Some(limit) = limit {
        peak += &format!(" of {}", Bytes(limit));
    }
    let parts = &account.peak_breakdown;
    let parts = [("heap", parts.heap), ("file", parts.file), ("shared", parts.shared), ("kernel", parts.kernel)];
    let known: Vec<String> =
        parts.iter().filter_map(|(name, bytes)| Some(format!("{name} {}", Bytes((*bytes)?)))).collect();
    if account.peak_charge_bytes.is_none() {
        peak += ", summed over the processes of its first task: Slurm made no cgroup for the step (task/cgroup)";
    } else if !known.is_empty() {
        peak += &format!(": {}", known.join(", "));
    }
    let record = record.map(|path| format!("record: {}", path.display()));
    [Some(peak), Some(advice(account, needed)), record].into_iter().flatten().collect()
}

fn advice(account: &RunAccount, needed: u64) -> String {
    let mem = |bytes| format!("--mem={}M", Bytes(with_margin(bytes)).mib_ceil());
    if account.oom_kills.is_some_and(|kills| kills > 0) {
        return "it was killed for lack of memory, and needs more than that".into();
    }
    if let Some(doubt) = account.doubts.iter().find(|doubt| doubt.may_kill()) {
        return format!("no --mem: {}", doubt.sentence);
    }
    match cannot_be_reclaimed(account).filter(|held| with_margin(*held) < with_margin(needed)) {
        Some(held) => format!(
            "{} holds what cannot be reclaimed and 10 %, {} its page cache, too; bursar budget finds what of that is \
             worth it",
            mem(held),
            mem(needed)
        ),
        None => format!("{} holds that and 10 %", mem(needed)),
    }
}

/// What it was seen to hold beside its page cache; `None` where its peak fell between two looks.
fn cannot_be_reclaimed(account: &RunAccount) -> Option<u64> {
    let parts = &account.peak_breakdown;
    let at_peak = parts.heap? + parts.shared.unwrap_or(0) + parts.kernel.unwrap_or(0);
    Some(at_peak.max(account.floor_bytes.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use model::{Breakdown, Doubt, DoubtKind};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn cache_is_told_apart_from_what_cannot_be_reclaimed() {
        let account = RunAccount {
            peak_charge_bytes: Some(100 * MIB),
            floor_bytes: Some(30 * MIB),
            peak_breakdown: Breakdown {
                heap: Some(28 * MIB),
                file: Some(70 * MIB),
                kernel: Some(2 * MIB),
                ..Breakdown::default()
            },
            ..RunAccount::default()
        };
        let told = lines(&account, Some(300 * MIB), Some(Path::new("/r")));
        assert_eq!(told[0], "at most 100 MiB of 300 MiB: heap 28.0 MiB, file 70.0 MiB, kernel 2.00 MiB");
        assert!(
            told[1].starts_with("--mem=33M holds what cannot") && told[1].contains("--mem=110M its page cache"),
            "{told:?}"
        );
        assert_eq!(told[2], "record: /r");
    }

    #[test]
    fn what_was_killed_needs_more_and_what_was_not_seen_is_said() {
        let killed = RunAccount { peak_charge_bytes: Some(MIB), oom_kills: Some(1), ..RunAccount::default() };
        assert!(lines(&killed, None, None)[1].contains("needs more"));
        let unseen = RunAccount { peak_charge_bytes: Some(MIB), floor_bytes: Some(1), ..RunAccount::default() };
        assert_eq!(lines(&unseen, None, None), ["at most 1.00 MiB", "--mem=2M holds that and 10 %"]);
        let sentence = "64.0 MiB of shared memory was there before".to_string();
        let doubt = Doubt {
            kind: DoubtKind::SharedBefore,
            bytes: Some(64 * MIB),
            voids: false,
            missing_from_peak: false,
            sentence,
        };
        let incomplete = RunAccount { doubts: vec![doubt], ..unseen };
        assert_eq!(lines(&incomplete, None, None)[1], "no --mem: 64.0 MiB of shared memory was there before");
        let tree = RunAccount { tree_max_rss_bytes: Some(MIB), ..RunAccount::default() };
        assert!(lines(&tree, None, None)[0].contains("first task"));
        assert_eq!(lines(&RunAccount::default(), None, None).len(), 1);
    }
}

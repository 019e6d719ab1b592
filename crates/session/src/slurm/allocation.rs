//! Trials as job steps: inside a Slurm allocation the cgroup is slurmd's, and `srun --exact --mem=` sets the limit.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use model::{Bytes, Exit, Observation};
use record::{Entry, Record};

use super::config::config;
use crate::bench::Bench;
use crate::launch::Launcher;
use crate::observe::{Observed, Plan, Progress, observe};
use ::slurm::Config;

/// Why what `srun` starts cannot be tried.
pub const BY_SRUN: &str = "what srun starts is limited by Slurm alone: run bursar budget around the program itself, within the allocation, \
                           or around mpirun";

/// An allocation whose steps have their memory constrained.
#[derive(Debug)]
pub struct Allocation {
    job: String,
    /// bursar is a step itself, and not only the allocation's script.
    in_step: bool,
}

impl Allocation {
    /// The allocation we are in; `None` outside of Slurm.
    ///
    /// # Errors
    /// If we are in one whose steps would not be held to their memory.
    pub fn find() -> anyhow::Result<Option<Allocation>> {
        let Ok(job) = std::env::var("SLURM_JOB_ID") else { return Ok(None) };
        if !constrains(&config().context("scontrol could not be run")?) {
            bail!(
                "this is Slurm job {job}, but its steps are not held to their memory: the site would have to set \
                 TaskPlugin=task/cgroup in slurm.conf and ConstrainRAMSpace=yes in cgroup.conf"
            );
        }
        Ok(Some(Allocation { job, in_step: std::env::var_os("SLURM_STEP_ID").is_some() }))
    }

    /// In words, for reports.
    pub fn describe(&self) -> String {
        format!("job steps of Slurm job {} (srun --exact --mem)", self.job)
    }

    /// Whether a step, which has one node, is room enough for a command.
    ///
    /// # Errors
    /// If it is a launcher that would go beyond it.
    pub fn has_room_for(&self, command: &[OsString]) -> anyhow::Result<()> {
        let several = || std::env::var("SLURM_JOB_NUM_NODES").is_ok_and(|nodes| nodes != "1");
        match Launcher::of(command) {
            Some(Launcher::Srun) => bail!(BY_SRUN),
            Some(_) if several() => bail!(
                "within Slurm's limits each trial is a step on one node, and job {} has several: a budget over all of them \
                 needs limits of one's own, as root has them",
                self.job
            ),
            _ => Ok(()),
        }
    }

    /// Runs the plan as a step of its own: `srun` starts bursar inside it, whose record is then read.
    pub fn observe(
        &self,
        bench: &Bench,
        plan: &Plan<'_>,
        sink: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> anyhow::Result<Observed> {
        // The step may run on another node: the record must be where both see it.
        let folder = tempfile::tempdir_in(".")
            .or_else(|_| tempfile::tempdir())
            .context("no folder for the records of steps can be made here; go to one that can be written")?;
        let path = folder.path().join("step.bursar");
        let command = self.step(plan, &path)?;
        let outer = Plan { command: &command, limit_bytes: None, ..plan.clone() };
        let (mut began, mut ran) = (None, Duration::ZERO);
        let mut watch_step = |srun: Progress| {
            began = began.or_else(|| path.exists().then_some(srun.elapsed));
            let step = of_step(srun.elapsed, began);
            ran = step.elapsed;
            watch(step)
        };
        let mut observed = observe(bench, &outer, &mut |_| Ok(()), &mut watch_step)?;
        let inner = Record::open(&path).ok().and_then(|record| record.runs.into_iter().next());
        let Some(inner) = inner else {
            // It was ended while Slurm had not yet begun it.
            if matches!(observed.observation.exit, Exit::TimedOut | Exit::StoppedEarly) {
                observed.observation.limit_bytes = plan.limit_bytes;
                return Ok(observed);
            }
            bail!("the step left no record; srun said: {}", observed.errors.trim());
        };
        let killed = observed.errors.contains("oom_kill") || observed.errors.contains("OUT_OF_MEMORY");
        let exit = match (observed.observation.exit, inner.exit) {
            (ended @ (Exit::TimedOut | Exit::StoppedEarly), _) => ended,
            (_, Exit::StillRunning) => Exit::Signal(9),
            (_, exit) => exit,
        };
        // The record of a step that was ended goes as far as its last sample.
        let wall_seconds = match exit {
            Exit::TimedOut | Exit::StoppedEarly => inner.wall_seconds.max(ran.as_secs_f64()),
            _ => inner.wall_seconds,
        };
        let mut kept = inner.kept;
        kept.oom_kills = kept.oom_kills.max(killed.then_some(1));
        observed.observation = Observation {
            run: plan.run,
            role: plan.role,
            limit_bytes: plan.limit_bytes,
            cache_state: plan.cache_state.clone(),
            wall_seconds,
            exit,
            kept,
            ..inner
        };
        for entry in Entry::of_run(&observed.observation) {
            if !matches!(entry, Entry::RunEnd(_)) {
                sink(entry)?;
            }
        }
        Ok(observed)
    }

    fn step(&self, plan: &Plan<'_>, record: &Path) -> anyhow::Result<Vec<OsString>> {
        // 0 gives a step all of the allocation's memory.
        let memory = plan.limit_bytes.map_or("0".to_string(), |limit| format!("{}M", Bytes(limit).mib_ceil()));
        let mut words: Vec<OsString> = ["srun", "--exact", "--ntasks=1"].map(Into::into).to_vec();
        if self.in_step {
            // Ours holds all that the allocation has: a step that asks for some of it alone would wait for our end.
            words.push("--overlap".into());
        }
        words.push(format!("--mem={memory}").into());
        words.push(std::env::current_exe().context("our own program file could not be found")?.into());
        words.extend(["run", "--quiet", "--record"].map(Into::into));
        words.push(record.into());
        words.push("--".into());
        words.extend(plan.command.iter().cloned());
        Ok(words)
    }
}

/// How a step goes that began so long after `srun` was started: its time is all that is known of it. `srun`'s own figures are those of a
/// program that waits, which is always behind the pace of one that computes.
fn of_step(elapsed: Duration, began: Option<Duration>) -> Progress {
    let elapsed = began.map_or(Duration::ZERO, |began| elapsed.saturating_sub(began));
    Progress {
        elapsed,
        sampled: elapsed,
        charge_bytes: None,
        refaults: None,
        io_delay_seconds: None,
        cpu_seconds: None,
    }
}

fn constrains(config: &Config) -> bool {
    let has = |key, wanted| config.value(key).is_some_and(|value| value.to_ascii_lowercase().contains(wanted));
    has("TaskPlugin", "task/cgroup") && has("ConstrainRAMSpace", "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_timed_from_its_own_start_and_no_figure_of_srun_is_taken_for_its() {
        let seconds = Duration::from_secs;
        assert_eq!(of_step(seconds(9), None).elapsed, seconds(0));
        let step = of_step(seconds(9), Some(seconds(2)));
        assert_eq!((step.elapsed, step.cpu_seconds, step.io_delay_seconds), (seconds(7), None, None));
    }

    #[test]
    fn a_site_constrains_memory_only_with_both_settings() {
        let constrains = |config: &str| constrains(&Config::of(config));
        let config = "TaskPlugin              = task/affinity,task/cgroup\nConstrainRAMSpace       = yes\n";
        assert!(constrains(config));
        assert!(!constrains(&config.replace("yes", "no")));
        assert!(!constrains("TaskPlugin = task/none\nConstrainRAMSpace = yes\n"));
    }
}

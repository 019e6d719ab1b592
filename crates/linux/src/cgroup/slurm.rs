//! Slurm's cgroups (its `cgroup.conf(5)`).

use super::{Cgroup, Version};

impl Cgroup {
    /// The cgroup with the tasks of a job step (`step_S`) on v2 (`user`): Slurm limits it, and keeps slurmstepd beside it (`slurm`). On v1
    /// Slurm limits the step, which includes slurmstepd; `None` there, and for other cgroups.
    pub fn slurm_tasks(&self) -> Option<Cgroup> {
        let is_step = self.dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step_"));
        let dir = Some(self.dir.join("user"))
            .filter(|dir| self.version == Version::V2 && is_step && dir.join("memory.current").exists())?;
        let hugetlb = self.hugetlb.as_ref().map(|_| dir.clone());
        Some(Cgroup { version: self.version, unified: None, hugetlb, charges_hugetlb: self.charges_hugetlb, dir })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_tasks_of_a_step_have_its_limit_on_v2() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("system.slice/node_slurmstepd.scope/job_7");
        for (dir, limit) in [("", "1000"), ("step_0", "max"), ("step_0/user", "300"), ("step_0/slurm", "max")] {
            let dir = job.join(dir);
            fs::create_dir_all(&dir).unwrap();
            for (file, text) in [("cgroup.procs", ""), ("memory.current", "1\n"), ("memory.max", limit)] {
                fs::write(dir.join(file), text).unwrap();
            }
        }
        let step = Cgroup::at(&job.join("step_0")).unwrap();
        let tasks = step.slurm_tasks().unwrap();
        assert_eq!(tasks.dir(), job.join("step_0/user"));
        assert_eq!((step.effective_limit(), tasks.effective_limit()), (Some(1000), Some(300)));
        assert_eq!(tasks.slurm_tasks(), None);
        assert_eq!(Cgroup::at(&job).unwrap().slurm_tasks(), None);
    }
}

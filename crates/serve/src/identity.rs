//! What a cgroup is, by its path: a unit of systemd, a pod or a container, a job or a step of Slurm.

use crate::exposition::label;

/// What a cgroup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A slice of systemd: all beneath it.
    Slice,
    /// A service of systemd.
    Service,
    /// A scope of systemd: a session, a job of `systemd-run`, a virtual machine.
    Scope,
    /// A pod of Kubernetes.
    Pod,
    /// A container, in a pod or not.
    Container,
    /// A job of Slurm on this node: all its steps.
    SlurmJob,
    /// A step of Slurm on this node.
    SlurmStep,
    /// Something else.
    Other,
}

/// What a path tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// What it is.
    pub kind: Kind,
    slurm_job: Option<&'a str>,
    slurm_step: Option<&'a str>,
    pod: Option<String>,
    container: Option<&'a str>,
    unit: Option<&'a str>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Slice => "slice",
            Kind::Service => "service",
            Kind::Scope => "scope",
            Kind::Pod => "pod",
            Kind::Container => "container",
            Kind::SlurmJob => "slurm_job",
            Kind::SlurmStep => "slurm_step",
            Kind::Other => "other",
        }
    }

    /// What is beneath a container or a step is its own affair.
    pub fn is_whole(self) -> bool {
        matches!(self, Kind::Container | Kind::SlurmStep)
    }
}

impl<'a> Identity<'a> {
    /// Of a path without a slash before it.
    pub fn of(path: &'a str) -> Identity<'a> {
        let mut found =
            Identity { kind: Kind::Other, slurm_job: None, slurm_step: None, pod: None, container: None, unit: None };
        let mut before = "";
        for name in path.split('/') {
            found.kind = found.step_down(before, name);
            before = name;
        }
        found
    }

    /// What `name` is beneath all that came before it.
    fn step_down(&mut self, before: &str, name: &'a str) -> Kind {
        // Slurm: [system.slice/slurmstepd.scope|slurm/uid_0]/job_7/step_0
        if let Some(job) = name.strip_prefix("job_").filter(|job| job.starts_with(|c: char| c.is_ascii_digit())) {
            self.slurm_job = Some(job);
            return Kind::SlurmJob;
        }
        if let Some(step) = name.strip_prefix("step_").filter(|_| self.slurm_job.is_some() && self.slurm_step.is_none())
        {
            self.slurm_step = Some(step);
            return Kind::SlurmStep;
        }
        // Kubernetes: kubepods/burstable/podUID/ID, kubepods.slice/…/kubepods-burstable-podUID.slice/cri-containerd-ID.scope
        let is_slice = name.strip_suffix(".slice");
        let pod = match is_slice {
            Some(slice) => slice.strip_prefix("kubepods").and_then(|rest| rest.rsplit_once("-pod")).map(|(_, uid)| uid),
            None => name.strip_prefix("pod").filter(|_| matches!(before, "kubepods" | "burstable" | "besteffort")),
        };
        if let Some(uid) = pod {
            self.pod = Some(uid.replace('_', "-"));
            return Kind::Pod;
        }
        let scope = name.strip_suffix(".scope");
        let id = scope
            .unwrap_or(name)
            .rsplit('-')
            .next()
            .filter(|id| id.len() == 64 && id.chars().all(|c| c.is_ascii_hexdigit()));
        if let Some(id) =
            id.filter(|_| scope.is_some() || matches!(before, "docker" | "libpod_parent") || self.pod.is_some())
        {
            self.container = Some(id);
            return Kind::Container;
        }
        self.unit = Some(name);
        if is_slice.is_some() {
            Kind::Slice
        } else if scope.is_some() {
            Kind::Scope
        } else if name.ends_with(".service") {
            Kind::Service
        } else {
            self.unit = None;
            Kind::Other
        }
    }

    /// The labels of all its metrics.
    pub fn labels(&self, path: &str) -> String {
        let mut labels = vec![label("cgroup", &format!("/{path}")), label("kind", self.kind.name())];
        let unit = self.unit.filter(|_| matches!(self.kind, Kind::Slice | Kind::Service | Kind::Scope));
        let more = [
            ("slurm_job", self.slurm_job),
            ("slurm_step", self.slurm_step),
            ("pod_uid", self.pod.as_deref()),
            ("container_id", self.container),
            ("unit", unit),
        ];
        labels.extend(more.into_iter().filter_map(|(name, value)| Some(label(name, value?))));
        labels.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(path: &str) -> String {
        let labels = Identity::of(path).labels(path);
        labels.strip_prefix(&format!("{},kind=", label("cgroup", &format!("/{path}")))).unwrap().replace('"', "")
    }

    #[test]
    fn units_of_systemd_are_named() {
        assert_eq!(labels("system.slice"), "slice,unit=system.slice");
        assert_eq!(labels("system.slice/db.service"), "service,unit=db.service");
        assert_eq!(labels("user.slice/user-1.slice/session-3.scope"), "scope,unit=session-3.scope");
        assert_eq!(labels("system.slice/db.service/worker"), "other");
        assert_eq!(labels("jobs/job_"), "other");
    }

    #[test]
    fn jobs_and_steps_of_slurm_carry_their_numbers_on_both_versions() {
        assert_eq!(labels("slurm/uid_0/job_7"), "slurm_job,slurm_job=7");
        assert_eq!(labels("slurm/uid_0/job_7/step_batch"), "slurm_step,slurm_job=7,slurm_step=batch");
        let v2 = "system.slice/slurmstepd.scope/job_12/step_0";
        assert_eq!(labels(v2), "slurm_step,slurm_job=12,slurm_step=0");
        assert!(Identity::of(v2).kind.is_whole() && !Identity::of("slurm/uid_0/job_7").kind.is_whole());
    }

    #[test]
    fn pods_and_containers_carry_their_identifiers_with_both_drivers() {
        let id = "0123456789abcdef".repeat(4);
        let pod = "kubepods/burstable/pod8c2e-11";
        assert_eq!(labels(pod), "pod,pod_uid=8c2e-11");
        assert_eq!(labels(&format!("{pod}/{id}")), format!("container,pod_uid=8c2e-11,container_id={id}"));
        let slice = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8c2e_11.slice";
        assert_eq!(labels(slice), "pod,pod_uid=8c2e-11");
        let scope = format!("{slice}/cri-containerd-{id}.scope");
        assert_eq!(labels(&scope), format!("container,pod_uid=8c2e-11,container_id={id}"));
        assert_eq!(labels(&format!("docker/{id}")), format!("container,container_id={id}"));
        assert_eq!(labels(&format!("system.slice/docker-{id}.scope")), format!("container,container_id={id}"));
        assert_eq!(labels(&format!("elsewhere/{id}")), "other");
        assert_eq!(labels("podium"), "other");
    }
}

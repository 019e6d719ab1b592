//! What a cgroup is, by its path: a unit of systemd, a pod or a container, a machine, a job or a step of a batch system.
//!
//! Container engines, kubelet and batch systems name cgroups by fixed patterns. [`step_down`](Identity::step_down) asks each
//! pattern in turn; the tests are the table of names.

use crate::exposition::label;

/// What a cgroup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A slice of systemd: all beneath it.
    Slice,
    /// A service of systemd.
    Service,
    /// A scope of systemd: a session, a job of `systemd-run`, a container's monitor.
    Scope,
    /// A pod of Kubernetes.
    Pod,
    /// A container, in a pod or not.
    Container,
    /// A machine: a container of LXC or systemd-nspawn, a virtual machine that systemd-machined knows.
    Machine,
    /// A job of Slurm on this node: all its steps.
    SlurmJob,
    /// A step of Slurm on this node.
    SlurmStep,
    /// A slot of HTCondor: one job.
    HtcondorSlot,
    /// A cgroup within a container, a machine, a step or a slot.
    Inner,
    /// Something else.
    Other,
}

/// The identity of a cgroup, parsed from its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// What it is.
    pub kind: Kind,
    slurm_job: Option<&'a str>,
    slurm_step: Option<&'a str>,
    htcondor_slot: Option<&'a str>,
    pod: Option<String>,
    container: Option<&'a str>,
    /// The container that the pod or container is in.
    outer_container: Option<&'a str>,
    machine: Option<String>,
    /// Whose service manager the unit is of; `None`: the machine's.
    user: Option<&'a str>,
    unit: Option<&'a str>,
}

/// Prefixes of container identifiers where the cgroup is no scope of systemd.
const ENGINES: [&str; 6] = ["libpod", "libpod-payload", "crio", "docker", "cri-containerd", "nerdctl"];

/// So much of a container's identifier stands for it, if no other begins so.
const LEAST_OF_ID: usize = 4;

/// Ends of the names of systemd's units that have cgroups of their own.
const UNITS: [(&str, Kind); 3] = [(".slice", Kind::Slice), (".scope", Kind::Scope), (".service", Kind::Service)];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Slice => "slice",
            Kind::Service => "service",
            Kind::Scope => "scope",
            Kind::Pod => "pod",
            Kind::Container => "container",
            Kind::Machine => "machine",
            Kind::SlurmJob => "slurm_job",
            Kind::SlurmStep => "slurm_step",
            Kind::HtcondorSlot => "htcondor_slot",
            Kind::Inner => "inner",
            Kind::Other => "other",
        }
    }

    /// Whether it is watched as a whole: cgroups beneath it only on request.
    pub fn is_whole(self) -> bool {
        matches!(self, Kind::Container | Kind::Machine | Kind::SlurmStep | Kind::HtcondorSlot | Kind::Inner)
    }
}

impl<'a> Identity<'a> {
    /// Of a path without a slash before it.
    pub fn of(path: &'a str) -> Identity<'a> {
        let mut found = Identity {
            kind: Kind::Other,
            slurm_job: None,
            slurm_step: None,
            htcondor_slot: None,
            pod: None,
            container: None,
            outer_container: None,
            machine: None,
            user: None,
            unit: None,
        };
        let (mut above, mut before) = ("", "");
        for name in path.split('/') {
            found.kind = found.step_down(above, before, name);
            (above, before) = (before, name);
        }
        found
    }

    /// What `name` is beneath all that came before it: beneath `before`, which is beneath `above`.
    fn step_down(&mut self, above: &str, before: &str, name: &'a str) -> Kind {
        self.unit = None;
        if let Some(uid) = pod(before, name) {
            self.outer_container = self.container.take().or(self.outer_container);
            self.pod = Some(uid);
            return Kind::Pod;
        }
        if let Some((id, uid)) = container(above, before, name) {
            self.outer_container = self.container.take().or(self.outer_container);
            self.container = Some(id);
            self.pod = uid.or(self.pod.take());
            return Kind::Container;
        }
        if self.kind.is_whole() {
            self.unit = unit(name).map(|_| name);
            return Kind::Inner;
        }
        if let Some(machine) = machine(before, name) {
            self.machine = Some(machine);
            self.unit = unit(name).map(|_| name);
            return Kind::Machine;
        }
        // Slurm: [system.slice/slurmstepd.scope|slurm/uid_0]/job_7/step_0
        if let Some(job) = name.strip_prefix("job_").filter(|job| job.starts_with(|c: char| c.is_ascii_digit())) {
            self.slurm_job = Some(job);
            return Kind::SlurmJob;
        }
        if let Some(step) = name.strip_prefix("step_").filter(|_| self.kind == Kind::SlurmJob) {
            self.slurm_step = Some(step);
            return Kind::SlurmStep;
        }
        // HTCondor: [htcondor|system.slice/condor.service]/condor_var_lib_condor_execute_slot1_2@host
        if let Some(at) = name.strip_prefix("condor").and_then(|_| name.rfind("slot")).filter(|_| name.contains('@')) {
            self.htcondor_slot = Some(&name[at..]);
            return Kind::HtcondorSlot;
        }
        let Some(kind) = unit(name) else { return Kind::Other };
        self.unit = Some(name);
        if let Some(user) = name.strip_prefix("user@").and_then(|rest| rest.strip_suffix(".service")) {
            // Units beneath it are of the user's own manager; itself it is the machine's.
            self.user = Some(user);
        }
        kind
    }

    /// Its own name, as people write it; `None`: it has none, or is a part of what has.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Slice | Kind::Service | Kind::Scope => self.unit.map(String::from),
            Kind::Pod => self.pod.clone(),
            Kind::Container => self.container.map(String::from),
            Kind::Machine => self.machine.clone(),
            Kind::SlurmJob => self.slurm_job.map(String::from),
            Kind::SlurmStep => Some(format!("{}.{}", self.slurm_job?, self.slurm_step?)),
            Kind::HtcondorSlot => self.htcondor_slot.map(String::from),
            Kind::Inner | Kind::Other => None,
        }
    }

    /// Whether people mean it by this name: its own, a unit's without its end, the beginning of a container's identifier.
    pub fn is_called(&self, name: &str) -> bool {
        let Some(own) = self.name().filter(|_| !name.is_empty()) else { return false };
        own == name
            || match self.kind {
                Kind::Slice | Kind::Service | Kind::Scope => {
                    unit(&own).is_some() && own.rsplit_once('.').is_some_and(|(stem, _)| stem == name)
                }
                Kind::Container => name.len() >= LEAST_OF_ID && is_id(&own) && own.starts_with(name),
                Kind::SlurmJob => name.strip_prefix("job_") == Some(&own),
                Kind::Machine => self.unit == Some(name),
                _ => false,
            }
    }

    /// The labels of all its metrics.
    pub fn labels(&self, path: &str) -> String {
        let mut labels = vec![label("cgroup", &format!("/{path}")), label("kind", self.kind.name())];
        let is_users = self.user.is_some() && self.unit.is_some_and(|unit| !unit.starts_with("user@"));
        let (unit, user_unit, inner_unit) = match self.kind {
            Kind::Inner => (None, None, self.unit),
            _ if is_users => (None, self.unit, None),
            _ => (self.unit, None, None),
        };
        // What is within a container is no second container.
        let (container, outer) = match self.kind {
            Kind::Inner => (None, self.container.or(self.outer_container)),
            _ => (self.container, self.outer_container),
        };
        let more = [
            ("slurm_job", self.slurm_job),
            ("slurm_step", self.slurm_step),
            ("htcondor_slot", self.htcondor_slot),
            ("machine", self.machine.as_deref()),
            ("pod_uid", self.pod.as_deref()),
            ("container_id", container),
            ("outer_container_id", outer),
            ("unit", unit),
            ("user_unit", user_unit),
            ("user_uid", self.user.filter(|_| is_users)),
            ("inner_unit", inner_unit),
        ];
        labels.extend(more.into_iter().filter_map(|(name, value)| Some(label(name, value?))));
        labels.join(",")
    }
}

fn unit(name: &str) -> Option<Kind> {
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind)
}

/// The UID of a pod: `podUID` beneath kubelet's cgroups, or a slice of any cgroup root `[ROOT-]kubepods[-QOS]-podUID.slice`.
/// systemd has no dashes within a name, so kubelet writes them as underscores there.
fn pod(before: &str, name: &str) -> Option<String> {
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => {
            let within = slice.match_indices("kubepods").any(|(at, _)| at == 0 || slice[..at].ends_with('-'));
            slice.rsplit_once("-pod").filter(|_| within)?.1
        }
        None => name.strip_prefix("pod").filter(|_| matches!(before, "kubepods" | "burstable" | "besteffort"))?,
    };
    let is_uid = !uid.is_empty() && uid.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_uid.then(|| uid.replace('_', "-"))
}

/// A container's identifier, and the UID of its pod where that stands in the same name.
fn container<'a>(above: &str, before: &str, name: &'a str) -> Option<(&'a str, Option<String>)> {
    // containerd without systemd's scopes, runc with systemd's parent: SLICE:ENGINE:ID
    if let Some((parent, id)) = name.rsplit_once(':').filter(|(_, id)| is_id(id)) {
        return Some((id, parent.split(':').next().and_then(|slice| pod("", slice))));
    }
    // ENGINE-ID.scope: docker, libpod, crio, cri-containerd, nerdctl and others. conmon is an engine's monitor of a container.
    let scope = name.strip_suffix(".scope");
    let (engine, id) = scope.unwrap_or(name).rsplit_once('-').unwrap_or(("", scope.unwrap_or(name)));
    if is_id(id) {
        let is_known = engine.is_empty() || scope.is_some() || ENGINES.contains(&engine);
        return Some((id, None)).filter(|_| is_known && !engine.ends_with("conmon"));
    }
    // ECS on Fargate: ecs/TASK/TASK-NUMBER
    let is_task = above == "ecs" && name.strip_prefix(before).is_some_and(|rest| rest.starts_with('-'));
    // GitHub's runners: actions_job/ID. BuildKit: buildkit/ID, of 25 letters and digits.
    let is_build = before == "buildkit" && name.len() == 25 && name.chars().all(|c| c.is_ascii_alphanumeric());
    (is_task || is_build || before == "actions_job").then_some((name, None))
}

fn is_id(id: &str) -> bool {
    id.len() == 64 && id.chars().all(|c| c.is_ascii_hexdigit())
}

/// The name of a machine: `lxc.payload.NAME`, `lxc/NAME`, `machine-NAME.scope`, `systemd-nspawn@NAME.service`. systemd writes
/// what is not allowed in the name of a unit as `\xHH`.
fn machine(before: &str, name: &str) -> Option<String> {
    let nspawn = || name.strip_prefix("systemd-nspawn@")?.strip_suffix(".service");
    let scope = || name.strip_prefix("machine-")?.strip_suffix(".scope").filter(|_| before == "machine.slice");
    let lxc = || name.strip_prefix("lxc.payload.").or(Some(name).filter(|_| before == "lxc"));
    let name = nspawn().or_else(scope).or_else(lxc).filter(|name| !name.is_empty())?;
    Some(unescaped(name))
}

fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii);
        match byte {
            Some(byte) => text.extend([char::from(byte)].into_iter().chain(part[2..].chars())),
            None => text.extend("\\x".chars().chain(part.chars())),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const INNER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
    const TASK: &str = "0123456789abcdef0123456789abcdef";

    fn labels(path: &str) -> String {
        let labels = Identity::of(path).labels(path);
        labels.strip_prefix(&format!("{},kind=", label("cgroup", &format!("/{path}")))).unwrap().replace('"', "")
    }

    /// Paths and labels, in which ID, INNER and TASK stand for identifiers.
    fn check(names: &[(&str, &str)]) {
        let filled = |text: &str| text.replace("INNER", INNER).replace("TASK", TASK).replace("ID", ID);
        for (path, expected) in names {
            assert_eq!(labels(&filled(path)), filled(expected), "{path}");
        }
    }

    #[test]
    fn names_units_of_systemd() {
        check(&[
            ("system.slice", "slice,unit=system.slice"),
            ("system.slice/db.service", "service,unit=db.service"),
            ("user.slice/user-1.slice/session-3.scope", "scope,unit=session-3.scope"),
            ("system.slice/db.service/worker", "other"),
            ("jobs/job_", "other"),
        ]);
    }

    #[test]
    fn keeps_users_units_apart_from_the_machines() {
        let manager = "user.slice/user-1000.slice/user@1000.service";
        assert_eq!(labels(manager), "service,unit=user@1000.service");
        assert_eq!(labels(&format!("{manager}/app.slice/db.service")), "service,user_unit=db.service,user_uid=1000");
        assert_eq!(labels(&format!("{manager}/init.scope")), "scope,user_unit=init.scope,user_uid=1000");
    }

    #[test]
    fn names_jobs_and_steps_of_slurm() {
        check(&[
            ("slurm/uid_0/job_7", "slurm_job,slurm_job=7"),
            ("slurm_node1/uid_0/job_7/step_batch", "slurm_step,slurm_job=7,slurm_step=batch"),
            ("system.slice/slurmstepd.scope/job_12/step_0", "slurm_step,slurm_job=12,slurm_step=0"),
            ("system.slice/node1_slurmstepd.scope/job_12/step_extern", "slurm_step,slurm_job=12,slurm_step=extern"),
            ("system.slice/slurmstepd.scope/job_12/step_0/user/task_1", "inner,slurm_job=12,slurm_step=0"),
            ("slurm/uid_0/job_7/step_0/task_0", "inner,slurm_job=7,slurm_step=0"),
        ]);
        let v2 = "system.slice/slurmstepd.scope/job_12/step_0";
        assert!(Identity::of(v2).kind.is_whole() && !Identity::of("slurm/uid_0/job_7").kind.is_whole());
    }

    #[test]
    fn names_slots_of_htcondor() {
        let slot = "condor_var_lib_condor_execute_slot1_2@node";
        check(&[
            (&format!("htcondor/{slot}"), "htcondor_slot,htcondor_slot=slot1_2@node"),
            (&format!("system.slice/condor.service/{slot}"), "htcondor_slot,htcondor_slot=slot1_2@node"),
            ("system.slice/condor.service", "service,unit=condor.service"),
        ]);
    }

    #[test]
    fn names_pods_under_any_cgroup_root() {
        check(&[
            ("kubepods/burstable/pod8c2e-11", "pod,pod_uid=8c2e-11"),
            ("kubepods/pod8c2e-11", "pod,pod_uid=8c2e-11"),
            ("kubelet/kubepods/besteffort/pod8c2e-11", "pod,pod_uid=8c2e-11"),
            ("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8c2e_11.slice", "pod,pod_uid=8c2e-11"),
            ("kubepods.slice/kubepods-pod8c2e_11.slice", "pod,pod_uid=8c2e-11"),
            (
                "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod8c2e_11.slice",
                "pod,pod_uid=8c2e-11",
            ),
            ("a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod8c2e_11.slice", "pod,pod_uid=8c2e-11"),
            ("kubelet.slice/kubelet-kubepods.slice", "slice,unit=kubelet-kubepods.slice"),
            ("podium", "other"),
            ("system.slice/my-podcast.slice", "slice,unit=my-podcast.slice"),
        ]);
    }

    #[test]
    fn static_pods_have_the_hash_of_their_manifest() {
        let pod = format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{TASK}.slice");
        assert_eq!(labels(&pod), format!("pod,pod_uid={TASK}"));
    }

    #[test]
    fn names_containers_of_pods() {
        let pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8c2e_11.slice";
        let kind = "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod8c2e_11.slice";
        let of_pod = "container,pod_uid=8c2e-11,container_id=ID";
        check(&[
            ("kubepods/burstable/pod8c2e-11/ID", of_pod),
            ("kubepods/burstable/pod8c2e-11/crio-ID", of_pod),
            (&format!("{pod}/cri-containerd-ID.scope"), of_pod),
            (&format!("{pod}/crio-ID.scope"), of_pod),
            (&format!("{pod}/docker-ID.scope"), of_pod),
            (&format!("{kind}/cri-containerd-ID.scope"), of_pod),
            ("system.slice/containerd.service/kubepods-burstable-pod8c2e_11.slice:cri-containerd:ID", of_pod),
            (&format!("{pod}/crio-ID.scope/container"), "inner,pod_uid=8c2e-11,outer_container_id=ID"),
        ]);
    }

    #[test]
    fn names_containers_of_each_engine() {
        let users = "user.slice/user-1000.slice/user@1000.service/user.slice";
        check(&[
            ("docker/ID", "container,container_id=ID"),
            ("system.slice/docker-ID.scope", "container,container_id=ID"),
            ("my-parent/ID", "container,container_id=ID"),
            ("system.slice:docker:ID", "container,container_id=ID"),
            ("machine.slice/libpod-ID.scope", "container,container_id=ID"),
            ("machine.slice/libpod-ID.scope/container", "inner,outer_container_id=ID"),
            ("machine.slice/machine-libpod_pod_INNER.slice/libpod-ID.scope", "container,container_id=ID"),
            ("libpod_parent/libpod-ID", "container,container_id=ID"),
            ("system.slice/web.service/libpod-payload-ID", "container,container_id=ID"),
            (&format!("{users}/libpod-ID.scope"), "container,container_id=ID"),
            ("system.slice/nerdctl-ID.scope", "container,container_id=ID"),
            ("ecs/TASK/ID", "container,container_id=ID"),
            ("ecs/TASK/TASK-1234567890", "container,container_id=TASK-1234567890"),
            ("ecstasks.slice/ecstasks-TASK.slice/docker-ID.scope", "container,container_id=ID"),
            ("actions_job/ID", "container,container_id=ID"),
            ("docker/buildkit/abcdefghij0123456789klmno", "container,container_id=abcdefghij0123456789klmno"),
            ("docker/buildkit", "other"),
            ("ecs/TASK", "other"),
        ]);
    }

    #[test]
    fn a_containers_monitor_is_no_container() {
        let pod = "kubepods.slice/kubepods-pod8c2e_11.slice";
        check(&[
            ("machine.slice/libpod-conmon-ID.scope", "scope,unit=libpod-conmon-ID.scope"),
            (&format!("{pod}/crio-conmon-ID.scope"), "scope,pod_uid=8c2e-11,unit=crio-conmon-ID.scope"),
            ("kubepods/burstable/pod8c2e-11/crio-conmon-ID", "other,pod_uid=8c2e-11"),
        ]);
    }

    #[test]
    fn units_within_a_machine_are_not_the_hosts() {
        check(&[
            ("lxc.payload.web", "machine,machine=web"),
            ("lxc.payload.web/system.slice/ssh.service", "inner,machine=web,inner_unit=ssh.service"),
            ("lxc.monitor.web", "other"),
            ("lxc/101", "machine,machine=101"),
            ("lxc/101/ns/system.slice/ssh.service", "inner,machine=101,inner_unit=ssh.service"),
            ("machine.slice/systemd-nspawn@web.service", "machine,machine=web,unit=systemd-nspawn@web.service"),
            (
                "machine.slice/systemd-nspawn@web.service/payload/system.slice/ssh.service",
                "inner,machine=web,inner_unit=ssh.service",
            ),
            ("machine.slice/machine-web\\x2d1.scope", "machine,machine=web-1,unit=machine-web\\\\x2d1.scope"),
            ("machine.slice/machine-qemu\\x2d3\\x2ddb.scope/libvirt/emulator", "inner,machine=qemu-3-db"),
            ("system.slice/ssh.service", "service,unit=ssh.service"),
        ]);
    }

    #[test]
    fn containers_and_pods_within_a_container_carry_both_identifiers() {
        let node = "docker/ID/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod8c2e_11.slice";
        check(&[
            ("docker/ID/docker/INNER", "container,container_id=INNER,outer_container_id=ID"),
            ("system.slice/docker-ID.scope/docker/INNER", "container,container_id=INNER,outer_container_id=ID"),
            ("docker/ID/system.slice/containerd.service", "inner,outer_container_id=ID,inner_unit=containerd.service"),
            (node, "pod,pod_uid=8c2e-11,outer_container_id=ID"),
            (
                &format!("{node}/cri-containerd-INNER.scope"),
                "container,pod_uid=8c2e-11,container_id=INNER,outer_container_id=ID",
            ),
            ("lxc.payload.web/docker/ID", "container,machine=web,container_id=ID"),
        ]);
        assert!(Identity::of(&format!("docker/{ID}")).kind.is_whole(), "by default the node is shown, not its pods");
    }
}

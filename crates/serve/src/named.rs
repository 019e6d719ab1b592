//! The cgroup of what people know by a name: a unit of systemd, a container, a pod, a machine, a job. No daemon is asked: cgroups
//! are named by fixed patterns, and container runtimes keep the names that people gave in files.

use std::fs;
use std::path::{Path, PathBuf};

use linux::cgroup::Tree;
use serde_json::Value;

use crate::identity::Identity;

/// Names that a message lists at most.
const MOST_LISTED: usize = 8;

/// Why a name is of no cgroup.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Nothing has this name.
    #[error(
        "no systemd unit, container, pod, machine or Slurm job on this machine is called '{name}'. {}",
        listed(.others)
    )]
    Unknown {
        /// What was looked for.
        name: String,
        /// What there is, those with a similar name alone if there are such.
        others: Vec<String>,
    },
    /// Several have this name.
    #[error("'{name}' is the name of several cgroups: choose one by --cgroup: {}", .paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// What was looked for.
        name: String,
        /// Their directories.
        paths: Vec<PathBuf>,
    },
    /// No memory cgroups are to be seen.
    #[error(transparent)]
    Linux(#[from] linux::Error),
}

fn listed(others: &[String]) -> String {
    let more = others.len().saturating_sub(MOST_LISTED);
    let first = others.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match (others.is_empty(), more) {
        (true, _) => "None of its cgroups has a name that bursar knows".into(),
        (false, 0) => format!("There are: {first}"),
        (false, more) => format!("There are: {first}, and {more} more"),
    }
}

/// The directory of the one cgroup with this name: that of a unit (`db.service` or `db`), the identifier of a container or its
/// beginning, the name of a container, the name or the UID of a pod, a machine, a job of Slurm (`1234`) or a step (`1234.0`).
///
/// # Errors
/// [`NameError::Unknown`], [`NameError::Ambiguous`], and [`NameError::Linux`] without memory cgroups.
pub fn find(name: &str) -> Result<PathBuf, NameError> {
    let tree = Tree::find()?;
    let mut paths = Vec::new();
    tree.walk(&mut |found| {
        paths.extend(found.path.to_str().map(String::from));
        true
    });
    let home = linux::environment::folder("HOME");
    let mut found =
        called(&paths, &[vec![name.to_string()], identifiers(Path::new("/"), home.as_deref(), name)].concat());
    match found.len() {
        1 => Ok(tree.point().join(found.remove(0))),
        0 => Err(NameError::Unknown { name: name.into(), others: similar(&paths, name) }),
        _ => Err(NameError::Ambiguous {
            name: name.into(),
            paths: found.into_iter().map(|path| tree.point().join(path)).collect(),
        }),
    }
}

/// Those paths that are called by one of the names.
fn called(paths: &[String], names: &[String]) -> Vec<String> {
    let is_called = |path: &&String| names.iter().any(|name| Identity::of(path).is_called(name));
    paths.iter().filter(is_called).cloned().collect()
}

/// The names there are; where some are similar, those alone.
fn similar(paths: &[String], name: &str) -> Vec<String> {
    let mut all: Vec<String> = paths.iter().filter_map(|path| Identity::of(path).name()).collect();
    all.sort_unstable();
    all.dedup();
    let name = name.to_lowercase();
    let is_similar = |other: &&String| {
        let other = other.to_lowercase();
        other.contains(&name) || other.split('.').next().is_some_and(|stem| !stem.is_empty() && name.contains(stem))
    };
    let similar: Vec<String> = all.iter().filter(is_similar).cloned().collect();
    if similar.is_empty() { all } else { similar }
}

/// What container runtimes and kubelet call a container or a pod of this name. Files that may not be read have no names.
fn identifiers(root: &Path, home: Option<&Path>, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Docker: ID/config.v2.json
    for folder in entries(&root.join("var/lib/docker/containers")) {
        let is_it = json(&folder.join("config.v2.json")).is_some_and(|config| config["Name"] == format!("/{name}"));
        found.extend(file_name(&folder).filter(|_| is_it));
    }
    let storages = [Some(root.join("var/lib")), home.map(|home| home.join(".local/share"))];
    for storage in storages.iter().flatten() {
        // Podman and CRI-O: a file for each storage driver.
        for driver in entries(&storage.join("containers/storage")) {
            let containers = json(&driver.join("containers.json"));
            for container in containers.iter().filter_map(Value::as_array).flatten() {
                let is_it = container["names"].as_array().is_some_and(|names| names.iter().any(|of| of == name));
                found.extend(container["id"].as_str().filter(|_| is_it).map(String::from));
            }
        }
        // nerdctl: a file for each name, which holds the identifier.
        for address in entries(&storage.join("nerdctl")) {
            for namespace in entries(&address.join("names")) {
                let id = fs::read_to_string(namespace.join(Path::new(name).file_name().unwrap_or_default()));
                found.extend(id.ok().map(|id| id.trim().to_string()));
            }
        }
    }
    // containerd: the annotations of those that kubelet has it run.
    for namespace in entries(&root.join("run/containerd/io.containerd.runtime.v2.task")) {
        for container in entries(&namespace) {
            let config = json(&container.join("config.json"));
            let is_it = config.is_some_and(|config| config["annotations"]["io.kubernetes.cri.container-name"] == name);
            found.extend(file_name(&container).filter(|_| is_it));
        }
    }
    // kubelet: a folder NAMESPACE_POD_UID for the output of each pod.
    for folder in entries(&root.join("var/log/pods")) {
        let folder = file_name(&folder).unwrap_or_default();
        let mut parts = folder.split('_');
        if let (Some(namespace), Some(pod), Some(uid)) = (parts.next(), parts.next(), parts.next()) {
            let is_it = pod == name || name.split_once('/') == Some((namespace, pod));
            found.extend(is_it.then(|| uid.to_string()));
        }
    }
    found.retain(|id| !id.is_empty());
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const DB: &str = "0123fedcba9876543210fedcba9876543210fedcba9876543210fedcba987654";

    /// Cgroups of a machine.
    fn paths() -> Vec<String> {
        let pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8c2e_11.slice";
        [
            "system.slice".to_string(),
            "system.slice/db.service".into(),
            "system.slice/db.service/worker".into(),
            "user.slice/user-1000.slice/user@1000.service/app.slice/db.service".into(),
            "system.slice/ssh.service".into(),
            format!("system.slice/docker-{WEB}.scope"),
            format!("system.slice/docker-{WEB}.scope/inner"),
            format!("machine.slice/libpod-{DB}.scope"),
            format!("machine.slice/libpod-conmon-{DB}.scope"),
            pod.into(),
            format!("{pod}/cri-containerd-{WEB}.scope"),
            "lxc.payload.mail".into(),
            "lxc.payload.mail/system.slice/ssh.service".into(),
            "slurm/uid_0/job_7".into(),
            "slurm/uid_0/job_7/step_0".into(),
            "slurm/uid_0/job_7/step_0/task_0".into(),
        ]
        .into()
    }

    fn found(name: &str) -> Vec<String> {
        called(&paths(), &[name.to_string()])
    }

    #[test]
    fn finds_a_cgroup_by_its_name() {
        for (name, path) in [
            ("ssh", "system.slice/ssh.service"),
            ("ssh.service", "system.slice/ssh.service"),
            ("0123f", &format!("machine.slice/libpod-{DB}.scope")),
            (DB, &format!("machine.slice/libpod-{DB}.scope")),
            ("8c2e-11", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8c2e_11.slice"),
            ("mail", "lxc.payload.mail"),
            ("7", "slurm/uid_0/job_7"),
            ("job_7", "slurm/uid_0/job_7"),
            ("7.0", "slurm/uid_0/job_7/step_0"),
        ] {
            assert_eq!(found(name), [path], "{name}");
        }
        assert_eq!(found("012"), [""; 0], "too short for a container");
        assert_eq!(found("db").len(), 2, "a unit of the machine, and one of a user");
        assert_eq!(found("0123").len(), 3, "the beginning of both containers, one of them in two places");
    }

    #[test]
    fn names_what_there_is_in_place_of_an_unknown_name() {
        assert_eq!(similar(&paths(), "dbx.service"), ["db.service"]);
        let others = similar(&paths(), "nothing-like-it");
        assert!(others.contains(&"ssh.service".to_string()) && others.contains(&"7.0".to_string()), "{others:?}");
        let error = NameError::Unknown { name: "web".into(), others: vec!["a".into(); 10] }.to_string();
        assert!(error.ends_with("is called 'web'. There are: a, a, a, a, a, a, a, a, and 2 more"), "{error}");
    }

    #[test]
    fn reads_the_names_that_container_runtimes_keep() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&format!("var/lib/docker/containers/{WEB}/config.v2.json"), r#"{"Name": "/web", "State": {}}"#);
        write("var/lib/docker/containers/damaged/config.v2.json", "{");
        let podman = format!(r#"[{{"id": "{DB}", "names": ["db", "also"]}}, {{"id": "x"}}]"#);
        write("var/lib/containers/storage/overlay-containers/containers.json", &podman);
        write("home/.local/share/containers/storage/vfs-containers/containers.json", &podman.replace("also", "own"));
        write("var/lib/nerdctl/1935db59/names/default/proxy", &format!("{WEB}\n"));
        let annotations = r#"{"annotations": {"io.kubernetes.cri.container-name": "api"}}"#;
        write(&format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{DB}/config.json"), annotations);
        write("var/log/pods/shop_front-0_8c2e-11/api/0.log", "");
        let home = root.path().join("home");
        let ids = |name: &str| identifiers(root.path(), Some(&home), name);
        assert_eq!([ids("web"), ids("proxy")], [[WEB], [WEB]]);
        assert_eq!([ids("also"), ids("own"), ids("api")], [[DB], [DB], [DB]]);
        assert_eq!([ids("front-0"), ids("shop/front-0")], [["8c2e-11"], ["8c2e-11"]]);
        for unknown in ["", "other/front-0", "nothing", "../default/proxy/.."] {
            assert_eq!(ids(unknown), [""; 0], "{unknown}");
        }
    }
}

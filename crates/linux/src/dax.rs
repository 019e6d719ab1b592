//! Memory that Linux does not manage, as device-dax devices (Documentation/ABI/testing/sysfs-bus-dax).

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, file};

const DEVICES: &str = "/sys/bus/dax/devices";
const DRIVER: &str = "/sys/bus/dax/drivers/device_dax";

/// A device, such as `dax0.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, also in `/dev`.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Free bytes for further devices in its region; 0 if the region cannot be divided.
    pub left: u64,
    /// The alignment of addresses and offsets of mappings.
    pub align: u64,
    /// The nearest NUMA node.
    pub node: u32,
    /// Whether its region can be divided. Then this is the region's first device, `daxN.0`, which always exists.
    pub dynamic: bool,
}

/// The usable devices: not those that the kernel uses as its own memory, and of a divisible region only the first one, even without memory.
pub fn devices() -> Vec<Device> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let mut found: Vec<Device> = entries.filter_map(|entry| device(entry.file_name().to_str()?)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Whether a device of this name exists, with memory or without.
pub fn exists(name: &str) -> bool {
    directory(name).exists()
}

/// Removes all memory from a device of a divisible region, for use by others. Its mappings end.
///
/// # Errors
/// [`Error::Write`] without root.
pub fn clear(name: &str) -> Result<(), Error> {
    unbind(name)?;
    file::write(&directory(name).join("size"), "0")
}

/// Gives memory to an empty device, and enables mapping it.
///
/// # Errors
/// [`Error::Write`] without root, or if its region has less memory.
pub fn fill(name: &str, bytes: u64) -> Result<(), Error> {
    file::write(&directory(name).join("size"), &bytes.to_string())?;
    bind(name)
}

/// Creates a device in the region of another; returns its name. Earlier users of the memory cannot access it through descriptors they kept.
///
/// # Errors
/// [`Error::Write`] without root, or if the region has less memory.
pub fn create(beside: &str, bytes: u64) -> Result<String, Error> {
    let create = region(beside).join("create");
    file::write(&create, "1")?;
    let name = file::read(&create)?.trim().to_string();
    fill(&name, bytes).inspect_err(|_| {
        let _ = remove(&name);
    })?;
    Ok(name)
}

/// Removes a device that [`create`] created; its mappings end.
///
/// # Errors
/// [`Error::Write`] without root.
pub fn remove(name: &str) -> Result<(), Error> {
    clear(name)?;
    file::write(&region(name).join("delete"), name)
}

/// Ends all mappings of a device.
///
/// # Errors
/// [`Error::Write`] without root.
pub fn rebind(name: &str) -> Result<(), Error> {
    unbind(name)?;
    bind(name)
}

/// The other devices in the region of one.
pub fn beside(name: &str) -> Vec<String> {
    let parent = directory(name).canonicalize().ok().and_then(|dir| dir.parent().map(Path::to_path_buf));
    let dirs = parent.and_then(|parent| file::subdirectories(&parent).ok()).unwrap_or_default();
    let names = dirs.iter().filter_map(|dir| dir.file_name()?.to_str());
    let devices = names.filter(|other| other.starts_with("dax") && exists(other) && *other != name);
    devices.map(String::from).collect()
}

fn device(name: &str) -> Option<Device> {
    let dir = directory(name);
    // A device without memory is bound to no driver.
    let driver = fs::read_link(dir.join("driver")).ok();
    if driver.is_some_and(|driver| !driver.ends_with("device_dax")) {
        return None;
    }
    let region = region(name);
    let dynamic = region.join("create").exists();
    if dynamic && !name.ends_with(".0") {
        return None;
    }
    let left = if dynamic { file::number(&region.join("available_size"))? } else { 0 };
    Some(Device {
        name: name.into(),
        bytes: file::number(&dir.join("size"))?,
        left,
        align: file::number(&dir.join("align"))?,
        node: file::number(&dir.join("target_node"))? as u32,
        dynamic,
    })
}

fn bind(name: &str) -> Result<(), Error> {
    file::write(&Path::new(DRIVER).join("bind"), name)
}

/// An unbound device needs no change.
fn unbind(name: &str) -> Result<(), Error> {
    if directory(name).join("driver").exists() { file::write(&Path::new(DRIVER).join("unbind"), name) } else { Ok(()) }
}

fn directory(name: &str) -> PathBuf {
    Path::new(DEVICES).join(name)
}

/// The files of the region are beside the devices, whose directories are links.
fn region(name: &str) -> PathBuf {
    let dir = directory(name).canonicalize().unwrap_or_else(|_| directory(name));
    dir.parent().unwrap_or(Path::new("/")).join("dax_region")
}

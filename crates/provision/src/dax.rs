//! Segments that are device-dax devices.
//!
//! Only `/proc` shows which processes have such a device open, and it does not show descriptors in flight through a socket. Therefore,
//! where the region can be divided, a returned segment's device is removed and created anew on the same memory: a descriptor that a process
//! kept is then of a removed device.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linux::dax::{self, Device};
use model::Bytes;

use crate::state::{Directory, Pool, Segment};
use crate::{Error, backing};

/// Held while a device is created: a region can have only one device without memory at a time.
static CREATING: Mutex<()> = Mutex::new(());

/// The devices whose pages are of this size.
///
/// # Errors
/// [`Error::NoDax`], [`Error::PageSize`].
pub fn available(page_bytes: u64) -> Result<Vec<Device>, Error> {
    let all = dax::devices();
    if all.is_empty() {
        return Err(Error::NoDax);
    }
    let (fit, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|device| device.align == page_bytes);
    match fit.is_empty() {
        true => Err(Error::PageSize {
            wanted: Bytes(page_bytes),
            available: others
                .iter()
                .map(|device| device.align)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(Bytes)
                .collect(),
        }),
        false => Ok(fit),
    }
}

/// Plans segments for at least so many bytes, each on the node with the least memory so far: in regions that can be divided, of the pool's
/// segment size, else whole devices.
///
/// # Errors
/// [`Error::DaxShort`]; those of [`available`].
pub fn plan_segments(pool: &Pool, directory: &Directory, bytes: u64) -> Result<BTreeMap<u32, Segment>, Error> {
    let devices = available(pool.page_bytes)?;
    let taken = taken_by_others(directory);
    let is_ours = |device: &Device| pool.segments.values().any(|segment| segment.device.as_ref() == Some(&device.name));
    let fits = |device: &Device| {
        pool.nodes.contains(&device.node) && !taken.contains(&device.name) && (device.dynamic || !is_ours(device))
    };
    let mut on: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, segment) in pool.segments.values().filter_map(|segment| Some((segment.node?, segment))) {
        *on.entry(node).or_default() += segment.bytes;
    }
    let size = |device: &Device| if device.dynamic { pool.segment_bytes } else { device.bytes };
    let all = |device: Device| (device.bytes + device.left, device);
    let mut unused: Vec<(u64, Device)> = devices.into_iter().filter(fits).map(all).collect();
    let mut number = pool.segments.keys().last().map_or(0, |last| last + 1);
    let (mut segments, mut had) = (BTreeMap::new(), 0);
    while had < bytes {
        let large_enough = unused.iter_mut().filter(|(left, device)| (1..=*left).contains(&size(device)));
        let Some((left, device)) = large_enough.min_by_key(|(_, device)| on.get(&device.node).copied()) else { break };
        // In a divided region, the device is created when the segment is populated.
        let named = Some(device.name.clone());
        let (name, region) = if device.dynamic { (None, named) } else { (named, None) };
        let size = size(device);
        segments.insert(number, Segment { bytes: size, node: Some(device.node), device: name, region });
        *on.entry(device.node).or_default() += size;
        (had, *left, number) = (had + size, *left - size, number + 1);
    }
    if had < bytes { Err(Error::DaxShort { available: Bytes(had), wanted: Bytes(bytes) }) } else { Ok(segments) }
}

/// Devices of other pools, and the first devices of the regions that those pools divided.
fn taken_by_others(directory: &Directory) -> BTreeSet<String> {
    let others = Directory::all().into_iter().filter(|other| other.name() != directory.name());
    let pools = others.filter_map(|other| Pool::load(&other).ok());
    let names = pools.flat_map(|pool| {
        let devices = pool.segments.into_values().filter_map(|segment| segment.device);
        devices.chain(pool.regions.into_keys()).collect::<Vec<_>>()
    });
    names.collect()
}

/// Empties the first devices of divided regions; after a reboot they have their memory again.
///
/// # Errors
/// [`Error::Kernel`].
pub fn empty_first_devices(pool: &Pool) -> Result<(), Error> {
    let divided = |device: &&Device| device.bytes > 0 && pool.regions.contains_key(&device.name);
    for device in dax::devices().iter().filter(divided) {
        dax::clear(&device.name)?;
    }
    Ok(())
}

/// Populates a segment's device anew, zeroed; returns its name.
pub fn renew(segment: &Segment) -> io::Result<String> {
    let alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let name = match (&segment.region, &segment.device) {
        (Some(region), device) => {
            // After a reboot the device no longer exists.
            if let Some(device) = device.as_ref().filter(|device| dax::exists(device)) {
                dax::remove(device).map_err(io::Error::other)?;
            }
            dax::create(region, segment.bytes).map_err(io::Error::other)?
        }
        (None, Some(device)) => {
            dax::rebind(device).map_err(io::Error::other)?;
            device.clone()
        }
        (None, None) => return Err(io::Error::other("a segment has neither a device nor a region")),
    };
    drop(alone);
    match zero(&Path::new("/dev").join(&name), segment.bytes as usize) {
        Err(error) => {
            // The new device is recorded nowhere yet: remove it.
            if segment.region.is_some() {
                let _ = dax::remove(&name);
            }
            Err(error)
        }
        Ok(()) => Ok(name),
    }
}

/// Releases everything that the remaining segments do not need: removes created devices and restores undivided regions.
///
/// # Errors
/// [`Error::Kernel`].
pub fn release_excess(pool: &mut Pool) -> Result<(), Error> {
    for (region, bytes) in pool.regions.clone() {
        for name in dax::beside(&region) {
            if !pool.segments.values().any(|segment| segment.device.as_ref() == Some(&name)) {
                dax::remove(&name)?;
            }
        }
        if !pool.segments.values().any(|segment| segment.region.as_ref() == Some(&region)) {
            dax::clear(&region)?;
            dax::fill(&region, bytes)?;
            pool.regions.remove(&region);
        }
    }
    Ok(())
}

fn zero(path: &Path, bytes: usize) -> io::Result<()> {
    let device = backing::open(path)?;
    // SAFETY: a new shared mapping of our own descriptor, written within its length and unmapped; no other code has its address.
    unsafe {
        let kind = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(std::ptr::null_mut(), bytes, kind, libc::MAP_SHARED, device.as_raw_fd(), 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::memset(memory, 0, bytes);
        libc::munmap(memory, bytes);
    }
    Ok(())
}

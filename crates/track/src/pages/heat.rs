//! How much of each mapping was accessed, and in which part of it.

use linux::pages::Mapping;
use model::MappingHeat;

use super::process::Place;

/// Number of parts of a mapping with separate heat.
const PARTS: u64 = 32;

/// A mapping's heat while it is summed up.
pub struct Heat {
    heat: MappingHeat,
    part: u64,
    resident: [u64; PARTS as usize],
    touched: [u64; PARTS as usize],
}

impl Heat {
    /// Starts empty.
    pub fn of(pid: i32, mapping: &Mapping) -> Heat {
        let (start, end) = (mapping.range.start, mapping.range.end);
        let name = mapping.name.clone();
        Heat {
            heat: MappingHeat { pid, start, end, name, resident: 0, touched: 0, blind: 0, parts: Vec::new() },
            part: (end - start).div_ceil(PARTS).max(1),
            resident: [0; PARTS as usize],
            touched: [0; PARTS as usize],
        }
    }

    /// Adds the pages that a sample at this address stands for.
    pub fn add(&mut self, address: u64, bytes: u64, place: Place, touched: bool) {
        if place == Place::Absent {
            return;
        }
        self.heat.resident += bytes;
        if let Place::Blind(_) = place {
            self.heat.blind += bytes;
            return;
        }
        let part = (address.saturating_sub(self.heat.start) / self.part).min(PARTS - 1) as usize;
        self.resident[part] += bytes;
        if touched {
            self.heat.touched += bytes;
            self.touched[part] += bytes;
        }
    }

    /// The sums; `None` if nothing is resident.
    pub fn finish(mut self) -> Option<MappingHeat> {
        if self.heat.resident == 0 {
            return None;
        }
        let shares = self.resident.iter().zip(self.touched);
        let shares = shares.map(|(there, touched)| (*there > 0).then(|| touched as f32 / *there as f32));
        self.heat.parts = shares.collect();
        Some(self.heat)
    }
}

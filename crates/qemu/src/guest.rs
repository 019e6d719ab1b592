//! What more memory would be worth to a virtual machine than it has.
//!
//! From the host, pages of a guest are frames: what the guest swaps out leaves its frame to another page, and is seen no more. So below its present size
//! the curve is that of frames, but for those that go from page to page; at its size it is what the guest waits for; and with all that is swapped out
//! in memory there would be no misses, as Zhao and Wang's balancer has it (VEE 2009), which the paper's experiment used. Between the two, misses become fewer as
//! fast as they do below, where that is seen: a program that streams gains nothing before it gains all.

use model::{MissPoint, PagesRound};
use serde_json::Value;

use crate::qmp::number;

/// Sizes between the present one and that with all that is swapped out.
const STEPS: u64 = 16;
/// Frames are seen to be reused so many times as often as pages are swapped in, and no more: they are a sample.
const MOST_REUSED: f64 = 3.0;
/// Pages a second that any guest may bring back at any time.
const FEW: f64 = 20.0;
/// A guest's kernel keeps less free than this where memory is short.
const ROOM: u64 = 16 << 20;

/// As its guest tells by the balloon's statistics.
#[derive(Debug)]
pub struct Guest {
    /// What it had then.
    pub size: u64,
    /// What it can have without swapping.
    available: u64,
    /// What it cannot give without swapping.
    pub used: u64,
    /// What its kernel has set apart, which is never given.
    pub kept: u64,
    swapped_in: u64,
    swapped_out: u64,
    major_faults: u64,
}

/// What a guest brings back, per second.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    /// Times that a program had to wait for it.
    pub faults: f64,
    /// Pages swapped in: several a fault, where they are read ahead.
    pub pages: f64,
}

/// What it waited for when it had less.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Of memory.
    pub size: u64,
    /// Per second.
    pub faults: f64,
}

impl Paging {
    /// More than any guest may do at any time.
    pub fn is_short(self) -> bool {
        self.pages >= FEW
    }
}

impl Guest {
    /// When it had `size`. None if it does not tell.
    pub fn of(told: &Value, size: u64) -> Option<Guest> {
        let available = number(&told["stat-available-memory"]).or_else(|| number(&told["stat-free-memory"]))?;
        Some(Guest {
            size,
            available,
            used: size.saturating_sub(available),
            kept: size.saturating_sub(number(&told["stat-total-memory"])?),
            swapped_in: number(&told["stat-swap-in"])?,
            swapped_out: number(&told["stat-swap-out"])?,
            major_faults: number(&told["stat-major-faults"])?,
        })
    }

    /// Whether it ever had memory to swap out, and where to.
    pub fn swaps(&self) -> bool {
        self.swapped_out > 0
    }

    /// What it did since it told this, so many seconds ago.
    pub fn paging_since(&self, before: &Guest, seconds: f64) -> Paging {
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        Paging {
            faults: per_second(self.major_faults, before.major_faults),
            pages: per_second(self.swapped_in, before.swapped_in) / linux::procfs::page_bytes() as f64,
        }
    }

    /// Memory that it was given is still to be filled again.
    pub fn fills(&self, paging: Paging) -> bool {
        paging.is_short() && self.available > ROOM
    }

    /// About as much is swapped out: what went and did not come back.
    fn swapped(&self) -> u64 {
        self.swapped_out.saturating_sub(self.swapped_in)
    }
}

/// With less than it was short with before it would be short again, whatever else is seen.
pub fn remembered(points: &mut Vec<MissPoint>, short: Short) {
    let after = points.partition_point(|point| point.bytes <= short.size);
    let Some(last) = after.checked_sub(1) else { return };
    let beyond = MissPoint { bytes: short.size + 1, ..points[last] };
    for point in &mut points[..after] {
        point.misses_per_second = point.misses_per_second.max(short.faults);
    }
    points.insert(after, beyond);
}

/// Misses by what its guest has, of what frames have missed on the host since it has `size` and pages so much; none if that is not to be known now.
pub fn misses(
    round: &PagesRound,
    frames_missed: &[MissPoint],
    size: u64,
    guest: &Guest,
    paging: Paging,
) -> Option<Vec<MissPoint>> {
    let none_held = frames_missed.first()?.misses_per_second;
    if guest.fills(paging) {
        return None;
    }
    // QEMU's own memory is accessed beside that of the guest, which is by far its largest mapping; and some of a guest's memory is never given.
    let frames = round.heat.iter().max_by_key(|mapping| mapping.resident).map_or(0, |mapping| mapping.touched);
    let own = round.heat.iter().map(|mapping| mapping.touched).sum::<u64>() - frames;
    let kept = guest.kept + round.blind_bytes;
    let seen = frames_missed.iter().filter(|point| point.bytes > own);
    let seen = seen.map(|point| MissPoint { bytes: point.bytes - own + kept, ..*point });
    let first = MissPoint { bytes: 0, misses_per_second: none_held };
    let mut points: Vec<MissPoint> = std::iter::once(first).chain(seen).collect();
    let swapped = guest.swapped();
    if paging.faults == 0.0 || swapped == 0 {
        return Some(points);
    }
    let at = |bytes: u64| points[points.partition_point(|point| point.bytes <= bytes) - 1].misses_per_second;
    // While it swaps all of its frames are in use, and the least deep of them are hidden by QEMU's own memory.
    let (below, near) = (kept + size / 10 * 7, kept + size / 10 * 9);
    // A frame that goes to another page is seen as one that comes back late.
    let reused = at(near).min(MOST_REUSED * paging.pages.max(paging.faults));
    // Of what is missed, by each byte more; all of it by all that is swapped out.
    let fewer = (at(below) / at(near).max(1.0) - 1.0) / (near - below) as f64;
    let fewer = fewer.clamp(0.0, 1.0 / swapped as f64);
    points.retain(|point| point.bytes < size);
    // Where several pages are read for a fault, several more would be.
    let faults_per_page = (paging.faults / paging.pages).min(1.0);
    for point in &mut points {
        point.misses_per_second = (point.misses_per_second - reused).max(0.0) * faults_per_page + paging.faults;
    }
    points.extend((0..STEPS).map(|step| {
        let more = swapped * step / STEPS;
        MissPoint { bytes: size + more, misses_per_second: paging.faults * (1.0 - fewer * more as f64) }
    }));
    points.push(MissPoint { bytes: size + swapped, misses_per_second: 0.0 });
    Some(points)
}

#[cfg(test)]
mod tests {
    use balance::{Guess, History, Lived};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A guest of 128 MiB that has swapped out 64 MiB, waits 50 times a second, and whose frames come back so often with less.
    fn with(available: u64, pages: f64, seen: impl Fn(u64) -> f64) -> Option<Vec<MissPoint>> {
        let point = |mib: u64| MissPoint { bytes: mib * MIB, misses_per_second: seen(mib) };
        let seen: Vec<MissPoint> = (1..=16).map(|at| point(at * 8)).collect();
        let guest = Guest {
            size: 128 * MIB,
            available,
            used: 0,
            kept: 0,
            swapped_in: 36 * MIB,
            swapped_out: 100 * MIB,
            major_faults: 0,
        };
        misses(&PagesRound::default(), &seen, 128 * MIB, &guest, Paging { faults: 50.0, pages })
    }

    fn at(points: &[MissPoint], mib: u64) -> f64 {
        points[points.partition_point(|point| point.bytes <= mib * MIB) - 1].misses_per_second
    }

    #[test]
    fn who_gains_below_its_size_gains_beyond_and_who_streams_does_not() {
        let gains = with(0, 50.0, |mib| 350.0 - 2.0 * mib as f64).unwrap();
        assert!(at(&gains, 64) > 100.0 && at(&gains, 128) == 50.0 && at(&gains, 192) == 0.0);
        assert!((20.0..30.0).contains(&at(&gains, 160)), "half of what it lacks is half of what it misses");
        let streams = with(0, 100.0, |mib| if mib < 128 { 100.0 } else { 0.0 }).unwrap();
        assert!(at(&streams, 8) == 50.0 && at(&streams, 191) == 50.0 && at(&streams, 192) == 0.0);
        assert!(with(32 * MIB, 100.0, |_| 100.0).is_none(), "it has room, and is filled again");
    }

    #[test]
    fn who_reads_ahead_would_wait_as_rarely_with_less() {
        let seen = |mib| if mib < 64 { 1000.0 } else { 400.0 };
        let [one_by_one, ahead] = [50.0, 400.0].map(|pages| at(&with(0, pages, seen).unwrap(), 32));
        assert_eq!((one_by_one, ahead), (50.0 + 850.0, 50.0 + 600.0 / 8.0));
    }

    #[test]
    fn rounds_together_tell_what_each_alone_does_not() {
        // Of the frames that come back in an interval one in some hundred is seen: these so deep.
        let gains = [[100, 40, 90, 20], [30, 120, 60, 10], [80, 50, 5, 70], [110, 25, 95, 45], [15, 65, 85, 35]];
        let streams = [[128, 127, 128, 60], [126, 128, 127, 128], [128, 30, 128, 127], [127, 128, 128, 128], [128; 4]];
        let half_way = |rounds: [[u64; 4]; 5]| {
            let mut history = History::new(256 * MIB);
            let lived = Lived { seconds: 1.0, work_seconds: 1.0, limit: 0, refaults: 0.0 };
            for deep in rounds {
                let beyond = |mib: u64| deep.iter().filter(|one| **one > mib).count() as f64 * 100.0;
                let curve: Vec<MissPoint> =
                    (0..=128).map(|mib| MissPoint { bytes: mib * MIB, misses_per_second: beyond(mib) }).collect();
                history.add(&curve, Guess::default(), &lived);
            }
            let seen = history.misses().unwrap();
            let seen = |mib: u64| seen[seen.partition_point(|point| point.bytes <= mib * MIB) - 1].misses_per_second;
            at(&with(0, 50.0, seen).unwrap(), 160)
        };
        assert!(gains.iter().any(|round| half_way([*round; 5]) == 50.0), "one alone seems to stream");
        assert!(half_way(gains) < 30.0 && half_way(streams) > 40.0, "{} {}", half_way(gains), half_way(streams));
    }

    #[test]
    fn what_was_too_little_before_still_is() {
        let point = |mib: u64, misses_per_second| MissPoint { bytes: mib * MIB, misses_per_second };
        let mut points = vec![point(0, 900.0), point(64, 0.0)];
        remembered(&mut points, Short { size: 100 * MIB, faults: 70.0 });
        assert_eq!([32, 64, 100, 101].map(|mib| at(&points, mib)), [900.0, 70.0, 70.0, 0.0]);
    }

    #[test]
    fn a_guest_that_does_not_know_tells_nothing() {
        let told = serde_json::json!({ "stat-total-memory": u64::MAX, "stat-swap-in": 1 });
        assert!(Guest::of(&told, MIB).is_none());
    }
}

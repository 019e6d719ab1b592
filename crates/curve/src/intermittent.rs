//! Intermittent tracking (IMT): memory is tracked only while its demand changes; cheap events indicate when it may.

use model::TOLERATED_MISSES;

use crate::phases::{Detector, Verdict};
use crate::recent::{Recent, Seen};
use crate::untracked::Untracked;

/// Lower limit of an event's threshold, because a signal that did not move at all gives no information.
const MIN_THRESHOLD: f64 = 0.005;

/// "Just below": the interval of stable values is closed.
const JUST_BELOW: f64 = 0.999;

/// An interval that needs this share more or less than the last ones together may begin another phase. Then tracking
/// stays on until an interval needs as much again, or until the reported working set follows; and while the reported
/// working set changes by this share.
const DIFFERENT_BY: f64 = 0.1;

/// Bytes of the pages that misses count.
const PAGE_BYTES: f64 = 4096.0;

/// How far an event may deviate before a new phase is predicted (T).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Constant.
    Fixed(f64),
    /// Initial value; then adjusted by the working set.
    Adaptive(f64),
}

/// Number of intervals without tracking after which it is switched on to check the thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoint {
    /// Initially, and after each adjustment.
    pub first: u32,
    /// Increase after a check that found nothing to adjust.
    pub step: u32,
    /// Maximum.
    pub most: u32,
}

/// How to track intermittently. The defaults are the paper's, with the threshold that works best with sampled Accessed
/// bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Samples in the moving averages (k), at least 2.
    pub width: usize,
    /// Tolerated misses per second of a working set.
    pub misses_per_second: f64,
    /// Tolerated relative error of the working set.
    pub wss_threshold: f64,
    /// Precision of tracking, in the working set's unit: a smaller difference is none.
    pub wss_unit: f64,
    /// The events' threshold.
    pub threshold: Threshold,
    /// The checkpoints.
    pub checkpoint: Checkpoint,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            width: 2,
            misses_per_second: TOLERATED_MISSES,
            wss_threshold: 0.05,
            wss_unit: (1 << 20) as f64,
            threshold: Threshold::Adaptive(0.05),
            checkpoint: Checkpoint { first: 10, step: 5, most: 20 },
        }
    }
}

/// Decides before each interval whether to track it, and reports the working set. O(k) per signal and interval, plus
/// sorting the points of the last intervals' curves.
#[derive(Clone, Debug)]
pub struct Intermittent {
    settings: Settings,
    recent: Recent,
    reported: u64,
    wss: Detector,
    events: Vec<Event>,
    is_on: bool,
    off_for: u32,
    checkpoint: u32,
    is_check: bool,
    untracked: Untracked,
}

#[derive(Clone, Debug)]
struct Event {
    detector: Detector,
    threshold: f64,
    /// Its deviation when it last switched tracking on or kept it on, until the working set has been compared.
    alarm: Option<f64>,
    /// The alarm before that, if it has not been judged.
    earlier: Option<f64>,
}

impl Intermittent {
    /// Starts with tracking on. There is one signal per entry of `units`, its chance deviation. A new phase in any
    /// signal is a new phase.
    pub fn new(settings: Settings, units: impl IntoIterator<Item = f64>) -> Intermittent {
        let (Threshold::Fixed(threshold) | Threshold::Adaptive(threshold)) = settings.threshold;
        let event =
            |unit| Event { detector: Detector::new(settings.width, unit), threshold, alarm: None, earlier: None };
        Intermittent {
            settings,
            recent: Recent::default(),
            reported: 0,
            wss: Detector::new(settings.width, settings.wss_unit),
            events: units.into_iter().map(event).collect(),
            is_on: true,
            off_for: 0,
            checkpoint: settings.checkpoint.first,
            is_check: false,
            untracked: Untracked::default(),
        }
    }

    /// Whether to track the next interval.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Current thresholds of the events.
    pub fn thresholds(&self) -> impl Iterator<Item = f64> {
        self.events.iter().map(|event| event.threshold)
    }

    /// The working set of the last tracked intervals, in bytes.
    pub fn wss(&self) -> u64 {
        self.reported
    }

    /// Call before [`interval`](Self::interval) for an interval that was not tracked: in its `seconds` at least `bytes`
    /// of known memory were accessed. If that exceeds the working set, tracking goes on until tracked intervals show as
    /// much, or have not for long.
    pub fn accessed_untracked(&mut self, bytes: u64, seconds: f64) {
        let tolerated = self.settings.misses_per_second * seconds * PAGE_BYTES;
        self.untracked.accessed(bytes, self.reported, tolerated.max(self.settings.wss_unit) as u64);
    }

    /// Bytes accessed in an interval without tracking that exceed the working set: the true demand is unknown.
    pub fn unexplained(&self) -> Option<u64> {
        self.untracked.bytes()
    }

    /// Ends an interval. `seen`: what was seen, if it was tracked; `events`: the signals' samples, always in the same
    /// order. Returns whether the working set has changed: a new phase.
    pub fn interval(&mut self, seen: Option<Seen>, events: &[f64]) -> bool {
        let sampled = self.events.iter_mut().zip(events);
        let verdicts: Vec<Verdict> = sampled.map(|(event, value)| event.sample(*value)).collect();
        let has_changed = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Changed { .. }));
        match seen {
            Some(seen) => {
                let is_apart = self.take_in(seen);
                let verdict = self.wss.sample(self.reported as f64, self.settings.wss_threshold);
                self.untracked.tracked(self.reported);
                let is_explained = self.unexplained().is_none();
                // Alarms can only be judged once it is known what was accessed.
                let adjusted = is_explained
                    && matches!(self.settings.threshold, Threshold::Adaptive(_))
                    && self.adjust(verdict, &verdicts);
                if adjusted {
                    self.checkpoint = self.settings.checkpoint.first;
                } else if self.is_check {
                    let Checkpoint { step, most, .. } = self.settings.checkpoint;
                    self.checkpoint = (self.checkpoint + step).min(most);
                }
                self.is_check = false;
                // After an alarm it takes some intervals until a signal can give another one. If the working set has
                // not changed, tracking ends without waiting for that.
                self.is_on = has_changed || is_apart || !is_explained || !matches!(verdict, Verdict::Stable { .. });
                self.off_for = 0;
                matches!(verdict, Verdict::Changed { .. })
            }
            None => {
                self.off_for += 1;
                self.is_check = !has_changed && self.off_for >= self.checkpoint;
                self.is_on = has_changed || self.is_check || self.unexplained().is_some();
                false
            }
        }
    }

    /// Updates the reported working set. Returns whether this interval alone needs a different one, or the reported one
    /// has changed.
    fn take_in(&mut self, seen: Seen) -> bool {
        let most = self.settings.misses_per_second;
        if self.off_for > 0 {
            self.recent.keep_last();
        }
        self.recent.add(seen);
        let before = std::mem::replace(&mut self.reported, self.recent.working_set(most));
        let apart = self.reported.abs_diff(self.recent.last_working_set(most));
        // In a small program each step is smaller than the unit.
        let moved = self.reported.abs_diff(before) as f64 > DIFFERENT_BY * self.reported.max(before) as f64;
        moved || apart as f64 > (DIFFERENT_BY * self.reported as f64).max(self.settings.wss_unit)
    }

    /// Adjusts the thresholds by the working set's stability. Returns whether one has changed.
    fn adjust(&mut self, wss: Verdict, events: &[Verdict]) -> bool {
        match wss {
            // Events at the start of a phase say nothing about their thresholds, because the new phase is already
            // known.
            Verdict::Filling => {
                self.events.iter_mut().for_each(|event| _ = event.alarms());
                false
            }
            // Too tight: an event gave an alarm, and until it was stable again, or gave the next one, the working set
            // had not changed. It need not change sooner, because memory is allocated before it is used.
            Verdict::Stable { .. } => {
                let mut adjusted = false;
                for (event, now) in self.events.iter_mut().zip(events) {
                    let judged = match now {
                        Verdict::Stable { .. } => event.alarms(),
                        Verdict::Filling | Verdict::Changed { .. } => event.earlier.take(),
                    };
                    if let Some(deviation) = judged {
                        event.threshold = event.threshold.max(deviation);
                        adjusted = true;
                    }
                }
                adjusted
            }
            // Too wide: no event gave an alarm. The one that deviated most should have.
            Verdict::Changed { .. } => {
                let has_alarm = self.events.iter_mut().filter_map(Event::alarms).count() > 0;
                let off = self.events.iter_mut().zip(events.iter().filter_map(|verdict| verdict.deviation()));
                match off.max_by(|(a, x), (b, y)| (x / a.threshold).total_cmp(&(y / b.threshold))) {
                    Some((event, deviation)) if !has_alarm && events.iter().all(|v| *v != Verdict::Filling) => {
                        event.threshold = event.threshold.min((deviation * JUST_BELOW).max(MIN_THRESHOLD));
                        true
                    }
                    _ => false,
                }
            }
        }
    }
}

impl Event {
    fn sample(&mut self, value: f64) -> Verdict {
        let verdict = self.detector.sample(value, self.threshold);
        if let Verdict::Changed { deviation } = verdict {
            self.earlier = self.alarm.replace(deviation);
        }
        verdict
    }

    /// Returns the last alarm that has not been judged. All count as judged now.
    fn alarms(&mut self) -> Option<f64> {
        self.earlier = None;
        self.alarm.take()
    }
}

/// One interval of a fully tracked run.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// What was seen of memory.
    pub seen: Seen,
    /// The signals.
    pub events: Vec<f64>,
}

/// What intermittent tracking would have made of a fully tracked run.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The working set by full tracking.
    pub wss: Vec<f64>,
    /// Whether each interval would have been tracked.
    pub on: Vec<bool>,
    /// The working set that it would have reported: that of the last tracked intervals.
    pub told: Vec<f64>,
    /// Share of the intervals tracked.
    pub up_ratio: f64,
    /// Mean of |true - reported| / true over the intervals whose working set is not 0.
    pub mean_relative_error: f64,
}

/// Feeds a fully tracked run to the algorithm, as the paper evaluates it. `None` without intervals. Cost per interval
/// as for [`Intermittent`].
pub fn replay(settings: Settings, units: &[f64], run: &[Interval]) -> Option<Replay> {
    let mut tracking = Intermittent::new(settings, units.iter().copied());
    let mut always = Recent::default();
    let (mut wss, mut on, mut reported) = (Vec::new(), Vec::new(), Vec::new());
    for interval in run {
        always.add(interval.seen.clone());
        wss.push(always.working_set(settings.misses_per_second) as f64);
        on.push(tracking.is_on());
        tracking.interval(tracking.is_on().then(|| interval.seen.clone()), &interval.events);
        reported.push(tracking.wss() as f64);
    }
    let errors =
        wss.iter().zip(&reported).filter(|(wss, _)| **wss > 0.0).map(|(wss, reported)| (wss - reported).abs() / wss);
    let (error, compared) = errors.fold((0.0, 0u64), |(sum, count), error| (sum + error, count + 1));
    let up_ratio = on.iter().filter(|on| **on).count() as f64 / run.len() as f64;
    let mean_relative_error = error / compared.max(1) as f64;
    (!run.is_empty()).then_some(Replay { wss, on, told: reported, up_ratio, mean_relative_error })
}

#[cfg(test)]
mod tests {
    use model::MissPoint;

    use super::*;

    /// Phases of some intervals each: (intervals, working set in MiB, level of the event, noise of the event).
    fn run(phases: &[(usize, f64, f64, f64)]) -> Vec<Interval> {
        let mut state = 1u64;
        let mut noise = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let phase = |&(length, wss, event, wild): &(usize, f64, f64, f64)| {
            (0..length)
                .map(|_| Interval {
                    seen: seen(wss * 1048576.0 * (1.0 + 0.01 * noise())),
                    events: vec![event * (1.0 + wild * noise())],
                })
                .collect::<Vec<_>>()
        };
        phases.iter().flat_map(phase).collect()
    }

    /// A second in which many accesses miss below this size, and none above.
    fn seen(wss: f64) -> Seen {
        needing(&[(wss, 10_000.0)])
    }

    /// A second with these misses, each as (size that avoids them, number of misses).
    fn needing(needs: &[(f64, f64)]) -> Seen {
        let mut left: f64 = needs.iter().map(|(_, misses)| misses).sum();
        let mut misses = vec![MissPoint { bytes: 0, misses_per_second: left }];
        for (bytes, fewer) in needs {
            left -= fewer;
            misses.push(MissPoint { bytes: *bytes as u64, misses_per_second: left });
        }
        Seen { misses, seconds: 1.0, one_in: 1, blind_below: 0 }
    }

    fn replayed(threshold: Threshold, run: &[Interval]) -> Replay {
        replay(Settings { threshold, ..Settings::default() }, &[0.0], run).unwrap()
    }

    /// Number of intervals from `from` on whose reported working set is off by more than a tenth.
    fn wrong_from(replay: &Replay, from: usize) -> usize {
        let both = replay.wss.iter().zip(&replay.told).skip(from);
        both.filter(|(wss, reported)| (*wss - *reported).abs() > 0.1 * *wss).count()
    }

    const FIVE: [(usize, f64, f64, f64); 5] = [
        (100, 400.0, 1000.0, 0.01),
        (80, 900.0, 3000.0, 0.01),
        (120, 100.0, 500.0, 0.01),
        (90, 700.0, 2500.0, 0.01),
        (110, 300.0, 900.0, 0.01),
    ];

    #[test]
    fn clean_phases_need_little_tracking() {
        let replay = replayed(Threshold::Adaptive(0.05), &run(&FIVE));
        let (up, error) = (replay.up_ratio, replay.mean_relative_error);
        assert!(up < 0.18 && error < 0.03, "{up} {error}");
    }

    #[test]
    fn a_noisy_event_is_tolerated_if_wss_is_stable() {
        let noisy: Vec<_> = [(600, 400.0, 1000.0, 0.6)].into();
        let (fixed, adaptive) =
            (replayed(Threshold::Fixed(0.05), &run(&noisy)), replayed(Threshold::Adaptive(0.05), &run(&noisy)));
        assert!(fixed.up_ratio > 0.25 && adaptive.up_ratio < 0.1, "{} {}", fixed.up_ratio, adaptive.up_ratio);
    }

    #[test]
    fn noise_at_the_start_of_a_phase_keeps_thresholds() {
        let phases =
            [(50, 512.0, 1000.0, 0.01), (1, 1.0, 1.0, 0.0), (50, 191.0, 406.0, 0.01), (50, 764.0, 969.0, 0.01)];
        let replay = replayed(Threshold::Adaptive(0.05), &run(&phases));
        let late = wrong_from(&replay, 101);
        assert!(late <= 1, "{late} intervals late");
    }

    #[test]
    fn an_event_ahead_of_wss_keeps_its_threshold() {
        let mut run = run(&[(50, 256.0, 270.0, 0.01), (50, 640.0, 672.0, 0.01), (50, 160.0, 170.0, 0.01)]);
        // A checkpoint is due in the interval in which the new phase's memory is allocated, but not yet used.
        let ahead = (10..50).rev().find(|at| replayed(Threshold::Adaptive(0.05), &run).on[*at]).unwrap();
        run.drain(ahead + 1..50);
        run[ahead].events[0] = 814.0;
        let phase = ahead + 1 + 50;
        let replay = replayed(Threshold::Adaptive(0.05), &run);
        let late = wrong_from(&replay, phase);
        assert!(late <= 2, "{late} intervals late");
    }

    #[test]
    fn checkpoints_find_changes_without_events() {
        let silent: Vec<_> = [(200, 400.0, 1000.0, 0.01), (200, 800.0, 1000.0, 0.01)].into();
        let replay = replayed(Threshold::Adaptive(0.05), &run(&silent));
        let late = wrong_from(&replay, 200);
        assert!(late <= 20, "{late} intervals late");
    }

    #[test]
    fn memory_accessed_now_and_then_is_always_needed() {
        let run: Vec<_> = (0..300)
            .map(|at| Interval { seen: seen(if at % 3 == 0 { 5e8 } else { 2e7 }), events: vec![1000.0] })
            .collect();
        let replay = replayed(Threshold::Adaptive(0.05), &run);
        let (up, error) = (replay.up_ratio, replay.mean_relative_error);
        assert!(up < 0.25 && error < 0.01, "{up} {error}");
    }

    #[test]
    fn checkpoints_find_phases_that_need_less() {
        let silent: Vec<_> = [(100, 800.0, 1000.0, 0.01), (100, 300.0, 1000.0, 0.01)].into();
        let replay = replayed(Threshold::Adaptive(0.05), &run(&silent));
        let late = wrong_from(&replay, 100);
        assert!(late <= 20, "{late} intervals late");
    }

    #[test]
    fn a_slowly_changing_working_set_is_followed() {
        // Between two checkpoints no signal shows it, and each interval is close to the one before.
        let slow: Vec<_> =
            (0..400).map(|at| Interval { seen: seen(18e6 - 15e3 * at as f64), events: vec![1000.0] }).collect();
        let replay = replayed(Threshold::Adaptive(0.05), &slow);
        let (up, error) = (replay.up_ratio, replay.mean_relative_error);
        assert!(up < 0.15 && error < 0.05, "{up} {error}");
    }

    #[test]
    fn a_phase_seen_in_part_is_tracked_until_reported() {
        // Few misses have little weight beside the curve from before: the reported value has moved by a third of the
        // way, which is too little for a new phase.
        let (small, large): (&[_], &[_]) = (&[(1.6e6, 5000.0)], &[(1.6e6, 4000.0), (3e6, 850.0), (6.3e6, 150.0)]);
        let interval = |needs| Interval { seen: needing(needs), events: vec![1000.0] };
        let run: Vec<_> = (0..100).map(|_| interval(small)).chain((0..100).map(|_| interval(large))).collect();
        let replay = replayed(Threshold::Adaptive(0.05), &run);
        let late = wrong_from(&replay, 100);
        assert!(late <= 22, "{late} intervals late");
    }

    #[test]
    fn a_small_wss_seen_in_parts_is_tracked_until_complete() {
        let parts = [2.4e6, 2.9e6, 3.5e6, 4.2e6];
        let late: Vec<_> = (0..4)
            .map(|first| {
                let needed = |at: usize| if at < 100 { 2e6 } else { parts[(at + first) % 4] };
                let run: Vec<_> =
                    (0..200).map(|at| Interval { seen: seen(needed(at)), events: vec![1000.0] }).collect();
                wrong_from(&replayed(Threshold::Adaptive(0.05), &run), 100)
            })
            .collect();
        assert!(late.iter().all(|late| *late <= 22), "{late:?} intervals late");
    }

    /// Reported working sets (`None`: unknown) and the share of tracked intervals, of a program that touches `burst` in
    /// every third interval and needs `between` in the others. Memory was touched before the first scan, so that no
    /// signal moves at first.
    fn of_bursts(burst: f64, between: f64) -> (Vec<Option<u64>>, f64) {
        let mut tracking = Intermittent::new(Settings::default(), [0.0625]);
        let mut on = 0.0;
        let reported = (0..60)
            .map(|at| {
                let wss = if at % 3 == 0 && at > 0 { burst } else { between };
                let is_on = tracking.is_on();
                on += f64::from(u8::from(is_on));
                if !is_on {
                    tracking.accessed_untracked(wss as u64, 1.0);
                }
                tracking.interval(is_on.then(|| seen(wss)), &[wss / burst]);
                tracking.unexplained().is_none().then_some(tracking.wss())
            })
            .collect();
        (reported, on / 60.0)
    }

    #[test]
    fn bursts_without_tracking_are_noticed() {
        for between in [0.0, 2e7] {
            let (reported, up) = of_bursts(2e8, between);
            let after_burst = &reported[3..];
            let wrong = after_burst.iter().flatten().filter(|wss| wss.abs_diff(200_000_000) > 2_000_000).count();
            let unknown = after_burst.iter().filter(|reported| reported.is_none()).count();
            assert!(wrong == 0 && unknown <= 3 && up < 0.5, "{wrong} {unknown} {up}: {reported:?}");
        }
    }

    #[test]
    fn a_deviation_below_the_unit_gives_no_alarm() {
        let jumpy: Vec<_> = (0..200)
            .map(|at| Interval { seen: seen(5e8), events: vec![[0.02, 0.05, 0.03, 0.08, 0.02][at % 5]] })
            .collect();
        let up = |unit: f64| {
            replay(Settings { threshold: Threshold::Fixed(0.05), ..Settings::default() }, &[unit], &jumpy)
                .unwrap()
                .up_ratio
        };
        assert!(up(0.0) > 0.3 && up(0.0625) < 0.1, "{} {}", up(0.0), up(0.0625));
    }

    #[test]
    fn no_intervals_give_no_replay() {
        assert_eq!(replay(Settings::default(), &[0.0], &[]), None);
    }
}

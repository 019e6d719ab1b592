//! One pass over a trace: its curve, and those of its parts.

use crate::engine::{Engine, EngineKind};
use crate::item::{Item, Object};
use crate::miss_ratio::MissRatioCurve;
use crate::trace::{NO_SIZES, Record, Trace, TraceError};

/// References per batch for a tenant's engine of any kind: there may be thousands of tenants.
const TENANTS_BATCH: usize = 1 << 12;

/// How to process a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The engine.
    pub engine: EngineKind,
    /// References at the beginning that fill the cache and are not counted.
    pub warm_up: u64,
    /// Which curves to make besides that of the whole.
    pub parts: Parts,
}

/// Parts of a trace with curves of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parts {
    /// None.
    Whole,
    /// One curve per tenant, as if it had its own cache.
    Tenants,
    /// One curve per window of this many seconds, of one cache that keeps its contents between windows.
    Windows(f64),
}

/// A part's curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which part it is.
    pub of: PartOf,
    /// Its curve.
    pub curve: MissRatioCurve,
}

/// Which part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PartOf {
    /// A tenant, by its number in the trace.
    Tenant(u32),
    /// A time window: from and to, in seconds of the trace's clock.
    Window(f64, f64),
}

/// Why a reference cannot be assigned to a part.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// Windows need an order of time.
    #[error(
        "more than half of the references are earlier than the window that the trace had come to: it is not in order of time, so it \
         cannot be cut into windows. Sort it by time"
    )]
    NotInOrder,
    /// Windows need times.
    #[error("this trace has no times, so it cannot be cut into windows")]
    NoTimes,
    /// Tenants need names.
    #[error("this trace does not say whose a reference is; name the column with --tenant-column")]
    NoTenants,
    /// Bytes need sizes.
    #[error("{NO_SIZES}")]
    NoSizes,
}

/// Makes a trace's curves. Memory is that of the engines: one for the whole, one per tenant or one for all windows.
pub struct Profile<I: Item> {
    settings: Settings,
    whole: Batched<I>,
    tenants: Vec<Option<Batched<I>>>,
    windows: Option<Windows<I>>,
    seen: u64,
}

/// Conversion of records to an engine's items.
pub trait OfRecord: Item {
    /// Converts a record; `None` if it lacks data.
    fn of(record: &Record) -> Option<Self>;

    /// Appends the next references of a trace until `into` has `most`; fewer at the end of the trace.
    fn read(trace: &mut Trace, into: &mut Vec<Self>, most: usize) -> Result<(), TraceError>;
}

impl OfRecord for u64 {
    fn of(record: &Record) -> Option<u64> {
        Some(record.key)
    }

    fn read(trace: &mut Trace, into: &mut Vec<u64>, most: usize) -> Result<(), TraceError> {
        trace.keys(into, most)
    }
}

impl OfRecord for Object {
    fn of(record: &Record) -> Option<Object> {
        Some(Object { key: record.key, bytes: record.bytes? })
    }

    fn read(trace: &mut Trace, into: &mut Vec<Object>, most: usize) -> Result<(), TraceError> {
        trace.objects(into, most)
    }
}

impl<I: OfRecord + 'static> Profile<I> {
    /// Starts without references.
    pub fn new(settings: Settings) -> Profile<I> {
        let windows = match settings.parts {
            Parts::Windows(seconds) => Some(Windows::new(settings.engine, seconds)),
            _ => None,
        };
        Profile {
            settings,
            whole: Batched::new(settings.engine, settings.engine.batch()),
            tenants: Vec::new(),
            windows,
            seen: 0,
        }
    }

    /// Takes the next reference. If it is the first of a window, returns the window before.
    pub fn reference(&mut self, record: &Record) -> Result<Option<Part>, ProfileError> {
        if self.seen == self.settings.warm_up && self.seen > 0 {
            self.end_warm_up();
        }
        self.seen += 1;
        let item = I::of(record).ok_or(ProfileError::NoSizes)?;
        self.whole.push(item);
        match (&mut self.windows, self.settings.parts) {
            (Some(windows), _) => {
                return windows.push(record.seconds.ok_or(ProfileError::NoTimes)?, item);
            }
            (None, Parts::Tenants) => {
                let tenant = record.tenant.ok_or(ProfileError::NoTenants)? as usize;
                if tenant >= self.tenants.len() {
                    self.tenants.resize_with(tenant + 1, || None);
                }
                let engine = self.settings.engine;
                self.tenants[tenant].get_or_insert_with(|| Batched::new(engine, TENANTS_BATCH)).push(item);
            }
            _ => {}
        }
        Ok(None)
    }

    /// Takes the next references if only the items are known; windows and tenants need more. The curve does not depend
    /// on the number of items per call; [`EngineKind::batch`] is fastest.
    pub fn references(&mut self, items: &[I]) -> Result<(), ProfileError> {
        match self.settings.parts {
            Parts::Whole => {}
            Parts::Tenants => return Err(ProfileError::NoTenants),
            Parts::Windows(_) => return Err(ProfileError::NoTimes),
        }
        let warm_up = self.settings.warm_up.saturating_sub(self.seen).min(items.len() as u64) as usize;
        let (first, counted) = items.split_at(warm_up);
        self.whole.extend(first);
        self.seen += first.len() as u64;
        if self.seen == self.settings.warm_up && self.seen > 0 && !counted.is_empty() {
            self.end_warm_up();
        }
        self.whole.extend(counted);
        self.seen += counted.len() as u64;
        Ok(())
    }

    /// Returns the whole's curve, the share of the items it was made from, and the curves of the parts not returned
    /// yet. Parts without a reference are left out.
    pub fn finish(mut self) -> (MissRatioCurve, f64, Vec<Part>) {
        if self.seen <= self.settings.warm_up && self.seen > 0 {
            self.end_warm_up();
        }
        let whole = self.whole.curve();
        let of_tenant = |(tenant, engine): (usize, Option<Batched<I>>)| {
            engine.map(|mut engine| Part { of: PartOf::Tenant(tenant as u32), curve: engine.curve() })
        };
        let tenants = self.tenants.into_iter().enumerate().filter_map(of_tenant);
        let window = self.windows.as_mut().and_then(Windows::close);
        let parts = tenants.filter(|part| part.curve.references() > 0).chain(window).collect();
        (whole, self.whole.engine.sampled_share(), parts)
    }

    fn end_warm_up(&mut self) {
        let tenants = self.tenants.iter_mut().flatten();
        tenants
            .chain([&mut self.whole])
            .chain(self.windows.iter_mut().map(|w| &mut w.engine))
            .for_each(Batched::restart);
    }
}

/// Late references from which on their share is judged.
const LATE_BEFORE_JUDGED: u64 = 100;

/// An engine with a buffer for references.
struct Batched<I: Item> {
    engine: Box<dyn Engine<I>>,
    waiting: Vec<I>,
    batch: usize,
}

impl<I: Item + 'static> Batched<I> {
    fn new(engine: EngineKind, batch: usize) -> Batched<I> {
        Batched { engine: engine.build(), waiting: Vec::new(), batch }
    }

    fn push(&mut self, item: I) {
        self.waiting.push(item);
        if self.waiting.len() == self.batch {
            self.flush();
        }
    }

    /// Gives the engine the same batches as if the items had been pushed one by one.
    fn extend(&mut self, mut items: &[I]) {
        while !items.is_empty() {
            if self.waiting.is_empty() && items.len() >= self.batch {
                let (batch, rest) = items.split_at(self.batch);
                self.engine.reference(batch);
                items = rest;
            } else {
                let (more, rest) = items.split_at(items.len().min(self.batch - self.waiting.len()));
                self.waiting.extend_from_slice(more);
                if self.waiting.len() == self.batch {
                    self.flush();
                }
                items = rest;
            }
        }
    }

    fn flush(&mut self) {
        self.engine.reference(&self.waiting);
        self.waiting.clear();
    }

    fn curve(&mut self) -> MissRatioCurve {
        self.flush();
        self.engine.curve()
    }

    fn restart(&mut self) {
        self.flush();
        self.engine.restart();
    }
}

/// Windows of time, one after the other.
struct Windows<I: Item> {
    engine: Batched<I>,
    seconds: f64,
    /// Start of the current window; none before the first reference.
    from: Option<f64>,
    references: u64,
    /// References that are earlier than the current window.
    late: u64,
}

impl<I: Item + 'static> Windows<I> {
    fn new(engine: EngineKind, seconds: f64) -> Windows<I> {
        Windows { engine: Batched::new(engine, engine.batch()), seconds, from: None, references: 0, late: 0 }
    }

    /// A reference with an earlier time counts in the current window: traces of several threads are in order but for a few.
    fn push(&mut self, time: f64, item: I) -> Result<Option<Part>, ProfileError> {
        let from = *self.from.get_or_insert(time);
        self.references += 1;
        self.late += u64::from(time < from);
        if self.late > LATE_BEFORE_JUDGED && 2 * self.late > self.references {
            return Err(ProfileError::NotInOrder);
        }
        let ended = if time >= from + self.seconds {
            let ended = self.close();
            // At least one window further, whatever rounding makes of the quotient.
            self.from = Some(from + ((time - from) / self.seconds).floor().max(1.0) * self.seconds);
            ended
        } else {
            None
        };
        self.engine.push(item);
        Ok(ended)
    }

    /// Ends the current window, if it has any reference.
    fn close(&mut self) -> Option<Part> {
        let from = self.from?;
        let part = Part { of: PartOf::Window(from, from + self.seconds), curve: self.engine.curve() };
        self.engine.restart();
        (part.curve.references() > 0).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(key: u64, seconds: Option<f64>, tenant: Option<u32>) -> Record {
        Record { key, bytes: None, seconds, tenant }
    }

    fn settings(warm_up: u64, parts: Parts) -> Settings {
        Settings { engine: EngineKind::Exact, warm_up, parts }
    }

    #[test]
    fn rounding_never_gives_two_windows_of_one_start() {
        for (step, seconds) in [(0.1, 10.0), (0.01, 1.0), (0.3, 3.0)] {
            let mut profile = Profile::<u64>::new(settings(0, Parts::Windows(seconds)));
            let mut windows = Vec::new();
            for i in 0..3000u64 {
                windows.extend(profile.reference(&record(i % 10, Some(step * (i + 1) as f64), None)).unwrap());
            }
            let from = |part: &Part| if let PartOf::Window(from, _) = part.of { from } else { f64::NAN };
            assert!(windows.windows(2).all(|pair| from(&pair[0]) < from(&pair[1])), "{step} {seconds}");
        }
    }

    #[test]
    fn a_trace_that_runs_backwards_is_not_cut_into_windows() {
        let mut profile = Profile::<u64>::new(settings(0, Parts::Windows(60.0)));
        let refused =
            (0..3600u64).find_map(|i| profile.reference(&record(i % 10, Some(3600.0 - i as f64), None)).err());
        assert_eq!(refused, Some(ProfileError::NotInOrder));
    }

    #[test]
    fn after_a_warm_up_a_loop_that_fits_never_misses() {
        let mut profile = Profile::<u64>::new(settings(10, Parts::Whole));
        (0..50).for_each(|i| assert_eq!(profile.reference(&record(i % 10, None, None)), Ok(None)));
        let (curve, share, parts) = profile.finish();
        assert_eq!((curve.references(), curve.distinct(), share, parts.len()), (40, 10, 1.0, 0));
        assert_eq!((curve.miss_ratio_at(9), curve.miss_ratio_at(10)), (1.0, 0.0));
    }

    #[test]
    fn a_warm_up_of_the_whole_trace_counts_nothing() {
        let mut profile = Profile::<u64>::new(settings(50, Parts::Whole));
        (0..50).for_each(|i| assert_eq!(profile.reference(&record(i % 10, None, None)), Ok(None)));
        assert_eq!(profile.finish().0.references(), 0);
    }

    proptest! {
        #[test]
        fn batches_give_the_curve_of_single_references(
            lengths in prop::collection::vec(0usize..9000, 1..6),
            warm_up in prop_oneof![Just(0u64), 0u64..30_000],
            seed in 1u64..1000,
        ) {
            let total: usize = lengths.iter().sum();
            let keys: Vec<u64> = (0..total as u64).map(|i| i.wrapping_mul(i).wrapping_mul(seed) >> 3).map(|key| key % 3000).collect();
            for engine in [EngineKind::Exact, EngineKind::ShardsRate(0.1), EngineKind::ShardsSize(100), EngineKind::Aet(100)] {
                let settings = Settings { engine, warm_up, parts: Parts::Whole };
                let (mut single, mut together) = (Profile::<u64>::new(settings), Profile::<u64>::new(settings));
                keys.iter().for_each(|key| assert_eq!(single.reference(&record(*key, None, None)), Ok(None)));
                let mut rest = &keys[..];
                for length in &lengths {
                    let (block, others) = rest.split_at(*length);
                    prop_assert_eq!(together.references(block), Ok(()));
                    rest = others;
                }
                prop_assert_eq!(together.finish(), single.finish(), "{:?}", engine);
            }
        }
    }

    #[test]
    fn items_alone_have_no_parts() {
        let refused = |parts| Profile::<u64>::new(settings(0, parts)).references(&[1]);
        assert_eq!(refused(Parts::Windows(1.0)), Err(ProfileError::NoTimes));
        assert_eq!(refused(Parts::Tenants), Err(ProfileError::NoTenants));
    }

    #[test]
    fn a_tenant_has_a_cache_for_itself() {
        let mut profile = Profile::<u64>::new(settings(0, Parts::Tenants));
        for i in 0..60 {
            let tenant = (i % 2) as u32;
            profile.reference(&record(i % if tenant == 0 { 4 } else { 20 }, None, Some(tenant))).unwrap();
        }
        let (whole, _, parts) = profile.finish();
        assert_eq!(whole.references(), 60);
        let of = |tenant: usize| (parts[tenant].of, parts[tenant].curve.distinct(), parts[tenant].curve.largest_size());
        assert_eq!(of(0), (PartOf::Tenant(0), 2, 2));
        assert_eq!(of(1), (PartOf::Tenant(1), 10, 10));
    }

    #[test]
    fn a_window_finds_the_cache_as_the_one_before_left_it() {
        let mut profile = Profile::<u64>::new(settings(0, Parts::Windows(10.0)));
        let mut windows = Vec::new();
        // Four pages, twice in each of the seconds 0 to 19; then nothing for a minute, then two pages.
        for i in 0..160u64 {
            windows.extend(profile.reference(&record(i % 4, Some((i / 8) as f64), None)).unwrap());
        }
        for i in 0..8u64 {
            windows.extend(profile.reference(&record(i % 2, Some(85.0), None)).unwrap());
        }
        windows.extend(profile.finish().2);
        let seen: Vec<_> = windows.iter().map(|w| (w.of, w.curve.distinct(), w.curve.miss_ratio_at(4))).collect();
        assert_eq!(
            seen,
            [
                (PartOf::Window(0.0, 10.0), 4, 4.0 / 80.0),
                (PartOf::Window(10.0, 20.0), 4, 0.0),
                (PartOf::Window(80.0, 90.0), 2, 0.0),
            ]
        );
    }

    #[test]
    fn missing_data_of_a_trace_is_an_error() {
        let mut windows = Profile::<u64>::new(settings(0, Parts::Windows(1.0)));
        assert_eq!(windows.reference(&record(1, None, None)), Err(ProfileError::NoTimes));
        let mut tenants = Profile::<u64>::new(settings(0, Parts::Tenants));
        assert_eq!(tenants.reference(&record(1, None, None)), Err(ProfileError::NoTenants));
        let mut bytes = Profile::<Object>::new(settings(0, Parts::Whole));
        assert_eq!(bytes.reference(&record(1, None, None)), Err(ProfileError::NoSizes));
    }
}

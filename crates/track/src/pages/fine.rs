//! The best rung: single pages, through the page tables.

mod round;

use std::time::{Duration, Instant};

use linux::damon;
use linux::pages::{Tables, clear_referenced, run_beside};
use model::PagesRound;

use super::choice::mix;
use super::control::Pace;
use super::distances::{Access, Distances, Tie};
use super::filled::{Fills, FirstAgain};
use super::guests::{Guest, Guests};
use super::idle::{Idle, idle};
use super::page_cache::{LastReference, PageCache};
use super::process::{Place, Process, ScanResult};
use super::returned::{self, Returned};
use super::scope::Members;
use super::small_sample::{SmallSample, small_sample};
use super::stack::Stack;
use super::sweep;
use super::window::{TLB_ENTRIES, TOUCH_SECONDS, Window};
use super::{Error, Scanner, Settings, own_cpu};
use round::Sums;

/// Pages accessed before the first scan have an unknown order. Each gets a scan number below this one by its hash, as a
/// random order. Its first access after that does not show what it needs.
const INITIAL_SCANS: u64 = 1024;
const FIRST_UNITS: u64 = 1024;
const FIRST_INTERVAL: Duration = Duration::from_millis(10);
/// Time between decisions of the controller.
const CONTROL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between reads of the mappings.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Weight on the stack of the place of a resting page: the page returns there if it was not accessed. Without the
/// reservation it would be merged with older pages, at worst with all that an earlier phase accessed last.
const RESTING_PLACE_PAGES: u64 = 0;

/// New memory is a fill if a scan finds at least this part (1/10) of all memory at once.
const FILL_PART: u64 = 10;

/// Consecutive scans that must find a page accessed before it rests, and the longest rest, in scans and in seconds. A
/// page that is hot no more stays on top of the stack until its rest is over.
const HOT_STREAK: u32 = 4;
const MAX_REST_SCANS: u32 = 32;
const MAX_REST_SECONDS: f64 = 0.5;

/// The rung.
pub struct Fine {
    tables: Tables,
    settings: Settings,
    processes: Vec<Process>,
    /// Reads and writes of files, if the kernel shows them.
    cache: Option<PageCache>,
    returned: Returned,
    guests: Guests,
    pace: Pace,
    begin: Instant,
    /// Whether this thread runs on the program's own processor.
    beside: bool,
    /// Number of the current scan, or of a page's return from swap between scans. Orders all accesses.
    now: u64,
    /// `now` at the previous scan.
    before: u64,
    /// Number of scans.
    scans: u64,
    /// Time of the last scan, since tracking began.
    scanned_at: Duration,
    stack: Stack,
    distances: Distances,
    first_again: FirstAgain,
    fills: Fills,
    /// `now` of the last scan that found a fill. The memory was filled after the previous scan or the previous read of
    /// the mappings.
    found: u64,
    /// Hot pages that are not scanned; they stand on top of the stack.
    resting: u64,
    stale: bool,
    refreshed: Instant,
    window: Window,
    round: Sums,
    round_began: Instant,
}

/// A page that was found accessed.
struct Hit {
    /// Index of the process and of its sample; `None` for a page of a file that was read or written.
    mapped: Option<(usize, usize)>,
    pages: u64,
    seen: u64,
}

impl Fine {
    pub fn new(
        tables: Tables,
        cache: Option<PageCache>,
        members: &mut Members,
        settings: Settings,
    ) -> Result<Fine, Error> {
        let now = Instant::now();
        let mut fine = Fine {
            tables,
            settings,
            processes: Vec::new(),
            cache,
            returned: Returned::default(),
            guests: Guests::default(),
            pace: Pace { interval: FIRST_INTERVAL, level: 0 },
            begin: now,
            beside: false,
            now: INITIAL_SCANS,
            before: INITIAL_SCANS,
            scans: 0,
            scanned_at: Duration::ZERO,
            stack: Stack::default(),
            distances: Distances::default(),
            first_again: FirstAgain::default(),
            fills: Fills::default(),
            found: 0,
            resting: 0,
            stale: true,
            refreshed: now,
            window: Window::new(own_cpu()),
            round: Sums::default(),
            round_began: now,
        };
        let mut denied = None;
        let living = members.refresh();
        if let Some(cache) = &mut fine.cache {
            cache.follow(living.keys().copied());
        }
        for (pid, start) in living {
            match Process::of(&mut fine.tables, *pid, *start) {
                Ok(process) => fine.processes.push(process),
                Err(source) => denied = Some(Error::Denied { pid: *pid, source }),
            }
        }
        if let (Some(denied), true) = (denied, fine.processes.is_empty()) {
            return Err(denied);
        }
        fine.thin_out();
        fine.choose(false);
        Ok(fine)
    }

    /// Limits the units scanned of a program that has grown, until the controller knows what they cost.
    fn thin_out(&mut self) {
        let scanned: usize = self.processes.iter().map(|process| process.samples.len()).sum();
        let most = FIRST_UNITS.max(2 * scanned as u64);
        while self.pace.level < 30 && self.units() > most {
            self.pace.level += 1;
        }
    }

    fn units(&mut self) -> u64 {
        let (tables, level) = (&mut self.tables, self.pace.level);
        self.processes.iter().map(|process| process.units(tables, level)).sum()
    }

    /// Updates the list of processes, and chooses the pages to scan.
    fn refresh(&mut self, members: &mut Members) {
        let living = members.refresh();
        self.processes.retain(|process| living.get(&process.pid) == Some(&process.start));
        if let Some(cache) = &mut self.cache {
            cache.follow(living.keys().copied());
        }
        for (pid, start) in living {
            if self.processes.iter().all(|process| process.pid != *pid) {
                self.processes.extend(Process::of(&mut self.tables, *pid, *start).ok());
            }
        }
        self.stay_beside();
        self.thin_out();
        self.choose(true);
    }

    /// The processor that a program will use can only be predicted for a single process.
    fn stay_beside(&mut self) {
        self.beside = match self.processes.as_slice() {
            [process] => run_beside(process.pid),
            _ => false,
        };
    }

    /// `fresh`: pages not known before are new, not merely new in the sample.
    fn choose(&mut self, fresh: bool) {
        let (tables, now, level) = (&mut self.tables, self.now, self.pace.level);
        let mut gone = Vec::new();
        let mut found = 0;
        for process in &mut self.processes {
            if process.guest.is_none() && !process.is_unseen && Guests::is_one(&process.mappings) {
                process.forget();
                process.guest = self.guests.watch(tables, process.pid);
                process.is_unseen = process.guest.is_none();
            }
            let stamp = |address, neighbour: Option<u64>| neighbour.unwrap_or(mix(address) % INITIAL_SCANS);
            match process.choose(tables, level, now, stamp, fresh) {
                Ok(pages) => found += pages,
                Err(_) => gone.push(process.pid),
            }
        }
        self.found(found);
        self.processes.retain(|process| !gone.contains(&process.pid));
        for process in &mut self.processes {
            if process.guest.as_ref().is_some_and(Guest::is_settled) {
                let all: Vec<usize> = (0..process.samples.len()).collect();
                process.watch(&all);
            }
        }
        self.follow_guests();
        let pids = self.processes.iter().map(|process| process.pid).collect();
        self.returned.listen(&mut self.tables, &pids, level);
        let samples = || self.processes.iter().flat_map(|process| &process.samples);
        self.resting = samples().filter(|sample| sample.place.rests()).map(|sample| sample.pages).sum();
        self.restack();
        (self.stale, self.refreshed) = (false, Instant::now());
    }

    /// A scan found this many pages for the first time.
    fn found(&mut self, pages: u64) {
        self.round.first_touches += pages;
        if pages * FILL_PART > self.stack.pages() && self.fills.is_before_work(self.begin.elapsed()) {
            self.found = self.now;
        }
    }

    /// Why accesses of a guest are not seen.
    pub fn without_guests(&self) -> Option<&str> {
        self.guests.why_not()
    }

    fn has_guests(&self) -> bool {
        self.processes.iter().any(|process| process.guest.is_some())
    }

    /// Scanning more often than DAMON does shows nothing new.
    fn follow_guests(&mut self) {
        if self.has_guests() {
            self.pace.interval = self.pace.interval.max(damon::INTERVAL);
        }
    }

    /// The CPU time of DAMON's thread is part of the cost of scans. It depends on the number of pages alone.
    fn pay_for_guests(&mut self) {
        let guests = self.processes.iter_mut().filter_map(|process| process.guest.as_mut());
        let seconds = guests.map(Guest::cpu).sum::<Duration>().as_secs_f64();
        self.window.target += seconds;
        self.window.returned += seconds;
        self.round.target += seconds;
    }

    /// Rebuilds the stack from what is known of all pages.
    fn restack(&mut self) {
        let samples = self.processes.iter().flat_map(|process| &process.samples);
        let mapped = samples.filter_map(|sample| match sample.place {
            Place::Armed { seen } | Place::Spent { seen } => Some((seen, sample.pages)),
            Place::Resting { seen, .. } | Place::Waking { seen } => Some((seen, RESTING_PLACE_PAGES)),
            Place::Absent | Place::Blind(_) => None,
        });
        let files = self.cache.iter().flat_map(|cache| cache.seen().map(|seen| (seen.scan, cache.weight())));
        self.stack.rebuild(mapped.chain(files).collect());
    }

    /// Adds the file pages read and written since the last scan.
    fn find_referenced(&mut self, hits: &mut Vec<Hit>) {
        self.take_in_files();
        let Some(cache) = &mut self.cache else { return };
        let now = LastReference { scan: self.now, ns: self.begin.elapsed().as_nanos() as u64 };
        let pages = cache.weight();
        for before in cache.referenced(now) {
            if before.is_none_or(|before| before.scan <= self.round.after) {
                self.round.files += pages;
            }
            match before {
                Some(before) => hits.push(Hit { mapped: None, pages, seen: before.scan }),
                None => {
                    self.round.first_touches += pages;
                    self.stack.add(self.now, pages);
                }
            }
        }
    }

    fn take_in_files(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        let began = own_cpu();
        self.round.target += cache.take_in();
        let own = own_cpu() - began;
        // This cost does not depend on the pace.
        self.window.cpu += own;
        self.round.own += own.as_secs_f64();
    }

    /// Counts the pages that returned from swap, and puts them on top of the stack one by one.
    fn take_in_returned(&mut self) {
        let returned = self.returned.take();
        if returned.is_empty() {
            return;
        }
        let began = own_cpu();
        let (reporting, dismissing) = returned::cost(returned.len(), self.pace.level);
        let now_ns = self.begin.elapsed().as_nanos() as u64;
        for page in returned {
            let process = self.processes.iter_mut().find(|process| process.pid == page.pid);
            let Some(sample) = process.and_then(|process| process.sample_at(page.address)) else { continue };
            let before = match sample.place {
                Place::Armed { seen } if sample.swept.is_none() => Some(seen),
                // It was swapped out since before it entered the sample.
                Place::Absent => None,
                // Its last access is unknown, or its bit is cleared together with others.
                _ => continue,
            };
            self.now += 1;
            (sample.place, sample.streak, sample.returned) = (Place::Armed { seen: self.now }, 0, true);
            (sample.touched, sample.seen_ns) = (true, Some(now_ns));
            match before {
                Some(seen) => {
                    let (newer, same) = self.stack.above(seen);
                    let tie = Tie { left: same.saturating_sub(sample.pages), stayed: 0, joined: 0 };
                    let needs = self.resting + newer + self.distances.draw(tie) + sample.pages;
                    self.round.misses.add(needs, sample.pages as f64);
                    self.stack.remove(seen, sample.pages);
                }
                None => self.round.first_touches += sample.pages,
            }
            self.stack.add(self.now, sample.pages);
        }
        self.window.target += reporting;
        self.window.returned += reporting + (own_cpu() - began).as_secs_f64();
        // Dismissed events cost the program too, but their cost does not depend on the pace.
        self.round.target += reporting + dismissing;
    }

    /// Reads all bits. Pages that went away leave the stack; new pages join it.
    fn find_accessed(&mut self, arm: &mut [Vec<usize>]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut gone = Vec::new();
        let mut found = 0;
        self.scanned_at = self.begin.elapsed();
        let now_ns = self.scanned_at.as_nanos() as u64;
        let by_guest = self.guests.take(&mut self.tables, self.processes.iter().map(|process| process.guest.as_ref()));
        for (number, process) in self.processes.iter_mut().enumerate() {
            match process.scan(&mut self.tables) {
                Ok(ScanResult::Same) => process.apply_guest_accesses(&by_guest[number]),
                Ok(ScanResult::Other) => {
                    process.forget();
                    self.stale = true;
                    continue;
                }
                Ok(ScanResult::Lost) => continue,
                Err(_) => {
                    gone.push(process.pid);
                    process.forget();
                    self.stale = true;
                    continue;
                }
            }
            for index in 0..process.samples.len() {
                let state = process.state(index);
                let is_of_file = process.is_of_file(&process.samples[index]);
                let sample = &mut process.samples[index];
                if state.is_mapped() && state.is_huge() != sample.huge {
                    // Pages were collapsed into a huge page, or a huge page was split.
                    self.stale = true;
                    continue;
                }
                let is_known = !matches!(sample.place, Place::Absent | Place::Blind(_));
                let is_away = state.is_away() || (is_of_file && is_known && !state.is_mapped());
                // The kernel may have cleared the bit of a page since its return, while it searched for pages to
                // reclaim.
                let was_away = std::mem::replace(&mut sample.away, is_away);
                let returned = std::mem::take(&mut sample.returned);
                let accessed = state.is_mapped() && (state.is_accessed() || was_away);
                let there = state.is_mapped() || (is_away && sample.place != Place::Absent);
                match sample.place {
                    Place::Absent if there => {
                        (sample.touched, sample.is_filled) = (true, true);
                        sample.seen_ns = Some(now_ns);
                        let pages = sample.pages;
                        found += pages;
                        if process.examine(index) {
                            process.samples[index].place = Place::Armed { seen: self.now };
                            self.stack.add(self.now, pages);
                            arm[number].push(index);
                        }
                    }
                    Place::Absent => {}
                    Place::Armed { seen } | Place::Spent { seen } if !there => {
                        self.stack.remove(seen, sample.pages);
                        (sample.place, sample.streak, sample.swept) = (Place::Absent, 0, None);
                    }
                    // Its return was counted already, as an event. It still counts as accessed between two scans.
                    Place::Armed { .. } if accessed && returned => {
                        self.round.accessed += sample.pages;
                        arm[number].push(index);
                    }
                    Place::Armed { seen } if accessed => {
                        (sample.touched, sample.seen_ns) = (true, Some(now_ns));
                        hits.push(Hit { mapped: Some((number, index)), pages: sample.pages, seen });
                    }
                    Place::Armed { .. } => {}
                    Place::Spent { .. } => {
                        (sample.touched, sample.seen_ns) = (true, Some(now_ns));
                        self.round.accessed += sample.pages;
                    }
                    place if place.rests() && !there => {
                        self.resting -= sample.pages.min(self.resting);
                        (sample.place, sample.streak) = (Place::Absent, 0);
                    }
                    Place::Resting { seen, until } => {
                        (sample.touched, sample.seen_ns) = (true, Some(now_ns));
                        self.round.accessed += sample.pages;
                        if self.scans >= until {
                            sample.place = Place::Waking { seen };
                            arm[number].push(index);
                        }
                    }
                    Place::Waking { seen } => {
                        self.resting -= sample.pages.min(self.resting);
                        if accessed {
                            (sample.touched, sample.seen_ns) = (true, Some(now_ns));
                            self.round.accessed += sample.pages;
                            self.stack.add(self.now, sample.pages);
                            sample.place = Place::Armed { seen: self.now };
                            arm[number].push(index);
                        } else {
                            // The time of its last access within the rest is unknown. With a later one it would stand
                            // above pages accessed since, and the pages that are hot now would seem to need all of
                            // them.
                            self.stack.add(seen, sample.pages);
                            (sample.place, sample.streak) = (Place::Armed { seen }, 0);
                        }
                    }
                    Place::Blind(_) if !there => sample.place = Place::Absent,
                    Place::Blind(_) => {}
                }
            }
        }
        self.found(found);
        hits
    }

    /// Counts how much memory would have kept each page.
    fn count(&mut self, hits: &mut [Hit]) {
        hits.sort_unstable_by_key(|hit| hit.seen);
        let accesses: Vec<_> = hits.iter().map(|hit| Access { seen: hit.seen, pages: hit.pages }).collect();
        let Fine { distances, stack, round, resting, processes, first_again, found, scanned_at, .. } = self;
        let mut hits = hits.iter();
        // Distances come in the order of the hits.
        distances.of(self.now, &accesses, stack, |others, access| {
            let mapped = hits.next().and_then(|hit| hit.mapped);
            if access.seen < INITIAL_SCANS {
                round.first_touches += access.pages;
                round.unknown += access.pages;
                return;
            }
            let needs = *resting + others + access.pages;
            if let Some((process, index)) = mapped {
                let process = &mut processes[process];
                let sample = &mut process.samples[index];
                let page = (process.pid, sample.address);
                if std::mem::take(&mut sample.is_filled) || access.seen <= *found {
                    first_again.add(page, needs, access.pages, *scanned_at);
                    return;
                }
                first_again.replace(page);
            }
            round.misses.add(needs, access.pages as f64);
        });
    }

    /// Puts the pages on top of the stack; hot pages begin to rest.
    fn move_up(&mut self, hits: &[Hit], arm: &mut [Vec<usize>]) {
        let longest_rest =
            (MAX_REST_SECONDS / self.pace.interval.as_secs_f64()).clamp(1.0, MAX_REST_SCANS.into()) as u32;
        for hit in hits {
            self.round.accessed += hit.pages;
            let Some((process, index)) = hit.mapped else {
                self.stack.remove(hit.seen, hit.pages);
                self.stack.add(self.now, hit.pages);
                continue;
            };
            self.window.touched += hit.pages;
            let arm = &mut arm[process];
            let process = &mut self.processes[process];
            let sample = &mut process.samples[index];
            sample.streak = if hit.seen >= self.before { sample.streak.saturating_add(1) } else { 0 };
            self.stack.remove(hit.seen, hit.pages);
            if sample.swept.is_some() {
                sample.place = Place::Spent { seen: self.now };
                self.stack.add(self.now, hit.pages);
                continue;
            }
            let hot = self.settings.hot_set && sample.streak >= HOT_STREAK;
            // A page that seems hot may be one whose bit cannot be cleared.
            if hot && sample.streak.is_power_of_two() && !process.examine(index) {
                continue;
            }
            let sample = &mut process.samples[index];
            if hot {
                // While a page rests, no access to it is seen that would replace its first.
                self.first_again.replace((process.pid, sample.address));
                let rest = (sample.streak + 1 - HOT_STREAK).min(longest_rest);
                sample.place = Place::Resting { seen: self.now, until: self.scans + u64::from(rest) };
                self.stack.add(self.now, RESTING_PLACE_PAGES);
                self.resting += hit.pages;
            } else {
                sample.place = Place::Armed { seen: self.now };
                self.stack.add(self.now, hit.pages);
                arm.push(index);
            }
        }
    }

    /// Moves pages accessed while tracking was off above those that were not. The order and number of these accesses
    /// are unknown, so the pages keep their order among each other. If they stayed below pages that were not accessed,
    /// their next access would seem to need little. Returns the number of pages moved.
    fn move_up_untracked(&mut self, hits: &[Hit], arm: &mut [Vec<usize>]) -> u64 {
        let mut accessed: Vec<(u64, usize, usize)> = Vec::new();
        for hit in hits {
            let Some((process, index)) = hit.mapped else { continue };
            accessed.push((hit.seen, process, index));
            if self.processes[process].samples[index].swept.is_none() {
                arm[process].push(index);
            }
        }
        for (number, process) in self.processes.iter_mut().enumerate() {
            for (index, sample) in process.samples.iter_mut().enumerate() {
                if let (true, Place::Armed { seen }) = (std::mem::take(&mut sample.untracked), sample.place) {
                    accessed.push((seen, number, index));
                }
            }
        }
        accessed.sort_unstable();
        accessed.dedup();
        let (mut before, mut pages) = (None, 0);
        for (seen, process, index) in accessed {
            if before.replace(seen) != Some(seen) {
                self.now += 1;
            }
            let sample = &mut self.processes[process].samples[index];
            sample.is_filled = false;
            sample.place = match sample.swept {
                Some(_) => Place::Spent { seen: self.now },
                None => Place::Armed { seen: self.now },
            };
            self.stack.remove(seen, sample.pages);
            self.stack.add(self.now, sample.pages);
            pages += sample.pages;
        }
        self.now += 1;
        self.before = self.now;
        pages
    }

    fn clear(&mut self, arm: &mut [Vec<usize>]) {
        let began = Instant::now();
        for (process, indices) in self.processes.iter_mut().zip(arm) {
            if indices.is_empty() {
                continue;
            }
            indices.sort_unstable();
            let places: Vec<_> = indices.iter().map(|index| process.samples[*index].place).collect();
            if process.arm(indices).is_err() {
                self.stale = true;
            }
            for (index, place) in indices.iter().zip(places) {
                let sample = &process.samples[*index];
                match (sample.place, place) {
                    (Place::Blind(_), Place::Armed { seen }) => self.stack.remove(seen, sample.pages),
                    (Place::Blind(_), Place::Waking { .. }) => self.resting -= sample.pages.min(self.resting),
                    _ => {}
                }
            }
            self.window.arms += indices.len() as u64;
            // Only hot pages would still have been in the TLB.
            self.window.refills += if self.beside { self.resting.min(TLB_ENTRIES) } else { 0 };
        }
        self.window.arming += began.elapsed();
    }

    /// Clears all bits of processes with many pages that cannot be cleared one by one.
    fn sweep(&mut self) {
        for process in &mut self.processes {
            let (mut swept, mut idle, mut all) = (0, 0, 0);
            for sample in &process.samples {
                let is_swept = sample.swept.is_some() || matches!(sample.place, Place::Blind(why) if why.is_swept());
                let pages = if sample.place == Place::Absent { 0 } else { sample.pages };
                all += pages;
                swept += if is_swept { pages } else { 0 };
                idle += if is_swept && matches!(sample.place, Place::Armed { .. }) { pages } else { 0 };
            }
            if !process.sweep.is_due(swept, all) {
                continue;
            }
            let began = own_cpu();
            if clear_referenced(process.pid).is_err() {
                process.sweep.was_refused();
                continue;
            }
            for sample in &mut process.samples {
                match sample.place {
                    // From now on its accesses are seen. Whether it was accessed before is unknown.
                    Place::Blind(why) if why.is_swept() => {
                        sample.swept = Some(why);
                        self.round.first_touches += sample.pages;
                    }
                    Place::Spent { seen } => self.stack.remove(seen, sample.pages),
                    _ => continue,
                }
                sample.place = Place::Armed { seen: self.now };
                self.stack.add(self.now, sample.pages);
            }
            // Most of the pages used since the last sweep will be used again.
            let (own, touches) = (own_cpu() - began, (all - idle) as f64 * TOUCH_SECONDS);
            process.sweep.was_made(own + Duration::from_secs_f64(touches), self.settings.overhead);
            // This cost does not depend on the pace.
            self.window.cpu += own;
            self.round.own += own.as_secs_f64();
            self.round.target += touches;
        }
    }

    /// Adds up the cost since the last call.
    fn add_up(&mut self) {
        let (own, target) = self.window.add_up(self.beside);
        self.round.own += own;
        self.round.target += target;
    }

    /// Decides how to go on.
    fn control(&mut self) {
        self.add_up();
        // Reads and writes of files come as events; they do not depend on scans.
        let mapped = self.stack.pages() - self.cache.as_ref().map_or(0, PageCache::pages).min(self.stack.pages());
        let spent = self.window.spent(mapped, self.processes.iter().map(|process| process.samples.len()).sum());
        let before = self.pace;
        let sweeps = if self.processes.iter().any(|process| process.sweep.is_used()) { sweep::SHARE } else { 0.0 };
        self.pace = before.after(spent, self.settings.overhead * (1.0 - sweeps));
        tracing::debug!(?before, ?spent, resting = self.resting, "pages");
        self.follow_guests();
        if self.pace.level != before.level {
            // If the sample gets denser, pages that join it are not new memory.
            self.choose(false);
        }
        self.sweep();
        self.window = Window::new(self.window.cpu);
    }
}

impl Scanner for Fine {
    fn scan(&mut self, members: &mut Members) -> Option<Duration> {
        self.take_in_returned();
        self.pay_for_guests();
        self.now += 1;
        self.scans += 1;
        if self.stale || self.refreshed.elapsed() >= REFRESH_INTERVAL {
            self.refresh(members);
        }
        if self.processes.is_empty() {
            // Retry a process that could not be scanned, for example in the middle of an exec.
            self.stale = true;
            return (!members.refresh().is_empty()).then_some(self.pace.interval);
        }
        let mut arm = vec![Vec::new(); self.processes.len()];
        let mut hits = self.find_accessed(&mut arm);
        self.find_referenced(&mut hits);
        self.count(&mut hits);
        self.move_up(&hits, &mut arm);
        if self.cache.as_mut().is_some_and(|cache| cache.thin_out(&self.stack)) {
            self.restack();
        }
        self.clear(&mut arm);
        self.before = self.now;
        self.window.scans += 1;
        self.round.scans += 1;
        if self.window.began.elapsed() >= CONTROL_INTERVAL.max(self.pace.interval * 4) {
            self.control();
        }
        Some(self.pace.interval)
    }

    fn round(&mut self) -> PagesRound {
        self.finish_round()
    }

    fn idle(&self, long: Duration) -> Vec<Idle> {
        // Pages only age through scans.
        let Some(since) = self.scanned_at.checked_sub(long) else { return Vec::new() };
        self.processes.iter().flat_map(|process| idle(process, since.as_nanos() as u64)).collect()
    }

    fn sample_accessed(&mut self, is_tracking: bool) -> Option<SmallSample> {
        let (small_sample, all) = small_sample(&self.processes);
        if !is_tracking {
            self.stay_beside();
            self.pay_for_guests();
            let by_guest =
                self.guests.take(&mut self.tables, self.processes.iter().map(|process| process.guest.as_ref()));
            let mut arm = Vec::new();
            for ((process, indices), by_guest) in self.processes.iter_mut().zip(&small_sample).zip(&by_guest) {
                let accessed = process.accessed_of(&mut self.tables, indices, by_guest);
                for index in &accessed {
                    let sample = &mut process.samples[*index];
                    (sample.touched, sample.untracked) = (true, true);
                }
                arm.push(accessed);
            }
            self.clear(&mut arm);
        }
        let samples = self
            .processes
            .iter()
            .zip(&small_sample)
            .flat_map(|(process, indices)| indices.iter().map(|index| &process.samples[*index]));
        let mut found = SmallSample::of(all);
        samples.for_each(|sample| found.add(sample.pages, sample.touched));
        Some(found)
    }

    fn take_in(&mut self) {
        self.take_in_returned();
        self.take_in_files();
    }

    fn pause(&mut self) {
        let (small_sample, _) = small_sample(&self.processes);
        self.processes.iter_mut().zip(&small_sample).for_each(|(process, indices)| process.watch(indices));
        self.cache.iter_mut().for_each(PageCache::pause);
        self.returned.pause();
    }

    fn resume(&mut self, members: &mut Members) {
        self.cache.iter_mut().for_each(PageCache::skip);
        self.refresh(members);
        self.now += 1;
        let mut arm = vec![Vec::new(); self.processes.len()];
        let hits = self.find_accessed(&mut arm);
        let untracked = self.move_up_untracked(&hits, &mut arm);
        self.clear(&mut arm);
        self.add_up();
        let Sums { own, target, first_touches, .. } = self.round;
        self.round = Sums { own, target, first_touches, unknown: untracked, after: self.now, ..Sums::default() };
        self.window = Window::new(self.window.cpu);
    }
}

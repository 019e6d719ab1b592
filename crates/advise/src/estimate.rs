//! What an action on a range costs and brings.

use model::Costs;

use crate::range::{HUGE_BYTES, PAGE_BYTES, PAGES_PER_HUGE, Range};
use crate::state::State;

/// What finding a huge page takes where no block is free: memory must be moved together. So long that it is never worth it.
const COMPACTION_NS: f64 = 1e9;
/// What it takes beyond that where memory must be taken back first.
const RECLAIM_NS: f64 = 1e9;
/// Waking a helper, and the call it makes.
const WAKE_NS: f64 = 10_000.0;
const BYTES_PER_MIB: f64 = (1 << 20) as f64;

/// What can be done about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Huge pages where nothing is yet, when they are first touched.
    HugeAtTouch,
    /// Huge pages of the pages that are there (collapse).
    Promote,
    /// Pages of huge pages, and none for what holds zeroes (split).
    Demote,
    /// Huge pages before they are touched, by a helper.
    PopulateAhead,
    /// Huge pages at first touch, from a pool of zeroed ones.
    PoolPage,
    /// Own copies of pages shared since a fork before they are written to, by a helper.
    BreakCow,
    /// To swap.
    PageOut,
    /// Nothing.
    Leave,
}

impl Action {
    /// All.
    pub const ALL: [Action; 8] = [
        Action::HugeAtTouch,
        Action::Promote,
        Action::Demote,
        Action::PopulateAhead,
        Action::PoolPage,
        Action::BreakCow,
        Action::PageOut,
        Action::Leave,
    ];
}

/// Cost and benefit, in ns of the program's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// What it costs.
    pub cost_ns: f64,
    /// What it brings.
    pub benefit_ns: f64,
    /// What they are made of: benefits above 0, costs below.
    pub parts: Vec<(&'static str, f64)>,
}

/// Estimates an action. What is not known of the range brings nothing, and memory not known to be touched is held for
/// nothing. What a range has no pages for costs and brings nothing.
pub fn estimate(action: Action, range: &Range, state: &State, costs: &Costs) -> Estimate {
    let pages = Pages::of(range);
    let of = Subject { range, pages, state, costs };
    match action {
        Action::HugeAtTouch => of.huge_at_touch(),
        Action::Promote => of.promote(),
        Action::Demote => of.demote(),
        Action::PopulateAhead => of.populate_ahead(),
        Action::PoolPage => of.pool_page(),
        Action::BreakCow => of.break_cow(),
        Action::PageOut => of.page_out(),
        Action::Leave => Estimate::default(),
    }
}

impl Estimate {
    /// Benefit less cost, in ns.
    pub fn net_ns(&self) -> f64 {
        self.benefit_ns - self.cost_ns
    }

    fn brings(mut self, what: &'static str, ns: f64) -> Estimate {
        // A figure that is none counts nothing.
        let ns = ns.max(0.0);
        if ns > 0.0 {
            self.benefit_ns += ns;
            self.parts.push((what, ns));
        }
        self
    }

    fn costs(mut self, what: &'static str, ns: f64) -> Estimate {
        let ns = ns.max(0.0);
        if ns > 0.0 {
            self.cost_ns += ns;
            self.parts.push((what, -ns));
        }
        self
    }
}

/// Numbers of pages that agree with each other.
#[derive(Clone, Copy)]
struct Pages {
    present: f64,
    /// Present, and in no huge page.
    small: f64,
    huge: f64,
    zero: f64,
    fresh: f64,
    /// Of the fresh ones, those that will be touched.
    touched: Option<f64>,
    all_touched: Option<f64>,
    shared: f64,
    /// Huge pages that the range has room for.
    regions: f64,
}

impl Pages {
    fn of(range: &Range) -> Pages {
        let all = range.bytes.div_ceil(PAGE_BYTES);
        let present = range.present_pages.min(all);
        let huge = range.huge_pages.min(present / PAGES_PER_HUGE);
        let touched = range.touched_pages.map(|touched| touched.min(all));
        Pages {
            present: present as f64,
            small: (present - huge * PAGES_PER_HUGE) as f64,
            huge: huge as f64,
            zero: range.zero_pages.min(huge * PAGES_PER_HUGE) as f64,
            fresh: (all - present) as f64,
            touched: touched.map(|touched| touched.saturating_sub(present) as f64),
            all_touched: touched.map(|touched| touched as f64),
            shared: range.shared_pages.min(present) as f64,
            regions: all as f64 / PAGES_PER_HUGE as f64,
        }
    }
}

struct Subject<'a> {
    range: &'a Range,
    pages: Pages,
    state: &'a State,
    costs: &'a Costs,
}

impl Subject<'_> {
    fn huge_at_touch(&self) -> Estimate {
        let huge = self.fresh_regions();
        self.fresh(huge)
            .brings("faults", self.faults_ns())
            .costs("huge faults", huge * self.costs.huge_fault_ns)
            .costs("finding huge pages", self.allocation_ns(huge))
    }

    fn pool_page(&self) -> Estimate {
        let huge = self.fresh_regions();
        let pooled = huge.min(self.state.pre_zeroed as f64);
        self.fresh(huge)
            .brings("faults", self.populated_ns(huge))
            .costs("faults on pages of the pool", pooled * self.costs.pool_page_ns)
            .costs("huge faults", (huge - pooled) * self.costs.huge_fault_ns)
            .costs("finding huge pages", self.allocation_ns(huge - pooled))
    }

    fn populate_ahead(&self) -> Estimate {
        let huge = self.fresh_regions();
        if huge == 0.0 {
            return Estimate::default();
        }
        self.fresh(huge)
            .brings("faults", self.populated_ns(huge))
            .costs("populating", huge * self.costs.populate_huge_ns * self.busy())
            .costs("waking the helper", WAKE_NS)
            .costs("finding huge pages", self.allocation_ns(huge))
    }

    /// What it brings that nothing is to be populated any more: as measured, else the faults.
    fn populated_ns(&self, huge: f64) -> f64 {
        let measured = self.range.eager_ns_per_mib.map(|ns| ns * huge * HUGE_BYTES as f64 / BYTES_PER_MIB);
        measured.unwrap_or_else(|| self.faults_ns())
    }

    fn promote(&self) -> Estimate {
        if self.pages.small == 0.0 {
            return Estimate::default();
        }
        let huge = self.pages.regions - self.pages.huge;
        Estimate::default()
            .brings("page walks", self.walks_ns(huge))
            .brings("faults", self.faults_ns())
            .costs("collapsing", huge * self.costs.collapse_base_ns + self.pages.small * self.costs.collapse_page_ns)
            .costs("waiting for it", huge * self.costs.collapse_stall_ns)
            .costs("memory", self.idle_pages() * self.state.page_ns())
            .costs("finding huge pages", self.allocation_ns(huge))
    }

    fn demote(&self) -> Estimate {
        if self.pages.huge == 0.0 {
            return Estimate::default();
        }
        let kept = self.pages.present - self.pages.zero;
        // Untold, each may be touched again, though it was not written to so far.
        let again =
            self.pages.all_touched.map_or(self.pages.zero, |touched| (touched - kept).clamp(0.0, self.pages.zero));
        let freed = if self.pages.all_touched.is_some() { self.pages.zero - again } else { self.pages.zero };
        Estimate::default()
            .brings("memory", freed * self.state.page_ns())
            .costs("splitting", self.pages.huge * self.costs.split_ns)
            .costs("faults", again * self.costs.base_fault_ns)
            .costs("page walks", self.walks_ns(self.pages.huge))
    }

    fn break_cow(&self) -> Estimate {
        if self.pages.shared == 0.0 {
            return Estimate::default();
        }
        let written = self.pages.all_touched.unwrap_or(0.0).min(self.pages.shared);
        Estimate::default()
            .brings("copies", written * self.costs.cow_ns)
            .costs("copying", self.pages.shared * self.costs.cow_ns * self.busy())
            .costs("waking the helper", WAKE_NS)
            .costs("memory", (self.pages.shared - written) * self.state.page_ns())
    }

    fn page_out(&self) -> Estimate {
        if self.pages.present == 0.0 {
            return Estimate::default();
        }
        let back = self.pages.all_touched.unwrap_or(self.pages.present).min(self.pages.present);
        Estimate::default()
            .brings("memory", (self.pages.present - back) * self.state.page_ns())
            .costs("swapping out", self.pages.present * self.costs.page_out_ns * self.busy())
            .costs("swapping in", back * self.costs.page_in_ns)
    }

    /// What huge pages are worth where nothing was, and the memory of theirs that nobody touches.
    fn fresh(&self, huge: f64) -> Estimate {
        Estimate::default()
            .brings("page walks", self.walks_ns(huge))
            .costs("memory", self.idle_pages() * self.state.page_ns())
    }

    fn fresh_regions(&self) -> f64 {
        self.pages.fresh / PAGES_PER_HUGE as f64
    }

    /// Fresh pages that are not known to be touched.
    fn idle_pages(&self) -> f64 {
        self.pages.fresh - self.pages.touched.unwrap_or(0.0)
    }

    /// Faults that huge pages save.
    fn faults_ns(&self) -> f64 {
        self.pages.touched.unwrap_or(0.0) * self.costs.base_fault_ns
    }

    fn walks_ns(&self, huge: f64) -> f64 {
        let each = self.range.walks.each_ns(self.costs);
        let misses = self.range.misses_per_second.unwrap_or(0.0);
        let per_region = || misses / self.pages.regions * each * self.state.horizon_seconds;
        huge * self.range.saved_ns.unwrap_or_else(per_region)
    }

    fn allocation_ns(&self, huge: f64) -> f64 {
        let lacking = (huge - self.state.free_huge as f64).max(0.0);
        let taken_back = (huge - (self.state.free_bytes / HUGE_BYTES) as f64).max(0.0);
        lacking * COMPACTION_NS + taken_back * RECLAIM_NS
    }

    /// Share of a helper's work that the program would have had the processor for.
    fn busy(&self) -> f64 {
        1.0 - self.state.idle_cores.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walks::Walks;

    const SECOND: f64 = 1e9;

    fn costs() -> Costs {
        Costs::reference()
    }

    /// A machine with free huge pages and an idle processor, on which memory is worth nothing: the original's.
    fn plenty() -> State {
        State { free_huge: 1000, idle_cores: 1.0, price_ns_per_page_second: 0.0, ..State::default() }
    }

    /// A region that was profiled, of which no page is there.
    fn saving(ns: f64) -> Range {
        Range { saved_ns: Some(ns), ..Range::of_bytes(HUGE_BYTES) }
    }

    fn part(estimate: &Estimate, name: &str) -> f64 {
        estimate.parts.iter().filter(|(part, _)| *part == name).map(|(_, ns)| ns).sum()
    }

    #[test]
    fn a_huge_page_at_a_fault_costs_the_fault_and_brings_the_walks_that_the_profile_tells() {
        let estimate = estimate(Action::HugeAtTouch, &saving(2e6), &plenty(), &costs());
        assert_eq!(estimate.parts, [("page walks", 2e6), ("huge faults", -89_000.0)]);
        assert_eq!((estimate.benefit_ns, estimate.cost_ns), (2e6, 89_000.0));
    }

    #[test]
    fn a_huge_page_costs_a_second_where_none_is_free_and_another_where_memory_must_be_taken_back() {
        let no_block = State { free_huge: 0, ..plenty() };
        let none = State { free_bytes: 0, ..no_block.clone() };
        let cost = |state| estimate(Action::HugeAtTouch, &saving(2e6), &state, &costs()).cost_ns;
        assert_eq!(cost(no_block), SECOND + 89_000.0);
        assert_eq!(cost(none), 2.0 * SECOND + 89_000.0);
    }

    #[test]
    fn a_page_that_is_zeroed_already_is_not_zeroed() {
        let pooled = State { pre_zeroed: 1, ..plenty() };
        let cost = |state: &State| estimate(Action::PoolPage, &saving(2e6), state, &costs()).cost_ns;
        assert_eq!(cost(&pooled), costs().pool_page_ns);
        assert_eq!(cost(&plenty()), costs().huge_fault_ns);
        // And it needs no free block beside it.
        assert_eq!(cost(&State { free_huge: 0, ..pooled }), costs().pool_page_ns);
    }

    #[test]
    fn promoting_costs_the_collapse_by_the_pages_present_and_what_threads_wait_meanwhile() {
        let cost = |present_pages| {
            let range = Range { present_pages, ..saving(2e6) };
            estimate(Action::Promote, &range, &plenty(), &costs()).cost_ns
        };
        assert_eq!(cost(512), 117_000.0 + 512.0 * 800.0 + 500_000.0);
        assert_eq!(cost(1), 117_000.0 + 800.0 + 500_000.0);
        // Nothing is there to promote.
        assert_eq!(cost(0), 0.0);
    }

    #[test]
    fn demoting_a_sparse_huge_page_gives_its_zero_pages_back() {
        let state = State { price_ns_per_page_second: 1000.0, horizon_seconds: 10.0, ..plenty() };
        let sparse =
            Range { present_pages: 512, huge_pages: 1, zero_pages: 480, touched_pages: Some(32), ..saving(0.0) };
        let demote = |range: &Range| estimate(Action::Demote, range, &state, &costs());
        assert_eq!(demote(&sparse).parts, [("memory", 4_800_000.0), ("splitting", -300_000.0)]);
        // What will be touched again faults again; and walks that it has saved are lost.
        let warm = Range { touched_pages: Some(132), saved_ns: Some(1e6), ..sparse.clone() };
        let parts = demote(&warm).parts;
        assert_eq!(
            parts,
            [("memory", 3_800_000.0), ("splitting", -300_000.0), ("faults", -134_000.0), ("page walks", -1e6)]
        );
        assert_eq!(demote(&Range { huge_pages: 0, ..sparse }), Estimate::default());
    }

    #[test]
    fn populating_ahead_takes_ten_microseconds_where_a_processor_is_idle_and_all_of_the_work_where_none_is() {
        let range = Range { touched_pages: Some(512), ..Range::of_bytes(HUGE_BYTES) };
        let idle = estimate(Action::PopulateAhead, &range, &plenty(), &costs());
        assert_eq!(idle.parts, [("faults", 512.0 * 1_340.0), ("waking the helper", -10_000.0)]);
        let busy = State { idle_cores: 0.0, ..plenty() };
        assert_eq!(estimate(Action::PopulateAhead, &range, &busy, &costs()).cost_ns, 91_000.0 + 10_000.0);
    }

    #[test]
    fn populating_ahead_brings_what_the_profile_tells_rather_than_faults_counted() {
        let range = Range { touched_pages: Some(512), eager_ns_per_mib: Some(40_000.0), ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(part(&estimate(Action::PopulateAhead, &range, &plenty(), &costs()), "faults"), 80_000.0);
    }

    #[test]
    fn copies_are_made_ahead_for_what_will_be_written() {
        let forked = Range { present_pages: 512, shared_pages: 512, touched_pages: Some(512), ..saving(0.0) };
        let ahead = |range: &Range| estimate(Action::BreakCow, range, &plenty(), &costs());
        assert_eq!(ahead(&forked).parts, [("copies", 512.0 * 2_000.0), ("waking the helper", -10_000.0)]);
        assert_eq!(ahead(&Range { touched_pages: None, ..forked }).benefit_ns, 0.0);
    }

    #[test]
    fn swapping_out_brings_the_memory_of_what_does_not_come_back() {
        let state = State { price_ns_per_page_second: 1000.0, horizon_seconds: 100.0, ..plenty() };
        let cold = Range { present_pages: 512, touched_pages: Some(12), ..Range::of_bytes(HUGE_BYTES) };
        let out = |range: &Range| estimate(Action::PageOut, range, &state, &costs());
        assert_eq!(out(&cold).parts, [("memory", 500.0 * 1e5), ("swapping in", -12.0 * 4_700.0)]);
        // Not known to be cold, all of it comes back.
        assert_eq!(out(&Range { touched_pages: None, ..cold }).benefit_ns, 0.0);
    }

    #[test]
    fn leaving_alone_costs_and_brings_nothing() {
        assert_eq!(estimate(Action::Leave, &saving(1e9), &plenty(), &costs()), Estimate::default());
    }

    #[test]
    fn walks_are_those_of_the_misses_each_by_whether_it_waits_for_the_one_before() {
        let range = Range {
            misses_per_second: Some(1e6),
            walks: Walks { ns_per_miss: 97.5, near: 0.25, ..Walks::default() },
            present_pages: 1024,
            ..Range::of_bytes(2 * HUGE_BYTES)
        };
        let state = State { horizon_seconds: 2.0, ..plenty() };
        let walks = part(&estimate(Action::Promote, &range, &state, &costs()), "page walks");
        assert_eq!(walks, 2.0 * 1e6 * (0.25 * 12.0 + 0.75 * 120.0));
    }

    #[test]
    fn a_huge_page_saves_the_faults_of_what_is_touched_whatever_its_walks_are_worth() {
        let faults = |saved_ns| {
            let range = Range { touched_pages: Some(512), saved_ns, ..Range::of_bytes(HUGE_BYTES) };
            part(&estimate(Action::HugeAtTouch, &range, &plenty(), &costs()), "faults")
        };
        assert_eq!([None, Some(0.0), Some(1e6)].map(faults), [512.0 * 1_340.0; 3]);
    }

    #[test]
    fn memory_has_a_price() {
        let state = State { free_huge: 1, ..State::default() };
        let range = Range { touched_pages: Some(500), ..Range::of_bytes(HUGE_BYTES) };
        let memory = part(&estimate(Action::HugeAtTouch, &range, &state, &costs()), "memory");
        assert_eq!(memory, -12.0 * state.page_ns());
    }
}

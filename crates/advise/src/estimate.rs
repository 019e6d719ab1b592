//! Cost and benefit of an action on a range.

use model::Costs;

use crate::range::{HUGE_BYTES, PAGE_BYTES, PAGES_PER_HUGE, Range};
use crate::state::State;

/// Cost of a huge page if no block is free, so that memory must be compacted: so high that it is never worth it.
const COMPACTION_NS: f64 = 1e9;
/// Additional cost if memory must be reclaimed first.
const RECLAIM_NS: f64 = 1e9;
/// Cost of waking a helper thread and of its system call.
const WAKE_NS: f64 = 10_000.0;
const BYTES_PER_MIB: f64 = (1 << 20) as f64;

/// What can be done about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Huge pages at the first touch of absent memory.
    HugeAtTouch,
    /// Collapse present pages to huge pages.
    Promote,
    /// Split huge pages, and free those parts that hold zeroes.
    Demote,
    /// A helper thread populates huge pages before the first touch.
    PopulateAhead,
    /// Huge pages from a pool of zeroed ones, at first touch.
    PoolPage,
    /// A helper thread copies pages shared since a fork before they are written to.
    BreakCow,
    /// Swap out.
    PageOut,
    /// Nothing.
    Leave,
}

impl Action {
    /// All actions.
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
    /// The cost.
    pub cost_ns: f64,
    /// The benefit.
    pub benefit_ns: f64,
    /// The components: benefits above 0, costs below.
    pub parts: Vec<(&'static str, f64)>,
}

/// Estimates an action. Unknown figures of the range bring nothing. Memory not known to be touched counts as wasted. An
/// action that applies to no page of the range costs and brings nothing.
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
    /// Benefit minus cost, in ns.
    pub fn net_ns(&self) -> f64 {
        self.benefit_ns - self.cost_ns
    }

    fn brings(mut self, what: &'static str, ns: f64) -> Estimate {
        // Negative and NaN figures count as 0.
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

/// Page counts, made consistent with each other.
#[derive(Clone, Copy)]
struct Pages {
    present: f64,
    /// Present, and not in a huge page.
    small: f64,
    huge: f64,
    zero: f64,
    fresh: f64,
    /// Of the fresh (absent) pages, those that will be touched.
    touched: Option<f64>,
    all_touched: Option<f64>,
    shared: f64,
    /// Number of huge pages that fit into the range.
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

    /// Benefit of populated memory: as measured, or else the saved faults.
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
        // If unknown, each zero page may be touched again, although it was not written to so far.
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

    /// Benefit of huge pages for absent memory, minus the cost of their pages that nobody touches.
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

    /// Time of the faults that huge pages save.
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

    /// Share of a helper's work that takes a processor from the program.
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

    /// A machine with free huge pages and an idle processor, on which memory has no price, as in CBMM.
    fn plenty() -> State {
        State { free_huge: 1000, idle_cores: 1.0, price_ns_per_page_second: 0.0, ..State::default() }
    }

    /// A profiled region without present pages.
    fn saving(ns: f64) -> Range {
        Range { saved_ns: Some(ns), ..Range::of_bytes(HUGE_BYTES) }
    }

    fn part(estimate: &Estimate, name: &str) -> f64 {
        estimate.parts.iter().filter(|(part, _)| *part == name).map(|(_, ns)| ns).sum()
    }

    #[test]
    fn a_huge_page_costs_a_fault_and_saves_profiled_walks() {
        let estimate = estimate(Action::HugeAtTouch, &saving(2e6), &plenty(), &costs());
        assert_eq!(estimate.parts, [("page walks", 2e6), ("huge faults", -89_000.0)]);
        assert_eq!((estimate.benefit_ns, estimate.cost_ns), (2e6, 89_000.0));
    }

    #[test]
    fn compaction_and_reclaim_cost_a_second_each() {
        let no_block = State { free_huge: 0, ..plenty() };
        let none = State { free_bytes: 0, ..no_block.clone() };
        let cost = |state| estimate(Action::HugeAtTouch, &saving(2e6), &state, &costs()).cost_ns;
        assert_eq!(cost(no_block), SECOND + 89_000.0);
        assert_eq!(cost(none), 2.0 * SECOND + 89_000.0);
    }

    #[test]
    fn a_pool_page_is_not_zeroed_again() {
        let pooled = State { pre_zeroed: 1, ..plenty() };
        let cost = |state: &State| estimate(Action::PoolPage, &saving(2e6), state, &costs()).cost_ns;
        assert_eq!(cost(&pooled), costs().pool_page_ns);
        assert_eq!(cost(&plenty()), costs().huge_fault_ns);
        // It also needs no free block.
        assert_eq!(cost(&State { free_huge: 0, ..pooled }), costs().pool_page_ns);
    }

    #[test]
    fn promotion_costs_the_collapse_and_the_waiting() {
        let cost = |present_pages| {
            let range = Range { present_pages, ..saving(2e6) };
            estimate(Action::Promote, &range, &plenty(), &costs()).cost_ns
        };
        assert_eq!(cost(512), 117_000.0 + 512.0 * 800.0 + 500_000.0);
        assert_eq!(cost(1), 117_000.0 + 800.0 + 500_000.0);
        // There is nothing to promote.
        assert_eq!(cost(0), 0.0);
    }

    #[test]
    fn demotion_frees_the_zero_pages_of_a_huge_page() {
        let state = State { price_ns_per_page_second: 1000.0, horizon_seconds: 10.0, ..plenty() };
        let sparse =
            Range { present_pages: 512, huge_pages: 1, zero_pages: 480, touched_pages: Some(32), ..saving(0.0) };
        let demote = |range: &Range| estimate(Action::Demote, range, &state, &costs());
        assert_eq!(demote(&sparse).parts, [("memory", 4_800_000.0), ("splitting", -300_000.0)]);
        // Pages touched again fault again, and the saved page walks are lost.
        let warm = Range { touched_pages: Some(132), saved_ns: Some(1e6), ..sparse.clone() };
        let parts = demote(&warm).parts;
        assert_eq!(
            parts,
            [("memory", 3_800_000.0), ("splitting", -300_000.0), ("faults", -134_000.0), ("page walks", -1e6)]
        );
        assert_eq!(demote(&Range { huge_pages: 0, ..sparse }), Estimate::default());
    }

    #[test]
    fn populating_ahead_costs_its_work_without_idle_processors() {
        let range = Range { touched_pages: Some(512), ..Range::of_bytes(HUGE_BYTES) };
        let idle = estimate(Action::PopulateAhead, &range, &plenty(), &costs());
        assert_eq!(idle.parts, [("faults", 512.0 * 1_340.0), ("waking the helper", -10_000.0)]);
        let busy = State { idle_cores: 0.0, ..plenty() };
        assert_eq!(estimate(Action::PopulateAhead, &range, &busy, &costs()).cost_ns, 91_000.0 + 10_000.0);
    }

    #[test]
    fn populating_ahead_uses_the_profiled_benefit() {
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
    fn swapping_out_saves_memory_that_does_not_come_back() {
        let state = State { price_ns_per_page_second: 1000.0, horizon_seconds: 100.0, ..plenty() };
        let cold = Range { present_pages: 512, touched_pages: Some(12), ..Range::of_bytes(HUGE_BYTES) };
        let out = |range: &Range| estimate(Action::PageOut, range, &state, &costs());
        assert_eq!(out(&cold).parts, [("memory", 500.0 * 1e5), ("swapping in", -12.0 * 4_700.0)]);
        // Unless known to be cold, all of it comes back.
        assert_eq!(out(&Range { touched_pages: None, ..cold }).benefit_ns, 0.0);
    }

    #[test]
    fn leaving_alone_costs_and_brings_nothing() {
        assert_eq!(estimate(Action::Leave, &saving(1e9), &plenty(), &costs()), Estimate::default());
    }

    #[test]
    fn walk_time_depends_on_whether_misses_wait() {
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
    fn a_huge_page_saves_the_faults_of_touched_pages() {
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

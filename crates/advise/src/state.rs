//! The machine at the moment of a decision.

/// What there is to be had, and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Free blocks of 2 MiB or more, in huge pages, on the node.
    pub free_huge: u64,
    /// Free memory, in bytes.
    pub free_bytes: u64,
    /// Huge pages that are zeroed already.
    pub pre_zeroed: u64,
    /// Processors that have nothing to do.
    pub idle_cores: f64,
    /// What a page of 4 KiB is worth, in ns of a processor's time for each second that it is held.
    pub price_ns_per_page_second: f64,
    /// How long what is decided is expected to be of use, in seconds.
    pub horizon_seconds: f64,
}

impl State {
    /// 4 GiB go with a core, as with most machines to be rented: who holds them for a second keeps a core from others for
    /// as long, at most.
    pub const PRICE_NS_PER_PAGE_SECOND: f64 = 1e9 / (1 << 20) as f64;

    /// Long enough that a page held for nothing costs ten times the fault that it saves, so that a huge page of which a
    /// tenth is not touched is not worth it for its faults alone: see [`Plan::dense`](crate::Plan::dense).
    pub const HORIZON_SECONDS: f64 = 15.0;

    /// What one more page costs that is held for nothing, in ns.
    pub fn page_ns(&self) -> f64 {
        self.price_ns_per_page_second * self.horizon_seconds
    }
}

impl Default for State {
    /// A machine of which nothing is known: no huge page is to be had, and no processor is idle.
    fn default() -> State {
        State {
            free_huge: 0,
            free_bytes: u64::MAX,
            pre_zeroed: 0,
            idle_cores: 0.0,
            price_ns_per_page_second: State::PRICE_NS_PER_PAGE_SECOND,
            horizon_seconds: State::HORIZON_SECONDS,
        }
    }
}

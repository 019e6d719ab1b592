//! The machine at the moment of a decision.

/// Available resources, and their price.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Free blocks of 2 MiB or more on the node, in huge pages.
    pub free_huge: u64,
    /// Free memory, in bytes.
    pub free_bytes: u64,
    /// Huge pages that are zeroed already.
    pub pre_zeroed: u64,
    /// Idle processors.
    pub idle_cores: f64,
    /// Price of a 4 KiB page, in ns of CPU time for each second that it is held.
    pub price_ns_per_page_second: f64,
    /// How long a decision is expected to be useful, in seconds.
    pub horizon_seconds: f64,
}

impl State {
    /// With 4 GiB per core, as in most rented machines, holding that memory for a second keeps others from using a core
    /// for at most a second.
    pub const PRICE_NS_PER_PAGE_SECOND: f64 = 1e9 / (1 << 20) as f64;

    /// Long enough that a wasted page costs ten times the fault that it saves. So a huge page of which a tenth is not
    /// touched is not worth it for its faults alone: see [`Plan::dense`](crate::Plan::dense).
    pub const HORIZON_SECONDS: f64 = 15.0;

    /// Cost of one wasted page, in ns.
    pub fn page_ns(&self) -> f64 {
        self.price_ns_per_page_second * self.horizon_seconds
    }
}

impl Default for State {
    /// A machine of which nothing is known: no huge page is available, and no processor is idle.
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

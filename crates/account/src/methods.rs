//! The memory that each method would have named, from one account (MEMSYS 2020, section 4.4).

use model::{Breakdown, Method, RunAccount};

/// What `method` says the job needs, and what that is made of. `None` where the account has no such figure, and for
/// [`Method::Bursar`], whose figure takes more than one run.
pub fn method_memory(account: &RunAccount, method: Method) -> Option<(u64, Breakdown)> {
    let app = account.app_max_rss_breakdown;
    Some(match method {
        Method::AppMaxRss => (account.tree_max_rss_bytes?, app),
        Method::AppMaxRssLargest => {
            let largest = account.app_max_rss_bytes?;
            (largest, app.scaled_to(largest))
        }
        Method::SysMaxRss => (account.sys_max_rss_bytes?, account.sys_max_rss_breakdown),
        Method::Unlimited => {
            let grown = account.unlimited_bytes?;
            // Without a charge it is not known what grew beside the processes.
            let charged = account.peak_charge_bytes.map(|_| account.peak_breakdown).unwrap_or_default();
            (grown, unlimited_breakdown(grown, charged))
        }
        Method::Bursar => return None,
    })
}

/// What grew on the machine beyond the job's charge is the kernel's, on nobody's account.
fn unlimited_breakdown(grown: u64, charged: Breakdown) -> Breakdown {
    match charged.charge() {
        Some(charge) if grown >= charge => {
            Breakdown { kernel: charged.kernel.map(|kernel| kernel + grown - charge), ..charged }
        }
        _ => charged.scaled_to(grown),
    }
}

//! What bursar itself, and what started it, hold of a cgroup that the job shares with them.

use linux::cgroup::MemoryState;
use linux::procfs;

/// What was charged before the command began, and how bursar has grown since.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    before: MemoryState,
    anon_before: u64,
    /// The most that was taken off.
    pub most: u64,
}

impl Own {
    /// The command has not begun: all that is charged is not its own.
    pub fn begin(state: &MemoryState) -> Own {
        Own { before: *state, anon_before: own_anon(), most: 0 }
    }

    /// What is the job's of a later state.
    pub fn taken_off(&mut self, state: MemoryState) -> MemoryState {
        let grown = own_anon().saturating_sub(self.anon_before);
        let before = &self.before;
        let less = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        // bursar's file pages may have been reclaimed in favour of the job: then they are in no figure any more.
        let is_reclaimed = state.limit_hits > before.limit_hits || state.pgsteal > before.pgsteal;
        let file = before.file.filter(|_| !is_reclaimed);
        let others = before.usage.map(|usage| usage.saturating_sub(before.file.unwrap_or(0)) + file.unwrap_or(0));
        let own = others.map(|bytes| bytes + grown);
        self.most = self.most.max(own.unwrap_or(0));
        let jobs_file = less(state.file, file);
        // What was dirty before may be clean by now: no more of the job's file pages is dirty than there are.
        let of_file = |now: Option<u64>, before: Option<u64>| {
            less(now, before).map(|bytes| jobs_file.map_or(bytes, |file| bytes.min(file)))
        };
        MemoryState {
            usage: less(state.usage, own),
            peak: less(state.peak, own),
            anon: less(state.anon, before.anon.map(|anon| anon + grown)),
            swap: less(state.swap, before.swap),
            swap_peak: less(state.swap_peak, before.swap),
            file: jobs_file,
            file_dirty: of_file(state.file_dirty, before.file_dirty),
            file_writeback: of_file(state.file_writeback, before.file_writeback),
            shmem: less(state.shmem, before.shmem),
            kernel: less(state.kernel, before.kernel),
            slab: less(state.slab, before.slab),
            slab_reclaimable: less(state.slab_reclaimable, before.slab_reclaimable),
            kernel_stack: less(state.kernel_stack, before.kernel_stack),
            page_tables: less(state.page_tables, before.page_tables),
            sock: less(state.sock, before.sock),
            hugetlb: less(state.hugetlb, before.hugetlb),
            hugetlb_peak: less(state.hugetlb_peak, before.hugetlb),
            file_mapped: less(state.file_mapped, file.and(before.file_mapped)),
            active_anon: less(state.active_anon, before.active_anon),
            inactive_anon: less(state.inactive_anon, before.inactive_anon),
            active_file: less(state.active_file, file.and(before.active_file)),
            inactive_file: less(state.inactive_file, file.and(before.inactive_file)),
            unevictable: less(state.unevictable, before.unevictable),
            ..state
        }
    }
}

/// bursar's own anonymous memory now, bytes. Its file pages were brought in before ([`linux::cache::read_own_program`]).
fn own_anon() -> u64 {
    procfs::status(std::process::id() as i32).ok().and_then(|status| status.rss_anon).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_or_swapped_is_not_the_jobs() {
        let mib = |mib: u64| Some(mib << 20);
        let before = MemoryState {
            usage: mib(600),
            file: mib(500),
            file_dirty: mib(200),
            swap: mib(40),
            ..MemoryState::default()
        };
        let later = MemoryState {
            usage: mib(800),
            file: mib(510),
            file_dirty: mib(230),
            file_writeback: mib(30),
            swap: mib(43),
            swap_peak: mib(45),
            ..before
        };
        let jobs = Own::begin(&before).taken_off(later);
        let of_file = (jobs.file, jobs.file_dirty, jobs.file_writeback);
        assert_eq!(of_file, (mib(10), mib(10), mib(10)), "dirty pages are of the job's file pages");
        assert_eq!((jobs.swap, jobs.swap_peak), (mib(3), mib(5)));
    }
}

//! Which client leases which segments, and how much more it may lease. Pure: values in, values out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::protocol::{MOST_SEGMENTS, Request, Status};
use crate::state::Segment;

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Being populated for the first time.
    New,
    /// Returned by a client; must be zeroed before the next lease.
    Returned,
    /// Could not be populated: another program took the pages, or pins them. Retried.
    Withheld,
    /// Zeroed and free.
    Clean,
    /// Leased, with the number of the lease.
    Leased(u64),
}

/// The process that sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// PID, or 0 if the process is not visible from here.
    pub pid: i32,
    /// UID.
    pub uid: u32,
    /// Command name; empty if the process has ended.
    pub command: String,
    /// Its memory cgroup.
    pub cgroup: Option<PathBuf>,
    /// The memory limits of its cgroup and of the cgroups above.
    pub limits: Vec<(PathBuf, u64)>,
}

/// Segments that were leased by one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The client that requested them.
    pub client: Client,
    /// Whether that process has ended while others still hold the memory.
    pub lingering: bool,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Lease these segments.
    Grant(Vec<u32>),
    /// Wait: more segments will be clean soon.
    Wait,
    /// Refuse, for this reason.
    Deny(Status),
}

/// All segments of a pool and their states.
#[derive(Debug, Default)]
pub struct Ledger {
    per_user_bytes: Option<u64>,
    segments: BTreeMap<u32, (Segment, Use)>,
    leases: BTreeMap<u64, Lease>,
    next: u64,
}

impl Ledger {
    /// For an empty pool, with the cap of each user in bytes.
    pub fn new(per_user_bytes: Option<u64>) -> Ledger {
        Ledger { per_user_bytes, ..Ledger::default() }
    }

    /// Adds a segment.
    pub fn add(&mut self, number: u32, segment: Segment, used: Use) {
        self.segments.insert(number, (segment, used));
    }

    /// Removes a segment.
    pub fn remove(&mut self, number: u32) {
        self.segments.remove(&number);
    }

    /// Decides a request.
    pub fn decide(&self, request: &Request, client: &Client) -> Decision {
        let mut clean: Vec<_> = self.numbers(|used| used == Use::Clean);
        clean.sort_by_key(|number| (request.node.is_some_and(|node| self.node(*number) != Some(node)), *number));
        let wanted = request.bytes.max(request.least);
        let (room, cap) = self.room(client);
        let mut granted = Vec::new();
        let (mut bytes, mut capped) = (0, false);
        for number in clean {
            let more = self.bytes(number);
            if bytes >= wanted || granted.len() == MOST_SEGMENTS {
                break;
            }
            capped = more > room.saturating_sub(bytes);
            if capped {
                break;
            }
            bytes += more;
            granted.push(number);
        }
        let short = bytes < wanted && granted.len() < MOST_SEGMENTS;
        let returned = self.numbers(|used| used == Use::Returned);
        let fits = returned.iter().any(|number| self.bytes(*number) <= room.saturating_sub(bytes));
        match () {
            _ if short && !capped && fits => Decision::Wait,
            _ if wanted > 0 && bytes < request.least.max(1) => {
                let over = capped || self.segments.values().all(|(segment, _)| segment.bytes > room);
                Decision::Deny(if over && !self.segments.is_empty() { cap } else { Status::Exhausted })
            }
            _ => Decision::Grant(granted),
        }
    }

    /// Records a lease; returns its number.
    pub fn add_lease(&mut self, client: Client, numbers: &[u32]) -> u64 {
        let lease = self.next;
        self.next += 1;
        for number in numbers {
            if let Some((_, used)) = self.segments.get_mut(number) {
                *used = Use::Leased(lease);
            }
        }
        self.leases.insert(lease, Lease { client, lingering: false });
        lease
    }

    /// Sets the state of a segment. A lease without segments ends.
    pub fn set(&mut self, number: u32, used: Use) {
        let Some((_, before)) = self.segments.get_mut(&number) else { return };
        let before = std::mem::replace(before, used);
        match before {
            Use::Leased(lease) if self.of_lease(lease).is_empty() => {
                self.leases.remove(&lease);
            }
            _ => {}
        }
    }

    /// Records that the client of a lease has ended.
    pub fn ended(&mut self, lease: u64) {
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.lingering = true;
        }
    }

    /// The segments of a lease, ascending.
    pub fn of_lease(&self, lease: u64) -> Vec<u32> {
        self.numbers(|used| used == Use::Leased(lease))
    }

    /// The segments in matching states, ascending.
    pub fn numbers(&self, wanted: impl Fn(Use) -> bool) -> Vec<u32> {
        self.segments.iter().filter(|(_, (_, used))| wanted(*used)).map(|(number, _)| *number).collect()
    }

    /// The state of a segment.
    pub fn used(&self, number: u32) -> Option<Use> {
        self.segments.get(&number).map(|(_, used)| *used)
    }

    /// All segments, ascending.
    pub fn segments(&self) -> impl Iterator<Item = (&Segment, Use)> {
        self.segments.values().map(|(segment, used)| (segment, *used))
    }

    /// All leases by number.
    pub fn leases(&self) -> &BTreeMap<u64, Lease> {
        &self.leases
    }

    /// Free bytes, including those that are being zeroed after use.
    pub fn free_bytes(&self) -> u64 {
        let free = self.segments().filter(|(_, used)| matches!(used, Use::Clean | Use::Returned));
        free.map(|(segment, _)| segment.bytes).sum()
    }

    /// Bytes of a segment; 0 if it does not exist.
    pub fn bytes(&self, number: u32) -> u64 {
        self.segments.get(&number).map_or(0, |(segment, _)| segment.bytes)
    }

    /// The node of a segment.
    pub fn node(&self, number: u32) -> Option<u32> {
        self.segments.get(&number)?.0.node
    }

    /// Bytes that the caps leave to a client, and the status that names the tightest cap.
    fn room(&self, client: &Client) -> (u64, Status) {
        let leased_by = |mine: &dyn Fn(&Client) -> bool| -> u64 {
            let leases: BTreeSet<u64> =
                self.leases.iter().filter(|(_, lease)| mine(&lease.client)).map(|(number, _)| *number).collect();
            let segments = self.segments().filter(|(_, used)| matches!(used, Use::Leased(by) if leases.contains(by)));
            segments.map(|(segment, _)| segment.bytes).sum()
        };
        let user = self.per_user_bytes.map(|cap| {
            let leased = leased_by(&|other| other.uid == client.uid);
            (cap.saturating_sub(leased), Status::OverUser)
        });
        let cgroups = client.limits.iter().map(|(dir, cap)| {
            let leased = leased_by(&|other| other.cgroup.as_ref().is_some_and(|cgroup| cgroup.starts_with(dir)));
            (cap.saturating_sub(leased), Status::OverCgroup)
        });
        user.into_iter().chain(cgroups).min_by_key(|(room, _)| *room).unwrap_or((u64::MAX, Status::Exhausted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 64 << 20;

    fn ledger(nodes: &[u32], per_user_bytes: Option<u64>) -> Ledger {
        let mut ledger = Ledger::new(per_user_bytes);
        for (number, node) in nodes.iter().enumerate() {
            let segment = Segment { bytes: SIZE, node: Some(*node), device: None, region: None };
            ledger.add(number as u32, segment, Use::Clean);
        }
        ledger
    }

    fn ask(segments: u64, least: u64) -> Request {
        Request { node: None, bytes: segments * SIZE, least: least * SIZE }
    }

    fn user(uid: u32) -> Client {
        Client { pid: 100 + uid as i32, uid, ..Client::default() }
    }

    #[test]
    fn segments_of_the_wanted_node_come_first_and_in_order() {
        let ledger = ledger(&[0, 1, 0, 1], None);
        let on = |node, segments| ledger.decide(&Request { node, ..ask(segments, 1) }, &user(1));
        assert_eq!(on(Some(1), 2), Decision::Grant(vec![1, 3]));
        assert_eq!(on(Some(1), 3), Decision::Grant(vec![1, 3, 0]));
        assert_eq!(on(None, 3), Decision::Grant(vec![0, 1, 2]));
        assert_eq!(on(Some(9), 1), Decision::Grant(vec![0]));
    }

    #[test]
    fn whole_segments_are_granted_and_fewer_only_above_the_minimum() {
        let ledger = ledger(&[0; 3], None);
        let of = |bytes, least| ledger.decide(&Request { node: None, bytes, least }, &user(1));
        assert_eq!(of(1, 1), Decision::Grant(vec![0]));
        assert_eq!(of(SIZE + 1, 0), Decision::Grant(vec![0, 1]));
        assert_eq!(of(u64::MAX, 1), Decision::Grant(vec![0, 1, 2]));
        assert_eq!(of(u64::MAX, 4 * SIZE), Decision::Deny(Status::Exhausted));
        assert_eq!(of(0, 0), Decision::Grant(vec![]), "a query for the free bytes");
    }

    #[test]
    fn requests_wait_for_zeroing_but_not_for_new_segments() {
        let mut ledger = ledger(&[0; 3], None);
        let lease = ledger.add_lease(user(1), &[0, 1, 2]);
        assert_eq!(ledger.decide(&ask(1, 1), &user(1)), Decision::Deny(Status::Exhausted));
        ledger.set(0, Use::Returned);
        assert_eq!(ledger.decide(&ask(2, 1), &user(1)), Decision::Wait);
        assert_eq!(ledger.of_lease(lease), [1, 2]);
        ledger.set(0, Use::Clean);
        assert_eq!(ledger.decide(&ask(2, 1), &user(1)), Decision::Grant(vec![0]));
        ledger.set(1, Use::New);
        ledger.set(2, Use::Withheld);
        assert_eq!(ledger.decide(&ask(3, 2), &user(1)), Decision::Deny(Status::Exhausted));
        assert!(ledger.leases().is_empty(), "a lease ends with its last segment");
    }

    #[test]
    fn a_users_cap_covers_all_its_processes() {
        let mut ledger = ledger(&[0; 8], Some(3 * SIZE));
        assert_eq!(ledger.decide(&ask(5, 1), &user(1)), Decision::Grant(vec![0, 1, 2]));
        assert_eq!(ledger.decide(&ask(5, 5), &user(1)), Decision::Deny(Status::OverUser));
        ledger.add_lease(user(1), &[0, 1]);
        ledger.add_lease(user(1), &[2]);
        assert_eq!(ledger.decide(&ask(1, 1), &user(1)), Decision::Deny(Status::OverUser));
        assert_eq!(ledger.decide(&ask(1, 1), &user(2)), Decision::Grant(vec![3]));
        ledger.set(2, Use::Returned);
        assert_eq!(ledger.decide(&ask(1, 1), &user(1)), Decision::Grant(vec![3]));
    }

    #[test]
    fn a_cap_applies_while_no_segment_is_clean() {
        let mut ledger = ledger(&[0], Some(SIZE / 2));
        ledger.set(0, Use::Returned);
        assert_eq!(ledger.decide(&ask(1, 0), &user(1)), Decision::Deny(Status::OverUser));
    }

    #[test]
    fn limits_of_ancestor_cgroups_cover_all_their_children() {
        let mut ledger = ledger(&[0; 8], None);
        let job = |step: &str| Client {
            cgroup: Some(format!("/cg/job/{step}").into()),
            limits: vec![(format!("/cg/job/{step}").into(), 2 * SIZE), ("/cg/job".into(), 3 * SIZE)],
            ..user(1)
        };
        assert_eq!(ledger.decide(&ask(9, 1), &job("a")), Decision::Grant(vec![0, 1]));
        ledger.add_lease(job("a"), &[0, 1]);
        assert_eq!(ledger.decide(&ask(9, 1), &job("a")), Decision::Deny(Status::OverCgroup));
        assert_eq!(ledger.decide(&ask(9, 1), &job("b")), Decision::Grant(vec![2]), "the job's limit is tighter");
        let beside = Client { cgroup: Some("/cg/job2".into()), limits: vec![("/cg/job2".into(), 2 * SIZE)], ..user(1) };
        assert_eq!(ledger.decide(&ask(9, 1), &beside), Decision::Grant(vec![2, 3]));
    }

    #[test]
    fn a_reply_has_at_most_as_many_segments_as_descriptors() {
        let ledger = ledger(&[0; 300], None);
        let Decision::Grant(granted) = ledger.decide(&ask(300, 1), &user(1)) else { panic!("nothing granted") };
        assert_eq!(granted.len(), MOST_SEGMENTS);
    }
}

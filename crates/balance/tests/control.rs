//! The controller on programs that are simulated from data: LRU, a swap device of 20 us, noise in what is seen.

use balance::{Demand, Seen, Stage, Unrest, decide};
use model::MissPoint;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const MISS_SECONDS: f64 = 20e-6;
const FLOOR: u64 = 16 * MIB;

/// A program: what share of its references misses with how many MiB, and how many references it makes in a second of work.
#[derive(Clone, Copy)]
enum Program {
    /// Any page of so many MiB, in any order.
    Random(u64),
    /// Round and round so many MiB.
    Stream(u64),
}

const REFERENCES: f64 = 400_000.0;

impl Program {
    fn ratio(self, bytes: u64) -> f64 {
        match self {
            Program::Random(mib) => 1.0 - (bytes as f64 / (mib * MIB) as f64).min(1.0),
            Program::Stream(mib) => f64::from(bytes < mib * MIB),
        }
    }

    fn size(self) -> u64 {
        match self {
            Program::Random(mib) | Program::Stream(mib) => mib,
        }
    }

    /// Seconds that a second of work takes.
    fn slow_down(self, bytes: u64) -> f64 {
        1.0 + REFERENCES * self.ratio(bytes) * MISS_SECONDS
    }

    /// As it is seen at the pace that it has with that limit, with noise.
    fn seen(self, limit: u64, noise: f64) -> (Demand, f64) {
        let pace = 1.0 / self.slow_down(limit);
        let point = |at: u64| {
            let bytes = self.size() * MIB * at / 64;
            MissPoint { bytes, misses_per_second: REFERENCES * self.ratio(bytes) * pace * noise }
        };
        let points: Vec<MissPoint> = (0..=64).map(point).collect();
        let stalled = 1.0 - pace;
        (Demand::of(&points, MISS_SECONDS, stalled), stalled)
    }
}

/// Some programs and their limits.
struct Machine {
    total: u64,
    limits: Vec<Option<u64>>,
    unrest: Vec<Unrest>,
}

impl Machine {
    fn new(total_mib: u64, programs: usize) -> Machine {
        let total = total_mib * MIB;
        let limits = vec![Some(total / programs as u64); programs];
        Machine { total, limits, unrest: vec![Unrest::default(); programs] }
    }

    /// One interval; how many limits were moved.
    fn interval(&mut self, programs: &[Program], noise: &[f64]) -> usize {
        let limits: Vec<u64> = self.limits.iter().map(|limit| limit.unwrap_or(0)).collect();
        let demands: Vec<(Demand, f64)> = programs
            .iter()
            .zip(&limits)
            .zip(noise)
            .map(|((program, limit), noise)| program.seen(*limit, *noise))
            .collect();
        let seen: Vec<Seen<'_>> = demands
            .iter()
            .zip(&self.limits)
            .zip(&self.unrest)
            .map(|(((demand, stalled), limit), unrest)| Seen {
                stage: Stage::Running,
                weight: 1.0,
                least: 0,
                most: u64::MAX,
                floor: FLOOR,
                limit: *limit,
                usage: limit.unwrap_or(0),
                demand: Some(demand),
                doubt: 0.0,
                unrest: unrest.bytes(),
                stalled: *stalled,
            })
            .collect();
        let moves = decide(self.total, &seen);
        assert!(moves.iter().map(|one| one.to).sum::<u64>() <= self.total, "{moves:?}");
        assert!(moves.iter().all(|one| one.to >= FLOOR && !one.why.is_empty()), "{moves:?}");
        let moved = moves.iter().zip(&limits).filter(|(one, limit)| one.to != **limit).count();
        self.limits = moves.iter().map(|one| Some(one.to)).collect();
        self.unrest.iter_mut().zip(&limits).zip(&moves).for_each(|((unrest, from), to)| unrest.add(*from, to.to));
        moved
    }

    fn speeds(&self, programs: &[Program]) -> f64 {
        let slow: f64 =
            programs.iter().zip(&self.limits).map(|(one, limit)| one.slow_down(limit.unwrap_or(0)).ln()).sum();
        (-slow / programs.len() as f64).exp()
    }
}

#[test]
fn programs_that_swap_their_roles_have_theirs_within_three_intervals() {
    let mut machine = Machine::new(800, 2);
    let roles = [[Program::Random(640), Program::Stream(960)], [Program::Stream(960), Program::Random(640)]];
    for swap in 0..6 {
        let programs = roles[swap % 2];
        (0..3).for_each(|_| {
            machine.interval(&programs, &[1.0, 1.0]);
        });
        let gains = machine.limits[swap % 2].unwrap();
        assert!(gains >= 630 * MIB, "{:?}", machine.limits);
        assert_eq!(machine.interval(&programs, &[1.0, 1.0]), 0, "and keep them");
    }
}

#[test]
fn nothing_moves_in_a_steady_state() {
    let programs = [Program::Random(640), Program::Random(500), Program::Stream(900), Program::Random(30)];
    let mut machine = Machine::new(1000, 4);
    (0..6).for_each(|_| {
        machine.interval(&programs, &[1.0; 4]);
    });
    for round in 0..200u64 {
        // A sample of some 500 misses.
        let noise: Vec<f64> = (0..4).map(|at| 0.95 + ((round * 7 + at * 13) % 11) as f64 / 100.0).collect();
        assert_eq!(machine.interval(&programs, &noise), 0, "round {round}: {:?}", machine.limits);
    }
}

#[test]
fn memory_does_not_go_round_among_programs_that_seem_to_need_more_while_they_starve() {
    let programs = [Program::Random(640); 4];
    let mut machine = Machine::new(3 * 640 + 160, 4);
    let mut intervals = 0;
    for _ in 0..100 {
        let sees = |limit: &Option<u64>| if *limit >= Some(600 * MIB) { 0.5 } else { 1.0 };
        let seen: Vec<f64> = machine.limits.iter().map(sees).collect();
        intervals += usize::from(machine.interval(&programs, &seen) > 0);
    }
    assert!(intervals <= 20, "{intervals} of 100");
    assert!(machine.speeds(&programs) > 0.6, "three have what they need: {:?}", machine.limits);
}

#[test]
fn what_is_reached_is_as_good_as_the_best_of_all_divisions_of_two() {
    for (one, other) in [
        (Program::Random(640), Program::Stream(960)),
        (Program::Random(640), Program::Random(400)),
        (Program::Stream(500), Program::Random(600)),
        (Program::Stream(900), Program::Stream(700)),
    ] {
        let programs = [one, other];
        let mut machine = Machine::new(800, 2);
        (0..8).for_each(|_| {
            machine.interval(&programs, &[1.0, 1.0]);
        });
        let best = (16..=784)
            .map(|mib| {
                let limits = vec![Some(mib * MIB), Some((800 - mib) * MIB)];
                Machine { limits, ..Machine::new(800, 2) }.speeds(&programs)
            })
            .fold(0.0, f64::max);
        let reached = machine.speeds(&programs);
        assert!(reached >= 0.97 * best, "{reached} of {best}: {:?}", machine.limits);
    }
}

fn quiet(limit: Option<u64>, usage: u64, demand: Option<&Demand>) -> Seen<'_> {
    let stage = Stage::Running;
    Seen {
        stage,
        weight: 1.0,
        least: 0,
        most: u64::MAX,
        floor: FLOOR,
        limit,
        usage,
        demand,
        doubt: 0.0,
        unrest: 0.0,
        stalled: 0.0,
    }
}

#[test]
fn who_does_not_wait_is_moved_half_of_the_way() {
    let (gains, _) = Program::Random(700).seen(700 * MIB, 1.0);
    let (streams, _) = Program::Stream(5000).seen(100 * MIB, 1.0);
    let limit = Some(400 * MIB);
    let seen = [quiet(limit, 400 * MIB, Some(&gains)), quiet(limit, 400 * MIB, Some(&streams))];
    let moves = decide(800 * MIB, &seen);
    assert!((540 * MIB..600 * MIB).contains(&moves[0].to) && moves[0].why.contains("half of the way"), "{moves:?}");
    let pressed = [Seen { stalled: 0.5, ..seen[0] }, seen[1]];
    let moves = decide(800 * MIB, &pressed);
    assert!(moves[0].to >= 690 * MIB && moves[0].why.contains("waits 50 %"), "{moves:?}");
    assert!(moves[1].why.contains("others gain more"), "{moves:?}");
}

#[test]
fn who_waits_is_given_what_others_do_not_miss_though_it_is_not_known_to_gain() {
    let total = 800 * MIB;
    let (flat, _) = Program::Stream(5000).seen(400 * MIB, 1.0);
    let (has_enough, _) = Program::Random(200).seen(400 * MIB, 1.0);
    let limit = Some(400 * MIB);
    let [waits, rests] = [&flat, &has_enough].map(|demand| quiet(limit, 400 * MIB, Some(demand)));
    let waits = Seen { stalled: 0.4, floor: 395 * MIB, ..waits };
    let moves = decide(total, &[waits, rests]);
    assert!(moves[0].to >= 450 * MIB && moves[0].why.contains("nobody gains more from it"), "{moves:?}");
    assert!((200 * MIB..350 * MIB).contains(&moves[1].to), "{moves:?}");

    let stays = |seen: [Seen<'_>; 2]| decide(total, &seen).iter().all(|one| Some(one.to) == limit);
    assert!(stays([Seen { stalled: 0.0, ..waits }, rests]), "nobody waits");
    assert!(stays([waits, Seen { stalled: 0.4, ..rests }]), "both wait");
    let (needs_all, _) = Program::Random(400).seen(400 * MIB, 1.0);
    assert!(stays([waits, Seen { demand: Some(&needs_all), ..rests }]), "it would miss it");
    let moves = decide(total, &[waits, Seen { stage: Stage::Empty, demand: None, ..rests }]);
    assert!(moves[0].to > 700 * MIB, "nothing runs there: {moves:?}");
}

#[test]
fn who_is_not_known_keeps_what_he_has_and_all_fit_into_the_total() {
    let seen = [quiet(None, 600 * MIB, None), quiet(None, 1000 * MIB, None)];
    let moves = decide(800 * MIB, &seen);
    assert!(moves.iter().map(|one| one.to).sum::<u64>() <= 800 * MIB && moves[0].to < moves[1].to, "{moves:?}");
    assert!(moves[0].to > 250 * MIB, "{moves:?}");
    let seen = [quiet(Some(300 * MIB), 300 * MIB, None), quiet(Some(490 * MIB), 490 * MIB, None)];
    assert!(decide(800 * MIB, &seen).iter().zip(&seen).all(|(one, seen)| Some(one.to) == seen.limit));
}

#[test]
fn a_floor_that_rises_is_followed_at_once_and_wins_over_the_total_and_the_maximum() {
    let (flat, _) = Program::Stream(5000).seen(100 * MIB, 1.0);
    let one = quiet(Some(400 * MIB), 400 * MIB, Some(&flat));
    let rises = Seen { floor: 500 * MIB, most: 450 * MIB, ..one };
    let moves = decide(800 * MIB, &[rises, one]);
    assert!(moves[0].to >= 500 * MIB && moves[0].why.contains("cannot be reclaimed"), "{moves:?}");
    assert!(moves[1].to <= 300 * MIB, "{moves:?}");
    let moves = decide(800 * MIB, &[rises, rises]);
    assert!(moves.iter().all(|one| one.to == 500 * MIB && one.why.contains("less than the least of all")), "{moves:?}");
}

#[test]
fn a_limit_that_is_above_what_was_decided_for_a_moment_does_not_turn_all_around() {
    // By chance the one that starves seems to gain a little more than the others have.
    let limits = [48, 48, 48, 17].map(|mib| mib * MIB);
    let noise = [1.0, 1.0, 0.97, 1.03];
    let demands = [0, 1, 2, 3].map(|at| Program::Random(48).seen(limits[at], noise[at]).0);
    let seen = [0, 1, 2, 3].map(|at| quiet(Some(limits[at]), limits[at], Some(&demands[at])));
    let total = 160 * MIB;
    let moves = decide(total, &seen);
    assert!(moves.iter().map(|one| one.to).sum::<u64>() <= total, "{moves:?}");
    assert!(moves.iter().zip(limits).all(|(one, limit)| one.to.abs_diff(limit) <= MIB), "{moves:?}");
}

#[test]
fn who_stays_for_little_does_not_have_what_others_are_given() {
    let unknown = |floor, limit, most| Seen { floor, most, stalled: 0.5, ..quiet(limit, 0, None) };
    let all = [
        Seen { stalled: 0.0, ..unknown(724 * MIB, Some(725 * MIB), 725 * MIB) },
        unknown(0, None, MIB),
        unknown(0, None, 1422 * MIB),
    ];
    let moves = decide(2147 * MIB, &all);
    assert!(moves.iter().map(|one| one.to).sum::<u64>() <= 2147 * MIB, "{moves:?}");
}

#[test]
fn where_nothing_runs_memory_is_for_the_others_and_what_begins_there_has_its_share() {
    let total = 800 * MIB;
    let (gains, _) = Program::Random(700).seen(300 * MIB, 1.0);
    let other = Seen { stalled: 0.5, ..quiet(Some(300 * MIB), 300 * MIB, Some(&gains)) };
    let empty = Seen { stage: Stage::Empty, ..quiet(Some(500 * MIB), 10 * MIB, None) };
    let moves = decide(total, &[other, empty]);
    assert!(moves[0].to >= 690 * MIB && moves[1].to <= 110 * MIB, "{moves:?}");
    assert!(moves[1].why.contains("nothing runs in it"), "{moves:?}");

    let (enough, _) = Program::Random(200).seen(300 * MIB, 1.0);
    let moves = decide(total, &[Seen { stalled: 0.0, demand: Some(&enough), ..other }, empty]);
    assert_eq!(moves[1].to, 500 * MIB, "nobody gains from it: {moves:?}");

    let has = Seen { stalled: 0.0, ..quiet(Some(700 * MIB), 700 * MIB, Some(&gains)) };
    let begun = |usage| Seen { stage: Stage::Begun, ..quiet(Some(100 * MIB), usage, None) };
    let moves = decide(total, &[has, begun(99 * MIB)]);
    assert!((390 * MIB..=400 * MIB).contains(&moves[1].to) && moves[1].why.contains("its share"), "{moves:?}");
    assert!(moves.iter().map(|one| one.to).sum::<u64>() <= total, "{moves:?}");
    let moves = decide(total, &[has, begun(2 * MIB)]);
    assert_eq!((moves[0].to, moves[1].to), (700 * MIB, 100 * MIB), "it has enough: {moves:?}");
}

proptest! {
    #[test]
    fn no_limit_is_below_its_floor_and_no_sum_above_the_total(
        total in 1u64..4000,
        all in prop::collection::vec(
            (0u64..900, prop::option::of(0u64..3000), 0u64..3000, 0u64..900, 0u64..3000, any::<bool>(), 0.0..1.0f64, 0usize..3),
            1..6,
        ),
    ) {
        let demands: Vec<Demand> = all.iter().map(|one| Program::Random(one.2 + 1).seen(one.2 * MIB / 2, 1.0).0).collect();
        let seen: Vec<Seen<'_>> = all
            .iter()
            .zip(&demands)
            .map(|((floor, limit, usage, least, most, known, stalled, stage), demand)| Seen {
                stage: [Stage::Empty, Stage::Begun, Stage::Running][*stage],
                weight: 1.0,
                least: least * MIB,
                most: most * MIB,
                floor: floor * MIB,
                limit: limit.map(|limit| limit * MIB),
                usage: usage * MIB,
                demand: known.then_some(demand),
                doubt: 0.0,
                unrest: *usage as f64,
                stalled: *stalled,
            })
            .collect();
        let moves = decide(total * MIB, &seen);
        let least: u64 = seen.iter().map(|one| one.floor.max(one.least)).sum();
        let sum: u64 = moves.iter().map(|one| one.to).sum();
        prop_assert!(sum <= (total * MIB).max(least), "{moves:?}");
        prop_assert!(moves.iter().zip(&seen).all(|(one, seen)| one.to >= seen.floor.max(seen.least)), "{moves:?}");
    }
}

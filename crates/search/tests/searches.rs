//! Searches of a simulated program: no cgroup, no clock, the real planner and real records.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::{
    DemandPoint, Exit, FileDemand, Header, KeptPeaks, Observation, Outcome, RunAccount, RunRole, Rusage, Series,
    Target, Unit, names,
};
use record::{Entry, Record, Resumable};
use search::{Answered, Executor, Found, Made, Options, Order, Search};
use session::observe::Progress;
use session::status::Status;

const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// A program that holds heap and reads the same files ten times; each pass that does not fit takes a second more.
#[derive(Clone)]
struct Program {
    heap: u64,
    files: u64,
    seconds: f64,
    /// It ends so, without a word of memory, from this run on (from 0), under a limit of `fails_below` at most.
    fails: Option<(u32, i32)>,
    fails_below: u64,
    /// Runs of the comparison are killed and leave a lock, with which every later run fails.
    leaves_a_lock: bool,
    /// Somebody presses Ctrl-C in this run.
    interrupted_in: Option<u32>,
}

const PASSES: u64 = 10;

impl Program {
    /// 20 MiB of heap, 100 of files.
    fn new() -> Program {
        Program {
            heap: 20 * MIB,
            files: 100 * MIB,
            seconds: 10.0,
            fails: None,
            fails_below: u64::MAX,
            leaves_a_lock: false,
            interrupted_in: None,
        }
    }

    fn read_again(&self, limit: u64) -> u64 {
        if limit >= self.heap + self.files { 0 } else { self.files * (PASSES - 1) }
    }

    fn demand(&self) -> FileDemand {
        let points = [self.heap, self.heap + self.files - 1, self.heap + self.files];
        FileDemand {
            referenced_bytes: self.files * PASSES,
            distinct_bytes: self.files,
            points: points.map(|at| DemandPoint { limit_bytes: at, refault_bytes: self.read_again(at) }).to_vec(),
            sampled_share: 1.0,
            ..FileDemand::default()
        }
    }
}

/// Makes its runs. The orders outlive the search that gives them.
struct Simulated {
    program: Program,
    orders: Rc<RefCell<Vec<Order>>>,
    is_locked: bool,
    signal: Option<i32>,
}

fn series(name: &str, unit: Unit, points: [(f64, f64); 3]) -> Series {
    Series {
        name: name.into(),
        process: None,
        unit,
        rung: "simulated".into(),
        points: points.map(|(seconds, value)| ((seconds * 1e9) as u64, value)).to_vec(),
    }
}

impl Executor for Simulated {
    fn run(
        &mut self,
        order: &Order,
        append: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
        watch: &mut dyn FnMut(&[Progress]) -> bool,
    ) -> anyhow::Result<Made> {
        self.orders.borrow_mut().push(order.clone());
        let program = &self.program;
        let limit = order.limit_bytes.unwrap_or(u64::MAX);
        let again = program.read_again(limit);
        let stalled = if again == 0 { 0.0 } else { (PASSES - 1) as f64 };
        let mut run = Observation::begun(order.run, order.role, Target::Command, "cold".into(), SECOND_NS);
        run.limit_bytes = order.limit_bytes;
        (run.exit, run.wall_seconds) = (Exit::Status(0), program.seconds + stalled);
        let mut errors = String::new();
        if self.program.interrupted_in == Some(order.run) {
            (self.signal, run.exit) = (Some(2), Exit::Signal(2));
        } else if self.is_locked {
            (run.exit, run.wall_seconds, errors) = (Exit::Status(3), 1.0, "locked\n".into());
        } else if program.leaves_a_lock && order.role == RunRole::Method && order.limit_bytes.is_some() {
            self.is_locked = true;
            (run.exit, run.wall_seconds, run.kept.oom_kills) = (Exit::Signal(9), 1.0, Some(1));
        } else if limit < program.heap {
            (run.exit, run.wall_seconds, run.kept.oom_kills) = (Exit::Signal(9), 1.0, Some(1));
        } else if let Some((_, status)) =
            program.fails.filter(|(from, _)| order.run >= *from && limit <= program.fails_below)
        {
            (run.exit, run.wall_seconds, errors) = (Exit::Status(status), 1.0, "out.gz already exists\n".into());
        } else {
            let timeout = order.timeout.map_or(f64::MAX, |timeout| timeout.as_secs_f64());
            for second in 1..run.wall_seconds as u64 {
                let so_far = second as f64 / run.wall_seconds;
                let progress = Progress {
                    elapsed: Duration::from_secs(second),
                    sampled: Duration::from_secs(second),
                    charge_bytes: None,
                    refaults: Some((again as f64 * so_far) as u64 / 4096),
                    io_delay_seconds: Some(stalled * so_far),
                    cpu_seconds: Some(program.seconds * so_far),
                };
                let why = if second as f64 >= timeout { Some(Exit::TimedOut) } else { None };
                if let Some(exit) = why.or_else(|| watch(&[progress]).then_some(Exit::StoppedEarly)) {
                    (run.exit, run.wall_seconds) = (exit, second as f64);
                    break;
                }
            }
        }
        let (end, cpu) = (run.wall_seconds, program.seconds * run.wall_seconds / (program.seconds + stalled));
        let cached = program.files.min(limit.saturating_sub(program.heap));
        let at = |value: u64| [(0.0, 0.0), (end / 2.0, value as f64), (end, value as f64)];
        run.series = vec![
            series(names::CHARGE, Unit::Bytes, at(program.heap + cached)),
            series(names::HEAP, Unit::Bytes, at(program.heap)),
            series(names::FILE, Unit::Bytes, at(cached)),
            series(names::CPU, Unit::Seconds, [(0.0, 0.0), (end / 2.0, cpu / 2.0), (end, cpu)]),
            series(names::IO_DELAY, Unit::Seconds, [(0.0, 0.0), (end / 2.0, stalled / 2.0), (end, stalled)]),
        ];
        if program.leaves_a_lock {
            run.series.push(series(names::TREE_RSS, Unit::Bytes, at(program.heap)));
        }
        // Of two processes the comparison tries two limits.
        let max_rss_bytes = if program.leaves_a_lock { program.heap / 2 } else { program.heap };
        run.rusage = Some(Rusage { user_seconds: cpu, max_rss_bytes, ..Rusage::default() });
        run.kept = KeptPeaks { charge_bytes: Some(program.heap + cached), ..run.kept };
        run.file_demand = order.limit_bytes.is_none().then(|| program.demand());
        // Its end is the search's to record.
        let seen = Entry::of_run(&run).into_iter().filter(|entry| !matches!(entry, Entry::RunEnd(_)));
        seen.into_iter().try_for_each(append)?;
        Ok(Made { observation: run, parts: Vec::new(), errors, running: None })
    }

    fn stopped_by(&self) -> Option<i32> {
        self.signal
    }

    fn learn_mapped(&mut self, _: &Made, _: &RunAccount) -> bool {
        false
    }

    fn learn_read(&mut self, _: &Made, _: bool) -> bool {
        false
    }

    fn cache_state(&self) -> String {
        "cold".into()
    }

    fn emulates_limits(&self) -> bool {
        false
    }

    fn dirty_share(&self) -> Option<f64> {
        None
    }

    fn machine_notes(&self, _: &Record) -> Vec<String> {
        Vec::new()
    }
}

fn options(record: &Path) -> Options {
    Options {
        command: vec!["simulated".into()],
        slowdown: 0.05,
        runs: None,
        max_trials: 12,
        timeout: None,
        compare: true,
        full: false,
        input: None,
        prepare: None,
        drop_caches: false,
        as_found: false,
        interval: None,
        fast_tier: None,
        record: Some(record.into()),
        quiet: true,
    }
}

/// A search, and the runs that were asked for.
fn search(options: &Options, program: Program, old: Option<(Resumable, Record)>) -> (Found, Vec<Order>) {
    let orders = Rc::<RefCell<Vec<Order>>>::default();
    let executor = Simulated { program, orders: Rc::clone(&orders), is_locked: false, signal: None };
    let header = Header {
        options: search::resume::saved(options, &Default::default()),
        ..session::bench::header(model::RecordKind::Budget, &options.command)
    };
    let found = Search::begin(options, executor, header, Vec::new(), old).unwrap().run().unwrap();
    let orders = orders.take();
    (found, orders)
}

fn answered(found: Found) -> Answered {
    match found {
        Found::Answer(answered) => *answered,
        Found::Failure(failure) => panic!("{}", failure.sentence()),
    }
}

#[test]
fn the_answer_is_where_the_files_fit_beside_the_heap() {
    let folder = tempfile::tempdir().unwrap();
    let (found, orders) = search(&options(&folder.path().join("x.bursar")), Program::new(), None);
    let found = answered(found);
    let budget = found.report.answer.budget_bytes.unwrap();
    assert!((120 * MIB..=126 * MIB).contains(&budget), "{}", found.report.answer.reason);
    assert!(found.report.answer.confident, "{}", found.report.answer.reason);
    assert_eq!(found.status, Status::of(0));
    assert_eq!(orders.iter().map(|order| order.run).collect::<Vec<_>>(), (0..orders.len() as u32).collect::<Vec<_>>());
    // What a method that counts heap alone gives is compared, and is too slow.
    let method = found.report.methods.iter().find(|method| method.memory_bytes == Some(20 * MIB)).expect("App-MaxRSS");
    assert_eq!(method.enough, Some(false));
    assert_eq!(Record::open(found.path.as_deref().unwrap()).unwrap().budget.as_ref(), Some(&found.report));
}

#[test]
fn without_comparison_no_methods_limit_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { compare: false, ..options(&folder.path().join("x.bursar")) };
    let (_, orders) = search(&options, Program::new(), None);
    assert!(orders.iter().all(|order| order.role != RunRole::Method));
}

#[test]
fn an_interrupted_search_says_so_and_goes_on_from_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let (whole, all) = search(&options(&folder.path().join("whole.bursar")), Program::new(), None);
    let whole = answered(whole);
    for interrupted_in in 0..all.len() as u32 {
        let program = Program { interrupted_in: Some(interrupted_in), ..Program::new() };
        let (found, _) = search(&options(&path), program, None);
        let found = answered(found);
        assert_eq!((found.status, found.report.answer.confident), (Status::Signal(2), false));
        assert!(found.report.answer.reason.starts_with("Interrupted before"), "{}", found.report.answer.reason);
        let resumed = Resumable::open(&path).unwrap();
        let old = resumed.record().unwrap();
        let restored = search::resume::restored(options(&path), &old).unwrap();
        let (found, rest) = search(&restored, Program::new(), Some((resumed, old)));
        assert_eq!(rest.len(), all.len() - interrupted_in as usize, "no run that ended is made again");
        assert_eq!(answered(found).report.answer, whole.report.answer);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_run_that_outlasts_the_timeout_is_a_result_under_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { timeout: Some(Duration::from_secs(12)), full: true, ..options(&folder.path().join("x.bursar")) };
    let found = answered(search(&options, Program::new(), None).0);
    assert!(found.report.trials.iter().any(|trial| trial.outcome == Outcome::Timeout), "{:#?}", found.report.trials);
    assert!((120 * MIB..=126 * MIB).contains(&found.report.answer.budget_bytes.unwrap()));
}

#[test]
fn a_first_run_that_outlasts_the_timeout_ends_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { timeout: Some(Duration::from_secs(5)), ..options(&folder.path().join("x.bursar")) };
    let (Found::Failure(failure), orders) = search(&options, Program::new(), None) else { panic!("an answer") };
    assert!(failure.sentence().contains("as --timeout says"), "{}", failure.sentence());
    assert_eq!(orders.len(), 1);
}

#[test]
fn a_command_that_cannot_be_run_twice_ends_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program { fails: Some((1, 2)), ..Program::new() };
    let (Found::Failure(failure), orders) = search(&options(&folder.path().join("x.bursar")), program, None) else {
        panic!("an answer")
    };
    assert!(failure.sentence().contains("--prepare"), "{}", failure.sentence());
    assert_eq!(failure.status, Status::of(2));
    // The second run may have had a limit: then one without decides whether the limit was the reason.
    let last = orders.last().unwrap();
    assert_eq!((last.limit_bytes, orders.len() <= 3), (None, true));
}

#[test]
fn a_failure_in_the_comparison_leaves_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program { leaves_a_lock: true, ..Program::new() };
    let options = Options { runs: Some(3), ..options(&folder.path().join("x.bursar")) };
    let (found, orders) = search(&options, program, None);
    let found = answered(found);
    let compared = orders.iter().filter(|order| order.role == RunRole::Method);
    assert_eq!(compared.count(), 2, "the second failed for a lock that the first left");
    assert!(found.report.answer.budget_bytes.unwrap() >= 120 * MIB, "{:?}", found.report.answer);
    let note = found.notes.iter().find(|note| note.contains("comparison")).unwrap();
    assert!(note.contains("was killed at its limit, and may have left something behind"), "{note}");
    assert!(note.contains("--prepare"), "{note}");
}

#[test]
fn a_failure_that_comes_with_small_limits_alone_is_a_limit_that_is_too_small() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program { fails: Some((0, 1)), fails_below: 90 * MIB, files: MIB, ..Program::new() };
    let (found, orders) = search(&options(&folder.path().join("x.bursar")), program, None);
    let found = answered(found);
    assert!(found.report.answer.budget_bytes.unwrap() >= 21 * MIB, "{}", found.report.answer.reason);
    assert!(found.report.trials.iter().any(|trial| trial.outcome == Outcome::Failed));
    // After the first failure of a kind one run without a limit shows that the limit is its reason.
    let failed = orders.iter().position(|order| order.limit_bytes.is_some_and(|limit| limit < 90 * MIB)).unwrap();
    assert_eq!(orders[failed + 1].limit_bytes, None);
}

//! What is recorded, entry by entry.

use model::{
    Advice, Attribution, BudgetReport, Faults, Header, Observation, PagesRound, ProcessKey, RunAccount, RunRole,
    Target, Trial, Unit,
};
use serde::{Deserialize, Serialize};

use crate::session::Session;

/// One entry of a record that is being written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Who writes from here on. Written by [`crate::Writer`] itself, when it creates or resumes a record.
    Session(Session),
    /// Where and when the record was made. Written by [`crate::Writer`] itself.
    Header(Header),
    /// A run begins. The series ids of the run before mean nothing from here on.
    RunBegin {
        /// Number within the record, from 0.
        run: u32,
        /// What it is for.
        role: RunRole,
        /// What is observed.
        target: Target,
        /// The limit it runs under.
        limit_bytes: Option<u64>,
        /// State of the page cache, in words.
        cache_state: String,
        /// Nanoseconds since 1970.
        started_unix_ns: u64,
    },
    /// A series that samples may follow of. An id named again means the new series.
    Series {
        /// What the samples call it; chosen by the writer, unique within the run.
        id: u32,
        /// The run it belongs to.
        run: u32,
        /// The process it belongs to; `None`: the whole job.
        process: Option<ProcessKey>,
        /// One of [`model::names`].
        name: String,
        /// The counted quantity.
        unit: Unit,
        /// The rung of its ladder that it came from.
        rung: String,
    },
    /// Values at one moment. Two of one series at the same moment: the later counts. Values that are infinite or not
    /// a number are left out.
    Sample {
        /// Nanoseconds since the run began.
        t_ns: u64,
        /// Series id and value.
        values: Vec<(u32, f64)>,
    },
    /// The run ended. Its `series` are those named before; more in `series` are added to them.
    RunEnd(Box<Observation>),
    /// The account of a run, for whoever opens the record with SQL.
    Account {
        /// The run.
        run: u32,
        /// Its account.
        account: Box<RunAccount>,
    },
    /// A run under a limit, judged.
    Trial(Box<Trial>),
    /// What a budget found. A later one replaces it.
    Budget(Box<BudgetReport>),
    /// An interval of `bursar watch`.
    Pages(Box<PagesRound>),
    /// Who held the memory of a run. A later one of the same run replaces it.
    Attribution(Box<Attribution>),
    /// The page faults of a run. A later one of the same run replaces it.
    Faults(Box<Faults>),
    /// What was advised in a run. A later one of the same run replaces it.
    Advice(Box<Advice>),
    /// What the reader should know, as a sentence.
    Note(String),
    /// The writer came to its end; written by [`crate::Writer::seal`].
    End,
}

impl Entry {
    /// A whole observation as entries: begin, series, samples in order of time, end.
    pub fn of_run(observation: &Observation) -> Vec<Entry> {
        let mut entries = vec![Entry::begin(observation)];
        let mut points = Vec::new();
        for (id, series) in (0u32..).zip(&observation.series) {
            entries.push(Entry::Series {
                id,
                run: observation.run,
                process: series.process,
                name: series.name.clone(),
                unit: series.unit,
                rung: series.rung.clone(),
            });
            points.extend(series.points.iter().map(|(t_ns, value)| (*t_ns, id, *value)));
        }
        points.sort_by_key(|(t_ns, ..)| *t_ns);
        for moment in points.chunk_by(|a, b| a.0 == b.0) {
            let values = moment.iter().map(|(_, id, value)| (*id, *value)).collect();
            entries.push(Entry::Sample { t_ns: moment[0].0, values });
        }
        entries.push(Entry::RunEnd(Box::new(Observation { series: Vec::new(), ..observation.clone() })));
        entries
    }

    /// The beginning of a run.
    pub fn begin(observation: &Observation) -> Entry {
        Entry::RunBegin {
            run: observation.run,
            role: observation.role,
            target: observation.target.clone(),
            limit_bytes: observation.limit_bytes,
            cache_state: observation.cache_state.clone(),
            started_unix_ns: observation.started_unix_ns,
        }
    }

    /// What an error calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Entry::Session(_) => "a session",
            Entry::Header(_) => "the header",
            Entry::RunBegin { .. } => "the begin of a run",
            Entry::Series { .. } => "a series",
            Entry::Sample { .. } => "a sample",
            Entry::RunEnd(_) => "the end of a run",
            Entry::Account { .. } => "an account",
            Entry::Trial(_) => "a trial",
            Entry::Budget(_) => "a budget",
            Entry::Pages(_) => "an interval of watching",
            Entry::Attribution(_) => "an attribution",
            Entry::Faults(_) => "page faults",
            Entry::Advice(_) => "advice",
            Entry::Note(_) => "a note",
            Entry::End => "the end of the record",
        }
    }
}

//! The analysis of a search so far, computed once per step. Each layer uses only those below it:
//!
//! ```text
//! Analysis   limits tried, bracket, chance, what decides, effort left
//!   Noise      how far run times are off by chance     + cause, clock, predict, judge
//!     Processor  CPU time                              + impact
//!       Facts      references and settings
//!         Evidence   runs
//! ```

use std::ops::Deref;

use crate::bracket::{Bracket, bracket, is_close};
use crate::chance::{Chance, chance};
use crate::decided::{by_margin, by_memory, by_time_alone};
use crate::effort::{affords, most_run_times};
use crate::judge::give_up_after;
use crate::noise::Noise;
use crate::tried::{Tried, tried};
use crate::{Evidence, Settings};

/// What the rules and the answer use.
pub struct Analysis<'a> {
    /// The layers below.
    pub noise: Noise<'a>,
    /// Limits tried, rising.
    pub tried: Vec<Tried>,
    /// Where the knee lies.
    pub bracket: Bracket,
    /// Whether the passing limit may have passed by chance.
    pub chance: Option<Chance>,
    /// Memory alone decides.
    pub memory_is_conclusive: bool,
    /// Memory alone decides.
    pub margin_is_conclusive: bool,
    /// Run time alone decides, and varies too much.
    pub hangs_on_run_time: bool,
    /// Why no further trial may be made, as a clause; `None`: one may be made.
    pub spent: Option<String>,
}

impl<'a> Deref for Analysis<'a> {
    type Target = Noise<'a>;

    fn deref(&self) -> &Noise<'a> {
        &self.noise
    }
}

impl<'a> Analysis<'a> {
    /// Quadratic in the number of runs, of which a search has some twenty.
    pub fn of(settings: &'a Settings, evidence: &'a Evidence) -> Analysis<'a> {
        let noise = Noise::of(settings, evidence);
        let tried = tried(&noise);
        let bracket = bracket(&noise, &tried);
        Analysis {
            chance: chance(&noise, &bracket),
            memory_is_conclusive: by_memory(&noise, &bracket),
            margin_is_conclusive: by_margin(&noise, &tried, &bracket),
            hangs_on_run_time: by_time_alone(&noise, &tried, &bracket),
            spent: spent(&noise),
            noise,
            tried,
            bracket,
        }
    }

    /// Why the search is cut short. A close bracket needs no further trial, so then it is complete although it may cost no more.
    pub fn cut_short(&self) -> Option<String> {
        self.spent.clone().filter(|_| !is_close(&self.bracket))
    }
}

fn spent(a: &Noise) -> Option<String> {
    let trials = a.evidence.search_trials().count();
    if trials >= a.settings.max_trials as usize {
        return Some(format!("the search ended after {trials} trials, as many as allowed"));
    }
    let longest = give_up_after(a, None).zip(a.reference).map_or(1.0, |(end, r)| end / r.median);
    if affords(a.evidence, longest) {
        return None;
    }
    let used = a.evidence.run_times_used().unwrap_or(0.0);
    let most = most_run_times(a.evidence);
    Some(format!("the search ended after {used:.1} run times: another run might exceed the {most:.0} that it may cost"))
}

//! Who held the memory, in sentences and tables.

use model::{
    Attribution, Axis, FunctionUse, Header, Holding, KindBytes, LibraryUse, MemoryKind, Named, Observation, RankUse,
    Series, Share, Spread, line_name, lines, names,
};

use crate::figures::size;
use crate::format::{count, percent, printable, seconds, shell_word, short};
use crate::tables::{Table, Tone};

/// Functions and libraries that are listed.
const MOST_FUNCTIONS: usize = 6;
const MOST_LIBRARIES: usize = 20;
/// Rows of the short table, kinds of memory that it names of each, and runs that are compared beside each other.
const MOST_PARTS: usize = 5;
const MOST_KINDS: usize = 2;
const MOST_RUNS: usize = 5;
/// Of a library's growth in `MPI_Init`, what is worth a word.
const WORTH_NAMING: f64 = 0.1;
/// Of the peak, what may stay unexplained without a word.
const UNEXPLAINED: f64 = 0.02;

/// Less memory in files in memory, and a smaller part of the peak than [`UNEXPLAINED`], is not in the first line.
const LEAST_FILES_BYTES: u64 = 8 << 20;
/// What is mapped is looked at so much later than the charge, at most.
const LOOK_DELAY_NS: u64 = 1_000_000_000;
/// And of shared memory that falls, so much earlier.
const LOOK_EARLY_NS: u64 = 3_000_000_000;

/// The option of a record that asks for components by library.
pub const BY_LIBRARY: &str = "by_library";

/// The option of a record that has the numbers, as words, that stood in place of `{}` in the command.
pub const SCALING: &str = "scaling";

/// What a report of attribution is made from.
#[derive(Clone, Copy, Debug)]
pub struct Attributed<'a> {
    /// Where, when and of what the record is.
    pub header: &'a Header,
    /// One for each run.
    pub attributions: &'a [Attribution],
    /// The runs, whose series have the time lines.
    pub runs: &'a [Observation],
    /// Notes, as sentences.
    pub notes: &'a [String],
}

/// Runs beside the numbers that tell them apart.
pub struct Scale<'a> {
    runs: &'a [Attribution],
    /// What the numbers are of.
    of: &'static str,
    numbers: Vec<String>,
}

impl<'a> Attributed<'a> {
    /// The command line as one would type it; with the numbers that stood in it, where it was run with several.
    pub fn command(&self) -> String {
        let command = self.header.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        match self.header.options.get(SCALING) {
            Some(numbers) => format!("{command}   with {numbers} in place of {{}}"),
            None => command,
        }
    }

    /// The number of `--scaling` that each run had; of records without it their ranks, or processes.
    pub fn scale(&self) -> Scale<'a> {
        let numbers = self.header.options.get(SCALING).map(|numbers| numbers.split(", ").collect::<Vec<_>>());
        let of_run = |run: &Attribution| numbers.as_ref()?.get(run.run as usize).map(|number| number.to_string());
        let given: Option<Vec<String>> = self.attributions.iter().map(of_run).collect();
        let counts: Vec<String> = self.attributions.iter().map(|run| run.ranks.to_string()).collect();
        let of = self.attributions.last().map_or("ranks", counted);
        match given.filter(|given| *given != counts) {
            Some(numbers) => Scale { runs: self.attributions, of: "--scaling", numbers },
            None => Scale { runs: self.attributions, of, numbers: counts },
        }
    }

    /// Whether components are broken down by library.
    pub fn by_library(&self) -> bool {
        self.header.options.contains_key(BY_LIBRARY)
    }

    /// The run that is shown in full: the one with most ranks, the last of them.
    pub fn shown(&self) -> Option<&'a Attribution> {
        self.attributions.iter().max_by_key(|attribution| (attribution.ranks, attribution.run))
    }

    /// Processes of that run that go on after the command's end, so that the figures are not of all they hold.
    pub fn went_on(&self) -> &'a [Named] {
        self.run().map_or(&[], |run| &run.evidence.went_on)
    }

    /// What that run held in files in memory that no process had mapped.
    pub fn files_in_memory(&self) -> FilesInMemory {
        self.shown()
            .zip(self.run())
            .map_or(FilesInMemory::AtMost(0), |(attribution, run)| files_in_memory(attribution, run))
    }

    /// That run's series.
    pub fn series(&self) -> &'a [Series] {
        self.run().map_or(&[], |run| &run.series)
    }

    fn run(&self) -> Option<&'a Observation> {
        let run = self.shown().map(|attribution| attribution.run);
        self.runs.iter().find(|observation| Some(observation.run) == run)
    }
}

/// Bytes in files in memory (tmpfs, memfds) that no process had mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesInMemory {
    /// By what the job was charged for.
    AtMost(u64),
    /// By the files that samples found.
    AtLeast(u64),
}

impl FilesInMemory {
    /// The bytes, whichever bound they are.
    pub fn bytes(self) -> u64 {
        match self {
            FilesInMemory::AtMost(bytes) | FilesInMemory::AtLeast(bytes) => bytes,
        }
    }
}

/// The peak of files in memory in this run. O(samples).
pub fn files_in_memory(attribution: &Attribution, run: &Observation) -> FilesInMemory {
    let of_job = |name: &str| run.series.iter().find(|series| series.process.is_none() && series.name == name);
    let Some(charged) = of_job(names::SHARED).filter(|charged| charged.rung.starts_with("cgroup")) else {
        let found = run.evidence.files_in_memory.as_ref().and_then(|files| files.bytes);
        return FilesInMemory::AtLeast(found.unwrap_or(0));
    };
    let looked_at = of_job(&line_name(lines::TOTAL, Some(MemoryKind::Shared), Share::Whole));
    // What several processes map counts in this once for each, but what processes without the library map is in no other.
    let is_needed = attribution.by == Axis::Touch || !attribution.without_library.is_empty();
    let of_all = of_job(names::TREE_RSS_SHARED).filter(|_| is_needed);
    let mapped = |t: u64| {
        let values = [looked_at, of_all].into_iter().flatten();
        values.map(|series| most_about(series, t)).fold(0.0, f64::max)
    };
    let unmapped = charged.points.iter().map(|(t, bytes)| bytes - mapped(*t));
    FilesInMemory::AtMost(unmapped.fold(0.0, f64::max) as u64)
}

/// The largest value in force about a time.
fn most_about(series: &Series, t: u64) -> f64 {
    let begin = t.saturating_sub(LOOK_EARLY_NS);
    let after = series.points.partition_point(|(at, _)| *at <= begin);
    let about = series.points[after..].iter().take_while(|(at, _)| *at <= t + LOOK_DELAY_NS);
    about.map(|(_, value)| *value).fold(series.at(begin).unwrap_or(0.0), f64::max)
}

/// What one first wants to know. `went_on`: processes that go on after the command's end. `files`: bytes in files in memory that no
/// process had mapped.
pub fn headline(attribution: &Attribution, went_on: &[Named], files: FilesInMemory) -> String {
    if let Some(why) = unattributable(attribution) {
        return why;
    }
    let mut parts: Vec<String> = attribution
        .components_in_order()
        .iter()
        .filter(|(_, held)| held.peak_bytes > 0)
        .map(|(name, held)| format!("{} {}", printable(name), size(held.peak_bytes)))
        .collect();
    parts.push(format!("unattributed {}", size(attribution.unattributed_peak_bytes)));
    let by = if attribution.by == Axis::Touch { "by touch, " } else { "" };
    format!("{}; {by}at their own peaks {}", held(attribution, went_on, files), parts.join(", "))
}

/// The same with the largest part alone.
pub fn short_headline(attribution: &Attribution, went_on: &[Named], files: FilesInMemory) -> String {
    if let Some(why) = unattributable(attribution) {
        return why;
    }
    let held = held(attribution, went_on, files);
    let Some((_, name, most)) = parts_by_size(attribution).into_iter().next() else { return held };
    let by = if attribution.by == Axis::Touch { " by touch" } else { "" };
    format!("{held}; most{by}: {} {}", printable(name), size(most.peak_bytes))
}

/// Why there is nothing to show.
fn unattributable(attribution: &Attribution) -> Option<String> {
    if attribution.ranks == 0 {
        return Some("no process of the command left a log: nothing can be attributed".into());
    }
    let is_empty = attribution.by == Axis::Touch && attribution.total_peak_bytes == 0;
    is_empty.then(|| format!("nothing is known by touch: {}", printable(&attribution.rung)))
}

/// The peak, with what it lacks.
fn held(attribution: &Attribution, went_on: &[Named], files: FilesInMemory) -> String {
    let of = match &attribution.per_rank[..] {
        [one] => one.id().map_or_else(String::new, |rank| format!(" (rank {rank} alone)")),
        several => format!(" ({} {})", several.len(), counted(attribution)),
    };
    format!(
        "held {} at peak{of}{}{}{}",
        size(attribution.total_peak_bytes),
        beside_files(attribution, files),
        without_library(attribution),
        until_the_end(went_on)
    )
}

/// What its logs are of.
fn counted(attribution: &Attribution) -> &'static str {
    if has_ranks(attribution) { "ranks" } else { "processes" }
}

/// Components and the lines beside them, without the total, largest first.
fn parts_by_size(attribution: &Attribution) -> Vec<(Tone, &str, &Holding)> {
    let mut parts = rows(attribution);
    parts.retain(|(_, name, held)| *name != lines::TOTAL && held.peak_bytes > 0);
    parts.sort_by_key(|(_, _, held)| std::cmp::Reverse(held.peak_bytes));
    parts
}

/// What the figures lack of files in memory.
fn beside_files(attribution: &Attribution, files: FilesInMemory) -> String {
    let bytes = files.bytes();
    if bytes < LEAST_FILES_BYTES || (bytes as f64) < UNEXPLAINED * attribution.total_peak_bytes as f64 {
        return String::new();
    }
    let bound = match files {
        FilesInMemory::AtMost(_) => "up to",
        FilesInMemory::AtLeast(_) => "at least",
    };
    format!(
        ", and {bound} {} in files in memory (tmpfs, memfds) that no process had mapped, which are not attributed",
        size(bytes)
    )
}

/// What the figures lack of processes that go on.
fn until_the_end(went_on: &[Named]) -> String {
    let Some(largest) = went_on.iter().max_by_key(|process| process.bytes) else { return String::new() };
    let bytes = largest.bytes.map_or_else(String::new, |bytes| format!(" ({})", size(bytes)));
    let name = printable(&largest.name);
    match went_on.len() - 1 {
        0 => {
            format!(", until the command ended: {name}{bytes} went on, and what it did from then on is not attributed")
        }
        more => format!(
            ", until the command ended: {name}{bytes} and {more} more went on, and what they did from then on is not attributed"
        ),
    }
}

/// What the total lacks.
fn without_library(attribution: &Attribution) -> String {
    let sum: u64 = attribution.without_library.iter().map(|process| process.peak_bytes).sum();
    match &attribution.without_library[..] {
        [] => String::new(),
        [one] => {
            format!(", without {} of {} ({}), which is not attributed", size(sum), printable(&one.command), one.pid)
        }
        [largest, more @ ..] => format!(
            ", without {} of {} ({}) and {} more, which are not attributed",
            size(sum),
            printable(&largest.command),
            largest.pid,
            more.len()
        ),
    }
}

/// By component and kind, each at its own peak, all ranks together; beside it the peak of the sum by RSS.
pub fn components_table(attribution: &Attribution) -> Table {
    let rows = rows(attribution);
    let used = |kind: MemoryKind| rows.iter().any(|(.., held)| of_kind(&held.at_peak, kind) > 0);
    let kinds: Vec<MemoryKind> = MemoryKind::ALL.into_iter().filter(|kind| used(*kind)).collect();
    let mut header = vec!["", "peak", "RSS"];
    header.extend(kinds.iter().map(|kind| kind_name(*kind)));
    header.push("at end");
    let mut table = Table::new(&header);
    for (tone, name, held) in rows {
        let mut cells = vec![printable(name), size(held.peak_bytes), size(held.peak_rss_bytes)];
        cells.extend(kinds.iter().map(|kind| size(of_kind(&held.at_peak, *kind))));
        cells.push(size(held.at_end_bytes));
        table.row(tone, cells);
    }
    table
}

/// Peaks per rank: mean and standard deviation, RSS beside PSS (the paper's Tables 4 and 5).
pub fn peaks_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["peak of a rank", "RSS", "smallest", "largest", "PSS"]);
    for (tone, name, held) in rows(attribution) {
        let (rss, pss) = (&held.rank_peaks, &held.rank_peaks_pss);
        let cells = vec![printable(name), mean(rss), size(rss.min as u64), size(rss.max as u64), mean(pss)];
        table.row(tone, cells);
    }
    table
}

/// The largest parts, and what most of each is, then the total.
pub fn largest_parts_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["", "peak", "at end", "of its peak"]).with_words_last();
    let made_of = |held: &Holding| {
        let mut kinds: Vec<(MemoryKind, u64)> =
            MemoryKind::ALL.into_iter().map(|kind| (kind, of_kind(&held.at_peak, kind))).collect();
        kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let matters = |bytes: u64| bytes > 0 && bytes as f64 >= WORTH_NAMING * held.peak_bytes as f64;
        let named: Vec<String> = kinds
            .into_iter()
            .take(MOST_KINDS)
            .filter(|(_, bytes)| matters(*bytes))
            .map(|(kind, bytes)| format!("{} {}", kind_name(kind), size(bytes)))
            .collect();
        named.join(", ")
    };
    let cells =
        |name: String, held: &Holding| vec![name, size(held.peak_bytes), size(held.at_end_bytes), made_of(held)];
    let parts = parts_by_size(attribution);
    for (tone, name, held) in parts.iter().take(MOST_PARTS) {
        table.row(*tone, cells(printable(name), held));
    }
    if let Some(more @ 1..) = parts.len().checked_sub(MOST_PARTS) {
        table.row(Tone::Dim, vec![format!("and {more} more"), String::new(), String::new(), String::new()]);
    }
    table.row(Tone::Strong, cells(lines::TOTAL.to_string(), &attribution.total));
    table
}

/// The largest process or rank, where there are several.
pub fn largest_sentence(attribution: &Attribution) -> Option<String> {
    let largest = attribution.per_rank.iter().max_by_key(|rank| rank.total_peak_bytes)?;
    let (one, smallest) = (rank_name(largest), attribution.per_rank.iter().map(|rank| rank.total_peak_bytes).min()?);
    let several = attribution.per_rank.len() > 1;
    several.then(|| match has_ranks(attribution) {
        true => format!("by rank (RSS): {} to {}; {one} held most", size(smallest), size(largest.total_peak_bytes)),
        false => format!("largest process (RSS): {one} with {}", size(largest.total_peak_bytes)),
    })
}

/// Peak per component by number of ranks (the paper's Table 5).
pub fn scaling_table(scale: &Scale) -> Table {
    let several = scale.runs.last().map_or("ranks", counted);
    let one = if several == "ranks" { "peak of a rank" } else { "peak of a process" };
    let mut table =
        Table::new(&[one.to_string(), scale.of.into(), "RSS".into(), "PSS".into(), format!("all {several}")]);
    let runs: Vec<_> = scale.numbers.iter().zip(scale.runs.iter().map(rows)).collect();
    let Some((_, lines)) = runs.last() else { return table };
    for (tone, name, _) in lines {
        let mut shown = printable(name);
        for (number, rows) in &runs {
            let Some((.., held)) = rows.iter().find(|(_, other, _)| other == name) else { continue };
            let [rss, pss] = [&held.rank_peaks, &held.rank_peaks_pss].map(mean);
            let first = std::mem::take(&mut shown);
            table.row(*tone, vec![first, printable(number), rss, pss, size(held.peak_bytes)]);
        }
    }
    table
}

/// The peaks of the last runs, each a column below its number: of the largest parts and of the total.
pub fn short_scaling_table(scale: &Scale) -> Table {
    let first = scale.runs.len().saturating_sub(MOST_RUNS);
    let shown = &scale.runs[first..];
    let Some(last) = shown.last() else { return Table::new(&[""]) };
    let numbers = scale.numbers[first..].iter().map(|number| printable(number));
    let header: Vec<String> = std::iter::once(format!("peak of all, by {}", scale.of)).chain(numbers).collect();
    let mut table = Table::new(&header);
    let of_all = |name: &str| {
        let of_run =
            |run: &Attribution| rows(run).into_iter().find(|(_, other, _)| *other == name).map(|row| row.2.peak_bytes);
        shown.iter().map(|run| of_run(run).map_or_else(|| "-".to_string(), size)).collect::<Vec<_>>()
    };
    let parts = parts_by_size(last);
    let named = parts.iter().take(MOST_PARTS).map(|(tone, name, _)| (*tone, *name));
    for (tone, name) in named.chain([(Tone::Strong, lines::TOTAL)]) {
        table.row(tone, std::iter::once(printable(name)).chain(of_all(name)).collect());
    }
    table
}

/// Each rank, RSS: total and by component as words. Without ranks, the largest processes first.
pub fn ranks_table(attribution: &Attribution, most: usize) -> Table {
    let ranked = has_ranks(attribution);
    let mut table = Table::new(&["", "total", "PSS", "unattributed", "bursar", "components"]).with_words_last();
    let mut listed: Vec<&RankUse> = attribution.per_rank.iter().collect();
    if !ranked {
        listed.sort_by_key(|rank| std::cmp::Reverse(rank.total_peak_bytes));
    }
    for rank in listed.iter().take(most) {
        let components: Vec<String> = attribution
            .components_in_order()
            .iter()
            .filter_map(|(name, _)| Some((name, rank.components.get(*name)?.peak_bytes)))
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| format!("{} {}", printable(name), size(bytes)))
            .collect();
        let place = format!("{} {} on {}: ", printable(file_name(&rank.command)), rank.pid, printable(&rank.host));
        table.row(
            Tone::Plain,
            vec![
                rank_name(rank),
                size(rank.total_peak_bytes),
                size(rank.total_peak_pss_bytes),
                size(rank.unattributed_peak_bytes),
                size(rank.own_bytes),
                if ranked { place } else { String::new() } + &components.join(", "),
            ],
        );
    }
    if let Some(more @ 1..) = listed.len().checked_sub(most) {
        let name = format!("and {more} more");
        table.row(Tone::Dim, std::iter::once(name).chain(vec![String::new(); 5]).collect());
    }
    table
}

/// The functions that obtained most.
pub fn functions_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["function", "calls", "obtained", "gave back", "component"]).with_words_last();
    let changed = |function: &&FunctionUse| function.grew_bytes > 0 || function.shrank_bytes > 0;
    for function in attribution.functions.iter().filter(changed).take(MOST_FUNCTIONS) {
        table.row(
            Tone::Plain,
            vec![
                printable(&function.name),
                count(Some(function.calls)),
                size(function.grew_bytes),
                size(function.shrank_bytes),
                printable(&function.component),
            ],
        );
    }
    table
}

/// The functions that took most time; none if that was not measured.
pub fn times_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["function", "time", "calls", "each", "component"]).with_words_last();
    let timed = attribution.functions.iter().filter_map(|function| Some((function, function.seconds?)));
    let mut timed: Vec<(&FunctionUse, f64)> = timed.filter(|(_, taken)| *taken > 0.0).collect();
    timed.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    for (function, taken) in timed.into_iter().take(MOST_FUNCTIONS) {
        table.row(
            Tone::Plain,
            vec![
                printable(&function.name),
                seconds(taken),
                count(Some(function.calls)),
                short(Some(taken * 1e6 / function.calls.max(1) as f64)),
                printable(&function.component),
            ],
        );
    }
    table
}

/// What each component's peak was made of, by library.
pub fn libraries_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["library", "at peak", "heap", "mapped", "page cache", "component"]).with_words_last();
    let figures = |library: &LibraryUse| {
        let kinds = library.kinds;
        [library.bytes, kinds.heap, kinds.mapped, kinds.page_cache]
    };
    let (listed, more) = attribution.libraries.split_at(attribution.libraries.len().min(MOST_LIBRARIES));
    for library in listed {
        let name = if library.library.is_empty() { "(not known which)".into() } else { printable(&library.library) };
        let mut cells = vec![name];
        cells.extend(figures(library).map(size));
        cells.push(printable(&library.component));
        table.row(Tone::Plain, cells);
    }
    if !more.is_empty() {
        let sum = more.iter().map(figures).fold([0; 4], |sum, one| std::array::from_fn(|at| sum[at] + one[at]));
        let mut components: Vec<String> = Vec::new();
        for component in more.iter().map(|library| printable(&library.component)) {
            if !components.contains(&component) {
                components.push(component);
            }
        }
        let mut cells = vec![format!("and {} more", more.len())];
        cells.extend(sum.map(size));
        cells.push(components.join(", "));
        table.row(Tone::Dim, cells);
    }
    table
}

/// Peaks of a rank by phase, mean and standard deviation.
pub fn phases_table(attribution: &Attribution) -> Table {
    let mut table = Table::new(&["phase", "from", "peak of a rank", "components"]).with_words_last();
    for phase in &attribution.phases {
        let components: Vec<String> = attribution
            .components_in_order()
            .iter()
            .filter_map(|(name, _)| Some(format!("{} {}", printable(name), mean(phase.components.get(*name)?))))
            .collect();
        table.row(
            Tone::Plain,
            vec![printable(&phase.name), seconds(phase.begin_seconds), mean(&phase.total), components.join(", ")],
        );
    }
    table
}

/// What `MPI_Init` brought, in a sentence; `None` if nobody came through it.
pub fn init_sentence(attribution: &Attribution) -> Option<String> {
    let init = attribution.init.as_ref()?;
    let mut sentence = format!("{} brought {}", printable(&init.function), mean(&init.grew_bytes));
    if init.ranks > 1 {
        sentence += " per rank";
    }
    sentence += &format!(" in {}", seconds(init.seconds));
    let worth = |bytes: i64| bytes as f64 >= WORTH_NAMING * init.grew_bytes.mean && bytes > 0;
    let libraries: Vec<String> = init
        .libraries
        .iter()
        .filter(|library| worth(library.grew_bytes) && !library.library.is_empty())
        .map(|library| format!("{} {}", size(library.grew_bytes as u64), printable(&library.library)))
        .collect();
    if !libraries.is_empty() {
        sentence += &format!(", of which {}", libraries.join(", "));
    }
    Some(sentence)
}

/// What bursar itself held.
pub fn own_sentence(attribution: &Attribution) -> String {
    format!(
        "bursar's own memory, in no other figure: {} at peak of a {}{}",
        size(attribution.own.rank_peaks.max as u64),
        if has_ranks(attribution) { "rank" } else { "process" },
        if attribution.ranks > 1 { format!(", {} of all", size(attribution.own.peak_bytes)) } else { String::new() },
    )
}

/// How the figures were found, what they do not explain, and what is counted nowhere else.
pub fn beside(attribution: &Attribution) -> Vec<String> {
    let mut sentences = Vec::new();
    if attribution.by == Axis::Touch {
        sentences.push(format!(
            "by touch: in whose code memory first became resident, seen by {}",
            printable(&attribution.rung)
        ));
    }
    // A note says what of it was not looked at.
    let unexplained = attribution.unattributed_peak_bytes.saturating_sub(attribution.not_looked_at_bytes);
    let unexplained = unexplained as f64 / attribution.total_peak_bytes.max(1) as f64;
    if unexplained > UNEXPLAINED {
        let why = match attribution.by {
            Axis::Owner => "something obtains memory by calls that are not seen, such as raw system calls",
            Axis::Touch => "not every page fault was seen",
        };
        sentences.push(format!("unattributed is {} of the peak: {why}", percent(Some(unexplained))));
    }
    if !attribution.other_processes.is_empty() {
        let listed = attribution.other_processes.iter().take(MOST_FUNCTIONS).map(|process| {
            format!("{} {} ({})", printable(file_name(&process.command)), process.pid, size(process.peak_bytes))
        });
        let more = attribution.other_processes.len().saturating_sub(MOST_FUNCTIONS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        sentences.push(format!(
            "processes that are no ranks, in no figure: {}{more}",
            listed.collect::<Vec<_>>().join(", ")
        ));
    }
    sentences
}

/// A rank's name: its number, else its process.
pub fn rank_name(rank: &RankUse) -> String {
    let process = || format!("{} {}", printable(file_name(&rank.command)), rank.pid);
    rank.id().map_or_else(process, |rank| format!("rank {rank}"))
}

/// Components, then the lines beside them, then the total.
fn rows(attribution: &Attribution) -> Vec<(Tone, &str, &Holding)> {
    // Where no MPI was loaded there is nothing to say of it; of what is unattributed there always is.
    let components = attribution.components_in_order().into_iter().filter(|(_, held)| held.peak_rss_bytes > 0);
    let mut rows: Vec<_> = components.map(|(name, held)| (Tone::Plain, name, held)).collect();
    rows.push((Tone::Plain, lines::UNATTRIBUTED, &attribution.unattributed));
    rows.extend(attribution.allocator_retained.iter().map(|held| (Tone::Plain, lines::RETAINED, held)));
    rows.push((Tone::Strong, lines::TOTAL, &attribution.total));
    rows
}

/// Whether it is of an MPI run.
pub fn has_ranks(attribution: &Attribution) -> bool {
    attribution.per_rank.iter().any(|rank| rank.rank.is_some())
}

/// A mean with its standard deviation, where there is one.
fn mean(spread: &Spread) -> String {
    let of = |bytes: f64| size(bytes.abs().round() as u64);
    let sign = if spread.mean < 0.0 { "-" } else { "" };
    let deviation = if spread.min == spread.max { String::new() } else { format!(" ± {}", of(spread.stddev)) };
    format!("{sign}{}{deviation}", of(spread.mean))
}

fn of_kind(kinds: &KindBytes, kind: MemoryKind) -> u64 {
    kinds.by_kind()[kind as usize]
}

/// As a column's title.
fn kind_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::PageCache => "page cache",
        other => other.name(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

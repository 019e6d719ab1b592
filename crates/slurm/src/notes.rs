//! Sentences beside the figures.

use budget::jobs::Numbered;
use model::{ByNumber, Bytes, JobMemory};

/// A few of the names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}

/// Of which kinds less is known than `--mem` seems to say.
pub fn lower_bounds(jobs: &[JobMemory]) -> Vec<String> {
    let named = |of: &dyn Fn(&JobMemory) -> bool| -> Vec<String> {
        jobs.iter().filter(|job| of(job)).map(JobMemory::label).collect()
    };
    let unknown = named(&|job| job.mem_bytes.is_none());
    let partly = named(&|job| job.mem_bytes.is_some() && job.is_lower_bound);
    let mut doubts = Vec::new();
    if !unknown.is_empty() {
        doubts.push(format!(
            "lower bound: no run ended well of {}. These jobs used at least what --mem shows behind '>': ask for more than that",
            listed(&unknown)
        ));
    }
    if !partly.is_empty() {
        doubts.push(format!(
            "lower bound: the largest runs were cut short (killed, failed, cancelled or timed out) of {}. These jobs may need more than --mem",
            listed(&partly)
        ));
    }
    doubts
}

/// Which names were put together.
pub fn numbered_note(kinds: &[Numbered]) -> Option<String> {
    let kinds: Vec<String> = kinds.iter().map(|found| format!("{} ({} names)", found.kind, found.names)).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "job names that differ only in numbers are one kind: {}. --by JobName keeps each name apart",
            listed(&kinds)
        )
    })
}

/// Kinds of which a larger number than those that ran needs more.
pub fn growing(kinds: &[Numbered]) -> Option<String> {
    let growing = with_ends(kinds, ByNumber::Grows, |number, kind| format!("{number} in {kind}"));
    (!growing.is_empty()).then(|| {
        format!(
            "not sure: memory grows with {}. --mem is what the largest of these needs, and a larger number may need more; --by JobName keeps each \
             name apart",
            listed(&growing)
        )
    })
}

/// Kinds that differ so much that a share of their runs says nothing.
pub fn of_largest_note(kinds: &[Numbered]) -> Option<String> {
    let falling = with_ends(kinds, ByNumber::Falls, |number, kind| format!("as {number} grows in {kind}"));
    let differing = with_ends(kinds, ByNumber::Differs, |_, kind| kind.to_string());
    let mut found = Vec::new();
    if !falling.is_empty() {
        found.push(format!("memory falls {}", listed(&falling)));
    }
    if !differing.is_empty() {
        found.push(format!("memory differs between the names of {}", listed(&differing)));
    }
    (!found.is_empty())
        .then(|| format!("{}: --mem is what the largest needs; --by JobName keeps each name apart", found.join("; ")))
}

/// The kinds whose memory goes so with the numbers, each with its least and its most.
fn with_ends(kinds: &[Numbered], wanted: ByNumber, say: impl Fn(&str, &str) -> String) -> Vec<String> {
    let ends = |kind: &Numbered| {
        let [(least, least_bytes), (most, most_bytes)] = [&kind.least, &kind.most];
        let ends = format!("({} at {least}, {} at {most})", Bytes(*least_bytes), Bytes(*most_bytes));
        format!("{} {ends}", say(&which_number(kind), &kind.kind))
    };
    kinds.iter().filter(|kind| kind.by_number == Some(wanted)).map(ends).collect()
}

/// The numbers that memory goes with, by their places among those that differ.
fn which_number(kind: &Numbered) -> String {
    if kind.numbers < 2 {
        return "the number".into();
    }
    let ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
    let ordinal = |at: &usize| ordinals.get(*at).map_or_else(|| format!("{}th", at + 1), |word| (*word).to_string());
    let words: Vec<String> = kind.positions.iter().map(ordinal).collect();
    format!("the {} number", words.join(" and the "))
}

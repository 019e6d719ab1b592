//! Who sent how much to whom, in sentences and tables.

use model::CommMatrix;

use crate::figures::size;
use crate::format::{count, printable, short_bytes};
use crate::tables::{Table, Tone};

/// Ranks whose matrix is a table.
const MOST_COLUMNS: usize = 16;
/// Of more, pairs that are listed.
const MOST_PAIRS: usize = 10;

/// What was sent in all.
pub fn sent_sentence(matrix: &CommMatrix) -> String {
    let sum = |rows: &[Vec<u64>]| rows.iter().flatten().fold(0u64, |sum, value| sum.saturating_add(*value));
    let of = |messages, bytes| format!("{} messages, {}", count(Some(messages)), size(bytes));
    let mut sentence = format!("sent point to point: {}", of(sum(&matrix.messages), sum(&matrix.bytes)));
    let others = matrix.to_other_worlds;
    if others.messages > 0 {
        sentence += &format!("; to ranks of another world: {}", of(others.messages, others.bytes));
    }
    sentence
}

/// Of few ranks what each sent to each, else the busiest pairs.
pub fn comm_table(matrix: &CommMatrix) -> Table {
    let ranks: Vec<String> = matrix.ranks.iter().map(|rank| printable(rank)).collect();
    if ranks.len() > MOST_COLUMNS {
        return busiest_table(matrix, &ranks);
    }
    let header: Vec<String> = std::iter::once("bytes from, to".to_string()).chain(ranks.clone()).collect();
    let mut table = Table::new(&header);
    for (rank, row) in ranks.into_iter().zip(&matrix.bytes) {
        table.row(Tone::Plain, std::iter::once(rank).chain(row.iter().map(|bytes| short_bytes(*bytes))).collect());
    }
    table
}

fn busiest_table(matrix: &CommMatrix, ranks: &[String]) -> Table {
    let mut pairs: Vec<(u64, u64, &String, &String)> = Vec::new();
    for ((from, bytes), messages) in ranks.iter().zip(&matrix.bytes).zip(&matrix.messages) {
        pairs
            .extend(ranks.iter().zip(bytes).zip(messages).map(|((to, bytes), messages)| (*bytes, *messages, from, to)));
    }
    pairs.retain(|(_, messages, ..)| *messages > 0);
    pairs.sort_by_key(|(bytes, messages, ..)| std::cmp::Reverse((*bytes, *messages)));
    let mut table = Table::new(&["sent from", "to", "messages", "bytes"]);
    for (bytes, messages, from, to) in pairs.into_iter().take(MOST_PAIRS) {
        table.row(Tone::Plain, vec![from.clone(), to.clone(), count(Some(messages)), size(bytes)]);
    }
    table
}

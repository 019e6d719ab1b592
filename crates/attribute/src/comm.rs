//! Who sent how much to whom.

use std::collections::BTreeMap;

use model::{CommMatrix, Messages, RankId};

use crate::replay::Process;

/// So many rows of so many figures can be kept and drawn.
const MOST_RANKS: u64 = 2048;

/// Why there is no matrix, in a sentence.
pub fn why_none() -> String {
    format!("there is no matrix of messages: it is of runs with ranks, of at most {MOST_RANKS}")
}

/// Of all ranks of all worlds; `None` if there are none, or too many.
pub fn matrix(processes: &[&Process]) -> Option<CommMatrix> {
    let mut worlds: BTreeMap<u32, u64> = BTreeMap::new();
    for process in processes {
        let Some(id) = process.rank else { continue };
        let named = process.log.sent.keys().flatten().chain([&id.rank]).map(|rank| u64::from(*rank) + 1);
        let ranks = named.chain(process.log.started.ranks.map(u64::from)).max().unwrap_or(0);
        let most = worlds.entry(id.world).or_default();
        *most = ranks.max(*most);
    }
    let all: u64 = worlds.values().sum();
    if all == 0 || all > MOST_RANKS {
        return None;
    }
    let ids = worlds.iter().flat_map(|(world, ranks)| (0..*ranks as u32).map(|rank| RankId { world: *world, rank }));
    let places: BTreeMap<RankId, usize> = ids.zip(0..).collect();
    let none = vec![vec![0u64; places.len()]; places.len()];
    let mut matrix = CommMatrix {
        ranks: places.keys().map(RankId::to_string).collect(),
        messages: none.clone(),
        bytes: none,
        to_other_worlds: Messages::default(),
    };
    for process in processes {
        let Some(from) = process.rank else { continue };
        for (to, sent) in &process.log.sent {
            let (messages, bytes) = match to {
                None => (&mut matrix.to_other_worlds.messages, &mut matrix.to_other_worlds.bytes),
                Some(to) => {
                    let (row, column) = (places[&from], places[&RankId { rank: *to, ..from }]);
                    (&mut matrix.messages[row][column], &mut matrix.bytes[row][column])
                }
            };
            *messages = messages.saturating_add(sent.messages);
            *bytes = bytes.saturating_add(sent.bytes);
        }
    }
    Some(matrix)
}

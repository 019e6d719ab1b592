//! How many of a program's reads the kernel's two lists would read again, under given limits. `bench/refaults` runs it.
//!
//! Arguments: pages of readahead, pages per folio, pages of all files, then limits in pages. Standard input: the
//! numbers of the pages read, 32 bits each.

use std::io::Read;

use curve::two_lists::{Reading, TwoLists};

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|word| word.parse().expect("a number of pages")).collect();
    let [ahead, folio, files, limits @ ..] = &numbers[..] else { panic!("arguments: AHEAD FOLIO FILES LIMIT…") };
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("the pages that were read");
    for limit in limits {
        let mut lists = TwoLists::new(*limit as usize, Reading { ahead: *ahead, folio: *folio });
        for page in bytes.chunks_exact(4) {
            lists.access(u32::from_le_bytes(page.try_into().expect("four bytes")), *files);
        }
        println!("{}", lists.read_again());
    }
}

//! Inputs larger than all that were seen, in histories.

use std::io;

use predict::{Confidence, History, Need, Run};

use crate::scores::read;

const MIB: f64 = (1u64 << 20) as f64;

/// Prints, of each kind of task, what is asked for its largest input after all runs of smaller ones, and what it needed.
pub fn print(paths: &[String]) -> io::Result<()> {
    println!("| program | largest input beside the others' | model | needed | asked for | wasted | interval | holds |");
    println!("|---|---|---|---|---|---|---|---|");
    let (mut wastes, mut low, mut held) = (Vec::new(), 0, 0);
    for path in paths {
        for (kind, tasks) in read(path)? {
            let largest = tasks.iter().map(|task| task.input_bytes).fold(0.0, f64::max);
            let mut history = History::new(Confidence::default());
            for task in tasks.iter().filter(|task| task.input_bytes < largest) {
                let need = Need::Exactly(task.peak_bytes);
                history.learn(Run { features: vec![task.input_bytes], need, seconds: task.seconds });
            }
            let withheld = tasks.iter().filter(|task| task.input_bytes == largest);
            let needed = withheld.map(|task| task.peak_bytes).fold(0.0, f64::max);
            let Ok(forecast) = history.ask(&[largest], None) else { continue };
            let wasted = forecast.ask_bytes / needed - 1.0;
            let (least, most) = forecast.interval_bytes;
            let holds = (least..=most).contains(&needed);
            wastes.push(wasted);
            low += usize::from(wasted < 0.0);
            held += usize::from(holds);
            println!(
                "| {kind} | {:.2}x | {} | {:.1} MiB | {:.1} MiB | {:+.0} % | {:.1} to {:.1} MiB | {} |",
                forecast.extrapolation,
                forecast.predictor.name(),
                needed / MIB,
                forecast.ask_bytes / MIB,
                100.0 * wasted,
                least / MIB,
                most / MIB,
                if holds { "yes" } else { "**no**" }
            );
        }
    }
    wastes.sort_by(f64::total_cmp);
    let median = wastes.get(wastes.len() / 2).copied().unwrap_or(f64::NAN);
    println!("\n{low} of {} too low; median waste {:.0} %; {held} within the interval.", wastes.len(), 100.0 * median);
    Ok(())
}

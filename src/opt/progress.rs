//! One line on standard error that says how far an epoch is.

use super::epoch::Progress;
use super::Outcome;
use std::fmt::Write;
use std::time::Duration;

/// Characters of the bar, each of eight steps.
const WIDTH: i64 = 8;

/// Eighths of a block from the left.
const BLOCKS: [char; 9] =
    [' ', '\u{258f}', '\u{258e}', '\u{258d}', '\u{258c}', '\u{258b}', '\u{258a}', '\u{2589}', '\u{2588}'];

/// A bar of which `done` of `all` are filled.
fn bar(done: i64, all: i64) -> String {
    let steps = (done.max(0) as i128 * (8 * WIDTH) as i128 / all.max(1) as i128).min((8 * WIDTH).into()) as i64;
    (0..WIDTH).map(|i| BLOCKS[(steps - 8 * i).clamp(0, 8) as usize]).collect()
}

/// Hours, minutes and seconds.
pub fn clock(t: Duration) -> String {
    let s = t.as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// The line; `batch`: datapoints of a batch.
pub fn line(p: &Progress, batch: i64, result: &Outcome, elapsed: Duration) -> String {
    let ((loss, loss_unc), (accuracy, accuracy_unc)) = (result.loss(), result.accuracy());
    let left = (p.all - p.done).max(0) as f64 / p.done.max(1) as f64;
    let left = Duration::try_from_secs_f64(elapsed.as_secs_f64() * left).unwrap_or(Duration::MAX);
    let mut line = String::new();
    // writing to a string does not fail
    let _ = write!(
        line,
        "{}[{}] data={:07}/{:07} loss={loss:.5}±{loss_unc:.5} acc={:.2}±{:.2}% t={} ETA={} \r",
        if p.train { "train: " } else { "val:   " },
        bar(p.done, p.all),
        p.done.saturating_mul(batch),
        p.all.saturating_mul(batch),
        100.0 * accuracy,
        100.0 * accuracy_unc,
        clock(elapsed),
        clock(left),
    );
    if p.done >= p.all {
        line.push('\n');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_from_the_left() {
        assert_eq!(bar(0, 10), "        ");
        assert_eq!(bar(10, 10), "\u{2588}".repeat(8));
        assert_eq!(bar(1, 64), "\u{258f}       ");
        assert_eq!(bar(5, 8), format!("{}   ", "\u{2588}".repeat(5)));
        assert_eq!(bar(i64::MAX, 1), "\u{2588}".repeat(8));
        assert_eq!(clock(Duration::from_secs(3 * 3600 + 62)), "03:01:02");
    }
}

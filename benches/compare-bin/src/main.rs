//! Times the operators of two builds of ggml against each other in one process; benches/compare starts it.
//!
//! `api` is the table of functions of one library, `builder` and `fill` make a case's tensors, `ready` runs them, `cases` lists
//! them, `sched` times the planning of a whole graph, `roof` measures the machine. Nothing here is asserted about time.

mod api;
mod builder;
mod cases;
mod fill;
mod ready;
mod roof;
mod sched;

use api::Api;
use cases::{Case, Work};
use ready::Ready;
use roof::Roofs;
use std::ffi::CStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Prints a line at once; a reader that went away ends the program.
macro_rules! say {
    ($($part:tt)*) => {
        if writeln!(std::io::stdout(), $($part)*).is_err() {
            std::process::exit(2);
        }
    };
}

/// Rounds of ours and theirs; a case that takes long gets fewer, two at least.
const ROUNDS: usize = 5;
/// How long each library runs in a round.
const SLICE: Duration = Duration::from_millis(30);
/// After this a case starts no further round.
const CASE: Duration = Duration::from_millis(2500);

const USAGE: &str = "usage: compare [FILTER] [--threads N] [--list]; --help says more";

struct Options {
    ours: PathBuf,
    theirs: PathBuf,
    filter: String,
    threads: usize,
    list: bool,
    probe: bool,
}

fn options() -> Result<Options, String> {
    let mut places = Vec::new();
    let mut threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut list, mut probe) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => {
                let given = arguments.next().ok_or("--threads needs a number")?;
                threads = given.parse().ok().filter(|n| (1..=512).contains(n)).ok_or("--threads: 1 to 512")?;
            }
            "--list" => list = true,
            "--probe" => probe = true,
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
            _ => places.push(argument),
        }
    }
    let mut places = places.into_iter();
    let (Some(ours), Some(theirs)) = (places.next(), places.next()) else {
        return Err("two libraries are needed".into());
    };
    let filter = places.next().unwrap_or_default().to_lowercase();
    if let Some(more) = places.next() {
        return Err(format!("one filter only, not {more} too"));
    }
    Ok(Options { ours: ours.into(), theirs: theirs.into(), filter, threads, list, probe })
}

/// What one case came to.
struct Measured {
    ours: f64,
    theirs: f64,
    nmse: f64,
}

fn main() -> ExitCode {
    match options().map_err(|e| format!("{e}\n{USAGE}")).and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("compare: {e}");
            ExitCode::from(2)
        }
    }
}

/// Whether every case was computed by both, alike.
fn run(options: &Options) -> Result<bool, String> {
    let mut cases = cases::all();
    cases.retain(|case| name(case).to_lowercase().contains(&options.filter));
    let plans: Vec<_> = sched::all().into_iter().map(|case| (format!("SCHED {}", case.shape()), case)).collect();
    let plans: Vec<_> = plans.into_iter().filter(|(name, _)| name.to_lowercase().contains(&options.filter)).collect();
    if cases.is_empty() && plans.is_empty() {
        return Err(format!("no case has \"{}\" in its name; --list names them", options.filter));
    }
    if options.list {
        for case in &cases {
            say!("{}", name(case));
        }
        for (name, _) in &plans {
            say!("{name}");
        }
        return Ok(true);
    }
    if options.probe {
        return probe(options).map(|()| true);
    }
    let (ours, theirs) = (Api::open(&options.ours)?, Api::open(&options.theirs)?);
    header(options, &ours, &theirs);
    let mut good = true;
    if !plans.is_empty() {
        let (mut lines, mut failures) = (Vec::new(), Vec::new());
        planning(plans, [&ours, &theirs], &mut lines, &mut failures);
        good &= summary(&lines, &failures);
    }
    if !cases.is_empty() {
        let (mut lines, mut failures) = (Vec::new(), Vec::new());
        operators(options, &cases, [&ours, &theirs], &mut lines, &mut failures);
        good &= summary(&lines, &failures);
    }
    Ok(good)
}

fn name(case: &Case) -> String {
    format!("{} {}", case.op, case.shape)
}

/// Times operators; adds a ratio for each and a text for each failure.
fn operators(
    options: &Options,
    cases: &[Case],
    [ours, theirs]: [&Api; 2],
    lines: &mut Vec<(String, f64)>,
    failures: &mut Vec<String>,
) {
    let roofs = Roofs::measure(options.threads);
    say!(
        "roofs:   FMA f32 ({}) {:.0} GFLOPS, int8 ({}) {}, reading memory {:.1} GB/s",
        roofs.fma_name,
        roofs.fma / 1e9,
        roofs.int8_name,
        roofs.int8.map_or("not measured".into(), |r| format!("{:.0} Gop/s", r / 1e9)),
        roofs.memory / 1e9
    );
    say!(
        "\n{:<26} {:<34} {:>9} {:>9} {:<6} {:>6} {:>6}    {:>8}",
        "operator",
        "shape",
        "ours",
        "theirs",
        "",
        "ratio",
        "roof",
        "NMSE"
    );
    for case in cases {
        match measure(case, options.threads, ours, theirs, &roofs) {
            Ok(measured) => {
                let agree = print(case, &measured, &roofs);
                if !agree {
                    failures.push(format!("{}: results differ, NMSE {:.1e}", name(case), measured.nmse));
                }
                lines.push((name(case), measured.theirs / measured.ours));
            }
            Err(e) => {
                say!("{:<26} {:<34} failed: {e}", case.op, case.shape);
                failures.push(format!("{}: {e}", name(case)));
            }
        }
    }
}

/// Times the planning of a graph; adds as [`operators`] does.
fn planning(
    cases: Vec<(String, sched::Case)>,
    [ours, theirs]: [&Api; 2],
    lines: &mut Vec<(String, f64)>,
    failures: &mut Vec<String>,
) {
    say!("\n{:<48} {:>9} {:>9} {:>9} {:>9} {:>6}", "planning", "nodes", "splits", "ours µs", "theirs µs", "ratio");
    for (name, case) in cases {
        match sched::measure(&case, ours, theirs) {
            Ok(m) => {
                let ratio = m.theirs / m.ours;
                say!("{name:<48} {:>9} {:>9} {:>9.1} {:>9.1} {ratio:>6.2}", m.nodes, m.splits, m.ours, m.theirs);
                lines.push((name, ratio));
            }
            Err(e) => {
                say!("{name:<48} failed: {e}");
                failures.push(format!("{name}: {e}"));
            }
        }
    }
}

/// Prints how long their library takes for a few short cases, as the mean logarithm: to find the best setting of its OpenMP,
/// which reads it when it is loaded.
fn probe(options: &Options) -> Result<(), String> {
    let theirs = Api::open(&options.theirs)?;
    let mut sum = 0.0;
    let cases = cases::all();
    let chosen = ["f32 [1280,1280] n=1", "f16 [1280,1280] n=8", "q8_0 [1280,1280] n=77"];
    for case in cases.iter().filter(|c| chosen.contains(&c.shape.as_str())) {
        let ready = Ready::new(&theirs, &theirs, options.threads, 8, &case.build)?;
        let mut best = Duration::MAX;
        for _ in 0..5 {
            best = best.min(ready.best(SLICE)?);
        }
        sum += best.as_secs_f64().ln();
    }
    say!("{:.3}", sum / chosen.len() as f64);
    Ok(())
}

fn header(options: &Options, ours: &Api, theirs: &Api) {
    let version = |api: &Api| {
        // SAFETY: returns a string that lives as long as the library.
        unsafe { CStr::from_ptr((api.ggml_version)()) }.to_string_lossy().into_owned()
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(": ").nth(1)).unwrap_or("unknown");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    let openmp: Vec<String> = ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND"]
        .iter()
        .filter_map(|n| std::env::var(n).ok().map(|v| format!("{n}={v}")))
        .collect();
    say!("ours:    {} ({})", options.ours.display(), version(ours));
    say!("theirs:  {} ({})", options.theirs.display(), version(theirs));
    say!("         OpenMP: {}", if openmp.is_empty() { "its defaults".into() } else { openmp.join(" ") });
    say!("machine: {model}, {} threads, load {load} at the start", options.threads);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if load.parse::<f64>().is_ok_and(|l| l > 0.3 * processors as f64) {
        say!("         BUSY: the figures of several threads say little, theirs above all, whose threads wait by spinning");
    }
}

/// The least time that the machine's roofs allow for one copy of a case, in seconds.
fn at_least(work: &Work, roofs: &Roofs) -> f64 {
    let rate = if work.int8 { roofs.int8.unwrap_or(roofs.fma) } else { roofs.fma };
    (work.flops / rate).max(work.bytes / roofs.memory)
}

fn measure(case: &Case, threads: usize, ours: &Api, theirs: &Api, roofs: &Roofs) -> Result<Measured, String> {
    // Enough copies that starting the threads does not count, few enough that the results do not fill memory.
    let copies =
        (1e-3 / at_least(&case.work, roofs)).min(f64::from(8 << 20) / case.work.result).clamp(1.0, 32.0) as usize;
    let encoder = ours;
    let mine = Ready::new(ours, encoder, threads, copies, &case.build).map_err(|e| format!("ours: {e}"))?;
    let yours = Ready::new(theirs, encoder, threads, copies, &case.build).map_err(|e| format!("theirs: {e}"))?;
    let start = Instant::now();
    let (mut best, mut other) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        if round >= 2 && start.elapsed() > CASE {
            break;
        }
        best = best.min(mine.best(SLICE).map_err(|e| format!("ours: {e}"))?);
        other = other.min(yours.best(SLICE).map_err(|e| format!("theirs: {e}"))?);
    }
    let seconds = |d: Duration| d.as_secs_f64() / copies as f64;
    Ok(Measured { ours: seconds(best), theirs: seconds(other), nmse: nmse(&mine.values()?, &yours.values()?) })
}

/// Mean squared difference over mean square of theirs; infinite where one is finite and the other is not.
fn nmse(ours: &[f32], theirs: &[f32]) -> f64 {
    if ours.len() != theirs.len() {
        return f64::INFINITY;
    }
    let (mut difference, mut square) = (0.0, 0.0);
    for (&a, &b) in ours.iter().zip(theirs) {
        difference += f64::from(a - b).powi(2);
        square += f64::from(b).powi(2);
    }
    if !difference.is_finite() || !square.is_finite() {
        return f64::INFINITY;
    }
    if difference == 0.0 {
        0.0
    } else {
        difference / square
    }
}

/// Prints a line; whether the results agree.
fn print(case: &Case, measured: &Measured, roofs: &Roofs) -> bool {
    let work = &case.work;
    let (amount, unit) = if work.flops > 0.0 { (work.flops, "GFLOPS") } else { (work.bytes, "GB/s") };
    let least = at_least(work, roofs);
    let bound = match () {
        () if work.bytes / roofs.memory >= least => 'M',
        () if work.int8 && roofs.int8.is_some() => 'I',
        () => 'F',
    };
    let agree = measured.nmse <= work.tolerance;
    say!(
        "{:<26} {:<34} {:>9.1} {:>9.1} {:<6} {:>6.2} {:>5.0}% {bound}  {:>8.1e}{}",
        case.op,
        case.shape,
        amount / measured.ours / 1e9,
        amount / measured.theirs / 1e9,
        unit,
        measured.theirs / measured.ours,
        100.0 * least / measured.ours,
        measured.nmse,
        if agree { "" } else { "  DIFFERS" }
    );
    agree
}

/// Prints what the lines come to; whether nothing failed.
fn summary(lines: &[(String, f64)], failures: &[String]) -> bool {
    let mean = (lines.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / lines.len().max(1) as f64).exp();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    say!("\nload {} at the end", load.split(' ').next().unwrap_or("unknown"));
    let mut slower: Vec<_> = lines.iter().filter(|(_, ratio)| *ratio < 1.0).collect();
    slower.sort_by(|a, b| a.1.total_cmp(&b.1));
    say!("slower than theirs: {} of {}", slower.len(), lines.len());
    for (name, ratio) in slower {
        say!("  {ratio:.2}  {name}");
    }
    if !failures.is_empty() {
        say!("failed or different: {}", failures.len());
        for failure in failures {
            say!("  {failure}");
        }
    }
    say!("geometric mean of {} ratios: {mean:.2}", lines.len());
    failures.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_seen() {
        assert_eq!(nmse(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(nmse(&[0.0, 0.0], &[0.0, 0.0]), 0.0);
        assert!((nmse(&[1.0, 3.0], &[1.0, 2.0]) - 0.2).abs() < 1e-12);
        assert_eq!(nmse(&[1.0], &[0.0]), f64::INFINITY);
        assert_eq!(nmse(&[1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(nmse(&[f32::NAN], &[1.0]), f64::INFINITY);
        assert_eq!(nmse(&[1.0], &[f32::INFINITY]), f64::INFINITY);
    }

    #[test]
    fn names_of_cases_are_unique() {
        let mut names: Vec<_> = cases::all().iter().map(|c| format!("{} {}", c.op, c.shape)).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

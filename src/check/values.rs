//! Cases about what is computed.

use super::arena::Fill;
use super::compare::Tolerance;
use super::contents::Special;
use super::inputs::{Layout, Variant};
use super::trial::How;
use super::{built, compare, skip, Outcome, Session, Stop};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

const LAYOUTS: [(&str, Layout, &str); 5] = [
    ("layout.offset", Layout::Offset, "at an offset in a larger tensor"),
    ("layout.rows", Layout::Rows, "with gaps between its rows"),
    ("layout.planes", Layout::Planes, "with gaps between its planes"),
    ("layout.permuted", Layout::Permuted, "with dimensions 1 and 2 swapped in memory"),
    ("layout.transposed", Layout::Transposed, "with dimensions 0 and 1 swapped in memory"),
];

const SPECIALS: [(&str, Special); 4] = [
    ("special.nan", Special::Nan),
    ("special.inf", Special::Inf),
    ("special.tiny", Special::Tiny),
    ("special.huge", Special::Huge),
];

/// Words before the text of a case that ended early.
fn told(outcome: Outcome, what: &str) -> Outcome {
    outcome.map_err(|stop| match stop {
        Stop::Skip(text) => Stop::Skip(format!("{what}: {text}")),
        Stop::Fail(text) => Stop::Fail(format!("{what}: {text}")),
    })
}

impl Session<'_> {
    /// # Safety
    /// As `check`, here and below.
    pub(super) unsafe fn values(&mut self) {
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            self.case("plain", |s| s.seeds("plain", true));
            self.case("unfused", |s| match s.kernel.is_rule() {
                true => s.seeds("unfused", false),
                false => skip("it fuses nothing"),
            });
            self.case("contents", |s| s.other_contents());
            for (case, layout, what) in LAYOUTS {
                for only in self.each_input() {
                    let which = only.map_or("every input".into(), |i| format!("input {i}"));
                    let variant = Variant::laid_out(layout, only);
                    self.case(case, |s| told(s.compared(case, &variant, None), &format!("{which} {what}")));
                }
            }
            self.case("empty", |s| s.empty());
            for (case, special) in SPECIALS {
                for only in self.each_input() {
                    let which = only.map_or("every input".into(), |i| format!("input {i}"));
                    self.case(case, |s| {
                        told(s.compared(case, &Variant::default(), Some((special, only))), &format!("in {which}"))
                    });
                }
            }
            self.case("same_input", |s| s.same_input());
        }
    }

    /// All inputs together, and each alone where there are several.
    fn each_input(&self) -> Vec<Option<usize>> {
        let n = if self.n_inputs > 1 { self.n_inputs } else { 0 };
        std::iter::once(None).chain((0..n).map(Some)).collect()
    }

    /// The registration is chosen where nothing is forced.
    pub(super) unsafe fn chosen(&mut self) -> Outcome {
        for seed in self.author.seeds() {
            let built = built::quietly(self.author, seed, &Variant::default(), &[]);
            let built = built.map_err(|text| Stop::Skip(format!("seed {seed}: {text}")))?;
            // SAFETY: the promise of `check`.
            let planned = unsafe { self.plan(built, self.natural()) }?;
            let launches = planned.launches(&self.kernel.name);
            if launches.is_empty() {
                let why = planned.refusal(&self.kernel.name);
                return Err(Stop::Fail(format!("seed {seed}: the registration is not chosen, {why}")));
            }
        }
        Ok(())
    }

    /// One run against the reference.
    unsafe fn compared(
        &mut self,
        case: &'static str,
        variant: &Variant,
        special: Option<(Special, Option<usize>)>,
    ) -> Outcome {
        let mut tolerance = self.tolerance();
        if tolerance.max_nmse > 0.0 {
            // rounding, and what is too small for a normal number, may be anybody's
            tolerance.floor =
                if matches!(special, Some((Special::Tiny, _))) { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
            tolerance.overflow = matches!(special, Some((Special::Huge, _)));
        }
        let seed = *self.author.seeds().start();
        // SAFETY: the promise of `check`, for all of the function.
        unsafe { self.one(case, seed, variant, special, tolerance, self.forced(), true) }
    }

    #[allow(clippy::too_many_arguments)]
    unsafe fn one(
        &mut self,
        case: &'static str,
        seed: u64,
        variant: &Variant,
        special: Option<(Special, Option<usize>)>,
        tolerance: Tolerance,
        how: How,
        own: bool,
    ) -> Outcome {
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.planned(seed, variant, how)?;
            let contents = self.contents(&planned.built, seed, special)?;
            let want = self.expected(&planned.built, seed, variant, &[], &contents, own).map_err(Stop::Skip)?;
            let mut placed = self.place(planned)?;
            let got = self.run(case, &mut placed, &contents, Fill::Clean)?;
            if case == "plain" && want[0].is_empty_of_sense() {
                return Err(Stop::Fail(format!(
                    "seed {seed}: the reference has no finite number, or nothing but zeros: nothing is shown; give `fill`"
                )));
            }
            compare(&got, &want, tolerance)
        }
    }

    unsafe fn seeds(&mut self, case: &'static str, own: bool) -> Outcome {
        for seed in self.author.seeds() {
            let (variant, tolerance, how) = (Variant::default(), self.tolerance(), self.forced());
            // SAFETY: the promise of `check`.
            let outcome = unsafe { self.one(case, seed, &variant, None, tolerance, how, own) };
            told(outcome, &format!("seed {seed}"))?;
        }
        Ok(())
    }

    /// The same plan on one thing and then on another.
    unsafe fn other_contents(&mut self) -> Outcome {
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.planned(seed, &variant, self.forced())?;
            let mut rounds = Vec::new();
            for other in [seed, seed + 1, seed] {
                // contents of another seed for the shapes of this one
                let contents = self.contents(&planned.built, other, None)?;
                let want = self.expected(&planned.built, seed, &variant, &[], &contents, true).map_err(Stop::Skip)?;
                rounds.push((contents, want));
            }
            if rounds[0].0 == rounds[1].0 {
                return skip("the inputs are always the same");
            }
            let mut placed = self.place(planned)?;
            for (i, (contents, want)) in rounds.iter().enumerate() {
                let got = self.run("contents", &mut placed, contents, Fill::Clean)?;
                told(compare(&got, want, self.tolerance()), &format!("run {} of one plan, on other numbers", i + 1))?;
            }
        }
        Ok(())
    }

    /// Two inputs that are one tensor.
    unsafe fn same_input(&mut self) -> Outcome {
        let mut last = Stop::Skip("no two inputs have one format and shape".into());
        let mut passed = false;
        for second in 1..self.n_inputs {
            for first in 0..second {
                let variant = Variant { same: Some((first, second)), ..Default::default() };
                // SAFETY: the promise of `check`.
                match unsafe { self.compared("same_input", &variant, None) } {
                    Ok(()) => passed = true,
                    Err(Stop::Fail(text)) => {
                        return Err(Stop::Fail(format!("input {second} is input {first}: {text}")));
                    }
                    Err(stop) => last = stop,
                }
            }
        }
        if passed {
            Ok(())
        } else {
            Err(last)
        }
    }

    /// Dimensions without elements, as many ways as the graph can be built in.
    unsafe fn empty(&mut self) -> Outcome {
        let seed = *self.author.seeds().start();
        let plain = built::quietly(self.author, seed, &Variant::default(), &[]).map_err(Stop::Skip)?;
        // SAFETY: inputs of a live graph.
        let shapes: Vec<_> = plain.inputs.iter().map(|i| unsafe { (*i.tensor).ne }).collect();
        drop(plain);
        let mut ways: Vec<Vec<(Option<usize>, usize)>> = (0..GGML_MAX_DIMS).map(|d| vec![(None, d)]).collect();
        let single: Vec<(usize, usize)> =
            (0..shapes.len()).flat_map(|i| (0..GGML_MAX_DIMS).map(move |d| (i, d))).collect();
        ways.extend(single.iter().map(|&(i, d)| vec![(Some(i), d)]));
        // dimensions that are tied have one length
        for (k, &(i, d)) in single.iter().enumerate() {
            let tied =
                single[k + 1..].iter().filter(|&&(j, e)| i != j && shapes[i][d] > 1 && shapes[i][d] == shapes[j][e]);
            ways.extend(tied.map(|&(j, e)| vec![(Some(i), d), (Some(j), e)]));
        }
        ways.truncate(256);
        let mut passed = false;
        let mut last = Stop::Skip("the graph cannot be built without elements".into());
        for empty in ways {
            let what = empty.iter().map(|(i, d)| match i {
                Some(i) => format!("dimension {d} of input {i}"),
                None => format!("dimension {d} of all inputs"),
            });
            let what = format!("{} is 0", what.collect::<Vec<_>>().join(" and "));
            let variant = Variant { empty, ..Default::default() };
            // SAFETY: the promise of `check`.
            match unsafe { self.compared("empty", &variant, None) } {
                Ok(()) => passed = true,
                Err(Stop::Fail(text)) => return Err(Stop::Fail(format!("{what}: {text}"))),
                Err(stop) => last = stop,
            }
        }
        if passed {
            Ok(())
        } else {
            Err(last)
        }
    }

    /// A node placed over a source that it may write over.
    pub(super) unsafe fn inplace(&mut self) -> Outcome {
        use super::trial::{nodes_of, uses_of};
        use crate::alloc::inplace;
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        let mut slots = Vec::new();
        // SAFETY: the promise of `check`, for all of the function; tensors of live graphs.
        unsafe {
            let mut planned = self.planned(seed, &variant, self.forced())?;
            let launches = planned.launches(&self.kernel.name);
            let single: Vec<_> =
                launches.iter().filter(|l| l.nodes.len() == 1).map(|l| nodes_of(&planned, l)[0]).collect();
            for node in single {
                let t = &*node;
                for (slot, &src) in t.src.iter().enumerate().filter(|(j, _)| inplace::sources(t.op) >> j & 1 == 1) {
                    let Some(s) = src.as_ref() else { continue };
                    let fits = (s.r#type, s.ne, s.nb) == (t.r#type, t.ne, t.nb) && s.view_src.is_null();
                    let once =
                        t.src.iter().filter(|&&other| other == src).count() == 1 && uses_of(&mut planned, src) == 1;
                    let viewed = planned.built.tensors().iter().any(|&v| (*v).view_src == src);
                    if fits && once && !viewed && !shape::is_empty(s) && t.view_src.is_null() {
                        slots.push((planned.built.number_of(node), slot));
                    }
                }
            }
            drop(planned);
            if slots.is_empty() {
                return skip("no node of it may be placed over a source");
            }
            for (number, slot) in slots {
                let planned = self.planned(seed, &variant, self.forced())?;
                let tensors = planned.built.tensors();
                let Some(&node) = number.and_then(|n| tensors.get(n)) else {
                    return skip("build is not the same each time");
                };
                let contents = self.contents(&planned.built, seed, None)?;
                let want = self.expected(&planned.built, seed, &variant, &[], &contents, true).map_err(Stop::Skip)?;
                let src = (&(*node).src)[slot];
                let mut placed = planned.place(Some((node, src))).map_err(|e| Stop::Skip(e.text))?;
                let got = self.run("inplace", &mut placed, &contents, Fill::Clean)?;
                let what = format!("node '{}' over its source {slot}", shape::name(&*node));
                told(compare(&got, &want, self.tolerance()), &what)?;
            }
        }
        Ok(())
    }
}

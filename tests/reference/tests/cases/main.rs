//! Public bug reports as cases, and their kinds: what was wrong with one operator is looked for in all of them.
//!
//! `docs/cases.md` lists the reports by number. `forms` is a catalogue of operators; the other modules are the kinds:
//! - `layouts`: sources that lie otherwise (1, 7, 37, 41);
//! - `reuse`: storage that an allocator gives a second time (3);
//! - `batches`: pictures behind the first (4);
//! - `empty`: no elements (11);
//! - `indices`, `guards`: indices that point outside, and what lies outside of tensors (18, 41);
//! - `large`: many elements (25);
//! - `rows`, `special`: rows that are no numbers or masked, and their neighbours (31, 33);
//! - `threads`: any number of threads, and memory behind the work buffer (7).
#![allow(clippy::unwrap_used)]

mod batches;
mod coverage;
mod empty;
mod forms;
mod guards;
mod indices;
mod large;
mod layouts;
mod place;
mod reuse;
mod rows;
mod special;
mod threads;

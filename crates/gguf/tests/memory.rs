//! Memory: none is taken on the word of a file, and a failed allocation anywhere is an error.
#![allow(clippy::unwrap_used)]
// Miri would spend hours on the repeats here, and has an allocator of its own.
#![cfg(not(miri))]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Raw;
use ggml_oxide_gguf::{Gguf, Limits, Rule, StrList, Values};

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// Calls that still succeed; negative: all do.
    static LEFT: Cell<i64> = const { Cell::new(-1) };
}

struct Counting;

fn may_take(bytes: usize) -> bool {
    let left = LEFT.get();
    if left == 0 {
        return false;
    }
    if left > 0 {
        LEFT.set(left - 1);
    }
    LIVE.set(LIVE.get().wrapping_add(bytes));
    PEAK.set(PEAK.get().max(LIVE.get()));
    true
}

// SAFETY: every request goes to the system allocator as it came, or gives null, which the contract allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !may_take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps this function's contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: the pointer came from the system allocator with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes live at once while `f` ran, above what was live before.
fn peak(f: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    f();
    PEAK.get() - before
}

/// Runs `f` with the first, second, ... allocation failing, until none does; gives the number of failures met.
fn fail_each(mut f: impl FnMut() -> Result<(), Rule>) -> i64 {
    for k in 0.. {
        LEFT.set(k);
        let result = f();
        let reached = LEFT.replace(-1) == 0;
        match result {
            Ok(()) if !reached => return k,
            // Lack of memory for an error's label alone is no error.
            Ok(()) => {}
            Err(Rule::OutOfMemory { .. }) => {}
            Err(other) => panic!("allocation {k}: {other}"),
        }
    }
    unreachable!()
}

#[test]
fn nothing_is_taken_before_the_check() {
    let huge = 1u64 << 30;
    let files = [
        Raw::new(3, 1 << 60, 0),
        Raw::new(3, 0, 1 << 60),
        Raw::new(3, i64::MAX, i64::MAX),
        Raw::new(3, 0, 1).u64(huge).bytes(&[b'k'; 16]),
        Raw::new(3, 0, 1).text(b"k").i32(8).u64(huge),
        Raw::new(3, 0, 1).text(b"k").i32(9).i32(12).u64(huge),
        Raw::new(3, 0, 1).text(b"k").i32(9).i32(8).u64(huge),
        Raw::new(3, 1, 0).u64(huge).bytes(&[b'n'; 32]),
        Raw::new(3, 1, 0).tensor(b"t", &[i64::MAX, 2], 24, 0).pad(32),
        Raw::new(3, 1, 0).tensor(b"t", &[1 << 40], 24, 0).pad(32),
    ];
    for (i, file) in files.iter().enumerate() {
        let taken = peak(|| match file.read() {
            // The last has good meta data; its data is not there.
            Ok(g) => assert!(i == 9 && g.check_data().is_err()),
            Err(_) => assert!(i < 9),
        });
        assert!(taken < 1024, "file {i} took {taken} bytes");
    }
}

#[test]
fn a_source_that_lies_about_its_size_costs_little() {
    struct Endless(std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Endless {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buf)
        }
    }
    impl std::io::Seek for Endless {
        fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
            match pos {
                std::io::SeekFrom::End(_) => Ok(1 << 50),
                other => self.0.seek(other),
            }
        }
    }
    for file in [
        Raw::new(3, 1 << 40, 0),
        Raw::new(3, 0, 1 << 40),
        Raw::new(3, 0, 1).u64(1 << 30),
        Raw::new(3, 0, 1).text(b"k").i32(9).i32(12).u64(1 << 30),
        Raw::new(3, 0, 1).text(b"k").i32(9).i32(8).u64(1 << 30),
    ] {
        let mut source = Endless(std::io::Cursor::new(file.0));
        let taken = peak(|| {
            assert!(Gguf::read(&mut source, &Limits::default()).is_err());
        });
        assert!(taken < 1 << 21, "{taken} bytes");
    }
}

#[test]
fn each_failed_allocation_of_the_reader_is_an_error() {
    let file = include_bytes!("../../../tests/data/gguf/upstream_0.gguf");
    let met = fail_each(|| Gguf::from_bytes(file, &Limits::default()).map(|_| ()).map_err(|e| e.rule));
    assert!(met > 40, "{met}");
}

#[test]
fn each_failed_allocation_of_edits_and_writer_is_an_error() {
    let mut from = Gguf::new(&Limits::default());
    from.set_array(b"s", Values::Str(StrList::from_items(&["a", "b"]).unwrap())).unwrap();
    from.set_scalar(b"n", 1u8).unwrap();
    let met = fail_each(|| {
        let mut g = Gguf::new(&Limits::default());
        let mut edits = || {
            g.set_str(b"a", b"text")?;
            g.set_scalar(b"general.alignment", 64u32)?;
            g.set_kv(&from)?;
            g.add_tensor(b"t", 0, [32, 1, 1, 1])?;
            g.add_tensor(b"u", 0, [32, 1, 1, 1])?;
            g.set_tensor_type(b"t", 8)?;
            g.remove_key(b"a")?;
            g.meta_bytes().map(|_| ())
        };
        edits().map_err(|e: ggml_oxide_gguf::Error| e.rule)
    });
    assert!(met > 15, "{met}");
}

#[test]
fn a_large_string_array_costs_little_more_than_its_bytes() {
    let n = 20_000u64;
    let mut file = Raw::new(3, 0, 1).text(b"tokens").i32(9).i32(8).u64(n);
    for i in 0..n {
        file = file.text(format!("token{i}").as_bytes());
    }
    let taken = peak(|| {
        assert!(file.read().is_ok());
    });
    // Growing by doubling: at most the old block and one twice as large.
    assert!(taken < 3 * file.0.len(), "{taken} of {}", file.0.len());
}

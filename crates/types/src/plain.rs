//! Whether this thread computes plainly: by the portable functions, whatever the machine has.
//!
//! The portable functions define every result; computing by them beside the fast ones is how a program checks a machine.

use std::cell::Cell;

thread_local! {
    static PLAIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the portable functions are to be used.
#[inline]
pub fn on() -> bool {
    PLAIN.get()
}

/// Runs `f` with the portable functions if `plain`, else with the fastest.
pub fn scope<R>(plain: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            PLAIN.set(self.0);
        }
    }
    let _restore = Restore(PLAIN.replace(plain));
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_ends_and_is_the_threads_own() {
        scope(true, || {
            assert!(on());
            scope(false, || assert!(!on()));
            assert!(on());
            std::thread::spawn(|| assert!(!on())).join().unwrap_or_else(|_| panic!("the other thread is plain"));
        });
        assert!(!on());
        let _ = std::panic::catch_unwind(|| scope(true, || panic!("this panic is part of a test")));
        assert!(!on());
    }
}

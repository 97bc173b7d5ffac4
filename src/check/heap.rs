//! Memory in use by the C library's allocator, where it can be asked.

#[cfg(all(target_os = "linux", not(miri)))]
pub use linux::in_use;

/// Bytes in use; `None`: nobody can say.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn in_use() -> Option<usize> {
    None
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::hint::black_box;
    use std::sync::OnceLock;

    /// `struct mallinfo2` of glibc.
    #[repr(C)]
    struct Info {
        arena: usize,
        ordblks: usize,
        smblks: usize,
        hblks: usize,
        hblkhd: usize,
        usmblks: usize,
        fsmblks: usize,
        uordblks: usize,
        fordblks: usize,
        keepcost: usize,
    }

    type Ask = unsafe extern "C" fn() -> Info;

    fn ask() -> Option<Ask> {
        // Looked up, not linked: not every C library has it.
        // SAFETY: a zero-terminated name.
        let f = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        // SAFETY: what has this name is that function; NULL is `None`.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<Ask>>(f) }
    }

    fn bytes(ask: Ask) -> usize {
        // SAFETY: it takes nothing, and may be called at any time.
        let info = unsafe { ask() };
        info.uordblks.wrapping_add(info.hblkhd)
    }

    /// Bytes in use; `None`: nobody can say.
    pub fn in_use() -> Option<usize> {
        static SOUND: OnceLock<Option<Ask>> = OnceLock::new();
        // an allocator put in place of the C library's leaves the numbers as they are
        let tried = SOUND.get_or_init(|| {
            let ask = ask()?;
            let before = bytes(ask);
            let block = black_box(Vec::<u8>::with_capacity(50_000));
            let grown = bytes(ask).wrapping_sub(before);
            drop(block);
            (50_000..1 << 30).contains(&grown).then_some(ask)
        });
        tried.map(bytes)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn memory_in_use_can_be_asked_for() {
            let Some(before) = in_use() else { return };
            let block = black_box(vec![1u8; 3 << 20]);
            assert!(in_use().is_some_and(|now| now > before + (2 << 20)));
            drop(block);
        }
    }
}

//! Cases 18 and 41 (llama.cpp#27283, #15869, #29025): no operator reads or writes a byte before or behind a tensor. Each tensor lies
//! against a page that cannot be touched, once with its end and once with its beginning.

use crate::forms::{forms, Form};
use crate::place::{self, names, Result, Tally};
use reference::world::{elements, last_error, t};
use reference::*;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

// SAFETY: the signatures are those of the C library on Linux.
unsafe extern "C" {
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn mprotect(addr: *mut c_void, len: usize, prot: c_int) -> c_int;
    fn munmap(addr: *mut c_void, len: usize) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn write(fd: c_int, bytes: *const c_void, len: usize) -> isize;
    fn _exit(status: c_int) -> !;
}

const PAGE: usize = 4096;
/// Bytes of a slot between its two pages that cannot be touched.
const ROOM: usize = 64 * PAGE;
const SLOTS: usize = 24;

/// What is being computed, for the message of a crash.
static NAME: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn crashed(_: c_int) {
    let text = b"\nguards: a byte outside its tensors is touched by ";
    // SAFETY: `write` and `_exit` may be called in a signal handler; the name lives while it is set.
    unsafe {
        write(2, text.as_ptr().cast(), text.len());
        write(2, NAME.load(Ordering::SeqCst).cast(), LEN.load(Ordering::SeqCst));
        write(2, b"\n".as_ptr().cast(), 1);
        _exit(101);
    }
}

/// Memory between two pages that cannot be touched.
struct Slot {
    whole: *mut c_void,
    buffer: ggml_backend_buffer_t,
}

impl Slot {
    fn new() -> Slot {
        // SAFETY: a mapping of our own.
        unsafe {
            let whole = mmap(std::ptr::null_mut(), ROOM + 2 * PAGE, 0, 0x22, -1, 0);
            assert_ne!(whole as isize, -1, "no memory");
            let inner = whole.cast::<u8>().add(PAGE).cast();
            assert_eq!(mprotect(inner, ROOM, 3), 0);
            Slot { whole, buffer: ggml_backend_cpu_buffer_from_ptr(inner, ROOM) }
        }
    }

    /// Puts a tensor against the page behind it, or before it.
    fn place(&self, p: T, at_end: bool) {
        let inner = self.whole.cast::<u8>().wrapping_add(PAGE);
        let size = ggml_nbytes(p);
        assert!(size <= ROOM, "the case is too large");
        // SAFETY: the mapping's inner part.
        unsafe { inner.write_bytes(0xff, ROOM) };
        let addr = inner.wrapping_add(if at_end { ROOM - size } else { 0 });
        assert_eq!(ggml_backend_tensor_alloc(self.buffer, p, addr.cast()), GGML_STATUS_SUCCESS, "{}", last_error());
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        ggml_backend_buffer_free(self.buffer);
        // SAFETY: the mapping that `new` made.
        unsafe { munmap(self.whole, ROOM + 2 * PAGE) };
    }
}

fn guarded(form: &Form, types: &[ggml_type], slots: &[Slot], at_end: bool) -> std::result::Result<bool, String> {
    let (want, bytes) = World::with(1, |w| {
        let sources = place::plain(w, form, types);
        let bytes: Vec<Vec<u8>> = sources.iter().map(|&s| elements(s)).collect();
        place::compute(w, form, &sources).map(|want| (want, bytes))
    })?;
    let Some(want) = want else { return Ok(false) };
    World::with(1, |w| {
        let mut free = slots.iter();
        let mut put = |p: T| free.next().expect("slots enough").place(p, at_end);
        let mut sources = Vec::new();
        for ((s, &ty), bytes) in form.sources.iter().zip(types).zip(&bytes) {
            let ne = world::dims(s.ne);
            let p = ggml_new_tensor(w.ctx, ty, 4, ne.as_ptr());
            put(p);
            w.set_elements(p, bytes);
            sources.push(p);
        }
        let out = (form.build)(w.ctx, &sources);
        let graph = ggml_new_graph_custom(w.ctx, 64, false);
        ggml_build_forward_expand(graph, out);
        for n in (0..ggml_graph_n_nodes(graph)).map(|i| ggml_graph_node(graph, i)) {
            if !t(n).buffer.is_null() {
                continue;
            }
            match t(n).view_src.is_null() {
                true => put(n),
                false => assert_eq!(ggml_backend_view_init(n), GGML_STATUS_SUCCESS),
            }
        }
        let status = ggml_backend_graph_compute(w.backend(2), graph);
        if status != GGML_STATUS_SUCCESS {
            return Err(format!("{status:?}: {}", last_error()));
        }
        Result::of(out).differs(&want, form.near).map_or(Ok(true), Err)
    })
}

#[test]
fn case_41_no_byte_outside_is_touched() {
    // SAFETY: a handler that only writes and ends the process.
    unsafe { signal(11, crashed as *const () as usize) };
    let slots: Vec<Slot> = (0..SLOTS).map(|_| Slot::new()).collect();
    let mut tally = Tally::default();
    for form in forms() {
        for types in form.combinations() {
            for at_end in [true, false] {
                let name = format!("{} {} {}", form.name, names(&types), if at_end { "end" } else { "beginning" });
                NAME.store(name.as_ptr().cast_mut(), Ordering::SeqCst);
                LEN.store(name.len(), Ordering::SeqCst);
                let result = guarded(form, &types, &slots, at_end);
                LEN.store(0, Ordering::SeqCst);
                tally.add(|| name, result);
            }
        }
    }
    tally.finish("case 41, guard pages", 800);
}

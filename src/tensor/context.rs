//! The arena of a context: tensors, graphs and work buffers, one after the other in one block of memory, each behind a header.

use super::poison;
use crate::error::{c_string, Error};
use ggml_oxide_abi::*;
use std::alloc::{alloc, dealloc, Layout};
use std::ffi::{c_void, CStr, CString};
use std::mem::{align_of, size_of};
use std::ptr::{null_mut, NonNull};

/// Alignment of a block that the context allocates itself.
const BLOCK_ALIGN: usize = 64;

/// What stands in front of each object of the arena.
#[repr(C)]
struct Object {
    /// Bytes from the start of the arena to the object's contents.
    offs: usize,
    /// Bytes of the contents, padded.
    size: usize,
    next: *mut Object,
    kind: ggml_object_type,
    padding: [u8; 4],
}

/// What an object is, for people.
pub struct Described {
    /// Its handle.
    pub at: *const ggml_object,
    /// Kind.
    pub kind: &'static str,
    /// Bytes from the start of the arena to its contents.
    pub offset: usize,
    /// Bytes of the contents, padded.
    pub size: usize,
}

/// Bytes of a header.
const OBJECT_SIZE: usize = size_of::<Object>();
/// Bytes that one tensor without data takes from a context.
pub const TENSOR_OVERHEAD: usize = OBJECT_SIZE + size_of::<ggml_tensor>();

const _: () = assert!(OBJECT_SIZE == 32 && OBJECT_SIZE.is_multiple_of(GGML_MEM_ALIGN));
const _: () = assert!(size_of::<ggml_tensor>().is_multiple_of(GGML_MEM_ALIGN));

/// A stand-in that found no room in the arena. The header makes it safe to ask for its successor: it has none.
#[repr(C, align(16))]
struct Spill {
    head: Object,
    tensor: ggml_tensor,
}

/// A function in place of [`super::new_tensor`]; while it runs, the context has none.
pub type Maker = Box<dyn FnMut(&mut Context, &str, ggml_type, &[i64]) -> *mut ggml_tensor>;

/// What an opaque `ggml_context` is.
pub struct Context {
    mem: NonNull<u8>,
    size: usize,
    /// Layout of the block when it is the context's own.
    owned: Option<Layout>,
    /// Tensors get no data from the arena.
    pub no_alloc: bool,
    /// Makes tensors that are no operator's result in place of [`super::new_tensor`].
    pub maker: Option<Maker>,
    begin: *mut Object,
    end: *mut Object,
    n_objects: usize,
    spills: Vec<NonNull<Spill>>,
    causes: Vec<CString>,
}

fn pad(bytes: usize) -> Option<usize> {
    Some(bytes.checked_add(GGML_MEM_ALIGN - 1)? & !(GGML_MEM_ALIGN - 1))
}

impl Context {
    /// A context over `mem_buffer`, which the caller owns and which holds `mem_size` bytes, or over a block of its own when that is
    /// NULL. Size 0 is taken as the least one.
    ///
    /// # Safety
    /// `mem_buffer` is NULL, or valid for `mem_size` bytes until the context is dropped.
    pub unsafe fn new(mem_size: usize, mem_buffer: *mut c_void, no_alloc: bool) -> Result<Box<Context>, Error> {
        let mem_size = mem_size.max(GGML_MEM_ALIGN);
        let (mem, size, owned) = match NonNull::new(mem_buffer.cast::<u8>()) {
            Some(mem) if mem.addr().get() % GGML_MEM_ALIGN != 0 => {
                return Err(Error::argument(format!("ggml_init: mem_buffer is not aligned to {GGML_MEM_ALIGN} bytes")));
            }
            Some(mem) => (mem, mem_size, None),
            None => {
                let too_large = || Error::memory(format!("ggml_init: no memory for a context of {mem_size} bytes"));
                let size = pad(mem_size).ok_or_else(too_large)?;
                let layout = Layout::from_size_align(size, BLOCK_ALIGN).map_err(|_| too_large())?;
                // SAFETY: the size is at least GGML_MEM_ALIGN.
                let mem = unsafe { alloc(layout) };
                (NonNull::new(mem).ok_or_else(too_large)?, size, Some(layout))
            }
        };
        Ok(Box::new(Context {
            mem,
            size,
            owned,
            no_alloc,
            maker: None,
            begin: null_mut(),
            end: null_mut(),
            n_objects: 0,
            spills: Vec::new(),
            causes: Vec::new(),
        }))
    }

    /// The opaque handle of a context; [`Context::from_raw`] takes it back.
    pub fn into_raw(self: Box<Self>) -> *mut ggml_context {
        Box::into_raw(self).cast()
    }

    /// Takes back what [`Context::into_raw`] gave; `None` for NULL.
    ///
    /// # Safety
    /// `ctx` is NULL or came from [`Context::into_raw`] and is used no more.
    pub unsafe fn from_raw(ctx: *mut ggml_context) -> Option<Box<Context>> {
        // SAFETY: the contract above.
        (!ctx.is_null()).then(|| unsafe { Box::from_raw(ctx.cast::<Context>()) })
    }

    /// The context behind a handle; `None` for NULL.
    ///
    /// # Safety
    /// `ctx` is NULL or a live handle, and nobody else uses the context during `'a`.
    pub unsafe fn from_ptr<'a>(ctx: *mut ggml_context) -> Option<&'a mut Context> {
        // SAFETY: the contract above.
        unsafe { ctx.cast::<Context>().as_mut() }
    }

    /// Forgets all objects; the memory stays.
    pub fn reset(&mut self) {
        self.begin = null_mut();
        self.end = null_mut();
        self.n_objects = 0;
        self.free_spills();
        self.causes.clear();
    }

    /// Bytes in use, headers included.
    pub fn used(&self) -> usize {
        // SAFETY: `end` is NULL or the last header, written by `alloc_object`.
        unsafe { self.end.as_ref() }.map_or(0, |end| end.offs + end.size)
    }

    /// Bytes of the arena.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Start of the arena.
    pub fn buffer(&self) -> *mut u8 {
        self.mem.as_ptr()
    }

    /// Objects in the arena.
    pub fn n_objects(&self) -> usize {
        self.n_objects
    }

    /// Room for an object of `bytes`, aligned to 16, not initialised.
    pub fn alloc_object(&mut self, kind: ggml_object_type, bytes: usize) -> Result<NonNull<u8>, Error> {
        let start = self.used();
        let end = || start.checked_add(OBJECT_SIZE)?.checked_add(pad(bytes)?);
        let Some(end) = end().filter(|&end| end <= self.size) else {
            return Err(Error::memory(format!(
                "context is full: {bytes} bytes asked for, {start} of {} in use",
                self.size
            )));
        };
        let offs = start + OBJECT_SIZE;
        // SAFETY: `start + OBJECT_SIZE <= end <= size`, all inside the arena; the arena and all sizes are multiples of 16.
        unsafe {
            let object = self.mem.as_ptr().add(start).cast::<Object>();
            object.write(Object { offs, size: end - offs, next: null_mut(), kind, padding: [0; 4] });
            match self.end.as_mut() {
                Some(last) => last.next = object,
                None => self.begin = object,
            }
            self.end = object;
            self.n_objects += 1;
            Ok(self.mem.add(offs))
        }
    }

    /// A tensor object, all zero but for its shape of one element, with `extra` bytes of data behind it.
    pub(super) fn alloc_tensor(&mut self, extra: usize) -> Result<NonNull<ggml_tensor>, Error> {
        let bytes = size_of::<ggml_tensor>().checked_add(extra);
        let bytes =
            bytes.ok_or_else(|| Error::memory(format!("a tensor of {extra} bytes does not fit into memory")))?;
        let tensor = self.alloc_object(GGML_OBJECT_TYPE_TENSOR, bytes)?.cast::<ggml_tensor>();
        // SAFETY: the object has room for a tensor, and 16 bytes of alignment are enough for one.
        unsafe { tensor.write(blank()) };
        Ok(tensor)
    }

    /// A stand-in of shape `ne` (or of one element, if no tensor can have that), with a copy of `cause` that lives as long as the
    /// context. It lies in the arena if there is room, else in memory of its own; NULL only when there is none of that either.
    pub fn poisoned(&mut self, ne: [i64; GGML_MAX_DIMS], cause: &CStr) -> *mut ggml_tensor {
        let new = self.causes.last().is_none_or(|last| last.as_c_str() != cause);
        let room = !new || self.causes.try_reserve(1).is_ok();
        if new && room {
            self.causes.push(cause.to_owned());
        }
        // without memory for its text the stand-in has no cause
        let cause = self.causes.last().filter(|_| room).map_or(std::ptr::null(), |last| last.as_ptr());
        let tensor = self.alloc_tensor(0).ok().or_else(|| self.spill());
        let Some(mut tensor) = tensor else {
            return null_mut();
        };
        // SAFETY: freshly made above, and nobody else has the pointer yet.
        poison::mark(unsafe { tensor.as_mut() }, poison::shape_or_one(ne), cause);
        tensor.as_ptr()
    }

    /// As [`Context::poisoned`], reporting `error` as the failure of this thread.
    pub fn reject(&mut self, ne: [i64; GGML_MAX_DIMS], error: &Error) -> *mut ggml_tensor {
        let tensor = self.poisoned(ne, &c_string(&error.text));
        crate::error::report_at(error, tensor);
        tensor
    }

    fn spill(&mut self) -> Option<NonNull<ggml_tensor>> {
        self.spills.try_reserve(1).ok()?;
        // SAFETY: the layout has a size.
        let spill = NonNull::new(unsafe { alloc(Layout::new::<Spill>()) })?.cast::<Spill>();
        let head = Object { offs: 0, size: 0, next: null_mut(), kind: GGML_OBJECT_TYPE_TENSOR, padding: [0; 4] };
        self.spills.push(spill);
        // SAFETY: freshly allocated with the layout of a `Spill`; the field's address is not NULL.
        unsafe {
            spill.write(Spill { head, tensor: blank() });
            NonNull::new(&raw mut (*spill.as_ptr()).tensor)
        }
    }

    fn free_spills(&mut self) {
        for spill in self.spills.drain(..) {
            // SAFETY: allocated in `spill` with this layout, and dropped from the list now.
            unsafe { dealloc(spill.as_ptr().cast(), Layout::new::<Spill>()) }
        }
    }

    /// What the object behind a handle is; `None` for NULL.
    ///
    /// # Safety
    /// `object` is NULL or one of a live context.
    pub unsafe fn describe(object: *const ggml_object) -> Option<Described> {
        // SAFETY: the caller's promise; an object is its header.
        let head = unsafe { object.cast::<Object>().as_ref() }?;
        let kind = match head.kind {
            GGML_OBJECT_TYPE_TENSOR => "tensor",
            GGML_OBJECT_TYPE_GRAPH => "graph",
            _ => "work buffer",
        };
        Some(Described { at: object, kind, offset: head.offs, size: head.size })
    }

    /// All objects of the arena in the order in which they were made.
    pub fn objects(&self) -> Vec<Described> {
        let mut all = Vec::new();
        let mut at = self.begin;
        // SAFETY: `at` is NULL or a header of this arena; so are its successors.
        while let Some(head) = unsafe { at.as_ref() } {
            // SAFETY: as above.
            all.extend(unsafe { Self::describe(at.cast()) });
            at = head.next;
        }
        all
    }

    fn tensor_from(&self, mut object: *mut Object) -> *mut ggml_tensor {
        // SAFETY: `object` is NULL or a header of this arena; so are its successors.
        unsafe {
            while let Some(head) = object.as_ref() {
                if head.kind == GGML_OBJECT_TYPE_TENSOR {
                    return self.mem.as_ptr().add(head.offs).cast();
                }
                object = head.next;
            }
        }
        null_mut()
    }

    /// The first tensor, or NULL.
    pub fn first_tensor(&self) -> *mut ggml_tensor {
        self.tensor_from(self.begin)
    }

    /// The tensor made after `tensor`, or NULL.
    ///
    /// # Safety
    /// `tensor` was made by this context, since the last reset.
    pub unsafe fn next_tensor(&self, tensor: *const ggml_tensor) -> *mut ggml_tensor {
        // SAFETY: a header stands in front of each tensor of this context, in the arena or outside.
        let head = unsafe { tensor.cast::<u8>().sub(OBJECT_SIZE).cast::<Object>().read() };
        self.tensor_from(head.next)
    }

    /// All tensors of the arena in the order in which they were made.
    pub fn tensors(&self) -> impl Iterator<Item = *mut ggml_tensor> + '_ {
        let some = |t: *mut ggml_tensor| (!t.is_null()).then_some(t);
        // SAFETY: each comes from this arena, and none is NULL.
        std::iter::successors(some(self.first_tensor()), move |&t| some(unsafe { self.next_tensor(t) }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.free_spills();
        if let Some(layout) = self.owned {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.mem.as_ptr(), layout) }
        }
    }
}

const _: () = assert!(align_of::<ggml_tensor>() <= GGML_MEM_ALIGN && align_of::<Object>() <= GGML_MEM_ALIGN);

/// A tensor of one element and no format, name or data.
pub fn blank() -> ggml_tensor {
    ggml_tensor {
        r#type: GGML_TYPE_F32,
        buffer: null_mut(),
        ne: [1; GGML_MAX_DIMS],
        nb: [0; GGML_MAX_DIMS],
        op: GGML_OP_NONE,
        op_params: [0; GGML_MAX_OP_PARAMS / 4],
        flags: 0,
        src: [null_mut(); GGML_MAX_SRC],
        view_src: null_mut(),
        view_offs: 0,
        data: null_mut(),
        name: [0; GGML_MAX_NAME],
        extra: null_mut(),
        padding: [0; 8],
    }
}

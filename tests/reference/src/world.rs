//! One case: a context, tensors in guarded memory, and what computing does to that memory.

use crate::api::*;
use crate::layout::Layout;
use crate::values::{block, decode, each, encode, Arr, Fill, Rng};
use ggml_oxide_abi::*;
use std::cell::RefCell;

/// Bytes that are kept free on either side of each tensor, at least.
pub const GUARD: usize = 32;
/// What all memory holds that nobody wrote: NaN in every float format, -1 in every integer format.
const MARK: u8 = 0xff;
/// Bytes of a case's memory.
const ROOM: usize = 24 << 20;
const NODES: usize = 64;

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was computed.
    Ran,
    /// `supports_op` said no.
    Refused,
    /// The builder answered a stand-in.
    NotBuilt,
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Memory and backends that the cases of a thread share.
struct Shared {
    memory: Vec<Line>,
    buffer: ggml_backend_buffer_t,
    /// Backends with one, two and three threads.
    backends: [ggml_backend_t; 3],
    ctx: Ctx,
}

impl Shared {
    fn new() -> Shared {
        // The failures that the tests provoke would fill the log.
        unsafe extern "C" fn silent(_: ggml_log_level, _: *const std::ffi::c_char, _: *mut std::ffi::c_void) {}
        ggml_log_set(Some(silent), std::ptr::null_mut());
        let mut memory = vec![Line([MARK; 64]); ROOM / 64];
        let buffer = ggml_backend_cpu_buffer_from_ptr(memory.as_mut_ptr().cast(), ROOM);
        assert!(!buffer.is_null());
        let backends = [1, 2, 3].map(|n| {
            let b = ggml_backend_cpu_init();
            assert!(!b.is_null());
            ggml_backend_cpu_set_n_threads(b, n);
            b
        });
        let mem_size = 4 * NODES * ggml_tensor_overhead() + ggml_graph_overhead_custom(NODES, false);
        let ctx = ggml_init(ggml_init_params { mem_size, mem_buffer: std::ptr::null_mut(), no_alloc: true });
        assert!(!ctx.is_null());
        Shared { memory, buffer, backends, ctx }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        ggml_free(self.ctx);
        self.backends.into_iter().for_each(|b| ggml_backend_free(b));
        ggml_backend_buffer_free(self.buffer);
    }
}

thread_local! {
    static SHARED: RefCell<Shared> = RefCell::new(Shared::new());
}

/// The world of one case.
pub struct World {
    /// For builders.
    pub ctx: Ctx,
    buffer: ggml_backend_buffer_t,
    backends: [ggml_backend_t; 3],
    memory: *mut u8,
    used: usize,
    rng: Rng,
    /// Also compute with three threads.
    pub three: bool,
    /// Sources that computing writes over, as the steps of optimizers do.
    pub written: Vec<T>,
}

/// The tensor at an address that a builder answered in this case; as safe as the builders are declared.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub fn t<'a>(p: T) -> &'a mut ggml_tensor {
    assert!(!p.is_null(), "a builder answered NULL");
    // SAFETY: tensors live as long as the case's context, and one thread uses them.
    unsafe { &mut *p }
}

/// A tensor's dimensions.
pub fn ne(p: T) -> [usize; 4] {
    t(p).ne.map(|n| n as usize)
}

/// A shape as builders take it.
pub fn dims(ne: [usize; 4]) -> [i64; 4] {
    ne.map(|n| n as i64)
}

impl World {
    /// Runs `case` in a world of its own; `seed` decides the random numbers.
    pub fn with<R>(seed: u64, case: impl FnOnce(&mut World) -> R) -> R {
        SHARED.with_borrow_mut(|s| {
            ggml_reset(s.ctx);
            let mut world = World {
                ctx: s.ctx,
                buffer: s.buffer,
                backends: s.backends,
                memory: s.memory.as_mut_ptr().cast(),
                used: 64,
                rng: Rng(seed),
                three: seed.is_multiple_of(4),
                written: Vec::new(),
            };
            let result = case(&mut world);
            let used = world.used.div_ceil(64) + 1;
            s.memory[..used].fill(Line([MARK; 64]));
            result
        })
    }

    /// Gives a tensor memory: in the storage that it views, or of its own.
    pub fn place(&mut self, p: T) {
        if t(p).buffer.is_null() {
            let status = if t(p).view_src.is_null() {
                let size = ggml_nbytes(p).max(1);
                let at = self.used;
                self.used = (at + size + GUARD).next_multiple_of(64);
                assert!(self.used + 64 < ROOM, "the case is too large");
                ggml_backend_tensor_alloc(self.buffer, p, self.memory.wrapping_add(at).cast())
            } else {
                self.place(t(p).view_src);
                ggml_backend_view_init(p)
            };
            assert_eq!(status, GGML_STATUS_SUCCESS);
        }
    }

    /// Gives a node the memory of a source of the same layout, as an allocator may where the operator can be computed in place.
    pub fn place_over(&mut self, p: T, source: T) {
        assert_eq!((t(p).ne, t(p).nb), (t(source).ne, t(source).nb));
        assert_eq!(ggml_backend_tensor_alloc(self.buffer, p, t(source).data), GGML_STATUS_SUCCESS);
    }

    /// A leaf without values.
    pub fn leaf(&mut self, ty: ggml_type, ne: [usize; 4]) -> T {
        let ne = dims(ne);
        let p = ggml_new_tensor(self.ctx, ty, 4, ne.as_ptr());
        assert_eq!(t(p).ne, ne, "a leaf could not be made");
        self.place(p);
        p
    }

    /// A tensor without values in a layout; for block formats one of [`crate::PACKED`].
    pub fn bare(&mut self, ty: ggml_type, ne: [usize; 4], layout: Layout) -> T {
        let (unit, size) = block(ty);
        if layout == Layout::Offset {
            let n: usize = ne.iter().product();
            let base = self.leaf(ty, [n + unit, 1, 1, 1]);
            let nb1 = ne[0] / unit * size;
            let d = dims(ne);
            let (nb2, nb3) = (nb1 * ne[1], nb1 * ne[1] * ne[2]);
            let p = ggml_view_4d(self.ctx, base, d[0], d[1], d[2], d[3], nb1, nb2, nb3, size);
            self.place(p);
            return p;
        }
        let axes = layout.axes();
        let inner = axes.map(|to| ne[to]);
        let gaps = layout.gaps(unit);
        let mut p = self.leaf(ty, std::array::from_fn(|i| inner[i] + gaps[i]));
        if gaps != [0; 4] {
            let (d, nb) = (dims(inner), t(p).nb);
            p = ggml_view_4d(self.ctx, p, d[0], d[1], d[2], d[3], nb[1], nb[2], nb[3], 0);
            self.place(p);
        }
        if axes != [0, 1, 2, 3] {
            let a = axes.map(|a| a as i32);
            p = ggml_permute(self.ctx, p, a[0], a[1], a[2], a[3]);
            self.place(p);
        }
        assert_eq!(t(p).ne, dims(ne), "{layout:?}");
        p
    }

    /// A source: a tensor in a layout, with values.
    pub fn source(&mut self, ty: ggml_type, ne: [usize; 4], layout: Layout, fill: &Fill) -> T {
        let p = self.bare(ty, ne, layout);
        self.fill(p, fill);
        p
    }

    /// Gives a tensor values, by logical index.
    pub fn fill(&mut self, p: T, fill: &Fill) {
        let (unit, _) = block(t(p).r#type);
        let ne = ne(p);
        let mut values = Vec::with_capacity(unit);
        let step = |i: [usize; 4]| i[0] % unit == unit - 1;
        for (count, i) in each(ne).enumerate() {
            values.push(fill.value(count, &mut self.rng));
            if step(i) {
                // SAFETY: one block inside the tensor's memory.
                unsafe { encode(t(p).r#type, &values, address(p, [i[0] + 1 - unit, i[1], i[2], i[3]])) };
                values.clear();
            }
        }
    }

    /// Writes an array of the same shape into a tensor of a plain format.
    pub fn write(&mut self, p: T, values: &Arr) {
        assert_eq!(ne(p), values.ne);
        for (i, v) in each(values.ne).zip(&values.v) {
            // SAFETY: an element inside the tensor's memory.
            unsafe { encode(t(p).r#type, &[*v], address(p, i)) };
        }
    }

    /// The bytes of a tensor without gaps.
    pub fn raw(&mut self, p: T) -> &mut [u8] {
        // SAFETY: the tensor's own memory, which this world owns.
        unsafe { std::slice::from_raw_parts_mut(t(p).data.cast(), ggml_nbytes(p)) }
    }

    /// The backend with `n` threads: 1, 2 or 3.
    pub fn backend(&self, n: usize) -> ggml_backend_t {
        self.backends[n - 1]
    }

    /// Gives a tensor the bytes that [`elements`] read of another one of the same format and shape.
    pub fn set_elements(&mut self, p: T, bytes: &[u8]) {
        let (unit, size) = block(t(p).r#type);
        let blocks = each(ne(p)).filter(|i| i[0] % unit == 0);
        assert_eq!(bytes.len() * unit, ne(p).iter().product::<usize>() * size);
        for (i, bytes) in blocks.zip(bytes.chunks_exact(size)) {
            // SAFETY: one block inside the tensor's memory.
            unsafe { address(p, i).copy_from_nonoverlapping(bytes.as_ptr(), size) };
        }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.rng.below(n)
    }

    /// A graph that computes `out`, and its nodes, with memory for all of them.
    fn graph(&mut self, out: T) -> (*mut ggml_cgraph, Vec<T>) {
        let graph = ggml_new_graph_custom(self.ctx, NODES, false);
        assert!(!graph.is_null());
        ggml_build_forward_expand(graph, out);
        let nodes: Vec<T> = (0..ggml_graph_n_nodes(graph)).map(|i| ggml_graph_node(graph, i)).collect();
        assert_eq!(nodes.last(), Some(&out));
        nodes.iter().for_each(|&n| self.place(n));
        (graph, nodes)
    }

    /// The memory in use and what lies around it.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the shared memory, lent to this world alone; `place` keeps `used` inside.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.used + 64) }
    }

    /// Computes `out` and what it is made of; `Err` says what was wrong besides the values.
    pub fn compute(&mut self, out: T) -> Result<Outcome, String> {
        let (graph, nodes) = self.graph(out);
        let poisoned = nodes.iter().any(|&n| ggml::tensor::is_poisoned(t(n)));
        let device = ggml_backend_get_device(self.backends[0]);
        let supported = nodes.iter().all(|&n| ggml_backend_dev_supports_op(device, n));
        let before = self.bytes().to_vec();
        if poisoned || !supported {
            if poisoned && supported {
                return Err("supports_op says yes to a node that could not be built".into());
            }
            let status = ggml_backend_graph_compute(self.backends[1], graph);
            if status == GGML_STATUS_SUCCESS {
                return Err("computed although supports_op says no".into());
            }
            if last_error().is_empty() {
                return Err("refused without a reason".into());
            }
            if *self.bytes() != before {
                return Err("memory was written by a graph that was refused".into());
            }
            return Ok(if poisoned { Outcome::NotBuilt } else { Outcome::Refused });
        }
        let mut first: Option<Vec<u8>> = None;
        for n in (0..if self.three { 3 } else { 2 }).rev() {
            self.bytes().copy_from_slice(&before);
            let status = ggml_backend_graph_compute(self.backends[n], graph);
            if status != GGML_STATUS_SUCCESS {
                return Err(format!("supports_op says yes, computing answers {status:?}: {}", last_error()));
            }
            match &first {
                None => first = Some(self.bytes().to_vec()),
                Some(first) if first[..] == *self.bytes() => {}
                Some(_) => return Err(format!("{} threads give other bytes than more", n + 1)),
            }
        }
        self.outside_unchanged(&nodes, &before)?;
        Ok(Outcome::Ran)
    }

    /// Computes `out`, which `supports_op` admits but whose values are no good: a failure, and nothing outside the results changes.
    pub fn fails(&mut self, out: T) -> Result<String, String> {
        let (graph, nodes) = self.graph(out);
        let before = self.bytes().to_vec();
        for backend in self.backends {
            if ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS {
                return Err("computing succeeded".into());
            }
        }
        self.outside_unchanged(&nodes, &before)?;
        Ok(last_error())
    }

    /// No byte changed but those of the nodes' elements.
    fn outside_unchanged(&mut self, nodes: &[T], before: &[u8]) -> Result<(), String> {
        let base = self.memory as usize;
        let mut own = vec![false; before.len()];
        for &n in nodes.iter().chain(&self.written) {
            let view = !self.written.contains(&n)
                && matches!(t(n).op, GGML_OP_VIEW | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE | GGML_OP_RESHAPE);
            let (unit, size) = block(t(n).r#type);
            for i in each(ne(n)).filter(|i| !view && i[0] % unit == 0) {
                let at = address(n, i) as usize - base;
                own[at..at + size].fill(true);
            }
        }
        let changed = self.bytes().iter().zip(before).zip(&own).position(|((a, b), own)| !own && a != b);
        changed.map_or(Ok(()), |at| Err(format!("byte {at} of the case's memory changed, which is no result's")))
    }
}

/// Address of the block that holds an element.
fn address(p: T, i: [usize; 4]) -> *mut u8 {
    let (unit, _) = block(t(p).r#type);
    let off: usize = (0..4).map(|d| if d == 0 { i[0] / unit } else { i[d] } * t(p).nb[d]).sum();
    t(p).data.cast::<u8>().wrapping_add(off)
}

/// The elements of a tensor by logical index.
pub fn read(p: T) -> Arr {
    let (unit, _) = block(t(p).r#type);
    let ne = ne(p);
    let mut v = Vec::with_capacity(ne.iter().product());
    for i in each(ne).filter(|i| i[0] % unit == 0) {
        // SAFETY: one block inside the tensor's memory.
        v.extend(unsafe { decode(t(p).r#type, address(p, i), unit) });
    }
    Arr { ne, v }
}

/// The bytes of a tensor's elements by logical index, blocks as they are, gaps left out.
pub fn elements(p: T) -> Vec<u8> {
    let (unit, size) = block(t(p).r#type);
    let mut bytes = Vec::with_capacity(ggml_nbytes(p));
    for i in each(ne(p)).filter(|i| i[0] % unit == 0) {
        // SAFETY: one block inside the tensor's memory.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(address(p, i), size) });
    }
    bytes
}

/// Text of this thread's last failure.
pub fn last_error() -> String {
    let mut e = ggml_ext_error {
        struct_size: size_of::<ggml_ext_error>(),
        code: GGML_EXT_CODE_NONE.0,
        text: std::ptr::null(),
        registration: std::ptr::null(),
        node: std::ptr::null(),
    };
    if !ggml_ext_last_error(&mut e) || e.text.is_null() {
        return String::new();
    }
    // SAFETY: the library's text, valid until the next failure.
    unsafe { std::ffi::CStr::from_ptr(e.text) }.to_string_lossy().into_owned()
}

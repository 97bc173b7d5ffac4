//! Random graphs: views, nodes in place, copies, callbacks, odd nodes, storage used by several, whatever the rules speak of.

use crate::ext::facts::Uses;
use crate::graph::{self, build, memory};
use crate::tensor::{copy, elementwise, matmul, misc, new, norm, place, reduce, view, Context, NodeSpec, Place};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::custom;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// A fixed sequence for each seed.
pub(in crate::ext) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
    /// 0 to before `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }
}

/// Spreads the bits of `x`.
pub(in crate::ext) fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// What was drawn, as the drawing knows it and not as the tensor tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ext) enum Kind {
    /// Data without operator.
    Leaf,
    /// A view without operator: no node.
    LooseView,
    /// RESHAPE, VIEW, PERMUTE, TRANSPOSE.
    View,
    /// A node that a fusion may swallow.
    Pure,
    /// A node that does what it should and no more, but is none for fusions.
    Known,
    /// A callback of the caller's.
    Callback,
    /// A node that writes where its operator does not.
    Odd,
}

/// A tensor, and its place in the test's memory.
pub(in crate::ext) struct Info {
    pub t: *mut ggml_tensor,
    pub kind: Kind,
    /// A node of a registered operator.
    pub extension: bool,
    /// Of those that own storage: bytes from the start of the memory, and whether they have it from the start.
    pub offset: usize,
    pub allocated: bool,
}

/// A graph with its tensors.
pub(in crate::ext) struct Drawn {
    ctx: Box<Context>,
    pub infos: Vec<Info>,
    /// All nodes in the order in which they run.
    pub nodes: Vec<*mut ggml_tensor>,
    /// The graph that is planned: all nodes or, of a recorded graph, the first ones.
    pub whole: Option<ggml_cgraph>,
    /// Nodes of `whole` that are one portion.
    pub portion: std::ops::Range<usize>,
    /// Tensors of which some consumer was given a copy.
    pub redirected: Vec<*mut ggml_tensor>,
    /// Bytes of memory.
    pub bytes: usize,
    /// The memory's start; a multiple of 64.
    base: *mut u8,
    last: *mut ggml_tensor,
    /// How often in a thousand a node reads the one before it.
    pub chains: usize,
}

const ROOM: usize = 128;
const ELEMENTS: i64 = 32;

/// The callback behind custom nodes: twice the source plus one.
unsafe extern "C" fn twice_plus_one(dst: *mut ggml_tensor, _: c_int, _: c_int, _: *mut c_void) {
    // SAFETY: the executor calls it with a node whose data are in place; it is contiguous f32, as is its source.
    unsafe {
        let (from, to) = ((*(*dst).src[0]).data.cast::<f32>(), (*dst).data.cast::<f32>());
        for i in 0..shape::nelements(&*dst) as usize {
            *to.add(i) = *from.add(i) * 2.0 + 1.0;
        }
    }
}

unsafe extern "C" fn map1(dst: *mut ggml_tensor, a: *const ggml_tensor, _: c_int, _: c_int, _: *mut c_void) {
    // SAFETY: as `twice_plus_one`.
    unsafe {
        for i in 0..shape::nelements(&*dst) as usize {
            *(*dst).data.cast::<f32>().add(i) = *(*a).data.cast::<f32>().add(i) - 3.0;
        }
    }
}

/// Parameters of a custom node with the function `f`.
fn custom_spec(spec: NodeSpec, f: usize) -> NodeSpec {
    misc::Custom { function: f, n_tasks: 1, user_data: 0 }.into_spec(spec).unwrap()
}

/// What the drawing knows of `t`.
pub(in crate::ext) fn number(t: *const ggml_tensor) -> usize {
    // SAFETY: a tensor of a drawn graph; its number is in a field that is the tests' to use.
    unsafe { (*t).extra.addr() }
}

/// The owner of the storage of `t`.
pub(in crate::ext) fn root(t: *mut ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: a tensor of a drawn graph.
    let root = unsafe { (*t).view_src };
    if root.is_null() {
        t
    } else {
        root
    }
}

/// The sources of `t` that are there.
pub(in crate::ext) fn sources(t: *mut ggml_tensor) -> impl Iterator<Item = *mut ggml_tensor> {
    // SAFETY: a tensor of a drawn graph.
    unsafe { (*t).src }.into_iter().filter(|s| !s.is_null())
}

/// Offset in its storage and bytes.
pub(in crate::ext) fn extent(t: *mut ggml_tensor) -> (usize, usize) {
    // SAFETY: a tensor of a drawn graph.
    unsafe { ((*t).view_offs, shape::nbytes(&*t)) }
}

impl Drawn {
    pub fn new() -> Self {
        // SAFETY: the context allocates its own memory.
        let ctx = unsafe { Context::new(256 << 10, null_mut(), true) }.unwrap();
        Drawn {
            ctx,
            infos: Vec::new(),
            nodes: Vec::new(),
            whole: None,
            portion: 0..0,
            redirected: Vec::new(),
            bytes: 0,
            base: null_mut(),
            last: null_mut(),
            chains: 620,
        }
    }

    pub fn info(&self, t: *const ggml_tensor) -> &Info {
        &self.infos[number(t)]
    }

    /// The nodes of the portion.
    pub fn portion(&self) -> &[*mut ggml_tensor] {
        &self.nodes[self.portion.clone()]
    }

    /// Consumers over the planned graph.
    pub fn uses(&self) -> Uses {
        // SAFETY: the drawn graph.
        let mut uses = unsafe { Uses::of(self.whole.as_ref().unwrap()) };
        self.redirected.iter().for_each(|&t| uses.add(t));
        uses
    }

    fn put(&mut self, kind: Kind, spec: NodeSpec, src: &[*mut ggml_tensor]) -> Option<*mut ggml_tensor> {
        let mut all = [null_mut(); GGML_MAX_SRC];
        all[..src.len()].copy_from_slice(src);
        // SAFETY: sources are tensors of this graph.
        let t = unsafe { place(&mut self.ctx, "test", Ok(spec), &all) };
        // SAFETY: just made.
        let runs = unsafe { ggml_oxide_cpu::supports_op(&*t) && shape::nelements(&*t) <= ELEMENTS };
        if !runs {
            return None;
        }
        // SAFETY: as above.
        unsafe { (*t).extra = std::ptr::without_provenance_mut(self.infos.len()) };
        self.infos.push(Info { t, kind, extension: false, offset: 0, allocated: false });
        if !matches!(kind, Kind::Leaf | Kind::LooseView) {
            self.nodes.push(t);
            self.last = t;
        }
        Some(t)
    }

    fn leaf(&mut self, ty: ggml_type, ne: &[i64]) -> *mut ggml_tensor {
        self.put(Kind::Leaf, new::leaf(ty, ne).unwrap(), &[]).unwrap()
    }

    /// A tensor that `good` takes, often the last one made.
    fn pick(&self, r: &mut Rng, good: impl Fn(&ggml_tensor) -> bool) -> Option<*mut ggml_tensor> {
        for _ in 0..8 {
            let t = match self.last {
                t if !t.is_null() && r.chance(self.chains) => t,
                _ => self.infos[r.below(self.infos.len())].t,
            };
            // SAFETY: a tensor of this graph.
            if good(unsafe { &*t }) {
                return Some(t);
            }
        }
        None
    }

    /// Draws another graph; what was drawn before is gone.
    pub fn draw(&mut self, r: &mut Rng) {
        self.ctx.reset();
        self.infos.clear();
        self.nodes.clear();
        self.redirected.clear();
        self.last = null_mut();
        self.base = null_mut();
        let wide = r.chance(2);
        let loose = r.chance(300);
        for _ in 0..2 + r.below(3) {
            self.leaf(GGML_TYPE_F32, &[4, 4]);
        }
        self.leaf(GGML_TYPE_F32, &[4]);
        self.leaf(GGML_TYPE_F16, &[4, 4]);
        self.leaf(GGML_TYPE_I32, &[2]);
        if wide {
            self.chain(66 + r.below(4));
        } else {
            let want = 3 + r.below(11);
            for _ in 0..want * 3 {
                if self.nodes.len() < want {
                    self.step(r, loose);
                }
            }
        }
        self.flags(r);
        self.order(r, loose, wide);
        let n = self.whole.unwrap().n_nodes as usize;
        let from = if r.chance(600) { 0 } else { r.below(n.min(4)) };
        let to = if r.chance(600) { n } else { n - r.below((n - from).min(4)) };
        self.portion = from..to;
        if !wide && r.chance(60) {
            self.redirected.push(self.nodes[r.below(n)]);
        }
        self.places(r);
    }

    /// One sum of many.
    fn chain(&mut self, n: usize) {
        let mut sum = self.infos[0].t;
        for _ in 0..n {
            let leaf = self.leaf(GGML_TYPE_F32, &[4, 4]);
            // SAFETY: tensors of this graph.
            let spec = unsafe { elementwise::binary(GGML_OP_ADD, &*sum, &*leaf, false) }.unwrap();
            sum = self.put(Kind::Pure, spec, &[sum, leaf]).unwrap();
        }
    }

    /// Tries to add a node, or a view that is none.
    fn step(&mut self, r: &mut Rng, loose: bool) -> Option<()> {
        let f32 = |t: &ggml_tensor| t.r#type == GGML_TYPE_F32;
        let data = |t: &ggml_tensor| t.r#type != GGML_TYPE_I32;
        let whole = |t: &ggml_tensor| t.r#type == GGML_TYPE_F32 && shape::is_contiguous(t);
        let over = r.chance(230);
        let draw = r.below(100);
        // SAFETY: all tensors are this graph's, for all of the function.
        unsafe {
            let (kind, spec, src): (Kind, NodeSpec, Vec<*mut ggml_tensor>) = match draw {
                0..=21 => {
                    let a = self.pick(r, f32)?;
                    let spec = match r.below(5) {
                        0 => elementwise::plain(GGML_OP_SQR, &*a, over),
                        1 => elementwise::unary(GGML_UNARY_OP_NEG, &*a, over),
                        2 => elementwise::unary(GGML_UNARY_OP_SILU, &*a, over),
                        3 => elementwise::clamp(&*a, -2.0, 2.0, over),
                        _ => elementwise::scale(&*a, 1.5, 0.25, over),
                    };
                    (Kind::Pure, spec.ok()?, vec![a])
                }
                22..=46 => {
                    let a = self.pick(r, f32)?;
                    let ne = (*a).ne;
                    let b = self.pick(r, |b| f32(b) && crate::tensor::repeats(b, &ne))?;
                    let op = [GGML_OP_ADD, GGML_OP_MUL, GGML_OP_SUB, GGML_OP_DIV][r.below(4)];
                    (Kind::Pure, elementwise::binary(op, &*a, &*b, over).ok()?, vec![a, b])
                }
                47..=60 => {
                    let a = self.pick(r, data)?;
                    let n = shape::nelements(&*a);
                    let spec = match r.below(4) {
                        0 if shape::is_contiguous(&*a) && n % 2 == 0 => view::reshape(&*a, [n / 2, 2, 1, 1]),
                        1 => view::transpose(&*a),
                        2 => view::permute(&*a, [0, 2, 1, 3]),
                        _ => self.rows(r, &*a)?,
                    };
                    let spec = spec.ok()?;
                    (Kind::View, spec, vec![a])
                }
                61..=68 => {
                    let a = self.pick(r, data)?;
                    let n = shape::nelements(&*a);
                    let b = self.pick(r, |b| data(b) && shape::nelements(b) == n && !std::ptr::eq(a, b))?;
                    (Kind::Pure, copy::cpy(&*a, &*b).ok()?, vec![a, b])
                }
                69..=74 => {
                    let a = self.pick(r, data)?;
                    let ty = if r.chance(500) { GGML_TYPE_F16 } else { GGML_TYPE_F32 };
                    (Kind::Pure, copy::cast(&*a, ty).ok()?, vec![a])
                }
                75..=79 => {
                    let a = self.pick(r, data)?;
                    let spec = match over || r.chance(500) {
                        true => elementwise::plain(GGML_OP_DUP, &*a, over),
                        false => copy::cont(&*a, None),
                    };
                    (Kind::Pure, spec.ok()?, vec![a])
                }
                80..=85 => {
                    let a = self.pick(r, whole)?;
                    let spec = match r.below(4) {
                        0 => norm::soft_max(&*a, None, 1.0, 0.0, over),
                        1 => norm::rows(GGML_OP_RMS_NORM, &*a, 1e-5, over),
                        2 => norm::rows(GGML_OP_NORM, &*a, 1e-5, over),
                        _ => reduce::sum_rows(&*a),
                    };
                    (Kind::Pure, spec.ok()?, vec![a])
                }
                86..=89 => {
                    let a = self.pick(r, whole)?;
                    let (ne0, ne) = ((*a).ne[0], (*a).ne);
                    if r.chance(500) {
                        let b = self.pick(r, |b| whole(b) && b.ne == ne)?;
                        (Kind::Pure, copy::concat(&*a, &*b, 1).ok()?, vec![a, b])
                    } else {
                        let b = self.pick(r, |b| whole(b) && b.ne[0] == ne0 && b.ne[2] == ne[2] && b.ne[3] == ne[3])?;
                        (Kind::Pure, matmul::mul_mat(&*a, &*b).ok()?, vec![a, b])
                    }
                }
                90..=91 => {
                    let ids = self.infos.iter().find(|i| (*i.t).r#type == GGML_TYPE_I32)?.t;
                    let a = self.pick(r, |a| whole(a) && a.ne[1] >= 2 && a.ne[2] == 1 && a.ne[3] == 1)?;
                    if over {
                        let b = self.pick(r, |b| whole(b) && b.ne == [(*a).ne[0], 2, 1, 1])?;
                        (Kind::Known, copy::set_rows(&*b, &*ids, &*a).ok()?, vec![b, ids, a])
                    } else {
                        (Kind::Pure, copy::get_rows(&*a, &*ids).ok()?, vec![a, ids])
                    }
                }
                92..=93 => {
                    let a = self.pick(r, whole)?;
                    let ne = (*a).ne;
                    let b = self.pick(r, |b| {
                        whole(b) && b.ne[0] == ne[0] && b.ne[1] <= ne[1] && b.ne[2] == 1 && b.ne[3] == 1
                    })?;
                    let op = if r.chance(500) { GGML_OP_ACC } else { GGML_OP_SET };
                    (
                        Kind::Pure,
                        elementwise::window(op, &*a, &*b, [(*a).nb[1], (*a).nb[2], (*a).nb[3]], 0, over).ok()?,
                        vec![a, b],
                    )
                }
                94 => {
                    let a = self.pick(r, whole)?;
                    (
                        Kind::Callback,
                        custom_spec(NodeSpec::like(GGML_OP_MAP_CUSTOM1, &*a), map1 as *const () as usize),
                        vec![a],
                    )
                }
                95..=96 => {
                    let a = self.pick(r, whole)?;
                    let function = twice_plus_one as *const () as usize;
                    let kind = if r.chance(850) { Kind::Pure } else { Kind::Callback };
                    let place = if over { Place::Alias { of: 0 } } else { Place::Own };
                    let kind = if over && kind == Kind::Pure { Kind::Odd } else { kind };
                    let spec = NodeSpec { place, ..custom_spec(NodeSpec::like(GGML_OP_CUSTOM, &*a), function) };
                    let t = self.put(kind, spec, &[a])?;
                    self.infos[number(t)].extension = kind != Kind::Callback;
                    return Some(());
                }
                97 => {
                    let a = self.pick(r, whole)?;
                    let ne = (*a).ne;
                    let b = self.pick(r, |b| whole(b) && b.ne == ne)?;
                    let spec = elementwise::plain(GGML_OP_SQR, &*a, false).ok()?;
                    let spec = NodeSpec {
                        place: Place::Alias { of: 1 },
                        n_src: if loose && r.chance(500) { 1 } else { 2 },
                        ..spec
                    };
                    if root(a) == root(b) && extent(a) == extent(b) {
                        return None;
                    }
                    (Kind::Odd, spec, vec![a, b])
                }
                _ => {
                    if loose {
                        let a = self.pick(r, f32)?;
                        self.put(Kind::LooseView, new::view_tensor(&*a), &[a])?;
                    }
                    return Some(());
                }
            };
            self.put(kind, spec, &src)?;
        }
        Some(())
    }

    /// Some rows of `a`, as far as its storage goes.
    fn rows(&self, r: &mut Rng, a: &ggml_tensor) -> Option<Result<NodeSpec, crate::error::Error>> {
        let (n, from) = (1 + r.below(a.ne[1] as usize), r.below(2));
        let room = extent(root(std::ptr::from_ref(a).cast_mut())).1;
        let end = a.view_offs + (from + n - 1) * a.nb[1] + a.ne[0] as usize * a.nb[0];
        let fits = end <= room && shape::is_contiguous_rows(a);
        fits.then(|| view::view(a, &[a.ne[0], n as i64], &[a.nb[1]], from * a.nb[1]))
    }

    fn flags(&mut self, r: &mut Rng) {
        for info in &self.infos {
            let node = !matches!(info.kind, Kind::Leaf | Kind::LooseView);
            let mut flags = if node { GGML_TENSOR_FLAG_COMPUTE.0 } else { 0 };
            let rare = [(GGML_TENSOR_FLAG_INPUT, 8), (GGML_TENSOR_FLAG_PARAM, 8), (GGML_TENSOR_FLAG_LOSS, 4)];
            for (flag, per_mille) in rare.into_iter().chain([(GGML_TENSOR_FLAG_OUTPUT, 50)]) {
                if r.chance(per_mille) {
                    flags |= flag.0;
                }
            }
            // SAFETY: a tensor of this graph.
            unsafe { (*info.t).flags = flags };
        }
    }

    /// Puts the nodes into a graph, as they were made or as the graph grows them.
    fn order(&mut self, r: &mut Rng, loose: bool, wide: bool) {
        let graph = memory::new(&mut self.ctx, ROOM, false).unwrap();
        // SAFETY: the graph and tensors of this drawing, for all of the function.
        unsafe {
            let graph = &mut *graph;
            let recorded = !wide && r.chance(400);
            if recorded {
                for info in &self.infos {
                    build::expand(graph, info.t, true).unwrap();
                }
            } else {
                if r.chance(40) {
                    let (a, b) = (r.below(self.nodes.len()), r.below(self.nodes.len()));
                    self.nodes.swap(a, b);
                }
                self.nodes.iter().for_each(|&t| build::add_node(graph, t).unwrap());
            }
            if !wide && r.chance(40) {
                let again = self.nodes[r.below(self.nodes.len())];
                build::add_node(graph, again).unwrap();
            } else if recorded && !loose && r.chance(300) {
                // the rest is known by the graph's record only
                let n = graph.n_nodes;
                self.nodes = graph::nodes(graph).to_vec();
                self.whole = Some(memory::view(graph, 0, 1 + r.below(n as usize) as i32));
                self.forget_marks(r);
                return;
            }
            self.nodes = graph::nodes(graph).to_vec();
            self.whole = Some(*graph);
            self.forget_marks(r);
        }
    }

    /// Some nodes are not to be computed.
    fn forget_marks(&mut self, r: &mut Rng) {
        for &t in &self.nodes {
            if r.chance(8) {
                // SAFETY: a tensor of this graph.
                unsafe { (*t).flags &= !GGML_TENSOR_FLAG_COMPUTE.0 };
            }
        }
    }

    /// Lays the memory out: each owner by itself, but for some of those that have their place from the start.
    fn places(&mut self, r: &mut Rng) {
        self.bytes = 0;
        let mut fixed: Vec<usize> = Vec::new();
        for info in &mut self.infos {
            if root(info.t) != info.t {
                continue;
            }
            let (leaf, bytes) = (info.kind == Kind::Leaf, extent(info.t).1);
            info.allocated = r.chance(if leaf { 500 } else { 35 });
            // SAFETY: a tensor of this graph.
            let ids = unsafe { (*info.t).r#type } == GGML_TYPE_I32;
            if info.allocated && !ids && !fixed.is_empty() && r.chance(250) {
                info.offset = fixed[r.below(fixed.len())] + 16 * r.below(3);
                continue;
            }
            info.offset = self.bytes;
            self.bytes = (self.bytes + bytes).next_multiple_of(64);
            if info.allocated && !ids {
                // room for others that begin in here
                fixed.push(info.offset);
                self.bytes += 192;
            }
        }
    }

    /// Gives the tensors that have their place from the start their addresses in memory at `base`, and the nodes of registered operators
    /// their marker: the graph is as the rules see it.
    pub fn begin(&mut self, base: *mut u8) {
        self.base = base;
        for info in &self.infos {
            // SAFETY: a tensor of this graph.
            unsafe {
                if self.infos[number(root(info.t))].allocated {
                    self.point(info);
                }
                if info.extension {
                    set_function(info.t, custom::marker as *const () as usize);
                }
            }
        }
    }

    /// Gives all tensors their addresses, and the nodes of registered operators a function: the graph can be computed.
    pub fn complete(&mut self) {
        for info in &self.infos {
            // SAFETY: a tensor of this graph.
            unsafe {
                self.point(info);
                if info.extension {
                    set_function(info.t, twice_plus_one as *const () as usize);
                }
            }
        }
    }

    unsafe fn point(&self, info: &Info) {
        let at = self.infos[number(root(info.t))].offset;
        // SAFETY: the caller's tensor.
        unsafe { (*info.t).data = self.base.wrapping_add(at + (*info.t).view_offs).cast() };
    }
}

unsafe fn set_function(t: *mut ggml_tensor, function: usize) {
    // SAFETY: the parameters begin with the address of the function.
    unsafe { (&raw mut (*t).op_params).cast::<usize>().write_unaligned(function) };
}

//! The scheduler itself: its state between calls, and the stages in order.

use super::assign::{self, Team};
use super::copies::Copies;
use super::layout::{Keep, Layout};
use super::numbering::Numbering;
use super::planning::Planned;
use super::split::{self, GraphInput, Pipeline, Split, Splitter};
use super::{MAX_BACKENDS, MAX_COPIES};
use crate::alloc::{Fit, Gallocr};
use crate::backend::{Backend, Buft, Event};
use crate::error::Error;
use crate::ext::workspace::Workspace;
use crate::ext::{policy, registry};
use crate::graph;
use ggml_oxide_abi::*;
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::PathBuf;

/// What an opaque `ggml_backend_sched` is.
pub struct Sched {
    pub(super) team: Team,
    pub(super) galloc: Gallocr,
    numbering: Numbering,
    /// By tensor number; empty for a team of one.
    homes: Vec<i32>,
    /// By address: backends that the client chose, until the next reset.
    pinned: HashMap<usize, i32>,
    copies: Copies,
    pub(super) splits: Vec<Split>,
    graph_inputs: Vec<GraphInput>,
    /// What must outlive its last reader, as the backends said.
    keep: Keep,
    /// By node and leaf of the last layout: its buffer.
    buffers: (Vec<i32>, Vec<i32>),
    /// By group of copies in the last layout, and by copy: buffer and address.
    places: Vec<Vec<(*mut ggml_backend_buffer, *mut c_void)>>,
    /// The nodes of the graph at hand: what is computed must be what was prepared.
    at_hand: (*mut *mut ggml_tensor, i32),
    n_copies: usize,
    pub(super) current: usize,
    next: usize,
    /// By backend and copy.
    pub(super) events: Vec<Vec<Option<Event>>>,
    pub(super) callback: ggml_backend_sched_eval_callback,
    pub(super) callback_data: *mut c_void,
    stage: Stage,
    debug: bool,
    /// The file that the graph at hand is still to be explained in.
    pub(super) explains: Option<PathBuf>,
    /// By backend: scratch memory of its plans.
    pub(super) workspaces: Vec<Workspace>,
    pub(super) planned: Planned,
}

/// How far the graph at hand has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Reset,
    /// It was split.
    Split,
    /// It has its memory.
    Allocated,
}

impl Sched {
    /// A scheduler over `backends`, the first of highest priority and the last of the host; `bufts`: their memory, their own if `None`.
    pub fn new(backends: &[Backend], bufts: Option<&[Buft]>, parallel: bool, op_offload: bool) -> Result<Self, Error> {
        let last = match backends {
            [.., last] if backends.len() <= MAX_BACKENDS => last,
            _ => {
                let n = backends.len();
                return Err(Error::argument(format!("{n} backends were given, it can be 1 to {MAX_BACKENDS}")));
            }
        };
        if last.device().is_none_or(|d| d.kind() != GGML_BACKEND_DEVICE_TYPE_CPU) {
            return Err(Error::argument(format!("the last backend must be the host's, '{}' is not", last.name())));
        }
        let mut memory = Vec::new();
        for (i, backend) in backends.iter().enumerate() {
            let buft = bufts.map_or_else(|| backend.buft(), |list| list.get(i).copied());
            match buft.filter(|&b| backend.supports_buft(b)) {
                Some(buft) => memory.push(buft),
                None => {
                    let name = buft.map_or("NULL", Buft::name);
                    return Err(Error::argument(format!("backend '{}' cannot use memory '{name}'", backend.name())));
                }
            }
        }
        let n_copies = if parallel { MAX_COPIES } else { 1 };
        let event = |b: &Backend| if parallel { b.device().and_then(Event::new) } else { None };
        let events = backends.iter().map(|b| (0..n_copies).map(|_| event(b)).collect()).collect();
        Ok(Sched {
            galloc: Gallocr::new(&memory),
            team: Team { backends: backends.to_vec(), bufts: memory, op_offload },
            numbering: Numbering::default(),
            homes: Vec::new(),
            pinned: HashMap::new(),
            copies: Copies::default(),
            splits: Vec::new(),
            graph_inputs: Vec::new(),
            keep: Keep::new(),
            buffers: (Vec::new(), Vec::new()),
            places: Vec::new(),
            at_hand: (std::ptr::null_mut(), 0),
            n_copies,
            current: 0,
            next: 0,
            events,
            callback: None,
            callback_data: std::ptr::null_mut(),
            stage: Stage::Reset,
            explains: None,
            workspaces: backends.iter().map(|_| Workspace::default()).collect(),
            planned: Planned::default(),
            debug: std::env::var("GGML_SCHED_DEBUG").is_ok_and(|v| v.parse::<i32>().is_ok_and(|n| n > 0)),
        })
    }

    /// Forgets the graph at hand and the client's choices of backends. The buffers stay.
    pub fn reset(&mut self) {
        self.stage = Stage::Reset;
        self.pinned.clear();
        self.homes.clear();
        self.forget_plans();
    }

    /// Stages 1 to 4: splits the graph. The graph's nodes read copies afterwards where they must.
    ///
    /// # Safety
    /// The graph, its tensors, what they read and view, and their buffers are live, and nobody else uses them.
    pub unsafe fn split(&mut self, graph: *mut ggml_cgraph) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let g = unsafe { graph.as_mut() }.ok_or_else(|| Error::argument("the graph is NULL"))?;
        // SAFETY: as above.
        if let Some(fault) = unsafe { graph::fault(g) } {
            return Err(fault);
        }
        if registry::any_kernel() {
            // placing the nodes and choosing who computes them go by the same switches
            policy::refresh();
        }
        self.stage = Stage::Reset;
        self.forget_plans();
        self.graph_inputs.clear();
        self.keep.clear();
        g.uid = graph::next_uid();
        // SAFETY: as above, for all of it.
        unsafe {
            if self.alone() {
                self.team.check_single(graph::checked_nodes(g)?, graph::checked_leafs(g)?)?;
                self.splits = split::single(g);
            } else {
                self.numbering.read(g, &self.copies)?;
                let pinned = self.pinned.iter().map(|(&t, &backend)| (t, backend));
                self.homes = assign::assign(&self.team, &self.numbering, pinned)?;
                self.copies.begin();
                let pipeline = Pipeline { n: self.n_copies, current: self.current };
                let mut splitter = Splitter::new(&self.team, &self.numbering, &self.homes, &mut self.copies, pipeline);
                self.splits = splitter.split(g)?;
                self.graph_inputs = splitter.graph_inputs()?;
            }
            self.plan(g)?;
            self.optimize();
        }
        if self.debug {
            self.log_splits();
        }
        self.stage = Stage::Split;
        Ok(())
    }

    /// One backend, one copy: the graph is its own only split.
    fn alone(&self) -> bool {
        self.team.backends.len() == 1 && self.n_copies == 1
    }

    /// Lets each backend reorder the nodes that its own code runs, and say what must live longer.
    unsafe fn optimize(&mut self) {
        for split in &mut self.splits {
            let keep = &mut self.keep;
            let backend = self.team.backends[split.backend as usize];
            if !backend.has_optimize() {
                continue;
            }
            let mut add = |tensor: *mut ggml_tensor, until| {
                let list: &mut Vec<_> = keep.entry(until).or_default();
                if !tensor.is_null() && !list.contains(&tensor) {
                    list.push(tensor);
                }
            };
            match &split.plan {
                // SAFETY: the promise of `split`.
                None => unsafe { backend.optimize(&mut split.graph, add) },
                Some(plan) => plan.native().for_each(|nodes| {
                    let mut part = graph::view(&split.graph, nodes.start as i32, nodes.end as i32);
                    // SAFETY: the promise of `split`.
                    unsafe { backend.optimize(&mut part, &mut add) }
                }),
            }
        }
    }

    fn home(&self, t: *mut ggml_tensor) -> i32 {
        self.numbering.number_of(t.addr()).and_then(|n| self.homes.get(n as usize).copied()).unwrap_or(0)
    }

    /// Stage 5, for a graph that was split: the graph for the allocator, `None` where it is the client's own.
    unsafe fn layout(&mut self, graph: &ggml_cgraph) -> Result<Option<Layout>, Error> {
        if self.alone() && self.keep.is_empty() {
            return Ok(None);
        }
        let mut copies = std::mem::take(&mut self.copies);
        // SAFETY: the promise of the callers.
        let layout = unsafe {
            let home = |t| self.home(t);
            Layout::new(graph, &self.splits, &self.graph_inputs, self.current, &self.keep, &mut copies, home)
        };
        self.copies = copies;
        layout.map(Some)
    }

    /// Splits `graph` and gives it its memory.
    ///
    /// # Safety
    /// As [`Sched::split`].
    pub unsafe fn prepare(&mut self, graph: *mut ggml_cgraph) -> Result<(), Error> {
        if self.stage == Stage::Allocated {
            return Err(Error::argument("the scheduler has a graph: reset it before it is given another"));
        }
        self.current = self.next;
        self.next = (self.next + 1) % self.n_copies;
        // SAFETY: the caller's promise.
        let placed = unsafe {
            self.split(graph).and_then(|()| {
                self.skip(&*graph)?;
                match self.layout(&*graph)? {
                    None => self.allocate_own(&*graph)?,
                    Some(layout) => self.allocate(layout)?,
                }
                self.reserve_workspaces()
            })
        };
        if placed.is_err() {
            // a graph that does not run holds no registrations
            self.forget_plans();
        }
        placed?;
        self.stage = Stage::Allocated;
        // SAFETY: the caller's promise.
        unsafe {
            self.at_hand = ((*graph).nodes, (*graph).n_nodes);
            self.explain_allocated();
        }
        Ok(())
    }

    unsafe fn allocate_own(&mut self, graph: &ggml_cgraph) -> Result<(), Error> {
        // SAFETY: the promise of `prepare`.
        unsafe {
            let fit = match self.galloc.fit(graph)? {
                Some(fit) => fit,
                None => self.galloc.lay_out(graph, None, None)?,
            };
            self.galloc.alloc_fitting(&fit)
        }
    }

    unsafe fn allocate(&mut self, mut layout: Layout) -> Result<(), Error> {
        let graph = layout.graph();
        let buft = |b: &i32| self.team.bufts.get(*b as usize);
        let same = |old: &[i32], new: &[i32]| {
            old == new || old.len() == new.len() && old.iter().map(buft).eq(new.iter().map(buft))
        };
        let known = same(&self.buffers.0, &layout.node_buffers) && same(&self.buffers.1, &layout.leaf_buffers);
        // SAFETY: the promise of `prepare`; the layout lives through the calls.
        unsafe {
            let fit = match if known { self.galloc.fit(&graph)? } else { None } {
                Some(fit) => {
                    self.place_copies(&layout)?;
                    fit
                }
                None => {
                    // buffers may move: what still runs in them must end first
                    self.synchronize_all();
                    self.reserve_layout(&graph, &mut layout)?
                }
            };
            self.galloc.alloc_fitting(&fit)?;
            self.note_copies(&layout);
        }
        Ok(())
    }

    /// Gives the copies of the pipeline the places that they had: the plan knows them by order of use, not by number.
    unsafe fn place_copies(&self, layout: &Layout) -> Result<(), Error> {
        for (i, places) in self.places.iter().enumerate().take(layout.groups) {
            for (k, &t) in layout.group(i).iter().enumerate() {
                let (buffer, data) = places[(self.current + k) % places.len()];
                // SAFETY: live tensors; the buffers are those of the plan that fits.
                unsafe {
                    if (*t).data.is_null() && (*t).buffer.is_null() && (*t).view_src.is_null() {
                        ((*t).buffer, (*t).data) = (buffer, data);
                        let placed = crate::backend::Buffer::from_raw(buffer).map(|b| b.init_tensor(t));
                        if placed.is_some_and(|status| status != GGML_STATUS_SUCCESS) {
                            return Err(Error::new(GGML_EXT_CODE_BACKEND, "the buffer cannot take a copy of an input"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    unsafe fn note_copies(&mut self, layout: &Layout) {
        self.places.clear();
        for i in 0..layout.groups {
            let group = layout.group(i);
            let mut places = vec![(std::ptr::null_mut(), std::ptr::null_mut()); group.len()];
            for (k, &t) in group.iter().enumerate() {
                // SAFETY: live tensors.
                places[(self.current + k) % group.len()] = unsafe { ((*t).buffer, (*t).data) };
            }
            self.places.push(places);
        }
    }

    unsafe fn reserve_layout(&mut self, graph: &ggml_cgraph, layout: &mut Layout) -> Result<Fit, Error> {
        self.buffers = (Vec::new(), Vec::new());
        self.places.clear();
        // SAFETY: the promise of the callers.
        let fit = unsafe { self.galloc.lay_out(graph, Some(&layout.node_buffers), Some(&layout.leaf_buffers)) }?;
        self.buffers = (std::mem::take(&mut layout.node_buffers), std::mem::take(&mut layout.leaf_buffers));
        Ok(fit)
    }

    /// Lays the buffers out for `graph` and forgets it.
    ///
    /// # Safety
    /// As [`Sched::split`].
    pub unsafe fn reserve(&mut self, graph: *mut ggml_cgraph) -> Result<(), Error> {
        self.synchronize();
        // SAFETY: the caller's promise.
        let result = unsafe {
            self.split(graph).and_then(|()| {
                self.skip(&*graph)?;
                match self.layout(&*graph)? {
                    None => drop(self.galloc.lay_out(&*graph, None, None)?),
                    Some(mut layout) => {
                        let graph = layout.graph();
                        self.reserve_layout(&graph, &mut layout)?;
                    }
                }
                self.reserve_workspaces()
            })
        };
        self.reset();
        result
    }

    /// Bytes of each backend's buffer that [`Sched::reserve`] would lay out; the graph is forgotten.
    ///
    /// # Safety
    /// As [`Sched::split`].
    pub unsafe fn sizes(&mut self, graph: *mut ggml_cgraph) -> Result<Vec<usize>, Error> {
        self.reset();
        self.synchronize();
        // SAFETY: the caller's promise.
        let result = unsafe {
            self.split(graph).and_then(|()| {
                self.skip(&*graph)?;
                let mut sizes = match self.layout(&*graph)? {
                    None => self.galloc.sizes(&*graph, None, None)?,
                    Some(mut layout) => {
                        let graph = layout.graph();
                        self.galloc.sizes(&graph, Some(&layout.node_buffers), Some(&layout.leaf_buffers))?
                    }
                };
                sizes.iter_mut().zip(self.workspace_sizes()).for_each(|(size, extra)| *size += extra);
                Ok(sizes)
            })
        };
        self.reset();
        result
    }

    /// Starts computing `graph`, which is split and allocated first unless it was.
    ///
    /// # Safety
    /// As [`Sched::split`], until the scheduler was synchronised.
    pub unsafe fn compute_async(&mut self, graph: *mut ggml_cgraph) -> Result<ggml_status, Error> {
        if self.stage == Stage::Split {
            self.reset();
        }
        // SAFETY: the caller's promise.
        unsafe {
            let g = graph.as_ref().ok_or_else(|| Error::argument("the graph is NULL"))?;
            if self.stage != Stage::Allocated {
                self.prepare(graph)?;
            } else if self.at_hand != (g.nodes, g.n_nodes) {
                return Err(Error::argument("the scheduler has another graph: reset it first"));
            }
        }
        // SAFETY: as above.
        unsafe {
            let result = self.run();
            self.explain_now();
            result
        }
    }

    /// Whether there is a graph at hand that has its memory.
    pub fn has_graph(&self) -> bool {
        self.stage == Stage::Allocated
    }

    /// Whether the graph at hand is `graph` and has its memory.
    pub fn holds(&self, graph: &ggml_cgraph) -> bool {
        self.has_graph() && self.at_hand == (graph.nodes, graph.n_nodes)
    }

    fn synchronize_all(&self) {
        self.team.backends.iter().for_each(|b| b.synchronize());
    }

    /// Waits for all backends.
    pub fn synchronize(&mut self) {
        self.synchronize_all();
        if self.stage != Stage::Allocated {
            // the same copy for graphs that run one at a time: backends that record graphs see the same addresses
            self.next = 0;
        }
    }

    /// Whom `callback` tells of each node.
    pub fn set_callback(&mut self, callback: ggml_backend_sched_eval_callback, data: *mut c_void) {
        (self.callback, self.callback_data) = (callback, data);
    }

    /// Splits of the graph at hand.
    pub fn n_splits(&self) -> usize {
        self.splits.len()
    }

    /// Copies of the pipeline.
    pub fn n_copies(&self) -> usize {
        self.n_copies
    }

    /// The backends by priority.
    pub fn backends(&self) -> &[Backend] {
        &self.team.backends
    }

    /// The number of `backend`.
    pub fn number_of(&self, backend: Backend) -> Result<usize, Error> {
        let found = self.team.backends.iter().position(|&b| b == backend);
        found.ok_or_else(|| Error::argument(format!("the scheduler has no backend '{}'", backend.name())))
    }

    /// The memory of backend number `b`.
    pub fn buft(&self, b: usize) -> Option<Buft> {
        self.team.bufts.get(b).copied()
    }

    /// Bytes of the buffer of backend number `b`, 0 when it shares that of an earlier one, and of its scratch memory.
    pub fn buffer_size(&self, b: usize) -> usize {
        self.galloc.buffer_size(b).unwrap_or(0) + self.workspaces.get(b).map_or(0, Workspace::size)
    }

    /// Lets `t` be computed by backend number `b`, until the next reset.
    pub fn pin(&mut self, t: *mut ggml_tensor, b: usize) {
        self.pinned.insert(t.addr(), b as i32);
    }

    /// The backend of `t`: the client's choice, or that of the graph at hand.
    pub fn backend_of(&self, t: *mut ggml_tensor) -> Option<Backend> {
        let home = match self.pinned.get(&t.addr()) {
            Some(&home) => home,
            None if self.stage == Stage::Reset => return None,
            None if self.alone() => 0,
            None => self.numbering.number_of(t.addr()).and_then(|n| self.homes.get(n as usize).copied())?,
        };
        self.team.backends.get(home as usize).copied()
    }

    fn log_splits(&self) {
        for (i, split) in self.splits.iter().enumerate() {
            let name = self.team.backends[split.backend as usize].name();
            let (n, inputs) = (split.graph.n_nodes, split.inputs.len());
            crate::log::line(GGML_LOG_LEVEL_DEBUG, &format!("split {i}: {name}, {n} nodes, {inputs} inputs"));
        }
    }
}

impl Drop for Sched {
    fn drop(&mut self) {
        for event in self.events.drain(..).flatten().flatten() {
            // SAFETY: the scheduler's own events; it is used no more.
            unsafe { event.free() }
        }
    }
}

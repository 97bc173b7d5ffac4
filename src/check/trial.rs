//! One graph, planned, placed and run; what a run did that it must not do.

use super::arena::{Arena, Fill, Scratch};
use super::built::Built;
use super::compare::Values;
use super::contents::Contents;
use super::inputs::pieces;
use crate::backend::Backend;
use crate::error::{self, Error};
use crate::ext::facts::Uses;
use crate::ext::plan::{self, Launch};
use crate::ext::policy::{self, Policy};
use crate::ext::{op, select, Plan};
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::table::is_view_op;
use ggml_oxide_shape as shape;
use std::collections::HashSet;
use std::ffi::c_void;

/// A graph and its plan. Nothing has memory.
pub struct Planned {
    /// `None`: all of it is the backend's own code.
    pub plan: Option<Plan>,
    /// The graph.
    pub built: Built,
    /// Who computes it.
    pub backend: Backend,
}

/// How a graph is planned.
pub struct How {
    /// Who computes it.
    pub backend: Backend,
    /// What is forced and forbidden.
    pub policy: Policy,
    /// Rules are asked.
    pub fuses: bool,
}

impl Planned {
    /// Makes the plan.
    ///
    /// # Safety
    /// The backend is live, and stays so.
    pub unsafe fn new(mut built: Built, how: How) -> Result<Self, Error> {
        let graph = built.graph();
        // SAFETY: a graph of `built`, live and used by nobody else.
        let plan = policy::with(how.policy, || unsafe {
            let uses = how.fuses.then(|| Uses::of(graph));
            error::aside(|| plan::build(how.backend, graph, uses.as_ref())).0
        })?;
        Ok(Planned { plan, built, backend: how.backend })
    }

    /// What the registration is to do.
    pub fn launches(&self, name: &str) -> Vec<&Launch> {
        self.plan.iter().flat_map(Plan::launches).filter(|l| l.kernel.name == name).collect()
    }

    /// Why the registration was not chosen, if somebody asked.
    pub fn refusal(&self, name: &str) -> String {
        let tried = self.plan.iter().flat_map(|p| &p.tried).find(|(_, tried)| tried.name == name);
        match tried {
            Some((i, tried)) => {
                // SAFETY: a node of the graph.
                let node = self.built.nodes().get(*i).map_or(String::new(), |&t| shape::name(unsafe { &*t }));
                format!("at node '{node}': {}", tried.reason)
            }
            None => "no node is one that it is asked about".into(),
        }
    }

    /// The first node that is left to the backend's own code, which cannot compute it.
    pub fn unsupported(&self) -> Option<String> {
        let nodes = self.built.nodes();
        let all = || std::iter::once(0..nodes.len());
        let native: Vec<_> = match &self.plan {
            Some(plan) => plan.native().collect(),
            None => all().collect(),
        };
        let device = self.backend.device()?;
        native.into_iter().flatten().find_map(|i| {
            // SAFETY: a node of the graph.
            let t = unsafe { &**nodes.get(i)? };
            let idle = is_view_op(t.op) || shape::is_empty(t);
            let missing = !idle && !select::supports_native(device, t);
            missing.then(|| {
                format!("device '{}' cannot compute {} of '{}'", device.name(), op::op_name(t), shape::name(t))
            })
        })
    }

    /// Gives everything but what is skipped its memory. `over`: a node that is placed over a source.
    ///
    /// # Safety
    /// The backend is live.
    pub unsafe fn place(self, over: Option<(*mut ggml_tensor, *mut ggml_tensor)>) -> Result<Placed, Error> {
        let nodes = self.built.nodes();
        let skipped: HashSet<_> = self.plan.iter().flat_map(Plan::skipped).map(|i| nodes[i]).collect();
        let (owners, views) = storage(&self.built, |t| !skipped.contains(&t));
        // SAFETY: tensors of this graph, which have no memory yet; the arena goes before them.
        let arena = unsafe { Arena::new(self.backend, &owners, &views, over) }?;
        let scratch = Scratch::new(self.backend, self.plan.as_ref().map_or(0, |p| p.workspace))?;
        Ok(Placed { arena, scratch, planned: self })
    }
}

/// Tensors of the graph that are to have memory of their own, and those that view others; as far as they are wanted.
pub fn storage(
    built: &Built,
    wanted: impl Fn(*mut ggml_tensor) -> bool,
) -> (Vec<*mut ggml_tensor>, Vec<*mut ggml_tensor>) {
    let mut used: HashSet<*mut ggml_tensor> = built.nodes().iter().copied().collect();
    used.extend(built.inputs.iter().map(|i| i.tensor));
    // SAFETY: tensors of the graph are live.
    let root = |t: *mut ggml_tensor| unsafe { (*t).view_src };
    used.extend(used.clone().into_iter().map(root).filter(|t| !t.is_null()));
    let all = built.tensors().into_iter().filter(|t| used.contains(t) && wanted(*t));
    all.partition(|&t| root(t).is_null())
}

/// Puts the elements of inputs that lie in `arena` into `image`.
pub fn put(built: &Built, arena: &Arena, contents: &Contents, image: &mut [u8]) {
    for (input, bytes) in built.inputs.iter().zip(contents).filter(|(i, _)| i.twin.is_none()) {
        // SAFETY: an input of the graph.
        let t = unsafe { &*input.tensor };
        let Some(start) = arena.offset(t) else { continue };
        pieces(t.r#type, &t.ne, &t.nb, |at, to, n| {
            image[start + to..start + to + n].copy_from_slice(&bytes[at..at + n]);
        });
    }
}

/// A graph with memory.
pub struct Placed {
    arena: Arena,
    scratch: Scratch,
    /// Graph and plan.
    pub planned: Planned,
}

/// Something that a run must not do.
pub struct Damage {
    /// The case that is about it.
    pub case: &'static str,
    /// What.
    pub text: String,
}

/// What a run gave.
pub struct Ran {
    /// The result and what else is looked at.
    pub outputs: Vec<Values>,
    /// What went wrong besides.
    pub damage: Vec<Damage>,
}

/// Everything in a tensor that is not its contents.
#[derive(PartialEq)]
struct Meta {
    form: (ggml_type, [i64; GGML_MAX_DIMS], [usize; GGML_MAX_DIMS]),
    node: (ggml_op, [i32; GGML_MAX_OP_PARAMS / 4], i32, [*mut ggml_tensor; GGML_MAX_SRC]),
    place: (*mut ggml_backend_buffer, *mut c_void, *mut ggml_tensor, usize),
}

impl Placed {
    fn metas(&self) -> Vec<Meta> {
        let meta = |t: *mut ggml_tensor| {
            // SAFETY: a tensor of the graph.
            let t = unsafe { &*t };
            Meta {
                form: (t.r#type, t.ne, t.nb),
                node: (t.op, t.op_params, t.flags, t.src),
                place: (t.buffer, t.data, t.view_src, t.view_offs),
            }
        };
        self.planned.built.tensors().into_iter().map(meta).collect()
    }

    /// By byte: nodes that are computed may write it.
    fn writable(&self, n: usize) -> Vec<bool> {
        let mut map = vec![false; n];
        let room = |t: *mut ggml_tensor| self.arena.regions.iter().find(|r| r.tensor == t).map_or(0, |r| r.room);
        for &node in self.planned.built.nodes() {
            // SAFETY: a node of the graph.
            let t = unsafe { &*node };
            let Some(start) = self.arena.offset(t).filter(|_| !is_view_op(t.op)) else { continue };
            if t.view_src.is_null() {
                map[start..start + room(node).max(shape::nbytes(t))].fill(true);
            } else {
                pieces(t.r#type, &t.ne, &t.nb, |_, to, n| map[start + to..start + to + n].fill(true));
            }
        }
        map
    }

    /// By byte: it is an element of an input.
    fn elements(&self, n: usize) -> Vec<bool> {
        let mut map = vec![false; n];
        for input in &self.planned.built.inputs {
            // SAFETY: an input of the graph.
            let t = unsafe { &*input.tensor };
            if let Some(start) = self.arena.offset(t) {
                pieces(t.r#type, &t.ne, &t.nb, |_, to, n| map[start + to..start + to + n].fill(true));
            }
        }
        map
    }

    /// Computes the graph on these contents.
    ///
    /// # Safety
    /// The backend is live.
    pub unsafe fn run(&mut self, contents: &Contents, fill: Fill) -> Result<Ran, String> {
        let mut before = self.arena.blank(fill);
        put(&self.planned.built, &self.arena, contents, &mut before);
        self.arena.load(&mut before);
        self.scratch.load(fill);
        let metas = self.metas();
        let backend = self.planned.backend;
        let graph = self.planned.built.graph();
        let n = graph.n_nodes.max(0) as usize;
        let (status, failure) = error::aside(|| {
            // SAFETY: the graph of the plan; its tensors have their memory, and stay until the backend is synchronised.
            let status = unsafe {
                match &self.planned.plan {
                    Some(plan) => plan.run(graph, 0..n, self.scratch.buffer()),
                    None => Ok(backend.compute_async(graph)),
                }
            };
            backend.synchronize();
            status
        });
        match status {
            Err(e) => return Err(e.text),
            Ok(GGML_STATUS_SUCCESS) => {}
            Ok(status) => return Err(format!("{status:?}: {failure}")),
        }
        let mut damage = Vec::new();
        if self.metas() != metas {
            damage.push(Damage {
                case: "metadata",
                text: "a tensor has other metadata after the step than before".into(),
            });
        }
        let after = self.arena.read();
        let writable = self.writable(after.len());
        let changed: Vec<usize> = (0..after.len()).filter(|&i| before[i] != after[i] && !writable[i]).collect();
        if !changed.is_empty() {
            let elements = self.elements(after.len());
            for (case, of_inputs) in [("guards", false), ("inputs", true)] {
                if let Some(&at) = changed.iter().find(|&&at| elements[at] == of_inputs) {
                    damage.push(Damage { case, text: format!("{} was written", self.arena.describe(at)) });
                }
            }
        }
        if let Some(text) = self.scratch.damage(fill) {
            damage.push(Damage { case: "workspace", text: format!("{text} was written") });
        }
        Ok(Ran { outputs: self.outputs(&after), damage })
    }

    fn outputs(&self, image: &[u8]) -> Vec<Values> {
        let values = |&output: &*mut ggml_tensor| {
            // SAFETY: a tensor of the graph.
            let t = unsafe { &*output };
            let mut bytes = Vec::new();
            if let Some(start) = self.arena.offset(t) {
                pieces(t.r#type, &t.ne, &t.nb, |_, to, n| bytes.extend_from_slice(&image[start + to..start + to + n]));
            }
            Values { name: shape::name(t), ty: t.r#type, ne: t.ne, bytes }
        };
        self.planned.built.outputs.iter().map(values).collect()
    }
}

/// Nodes of a launch.
pub fn nodes_of(planned: &Planned, launch: &Launch) -> Vec<*mut ggml_tensor> {
    planned.built.nodes().get(launch.nodes.clone()).unwrap_or(&[]).to_vec()
}

/// How often `tensor` is read in the graph.
pub fn uses_of(planned: &mut Planned, tensor: *const ggml_tensor) -> i32 {
    // SAFETY: a graph that was grown, and a tensor of it.
    unsafe { graph::use_count(planned.built.graph(), tensor) }
}

//! The author's graph, built anew for each case, with what the case adds to it.

use super::author::Author;
use super::inputs::{self, Input, Variant};
use crate::alloc::inplace;
use crate::error::{self, Error};
use crate::graph::{self, build, memory};
use crate::tensor::{self, copy, view, Context};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashSet;
use std::ptr::null_mut;

/// Bytes for the tensors of a graph.
const ROOM: usize = 8 << 20;

/// What a case does to a node, which is named by its number among the tensors in the order of making.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Somebody else reads it.
    Consumer(usize),
    /// It is marked as an output.
    Output(usize),
    /// Somebody else reads a view of it.
    View(usize),
    /// It writes over a source that is not among the given ones, where its operator may.
    Over(usize),
}

/// A graph in a context of its own. Tensors have no memory.
pub struct Built {
    ctx: *mut ggml_context,
    room: Option<Box<Context>>,
    /// Its inputs in the order of making.
    pub inputs: Vec<Input>,
    /// The result, and what else the case looks at.
    pub outputs: Vec<*mut ggml_tensor>,
    /// The variant is another graph than without it.
    pub applied: bool,
    graph: *mut ggml_cgraph,
}

impl Drop for Built {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used no more.
        drop(unsafe { Context::from_raw(self.ctx) });
    }
}

impl Built {
    fn new() -> Result<Self, String> {
        // SAFETY: no memory is lent.
        let ctx = unsafe { Context::new(ROOM, null_mut(), true) }.map_err(|e| e.text)?;
        Ok(Built {
            ctx: ctx.into_raw(),
            room: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            applied: false,
            graph: null_mut(),
        })
    }

    fn context(&mut self) -> &mut Context {
        // SAFETY: the handle is live, and this value's own.
        unsafe { Context::from_ptr(self.ctx) }.unwrap_or_else(|| unreachable!("a context has an address"))
    }

    /// The graph of `build`, with inputs as `variant` says.
    pub fn graph_of(author: &Author, seed: u64, variant: &Variant, change: Option<&[Change]>) -> Result<Self, String> {
        let mut built = Self::new()?;
        let (made, maker) = inputs::maker(variant);
        built.context().maker = Some(maker);
        // SAFETY: a context of this value's own.
        let result = unsafe { author.build(built.ctx, seed) };
        built.context().maker = None;
        built.outputs.push(result?);
        let made = std::mem::take(&mut *made.borrow_mut());
        (built.inputs, built.applied) = (made.list, made.applied);
        for &change in change.unwrap_or_default() {
            built.change(change)?;
        }
        built.grow()?;
        Ok(built)
    }

    /// The graph of `reference`, for the inputs of `of`.
    pub fn reference_of(author: &Author, seed: u64, of: &Built) -> Result<Self, String> {
        let mut built = Self::new()?;
        for input in &of.inputs {
            // SAFETY: an input of a live graph.
            let like = unsafe { &*input.tensor };
            let tensor = match input.twin.and_then(|i| built.inputs.get(i)) {
                Some(twin) => twin.tensor,
                None => {
                    let made = tensor::new_tensor(built.context(), "reference", like.r#type, &like.ne);
                    // SAFETY: NULL or just made.
                    let t = unsafe { made.as_mut() }.filter(|t| !tensor::is_poisoned(t));
                    t.ok_or("no room for the inputs of the reference")?.name = like.name;
                    made
                }
            };
            built.inputs.push(Input { tensor, twin: input.twin });
        }
        let inputs: Vec<_> = built.inputs.iter().map(|i| i.tensor).collect();
        // SAFETY: a context of this value's own.
        let result = unsafe { author.reference(built.ctx, &inputs, seed) }?;
        built.outputs.push(result);
        let known = built.inputs.len();
        built.grow()?;
        if let Some(other) = built.inputs.get(known) {
            // SAFETY: a tensor of the context.
            let name = shape::name(unsafe { &*other.tensor });
            return Err(format!("reference makes an input of its own, '{name}'"));
        }
        Ok(built)
    }

    /// All tensors in the order of making.
    pub fn tensors(&self) -> Vec<*mut ggml_tensor> {
        // SAFETY: the handle is live.
        unsafe { Context::from_ptr(self.ctx) }.map_or_else(Vec::new, |ctx| ctx.tensors().collect())
    }

    /// The number of `tensor`.
    pub fn number_of(&self, tensor: *mut ggml_tensor) -> Option<usize> {
        self.tensors().iter().position(|&t| t == tensor)
    }

    /// The graph.
    pub fn graph(&mut self) -> &mut ggml_cgraph {
        // SAFETY: made by `grow`, which every way to a value runs.
        unsafe { &mut *self.graph }
    }

    /// Its nodes in order.
    pub fn nodes(&self) -> &[*mut ggml_tensor] {
        // SAFETY: as `graph`.
        unsafe { graph::nodes(&*self.graph) }
    }

    /// The result.
    pub fn result(&self) -> *mut ggml_tensor {
        self.outputs[0]
    }

    fn add(&mut self, spec: Result<tensor::NodeSpec, Error>, of: *mut ggml_tensor) -> Result<*mut ggml_tensor, String> {
        let mut src = [null_mut(); GGML_MAX_SRC];
        src[0] = of;
        // SAFETY: the one source is live.
        spec.and_then(|spec| unsafe { tensor::materialise(self.context(), &spec, &src) }).map_err(|e| e.text)
    }

    fn change(&mut self, change: Change) -> Result<(), String> {
        let at = match change {
            Change::Consumer(at) | Change::Output(at) | Change::View(at) | Change::Over(at) => at,
        };
        let node = *self.tensors().get(at).ok_or("build is not the same each time")?;
        // SAFETY: a tensor of the context; references to it end before others are made.
        unsafe {
            match change {
                Change::Consumer(_) => {
                    let reader = self.add(copy::cont(&*node, None), node)?;
                    self.outputs.push(reader);
                }
                Change::Output(_) => {
                    (*node).flags |= GGML_TENSOR_FLAG_OUTPUT.0;
                    self.outputs.push(node);
                }
                Change::View(_) => {
                    let t = &*node;
                    if t.nb[0] != shape::type_size(t.r#type) {
                        return Err("a view cannot have the node's strides".into());
                    }
                    let seen = self.add(view::view(t, &t.ne, &t.nb[1..], 0), node)?;
                    let reader = self.add(copy::cont(&*seen, None), seen)?;
                    self.outputs.push(reader);
                }
                Change::Over(_) => self.write_over(node)?,
            }
        }
        Ok(())
    }

    /// Makes `node` an in-place node over an input.
    ///
    /// # Safety
    /// A node of the context.
    unsafe fn write_over(&mut self, node: *mut ggml_tensor) -> Result<(), String> {
        // SAFETY: the caller's promise; sources of live nodes are live.
        unsafe {
            let t = &*node;
            if !t.view_src.is_null() {
                return Err("the node is in given storage already".into());
            }
            let takes = inplace::sources(t.op);
            let fits = |&(j, &s): &(usize, &*mut ggml_tensor)| {
                takes >> j & 1 == 1
                    && s.as_ref().is_some_and(|s| (s.r#type, s.ne, s.nb) == (t.r#type, t.ne, t.nb))
                    && self.inputs.iter().any(|input| input.tensor == s)
            };
            let (_, &over) = t.src.iter().enumerate().find(fits).ok_or("it may write over no input")?;
            let (root, offs) = match (*over).view_src {
                root if root.is_null() => (over, 0),
                root => (root, (*over).view_offs),
            };
            ((*node).view_src, (*node).view_offs) = (root, offs);
        }
        Ok(())
    }

    /// Makes the graph of what is to be seen, inputs first.
    fn grow(&mut self) -> Result<(), String> {
        let size = 2 * self.tensors().len() + 16;
        // SAFETY: no memory is lent.
        let mut room = unsafe { Context::new(memory::overhead(size, false), null_mut(), true) }.map_err(|e| e.text)?;
        let graph = memory::new(&mut room, size, false).map_err(|e| e.text)?;
        (self.room, self.graph) = (Some(room), graph);
        let roots: Vec<_> = self.inputs.iter().map(|i| i.tensor).chain(self.outputs.iter().copied()).collect();
        // SAFETY: tensors of this context, and a graph of this value's own.
        unsafe {
            for root in roots {
                let grown = build::expand(&mut *graph, root, true);
                grown.map_err(|e| e.text)?;
            }
            if let Some(fault) = graph::fault(&*graph) {
                return Err(fault.text);
            }
            // what was made by other means than ggml_new_tensor, as ggml_dup_tensor
            let root = |t: *mut ggml_tensor| if (*t).view_src.is_null() { t } else { (*t).view_src };
            let known: HashSet<_> = self.inputs.iter().map(|i| root(i.tensor)).collect();
            for &leaf in graph::checked_leafs(&*graph).map_err(|e| e.text)? {
                if (*leaf).view_src.is_null() && !known.contains(&leaf) {
                    self.inputs.push(Input { tensor: leaf, twin: None });
                }
            }
            let nodes = graph::checked_nodes(&*graph).map_err(|e| e.text)?;
            if let Some(&leaf) = nodes.iter().find(|&&t| (*t).op == GGML_OP_NONE) {
                return Err(format!("'{}' is a parameter to be trained", shape::name(&*leaf)));
            }
        }
        Ok(())
    }
}

/// [`Built::graph_of`]; failures on the way are no errors of this thread.
pub fn quietly(author: &Author, seed: u64, variant: &Variant, change: &[Change]) -> Result<Built, String> {
    error::aside(|| Built::graph_of(author, seed, variant, Some(change))).0
}

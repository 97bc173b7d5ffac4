//! Planning: how long a scheduler, or a graph allocator alone, takes to give a transformer's graph its memory. Nothing is computed.
//! The time is what the calling thread, which does all the work, had of a processor: on a busy machine the clock says little.
//! May import: the table of functions.

use crate::api::Api;
use ggml_oxide_abi::*;
use std::ptr::null_mut;
use std::time::Duration;

/// Rounds of ours and theirs in turns; the median of each counts.
const ROUNDS: usize = 151;
/// Layers of [`NODES`] nodes each.
const LAYERS: usize = 166;
/// Width, tokens, heads: small, for the sizes do not matter to a planner.
const WIDTH: i64 = 32;
const TOKENS: i64 = 8;
const HEADS: i64 = 2;

/// What is timed.
#[derive(Clone, Copy, PartialEq)]
enum Task {
    /// `ggml_backend_sched_reset` and `ggml_backend_sched_alloc_graph` of one graph, again and again: its plan is kept.
    Kept,
    /// The same for two graphs of one shape in turns, each of tensors of its own: one plan serves both.
    Alike,
    /// The same for two graphs in turns: each is planned from nothing.
    Turns,
    /// `ggml_backend_sched_reserve`.
    Reserve,
    /// `ggml_gallocr_reserve`, without a scheduler.
    Allocator,
}

/// Who works for the scheduler.
#[derive(Clone, Copy, PartialEq)]
enum Team {
    One,
    /// Two backends of the CPU.
    Two,
    /// Two, and every other tenth of the layers is sent to the second.
    Split,
}

/// One line of the table.
pub struct Case {
    task: Task,
    team: Team,
}

impl Case {
    /// As the table says it.
    pub fn shape(&self) -> String {
        let task = match self.task {
            Task::Kept => "one graph, plan kept",
            Task::Alike => "two alike in turns",
            Task::Turns => "two graphs in turns",
            Task::Reserve => "reserve",
            Task::Allocator => return "ggml_gallocr_reserve".into(),
        };
        let team = match self.team {
            Team::One => "1 backend",
            Team::Two => "2 backends",
            Team::Split => "2, 10 parts",
        };
        format!("{task}, {team}")
    }
}

/// Every case, in the order of the table.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for team in [Team::One, Team::Two, Team::Split] {
        cases.extend([Task::Kept, Task::Alike, Task::Turns, Task::Reserve].map(|task| Case { task, team }));
    }
    cases.push(Case { task: Task::Allocator, team: Team::One });
    cases
}

/// What a case came to: microseconds for one graph, and its nodes.
pub struct Measured {
    pub ours: f64,
    pub theirs: f64,
    pub nodes: i32,
    /// Runs of nodes that go to one backend.
    pub splits: i32,
}

/// Times `case` in both libraries.
///
/// # Errors
/// A text that says what a library refused.
pub fn measure(case: &Case, ours: &Api, theirs: &Api) -> Result<Measured, String> {
    let mut mine = Planner::new(ours, case).map_err(|e| format!("ours: {e}"))?;
    let mut yours = Planner::new(theirs, case).map_err(|e| format!("theirs: {e}"))?;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 3 {
        let times = (mine.time().map_err(|e| format!("ours: {e}"))?, yours.time().map_err(|e| format!("theirs: {e}"))?);
        // the first ones get memory from the system
        if round >= 3 {
            a.push(times.0);
            b.push(times.1);
        }
    }
    // SAFETY: a live graph and a live scheduler, or none, of one library each.
    let (nodes, splits) = unsafe {
        let splits = |p: &Planner| if p.sched.is_null() { 0 } else { (p.api.ggml_backend_sched_get_n_splits)(p.sched) };
        ((*mine.graphs[0].graph).n_nodes, [splits(&mine), splits(&yours)])
    };
    if splits[0] != splits[1] {
        return Err(format!("{} splits, theirs has {}", splits[0], splits[1]));
    }
    Ok(Measured { ours: median(a), theirs: median(b), nodes, splits: splits[0] })
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and the time is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A graph and what must be done before it is allocated again.
struct Graph {
    graph: *mut ggml_cgraph,
    /// Tensors that get their memory by the allocation.
    computed: Vec<*mut ggml_tensor>,
    /// Nodes for the second backend.
    sent: Vec<*mut ggml_tensor>,
}

/// One library's graphs and scheduler.
struct Planner<'a> {
    api: &'a Api,
    task: Task,
    contexts: [*mut ggml_context; 2],
    weights: *mut ggml_backend_buffer,
    backends: Vec<*mut ggml_backend>,
    sched: *mut ggml_backend_sched,
    allocator: *mut ggml_gallocr,
    graphs: Vec<Graph>,
    page: Box<Page>,
}

#[repr(align(64))]
struct Page([u8; 64]);

impl<'a> Planner<'a> {
    fn new(api: &'a Api, case: &Case) -> Result<Self, String> {
        // SAFETY: calls as ggml's headers have them; every pointer passed on was returned by the same library and checked, and is
        // freed in the end.
        unsafe {
            let params = ggml_init_params { mem_size: 16 << 20, mem_buffer: null_mut(), no_alloc: true };
            let mut planner = Planner {
                api,
                task: case.task,
                contexts: std::array::from_fn(|_| (api.ggml_init)(params)),
                weights: null_mut(),
                backends: Vec::new(),
                sched: null_mut(),
                allocator: null_mut(),
                graphs: Vec::new(),
                page: Box::new(Page([0; 64])),
            };
            for _ in 0..if case.team == Team::One { 1 } else { 2 } {
                planner.backends.push((api.ggml_backend_cpu_init)());
            }
            if planner.contexts.contains(&null_mut()) || planner.backends.contains(&null_mut()) {
                return Err("no context or no backend".into());
            }
            let mut layers = Vec::new();
            for _ in 0..LAYERS {
                layers.push(Layer::new(api, planner.contexts[0]));
            }
            planner.weights = (api.ggml_backend_alloc_ctx_tensors)(planner.contexts[0], planner.backends[0]);
            if planner.weights.is_null() {
                return Err("no memory for the weights".into());
            }
            (api.ggml_backend_buffer_set_usage)(planner.weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
            // one layer less makes it another graph
            let from: &[usize] = match case.task {
                Task::Alike => &[0, 0],
                Task::Turns => &[0, 1],
                Task::Kept | Task::Reserve | Task::Allocator => &[0],
            };
            for &n in from {
                let graph = build(api, planner.contexts[1], &layers[n..], case.team == Team::Split)?;
                planner.graphs.push(graph);
            }
            if case.task == Task::Allocator {
                let buft = (api.ggml_backend_get_default_buffer_type)(planner.backends[0]);
                planner.allocator = (api.ggml_gallocr_new)(buft);
            } else {
                let n = planner.backends.len() as i32;
                let list = planner.backends.as_mut_ptr();
                let mut bufts = [(api.ggml_backend_get_default_buffer_type)(planner.backends[0]), null_mut()];
                if case.team == Team::Split {
                    // memory of another kind, or all would be taken by the first backend
                    let mapped = (api.ggml_backend_cpu_buffer_from_ptr)(planner.page.0.as_mut_ptr().cast(), 64);
                    bufts[1] = (api.ggml_backend_buffer_get_type)(mapped);
                    (api.ggml_backend_buffer_free)(mapped);
                }
                let bufts = if case.team == Team::Split { bufts.as_mut_ptr() } else { null_mut() };
                planner.sched = (api.ggml_backend_sched_new)(list, bufts, n, 8192, false, false);
            }
            if planner.allocator.is_null() && planner.sched.is_null() {
                return Err("no scheduler".into());
            }
            Ok(planner)
        }
    }

    /// Microseconds for one graph.
    fn time(&mut self) -> Result<f64, String> {
        let api = self.api;
        // SAFETY: live objects of one library.
        unsafe {
            for &t in self.graphs.iter().flat_map(|g| &g.computed) {
                // as in a graph that was built anew
                ((*t).data, (*t).buffer) = (null_mut(), null_mut());
            }
            let start = processor_time();
            let mut good = true;
            for graph in &self.graphs {
                if self.task == Task::Allocator {
                    good &= (api.ggml_gallocr_reserve)(self.allocator, graph.graph);
                    continue;
                }
                if self.task != Task::Reserve {
                    (api.ggml_backend_sched_reset)(self.sched);
                }
                for &t in &graph.sent {
                    (api.ggml_backend_sched_set_tensor_backend)(self.sched, t, self.backends[1]);
                }
                good &= match self.task {
                    Task::Reserve => (api.ggml_backend_sched_reserve)(self.sched, graph.graph),
                    _ => (api.ggml_backend_sched_alloc_graph)(self.sched, graph.graph),
                };
            }
            let took = (processor_time() - start).as_secs_f64() * 1e6 / self.graphs.len() as f64;
            good.then_some(took).ok_or_else(|| "no memory for the graph".into())
        }
    }
}

impl Drop for Planner<'_> {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is freed once, the backends last.
        unsafe {
            if !self.sched.is_null() {
                (self.api.ggml_backend_sched_free)(self.sched);
            }
            if !self.allocator.is_null() {
                (self.api.ggml_gallocr_free)(self.allocator);
            }
            if !self.weights.is_null() {
                (self.api.ggml_backend_buffer_free)(self.weights);
            }
            for &context in self.contexts.iter().filter(|c| !c.is_null()) {
                (self.api.ggml_free)(context);
            }
            for &backend in self.backends.iter().filter(|b| !b.is_null()) {
                (self.api.ggml_backend_free)(backend);
            }
        }
    }
}

/// A layer's weights.
struct Layer {
    norms: [*mut ggml_tensor; 2],
    /// Query, key, value, output, gate, up, down.
    matrices: [*mut ggml_tensor; 7],
}

impl Layer {
    /// # Safety
    /// The context is one of the library's.
    unsafe fn new(api: &Api, context: *mut ggml_context) -> Self {
        // SAFETY: the caller's promise.
        let leaf = |rows| unsafe { (api.ggml_new_tensor_4d)(context, GGML_TYPE_F32, WIDTH, rows, 1, 1) };
        Layer { norms: std::array::from_fn(|_| leaf(1)), matrices: std::array::from_fn(|_| leaf(WIDTH)) }
    }
}

/// # Safety
/// The context and the layers are of the library.
unsafe fn build(api: &Api, context: *mut ggml_context, layers: &[Layer], send: bool) -> Result<Graph, String> {
    // SAFETY: the caller's promise; builders take NULL for what an earlier one refused, and the result is checked.
    unsafe {
        let c = context;
        let mul_mat = |a, b| (api.ggml_mul_mat)(c, a, b);
        let mut x = (api.ggml_new_tensor_4d)(c, GGML_TYPE_F32, WIDTH, TOKENS, 1, 1);
        let positions = (api.ggml_new_tensor_4d)(c, GGML_TYPE_I32, TOKENS, 1, 1, 1);
        (api.ggml_set_input)(x);
        (api.ggml_set_input)(positions);
        let mut computed = vec![x, positions];
        let mut sent = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            let head = WIDTH / HEADS;
            let [query, key, value, out, gate, up, down] = layer.matrices;
            let h = (api.ggml_mul)(c, (api.ggml_rms_norm)(c, x, 1e-6), layer.norms[0]);
            if send && i / (LAYERS / 20) % 2 == 1 && i % (LAYERS / 20) == 0 {
                sent.push(h);
            }
            let heads = |w| (api.ggml_reshape_3d)(c, mul_mat(w, h), head, HEADS, TOKENS);
            let turned = |w| {
                let part = (api.ggml_rope)(c, heads(w), positions, head as i32, GGML_ROPE_TYPE_NORMAL);
                (api.ggml_permute)(c, part, 0, 2, 1, 3)
            };
            let (q, k) = (turned(query), turned(key));
            let v = (api.ggml_cont)(c, (api.ggml_permute)(c, heads(value), 1, 2, 0, 3));
            let scores = (api.ggml_soft_max)(c, (api.ggml_scale)(c, mul_mat(k, q), 0.25));
            let o = (api.ggml_cont)(c, (api.ggml_permute)(c, mul_mat(v, scores), 0, 2, 1, 3));
            let o = mul_mat(out, (api.ggml_reshape_3d)(c, o, WIDTH, TOKENS, 1));
            x = (api.ggml_add)(c, x, o);
            let h = (api.ggml_mul)(c, (api.ggml_rms_norm)(c, x, 1e-6), layer.norms[1]);
            let h = (api.ggml_mul)(c, (api.ggml_silu)(c, mul_mat(gate, h)), mul_mat(up, h));
            x = (api.ggml_add)(c, x, mul_mat(down, h));
        }
        let graph = (api.ggml_new_graph_custom)(c, 8192, false);
        if x.is_null() || graph.is_null() {
            return Err("a graph cannot be built".into());
        }
        (api.ggml_set_output)(x);
        (api.ggml_build_forward_expand)(graph, x);
        let nodes = std::slice::from_raw_parts((*graph).nodes, (*graph).n_nodes as usize);
        computed.extend_from_slice(nodes);
        Ok(Graph { graph, computed, sent })
    }
}

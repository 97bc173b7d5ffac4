//! The plan of a graph portion that one backend computes: native ranges of nodes, and launches of registrations between them.

use super::callback;
use super::facts::{Facts, Uses};
pub use super::launch::Launch;
use super::legality;
use super::policy::{self, Policy};
use super::profile::Time;
use super::registry::{self, count, Contents, DeviceTable, Kernel};
use super::select::{self, choose, Choice, Tried};
use super::step::{self, Srcs};
use super::{op, optimise};
use crate::backend::{Backend, Device};
use crate::error::Error;
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::Call;
use ggml_oxide_shape as shape;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// One piece of a plan.
pub enum Step {
    /// Nodes for the backend's own code.
    Native(Native),
    /// A registration.
    Launch(Launch),
}

impl Step {
    /// Its nodes, by number in the portion.
    pub fn nodes(&self) -> &Range<usize> {
        match self {
            Step::Native(native) => &native.nodes,
            Step::Launch(launch) => &launch.nodes,
        }
    }
}

/// Consecutive nodes for the backend's own code.
pub struct Native {
    /// The nodes, by number in the portion.
    pub nodes: Range<usize>,
    /// What they took while profiling was on.
    pub time: Time,
}

/// A plan.
pub struct Plan {
    /// Who runs it.
    pub backend: Backend,
    /// In the order of the nodes, which they cover.
    pub steps: Vec<Step>,
    /// By number of a node: registrations that were asked about it in vain.
    pub tried: Vec<(usize, Tried)>,
    /// Bytes of scratch memory, for the largest request.
    pub workspace: usize,
    /// The registration that asked for that.
    pub workspace_for: String,
    /// Something was fused.
    pub fused: bool,
    /// By number: nodes of registered operators in native ranges, without elements or not to be computed. A device's own code is not
    /// shown them.
    pub hidden: Vec<usize>,
    /// Registrations of the device that `GGML_EXT_FORBID` names.
    pub forbidden: Vec<String>,
    /// Those that `GGML_EXT_FORCE` names.
    pub forced: Vec<String>,
    /// By launch: its nodes, and its number among the steps.
    pub(super) ranges: Vec<Call>,
    pub(super) calls: Vec<usize>,
    device: Device,
    contents: Contents,
    since: Cell<u64>,
}

/// The plan for `graph` on `backend`; `None`: all of it is the backend's own code. `uses`: consumers in the whole graph, where nodes may
/// be fused. Rules may reorder the nodes. The environment's switches are those that were read last.
///
/// # Safety
/// The graph, its tensors, what they read and view are live, and nobody else uses them.
pub unsafe fn build(backend: Backend, graph: &mut ggml_cgraph, uses: Option<&Uses>) -> Result<Option<Plan>, Error> {
    if !registry::any_kernel() && !registry::any_op() {
        return Ok(None);
    }
    let device = backend
        .device()
        .ok_or_else(|| Error::new(GGML_EXT_CODE_BACKEND, format!("backend '{}' is on no device", backend.name())))?;
    let since = registry::epoch();
    let Some(table) = registry::table(device) else {
        // SAFETY: the caller's promise.
        return unsafe { refuse_orphans(device, graph::nodes(graph)) }.map(|()| None);
    };
    let policy = policy::last();
    let ruled = uses.is_some() && !table.rules.is_empty();
    let mut builder = Builder {
        device,
        table: &table,
        policy: &policy,
        rules: if ruled { rules_of(&table, &policy) } else { Vec::new() },
        plan: Plan {
            backend,
            steps: Vec::new(),
            tried: Vec::new(),
            workspace: 0,
            workspace_for: String::new(),
            fused: false,
            hidden: Vec::new(),
            forbidden: table.names(|name| policy.forbids(name)),
            forced: table.names(|name| policy.forces(name)),
            ranges: Vec::new(),
            calls: Vec::new(),
            device,
            contents: Contents::new(ruled),
            since: Cell::new(since),
        },
        native: 0..0,
    };
    // SAFETY: the caller's promise.
    unsafe {
        let mut facts = None;
        if let Some(uses) = uses.filter(|_| ruled) {
            optimise::run(&table, &policy, graph)?;
            facts = Some(Facts::read(graph::checked_nodes(graph)?, uses)?);
        }
        builder.select(graph, facts.as_ref())?;
        builder.prepare(graph::nodes(graph))?;
    }
    let mut plan = builder.plan;
    for (i, step) in plan.steps.iter().enumerate() {
        if let Step::Launch(launch) = step {
            plan.ranges.push(Call { first: launch.nodes.start, last: launch.nodes.end - 1 });
            plan.calls.push(i);
        }
    }
    Ok(Some(plan))
}

/// Refuses nodes of registered operators, for a device without registrations.
unsafe fn refuse_orphans(device: Device, nodes: &[*mut ggml_tensor]) -> Result<(), Error> {
    for &node in nodes {
        // SAFETY: the promise of `build`.
        let t = unsafe { &*node };
        if op::is_extension(t) && t.flags & GGML_TENSOR_FLAG_COMPUTE.0 != 0 {
            return Err(nobody(device, t, &[]));
        }
    }
    Ok(())
}

fn nobody(device: Device, t: &ggml_tensor, tried: &[&Tried]) -> Error {
    let reasons: Vec<String> = tried.iter().map(|t| format!("; '{}': {}", t.name, t.reason)).collect();
    let text = format!(
        "node '{}': device '{}' cannot compute {}, and no registration can{}",
        shape::name(t),
        device.name(),
        op::op_name(t),
        reasons.concat()
    );
    Error::new(GGML_EXT_CODE_NO_KERNEL, text).at(t)
}

struct Builder<'a> {
    device: Device,
    table: &'a DeviceTable,
    policy: &'a Policy,
    plan: Plan,
    /// The rules to ask, in order.
    rules: Vec<Rule<'a>>,
    /// The native range that is growing.
    native: Range<usize>,
}

/// A rule that takes part.
struct Rule<'a> {
    kernel: &'a Arc<Kernel>,
    matches: Matches,
    forced: bool,
}

type Matches = unsafe extern "C" fn(*mut ggml_cgraph, std::ffi::c_int, *mut std::ffi::c_void) -> std::ffi::c_int;

/// The rules that the environment lets take part, those that it forces in front.
fn rules_of<'a>(table: &'a DeviceTable, policy: &Policy) -> Vec<Rule<'a>> {
    let allowed = table.rules.iter().filter(|k| !policy.forbids(&k.name));
    let rule = |kernel: &'a Arc<Kernel>| {
        Some(Rule { kernel, matches: kernel.calls.r#match?, forced: policy.forces(&kernel.name) })
    };
    let mut rules: Vec<Rule> = allowed.filter_map(rule).collect();
    rules.sort_by_key(|r| !r.forced);
    rules
}

impl Builder<'_> {
    fn close_native(&mut self) {
        if !self.native.is_empty() {
            self.plan.steps.push(Step::Native(Native { nodes: self.native.clone(), time: Time::default() }));
        }
    }

    unsafe fn select(&mut self, graph: &mut ggml_cgraph, facts: Option<&Facts>) -> Result<(), Error> {
        // SAFETY: the promise of `build`.
        let nodes = unsafe { graph::checked_nodes(graph) }?;
        let graph: *mut ggml_cgraph = graph;
        let mut i = 0;
        while i < nodes.len() {
            // SAFETY: as above.
            unsafe { graph::access::fetch_ahead(nodes, i) };
            // SAFETY: as above.
            let t = unsafe { &*nodes[i] };
            let fused = match facts {
                // SAFETY: as above.
                Some(facts) => unsafe { self.fuse(graph, nodes, facts, i) }?,
                None => None,
            };
            let launch = match fused {
                Some(launch) => Some(launch),
                // SAFETY: as above.
                None => unsafe { self.single(nodes, i) }?,
            };
            match launch {
                Some(launch) => {
                    // SAFETY: as above.
                    nodes[launch.nodes.clone()].iter().for_each(|&t| self.plan.contents.add(unsafe { &*t }));
                    self.close_native();
                    i = launch.nodes.end;
                    self.native = i..i;
                    self.plan.steps.push(Step::Launch(launch));
                }
                None => {
                    self.plan.contents.add(t);
                    if op::is_extension(t) {
                        self.plan.hidden.push(i);
                    }
                    i += 1;
                    self.native.end = i;
                }
            }
        }
        self.close_native();
        Ok(())
    }

    fn launch(
        &self,
        kernel: Arc<Kernel>,
        nodes: Range<usize>,
        all: &[*mut ggml_tensor],
        srcs: &[*mut ggml_tensor],
    ) -> Launch {
        let forced = self.policy.forces(&kernel.name);
        // SAFETY: the promise of `build`.
        unsafe { Launch::new(kernel, nodes, all, srcs, forced) }
    }

    unsafe fn single(&mut self, nodes: &[*mut ggml_tensor], i: usize) -> Result<Option<Launch>, Error> {
        // SAFETY: the promise of `build`.
        let t = unsafe { &*nodes[i] };
        if t.flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
            return Ok(None);
        }
        let tried = &mut self.plan.tried;
        let before = tried.len();
        match choose(self.table, self.device, t, self.policy, |t| tried.push((i, t))) {
            Choice::Native => Ok(None),
            Choice::Kernel(kernel) => {
                let srcs = Srcs::of_node(t);
                Ok(Some(self.launch(kernel, i..i + 1, nodes, srcs.as_slice())))
            }
            Choice::Nobody => {
                let tried: Vec<&Tried> = self.plan.tried[before..].iter().map(|(_, t)| t).collect();
                Err(nobody(self.device, t, &tried))
            }
        }
    }

    /// The first rule that matches at node `i` and may.
    unsafe fn fuse(
        &mut self,
        graph: *mut ggml_cgraph,
        nodes: &[*mut ggml_tensor],
        facts: &Facts,
        i: usize,
    ) -> Result<Option<Launch>, Error> {
        // SAFETY: the promise of `build`.
        let t = unsafe { &*nodes[i] };
        for &Rule { kernel: rule, matches, forced } in &self.rules {
            if !asks_about(rule.calls.match_op, t) {
                continue;
            }
            // SAFETY: the callback takes the graph and its own data.
            let n = callback::call(|| unsafe { matches(graph, i as i32, rule.data()) });
            let mut pass = |nodes: usize, reason: String| {
                self.plan.tried.push((i, Tried { name: rule.name.clone(), nodes, reason }));
            };
            if n < 2 {
                // most rules match few nodes: only those that say why are worth a word
                callback::said().into_iter().for_each(|reason| pass(0, reason));
                continue;
            }
            let (n, left) = (n as usize, nodes.len() - i);
            if n > left {
                count(&rule.counts.errors);
                let name = &rule.name;
                let text = format!(
                    "rule '{name}' matches {n} nodes from node {i} on ('{}'), there are {left}",
                    shape::name(t)
                );
                return Err(Error::new(GGML_EXT_CODE_CALLBACK, text).by(name).at(t));
            }
            if !forced {
                // SAFETY: as above.
                let claim =
                    |&t: &*mut ggml_tensor| select::forced(self.table, self.device, unsafe { &*t }, self.policy);
                if let Some(owner) = nodes[i..i + n].iter().find_map(claim) {
                    pass(
                        n,
                        format!("GGML_EXT_FORCE names '{}', which computes one of the nodes by itself", owner.name),
                    );
                    continue;
                }
            }
            // SAFETY: as above.
            match unsafe { self.judge(rule, nodes, facts, i..i + n) } {
                Ok((srcs, skipped)) => {
                    self.plan.fused = true;
                    let mut launch = self.launch(rule.clone(), i..i + n, nodes, srcs.as_slice());
                    launch.skipped = skipped;
                    return Ok(Some(launch));
                }
                Err(reason) => {
                    count(&rule.counts.refused);
                    self.plan.tried.push((i, Tried { name: rule.name.clone(), nodes: n, reason }));
                }
            }
        }
        Ok(None)
    }

    unsafe fn judge(
        &self,
        rule: &Kernel,
        nodes: &[*mut ggml_tensor],
        facts: &Facts,
        range: Range<usize>,
    ) -> Result<(Srcs, Vec<usize>), String> {
        let found = legality::check(facts, range.start, range.len()).map_err(|refusal| refusal.to_string())?;
        // SAFETY: the promise of `build`.
        let srcs = unsafe { Srcs::of_nodes(&nodes[range.clone()]) };
        let srcs = srcs.ok_or_else(|| format!("it reads more than {GGML_EXT_MAX_STEP_SRC} tensors"))?;
        let Some(supports) = rule.calls.supports else { return Ok((srcs, found.skipped)) };
        // SAFETY: as above; the callback takes a step and its own data.
        let good = callback::call(|| unsafe {
            supports(&step::describe(self.device, &nodes[range], srcs.as_slice()), rule.data())
        });
        if good {
            Ok((srcs, found.skipped))
        } else {
            Err(callback::reason("it does not support the nodes that it matched"))
        }
    }

    /// Lets every launch make its state.
    unsafe fn prepare(&mut self, nodes: &[*mut ggml_tensor]) -> Result<(), Error> {
        let max = self.plan.backend.buft().map_or(usize::MAX, |b| b.max_size()).min(isize::MAX as usize / 2);
        for step in &mut self.plan.steps {
            let Step::Launch(launch) = step else { continue };
            let Some(prepare) = launch.kernel.calls.prepare else { continue };
            let mut out = ggml_ext_prepared {
                struct_size: size_of::<ggml_ext_prepared>(),
                workspace_size: 0,
                state: std::ptr::null_mut(),
            };
            // SAFETY: the promise of `build`; the callback takes a step, a place for its answer and its own data.
            let status = callback::call(|| unsafe {
                let step = step::describe(self.device, &nodes[launch.nodes.clone()], &launch.srcs);
                prepare(&step, &mut out, launch.kernel.data())
            });
            if status != GGML_STATUS_SUCCESS {
                let reason = callback::reason("it gave no reason");
                return fail(
                    launch,
                    nodes,
                    GGML_EXT_CODE_CALLBACK,
                    format!("prepare answered {status:?}: {reason}"),
                    status,
                );
            }
            launch.take(&out);
            count(&launch.kernel.counts.prepared);
            if out.workspace_size > max {
                let text = format!("prepare asks for {} bytes of workspace, there can be {max}", out.workspace_size);
                return fail(launch, nodes, GGML_EXT_CODE_OUT_OF_MEMORY, text, GGML_STATUS_ALLOC_FAILED);
            }
            if out.workspace_size > self.plan.workspace {
                self.plan.workspace = out.workspace_size;
                self.plan.workspace_for.clone_from(&launch.kernel.name);
            }
        }
        Ok(())
    }
}

/// An error about what `prepare` of a launch answered.
fn fail(
    launch: &Launch,
    nodes: &[*mut ggml_tensor],
    code: ggml_ext_code,
    text: String,
    status: ggml_status,
) -> Result<(), Error> {
    count(&launch.kernel.counts.errors);
    // SAFETY: the promise of `build`; a launch has at least one node.
    let t = unsafe { &*nodes[launch.nodes.end - 1] };
    let name = &launch.kernel.name;
    let text = format!("registration '{name}', node '{}' ({}): {text}", shape::name(t), op::op_name(t));
    Err(Error { status, ..Error::new(code, text) }.by(name).at(t))
}

/// Whether a rule for `wanted` is asked about nodes like `t`.
fn asks_about(wanted: ggml_op, t: &ggml_tensor) -> bool {
    match wanted {
        GGML_OP_NONE => true,
        GGML_OP_CUSTOM => op::is_extension(t),
        wanted => t.op == wanted,
    }
}

impl Plan {
    /// Whether every node is the backend's own.
    pub fn is_native(&self) -> bool {
        self.hidden.is_empty() && !self.steps.iter().any(|s| matches!(s, Step::Launch(_)))
    }

    /// The launches in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|s| match s {
            Step::Launch(launch) => Some(launch),
            Step::Native(_) => None,
        })
    }

    /// What the backend's own code is shown, in order.
    pub fn native(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.steps
            .iter()
            .filter_map(|s| match s {
                Step::Native(native) => Some(self.shown(native.nodes.clone())),
                Step::Launch(_) => None,
            })
            .flatten()
    }

    /// What of a native range the backend's own code is shown, in order.
    pub(super) fn shown(&self, nodes: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let (mut from, end) = (nodes.start, nodes.end);
        let upto = |node: usize| self.hidden.partition_point(|&hidden| hidden < node);
        let hidden = self.hidden[upto(nodes.start)..upto(end)].iter().copied();
        hidden.chain([end]).map(move |to| std::mem::replace(&mut from, to + 1)..to).filter(|r| !r.is_empty())
    }

    /// By number: nodes that get no memory.
    pub fn skipped(&self) -> impl Iterator<Item = usize> + '_ {
        self.launches().flat_map(|l| l.skipped.iter().copied())
    }

    /// Nodes of it may be fused, so that it is stale when a rule for them comes up.
    pub fn may_fuse(&mut self) {
        self.contents.may_fuse();
    }

    /// The registrations of the device changed in a way that concerns this plan.
    pub fn is_outdated(&self) -> bool {
        match registry::still_holds(self.device, &self.contents, self.since.get()) {
            Some(now) => {
                self.since.set(now);
                false
            }
            None => true,
        }
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }
}

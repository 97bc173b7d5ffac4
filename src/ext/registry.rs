//! What is registered: kernels and rules by device, operators by name.
//!
//! Readers take a snapshot of a device's table and hold no lock while callbacks run. Registrations are rare: each makes a new table.

use super::op::Op;
use super::scope;
use crate::backend::Device;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

const N_OPS: usize = GGML_OP_COUNT.0 as usize;

/// Which single nodes a registration is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// None: it is a rule only.
    Nothing,
    /// Those of a built-in operator.
    Builtin(ggml_op),
    /// Those of a registered operator.
    Registered(&'static Op),
}

/// The callbacks of a registration, `match` and `optimize` those of a rule.
pub type Callbacks = ggml_ext_kernel_desc;

/// What happened to a registration so far.
#[derive(Default)]
pub struct Counts {
    pub selected: AtomicU64,
    pub ran: AtomicU64,
    pub fused_nodes: AtomicU64,
    pub refused: AtomicU64,
    pub errors: AtomicU64,
    pub ns: AtomicU64,
    /// States that `prepare` made.
    pub prepared: AtomicU64,
    /// States that were given back, to `destroy` where there is one.
    pub destroyed: AtomicU64,
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A registration on a device.
pub struct Kernel {
    /// Unique on the device.
    pub name: String,
    /// Where.
    pub device: Device,
    /// Which single nodes.
    pub target: Target,
    /// The callbacks; its strings are not to be followed.
    pub calls: Callbacks,
    /// `GGML_EXT_KERNEL_` bits.
    pub flags: u32,
    /// What happened to it.
    pub counts: Counts,
    /// Plans that launch it.
    plans: AtomicUsize,
    /// Number in the order of registrations.
    order: u64,
}

// SAFETY: the pointers in the callbacks are handed back to the application, which has promised that they may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// For the callbacks.
    pub fn data(&self) -> *mut c_void {
        self.calls.user_data
    }

    /// Whether it fuses.
    pub fn is_rule(&self) -> bool {
        self.calls.r#match.is_some() || self.calls.optimize.is_some()
    }
}

/// A registration in use by a plan.
pub struct InPlan(Arc<Kernel>);

impl InPlan {
    /// Marks it.
    pub fn new(kernel: Arc<Kernel>) -> Self {
        kernel.plans.fetch_add(1, Ordering::AcqRel);
        InPlan(kernel)
    }
}

impl std::ops::Deref for InPlan {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl Drop for InPlan {
    fn drop(&mut self) {
        self.0.plans.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The registrations of one device, those asked first in front.
#[derive(Clone, Default)]
pub struct DeviceTable {
    /// By built-in operator.
    by_op: Vec<Vec<Arc<Kernel>>>,
    /// By the address of a registered operator's record.
    by_record: HashMap<usize, Vec<Arc<Kernel>>>,
    /// Those that fuse.
    pub rules: Vec<Arc<Kernel>>,
    all: Vec<Arc<Kernel>>,
}

impl DeviceTable {
    fn of(mut all: Vec<Arc<Kernel>>) -> Self {
        all.sort_by_key(|k| (std::cmp::Reverse(k.calls.priority), k.order));
        let mut table = DeviceTable { by_op: vec![Vec::new(); N_OPS], ..Default::default() };
        for kernel in &all {
            match kernel.target {
                Target::Nothing => {}
                Target::Builtin(op) => table.by_op[op.0 as usize].push(kernel.clone()),
                Target::Registered(op) => table.by_record.entry(op.address()).or_default().push(kernel.clone()),
            }
            if kernel.is_rule() {
                table.rules.push(kernel.clone());
            }
        }
        table.all = all;
        table
    }

    /// The names of those that `chosen` takes.
    pub fn names(&self, chosen: impl Fn(&str) -> bool) -> Vec<String> {
        self.all.iter().filter(|k| chosen(&k.name)).map(|k| k.name.clone()).collect()
    }

    /// Those that single nodes like `node` are offered to.
    pub fn for_node(&self, node: &ggml_tensor) -> &[Arc<Kernel>] {
        let list = match super::op::record(node) {
            Some(op) => self.by_record.get(&op.address()),
            None => usize::try_from(node.op.0).ok().and_then(|op| self.by_op.get(op)),
        };
        list.map_or(&[], Vec::as_slice)
    }
}

/// Which plans a change concerns.
#[derive(Clone, Copy)]
enum Concern {
    /// Those with nodes of the target.
    Nodes(Target),
    /// Those that rules were asked about, if they have nodes of the operator (none: any).
    Rules(ggml_op),
    All,
}

struct Change {
    at: u64,
    device: Device,
    concern: Concern,
}

/// Changes that are remembered: plans older than the oldest are taken for stale.
const REMEMBERED: usize = 4096;

#[derive(Default)]
struct State {
    tables: Vec<(Device, Arc<DeviceTable>)>,
    ops: HashMap<String, &'static Op>,
    changes: std::collections::VecDeque<Change>,
    forgotten: u64,
    next: u64,
}

static STATE: RwLock<Option<State>> = RwLock::new(None);
/// Live kernels and rules.
static KERNELS: AtomicUsize = AtomicUsize::new(0);
/// Operators ever registered.
static OPS: AtomicUsize = AtomicUsize::new(0);
/// Number of the last change.
static EPOCH: AtomicU64 = AtomicU64::new(0);

fn read<R>(look: impl FnOnce(&State) -> R) -> Option<R> {
    STATE.read().unwrap_or_else(|poisoned| poisoned.into_inner()).as_ref().map(look)
}

fn write<R>(change: impl FnOnce(&mut State) -> R) -> R {
    change(STATE.write().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert_with(State::default))
}

/// Whether a kernel or a rule is registered anywhere.
#[inline]
pub fn any_kernel() -> bool {
    KERNELS.load(Ordering::Relaxed) != 0
}

/// Whether there can be nodes of registered operators.
#[inline]
pub fn any_op() -> bool {
    OPS.load(Ordering::Relaxed) != 0
}

/// Number of the last change.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// What `device` has; `None`: nothing.
pub fn table(device: Device) -> Option<Arc<DeviceTable>> {
    if !any_kernel() {
        return None;
    }
    read(|s| s.tables.iter().find(|(d, _)| *d == device).map(|(_, t)| t.clone())).flatten()
}

impl State {
    fn table(&self, device: Device) -> Option<&Arc<DeviceTable>> {
        self.tables.iter().find(|(d, _)| *d == device).map(|(_, t)| t)
    }

    fn set_table(&mut self, device: Device, all: Vec<Arc<Kernel>>) {
        let table = Arc::new(DeviceTable::of(all));
        match self.tables.iter_mut().find(|(d, _)| *d == device) {
            Some(entry) => entry.1 = table,
            None => self.tables.push((device, table)),
        }
    }

    fn note(&mut self, device: Device, concerns: &[Concern]) {
        let at = EPOCH.load(Ordering::Relaxed) + 1;
        self.changes.extend(concerns.iter().map(|&concern| Change { at, device, concern }));
        while self.changes.len() > REMEMBERED {
            self.forgotten = self.changes.pop_front().map_or(0, |c| c.at);
        }
        EPOCH.store(at, Ordering::Release);
    }
}

fn concerns(kernel: &Kernel) -> Vec<Concern> {
    let nodes = (kernel.target != Target::Nothing).then_some(Concern::Nodes(kernel.target));
    let rules = kernel.is_rule().then_some(Concern::Rules(kernel.calls.match_op));
    nodes.into_iter().chain(rules).collect()
}

/// Adds a kernel or rule.
pub fn add(name: String, device: Device, target: Target, calls: Callbacks, flags: u32) -> Result<(), Error> {
    scope::check(calls.scope)
        .map_err(|e| Error { text: format!("registration '{name}': {}", e.text), ..e }.by(&name))?;
    write(|s| {
        let mut all = s.table(device).map(|t| t.all.clone()).unwrap_or_default();
        if all.iter().any(|k| k.name == name) {
            let text = format!("a registration '{name}' is live on device '{}'", device.name());
            return Err(Error::new(GGML_EXT_CODE_NAME_TAKEN, text).by(&name));
        }
        s.next += 1;
        let (counts, plans) = (Counts::default(), AtomicUsize::new(0));
        let kernel = Arc::new(Kernel { name, device, target, calls, flags, counts, plans, order: s.next });
        let concerns = concerns(&kernel);
        all.push(kernel);
        s.set_table(device, all);
        KERNELS.fetch_add(1, Ordering::Release);
        s.note(device, &concerns);
        Ok(())
    })
}

/// Adds an operator.
pub fn add_op(op: Op) -> Result<(), Error> {
    scope::check(op.scope())
        .map_err(|e| Error { text: format!("operator '{}': {}", op.name(), e.text), ..e }.by(op.name()))?;
    write(|s| {
        if s.ops.contains_key(op.name()) {
            let text = format!("an operator '{}' is live", op.name());
            return Err(Error::new(GGML_EXT_CODE_NAME_TAKEN, text).by(op.name()));
        }
        // never freed: nodes hold its address for as long as the application likes
        let op: &'static Op = Box::leak(Box::new(op));
        s.ops.insert(op.name().to_owned(), op);
        OPS.fetch_add(1, Ordering::Release);
        Ok(())
    })
}

/// The live operator of that name.
pub fn op(name: &str) -> Result<&'static Op, Error> {
    read(|s| s.ops.get(name).copied())
        .flatten()
        .ok_or_else(|| Error::new(GGML_EXT_CODE_UNKNOWN_NAME, format!("no operator '{name}' is registered")).by(name))
}

/// The live registration of that name on `device`.
pub fn kernel(device: Device, name: &str) -> Result<Arc<Kernel>, Error> {
    let found = table(device).and_then(|t| t.all.iter().find(|k| k.name == name).cloned());
    found.ok_or_else(|| {
        let text = format!("nothing named '{name}' is registered on device '{}'", device.name());
        Error::new(GGML_EXT_CODE_UNKNOWN_NAME, text).by(name)
    })
}

/// Says that what `device`'s registrations answer may have changed: plans made before are stale. `name`: those that the registration
/// can concern.
pub fn invalidate(device: Device, name: Option<&str>) -> Result<(), Error> {
    let list = match name {
        None => vec![Concern::All],
        Some(name) => concerns(&*kernel(device, name)?),
    };
    write(|s| s.note(device, &list));
    Ok(())
}

/// Which nodes a plan has, to tell whether a change concerns it.
#[derive(Clone, Default)]
pub struct Contents {
    builtin: [u64; N_OPS.div_ceil(64)],
    records: Vec<usize>,
    /// Rules were asked.
    ruled: bool,
}

impl Contents {
    /// Of no nodes yet.
    pub fn new(ruled: bool) -> Self {
        Contents { ruled, ..Default::default() }
    }

    /// Rules that come up later concern it too.
    pub fn may_fuse(&mut self) {
        self.ruled = true;
    }

    /// One more node.
    pub fn add(&mut self, node: &ggml_tensor) {
        match super::op::record(node) {
            Some(op) if !self.records.contains(&op.address()) => self.records.push(op.address()),
            Some(_) => {}
            None => {
                if let Some(word) = self.builtin.get_mut(node.op.0.max(0) as usize / 64) {
                    *word |= 1 << (node.op.0 % 64);
                }
            }
        }
    }

    fn has(&self, op: ggml_op) -> bool {
        self.builtin.get(op.0.max(0) as usize / 64).is_some_and(|word| word >> (op.0 % 64) & 1 == 1)
    }

    fn concerned(&self, concern: Concern) -> bool {
        match concern {
            Concern::All => true,
            Concern::Nodes(Target::Nothing) => false,
            Concern::Nodes(Target::Builtin(op)) => self.has(op),
            Concern::Nodes(Target::Registered(op)) => self.records.contains(&op.address()),
            Concern::Rules(_) if !self.ruled => false,
            Concern::Rules(GGML_OP_NONE) => true,
            Concern::Rules(GGML_OP_CUSTOM) => !self.records.is_empty() || self.has(GGML_OP_CUSTOM),
            Concern::Rules(op) => self.has(op),
        }
    }
}

/// Whether a plan with such contents, made at `since`, would be made in the same way now; if so, the number from which to ask next time.
pub fn still_holds(device: Device, contents: &Contents, since: u64) -> Option<u64> {
    let now = epoch();
    if now == since {
        return Some(now);
    }
    let stale = read(|s| {
        since < s.forgotten
            || s.changes
                .iter()
                .rev()
                .take_while(|c| c.at > since)
                .any(|c| c.device == device && contents.concerned(c.concern))
    });
    (!stale.unwrap_or(false)).then_some(now)
}

/// What [`release`] takes away.
pub enum What<'a> {
    /// One registration of a device.
    Kernel(Device, &'a str),
    /// All of these devices, which go.
    Devices(&'a [Device]),
    /// All of a scope, operators too.
    Scope(ggml_ext_scope_t),
}

/// Takes registrations away, all or, when a plan uses one of them, none. Returns when no callback of theirs runs any more.
pub fn release(what: What) -> Result<(), Error> {
    let chosen = |k: &Kernel| match what {
        What::Kernel(device, name) => k.device == device && k.name == name,
        What::Devices(devices) => devices.contains(&k.device),
        What::Scope(scope) => k.calls.scope == scope,
    };
    let taken = write(|s| {
        let mut taken: Vec<Arc<Kernel>> = Vec::new();
        for i in 0..s.tables.len() {
            let (device, table) = (s.tables[i].0, s.tables[i].1.clone());
            let (gone, stay): (Vec<_>, Vec<_>) = table.all.iter().cloned().partition(|k| chosen(k));
            if !gone.is_empty() {
                s.set_table(device, stay);
                taken.extend(gone);
            }
        }
        taken
    });
    // Snapshots of the old tables are held by queries and by plans in the making; they end soon, and then only plans hold on.
    let used = |k: &Arc<Kernel>| k.plans.load(Ordering::Acquire) > 0;
    let held = |k: &Arc<Kernel>| Arc::strong_count(k) > 1;
    while taken.iter().any(held) && !taken.iter().any(used) {
        std::thread::yield_now();
    }
    if let Some(busy) = taken.iter().find(|k| used(k)) {
        let text = format!("registration '{}' is used by a plan: reset or free the scheduler first", busy.name);
        let error = Error::new(GGML_EXT_CODE_IN_USE, text).by(&busy.name);
        put_back(&taken);
        return Err(error);
    }
    if let What::Scope(scope) = what {
        if let Err(error) = release_ops(scope) {
            put_back(&taken);
            return Err(error);
        }
    }
    KERNELS.fetch_sub(taken.len(), Ordering::Release);
    Ok(())
}

fn put_back(taken: &[Arc<Kernel>]) {
    write(|s| {
        for kernel in taken {
            let mut all = s.table(kernel.device).map(|t| t.all.clone()).unwrap_or_default();
            all.push(kernel.clone());
            s.set_table(kernel.device, all);
        }
    });
}

/// Operators of the scope, unless kernels of other scopes are for them.
fn release_ops(scope: ggml_ext_scope_t) -> Result<(), Error> {
    write(|s| {
        let gone: Vec<&'static Op> = s.ops.values().copied().filter(|op| op.scope() == scope).collect();
        for op in &gone {
            let user = s.tables.iter().flat_map(|(_, t)| &t.all).find(|k| k.target == Target::Registered(op));
            if let Some(user) = user {
                let text = format!("registration '{}' of another scope is for operator '{}'", user.name, op.name());
                return Err(Error::new(GGML_EXT_CODE_IN_USE, text).by(op.name()));
            }
        }
        s.ops.retain(|_, op| op.scope() != scope);
        Ok(())
    })
}

//! Structures of ggml-ext.h.

use crate::*;
use core::ffi::{c_char, c_int, c_void};

/// Version of this interface. Members are only ever appended to its structures, and zero means what it meant before.
pub const GGML_EXT_API_VERSION: u32 = 1;
/// Bytes of attributes that an operator may have.
pub const GGML_EXT_MAX_ATTR_SIZE: usize = 40;
/// Tensors that one step may read from outside itself.
pub const GGML_EXT_MAX_STEP_SRC: usize = 64;

/// Bit of `ggml_ext_features`: consecutive nodes are fused in scheduler execution.
pub const GGML_EXT_FEATURE_FUSION: u64 = 1;
/// Bit of `ggml_ext_features`: what a fusion does not need gets no memory.
pub const GGML_EXT_FEATURE_SKIP_ALLOC: u64 = 2;
/// Bit of `ggml_ext_features`: plans are explained.
pub const GGML_EXT_FEATURE_EXPLAIN: u64 = 4;
/// Bit of `ggml_ext_features`: `ggml_ext_check` is there.
pub const GGML_EXT_FEATURE_CHECK: u64 = 8;
/// Bit of `ggml_ext_features`: registrations can be released.
pub const GGML_EXT_FEATURE_SCOPES: u64 = 16;
/// Bit of `ggml_ext_features`: counters and step times.
pub const GGML_EXT_FEATURE_COUNTERS: u64 = 32;

/// Flag of a registration: `execute` only enqueues device work that can be replayed, and decides nothing by tensor contents; what it
/// sets up lazily is there after the first execution.
pub const GGML_EXT_KERNEL_CAPTURE_SAFE: u32 = 1;
/// Flag of a registration: recorded work depends on tensor metadata, addresses, the device and immutable data only, so that it may be
/// replayed by a rebuilt plan. Needs `GGML_EXT_KERNEL_CAPTURE_SAFE`.
pub const GGML_EXT_KERNEL_REPLAY_REUSABLE: u32 = 2;
/// Flag of a registration: a promise that the result has the same bits for any number of threads. `ggml_ext_check` holds it to that.
pub const GGML_EXT_KERNEL_DETERMINISTIC: u32 = 4;

c_enum! {
/// What kind of rule was broken.
pub enum ggml_ext_code {
    /// Nothing failed yet on this thread.
    GGML_EXT_CODE_NONE = 0,
    /// A required pointer was NULL.
    GGML_EXT_CODE_NULL_ARGUMENT = 1,
    /// A value is outside what the function takes.
    GGML_EXT_CODE_BAD_ARGUMENT = 2,
    /// Shapes, strides or formats that the operator cannot take.
    GGML_EXT_CODE_BAD_SHAPE = 3,
    /// Memory, or room in a context or graph, ran out.
    GGML_EXT_CODE_OUT_OF_MEMORY = 4,
    /// No kernel takes the node.
    GGML_EXT_CODE_NO_KERNEL = 5,
    /// A tensor without data was to be computed or copied.
    GGML_EXT_CODE_NOT_ALLOCATED = 6,
    /// A file breaks its format.
    GGML_EXT_CODE_BAD_FILE = 7,
    /// The operating system refused.
    GGML_EXT_CODE_IO = 8,
    /// A backend reported a failure, or a module cannot be used.
    GGML_EXT_CODE_BACKEND = 9,
    /// A fault of the library itself; the call had no effect that can be relied on.
    GGML_EXT_CODE_INTERNAL = 10,
    /// A registration of that name is live.
    GGML_EXT_CODE_NAME_TAKEN = 11,
    /// Nothing of that name is registered.
    GGML_EXT_CODE_UNKNOWN_NAME = 12,
    /// A structure is shorter than its first version, or has members set that this library does not know.
    GGML_EXT_CODE_BAD_STRUCT = 13,
    /// The plan was made before metadata, a policy or a registration changed: allocate the graph anew.
    GGML_EXT_CODE_STALE_PLAN = 14,
    /// A plan, or a query on another thread, uses the registration.
    GGML_EXT_CODE_IN_USE = 15,
    /// A callback called what may not be called from it.
    GGML_EXT_CODE_RE_ENTERED = 16,
    /// A callback failed or answered what cannot be.
    GGML_EXT_CODE_CALLBACK = 17,
    /// A fusion or a move would change a result.
    GGML_EXT_CODE_NOT_LEGAL = 18,
    /// A registration does not do what it must, `ggml_ext_check`.
    GGML_EXT_CODE_CHECK_FAILED = 19,
}
}

/// The last failure on a thread.
#[repr(C)]
pub struct ggml_ext_error {
    /// Bytes of this structure, set by the caller; members beyond it are not written.
    pub struct_size: usize,
    /// A `ggml_ext_code`.
    pub code: i32,
    /// One sentence: what failed, where, which rule. Valid until the next failing call on this thread.
    pub text: *const c_char,
    /// The registration concerned, or NULL.
    pub registration: *const c_char,
    /// The tensor concerned, or NULL; to be compared, not read: it may be gone.
    pub node: *const ggml_tensor,
}

/// Registrations that are released together, `ggml_ext_scope_new`.
#[repr(C)]
pub struct ggml_ext_scope {
    _opaque: [u8; 0],
}
/// A scope.
pub type ggml_ext_scope_t = *mut ggml_ext_scope;

/// Metadata of an operator's result: contiguous, in memory of its own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_output {
    /// Set by the library.
    pub struct_size: usize,
    /// Format; F32 unless `infer` sets another.
    pub r#type: ggml_type,
    /// Elements of each dimension, low to high; 1 unless `infer` sets them.
    pub ne: [i64; GGML_MAX_DIMS],
}

/// An operator: what `ggml_ext_op_create` makes nodes of.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_op_desc {
    /// `sizeof(struct ggml_ext_op_desc)`.
    pub struct_size: usize,
    /// Unique in the process, of the form `vendor.op.v1`. Copied.
    pub name: *const c_char,
    /// Bytes of the attributes, at most `GGML_EXT_MAX_ATTR_SIZE`. Attributes are plain values, never addresses: tensors are sources.
    pub attr_size: usize,
    /// Sets format and shape of the result from metadata and attributes. `src` has `n_src` tensors, none of them NULL; `attrs` is
    /// aligned to 8 bytes. False refuses, with a text by `ggml_ext_refuse`; the answer depends on nothing but the arguments.
    pub infer: Option<
        unsafe extern "C" fn(
            src: *const *mut ggml_tensor,
            n_src: c_int,
            attrs: *const c_void,
            out: *mut ggml_ext_output,
            user_data: *mut c_void,
        ) -> bool,
    >,
    /// For `infer`.
    pub user_data: *mut c_void,
    /// Releases the operator with others; NULL: it stays for ever.
    pub scope: ggml_ext_scope_t,
}

/// What one launch computes: one node, or the consecutive nodes of a fusion.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_step {
    /// Set by the library.
    pub struct_size: usize,
    /// Where it is to run.
    pub device: ggml_backend_dev_t,
    /// The nodes in order; the last is the result. Of a fusion the others have no data and no buffer, unless one of them holds the
    /// result's storage.
    pub nodes: *const *mut ggml_tensor,
    /// At least 1.
    pub n_nodes: c_int,
    /// How many tensors the step reads from outside itself, at most `GGML_EXT_MAX_STEP_SRC`.
    pub n_srcs: c_int,
    /// Those, each once, in the order in which the nodes name them.
    pub srcs: *const *mut ggml_tensor,
    /// Bit `i`: bytes of `srcs[i]` and of the result are in the same place. In `execute` it says what is so. Before, in `supports`,
    /// `preferred` and `prepare`, it says what can become so: the result of a node that the allocator may place over a source (an override
    /// of a built-in operator that may work in place), or the inner node that holds a fusion's result; a result that is a view or a copy into
    /// given storage. A fresh result of a fusion or of a registered operator overlaps nothing that the step reads.
    pub overlap: u64,
}

/// What `prepare` answers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_prepared {
    /// Set by the library.
    pub struct_size: usize,
    /// Bytes of scratch memory that `execute` needs. All steps of a plan share one piece, as large as the largest request.
    pub workspace_size: usize,
    /// For `execute`, given back by `destroy`. May be NULL.
    pub state: *mut c_void,
}

/// One execution of a step.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_run {
    /// Set by the library.
    pub struct_size: usize,
    /// The step; tensors have their addresses now.
    pub step: *const ggml_ext_step,
    /// The backend, whose work is to be kept in order.
    pub backend: ggml_backend_t,
    /// Scratch memory of the backend, NULL when the step asked for none. What it holds is lost between steps.
    pub workspace: ggml_backend_buffer_t,
    /// Bytes of it that the step asked for.
    pub workspace_size: usize,
    /// What `prepare` made.
    pub state: *mut c_void,
}

/// A kernel for single nodes, a fusion rule, or both, on one device.
///
/// Callbacks but `execute` look at metadata only: they read no data, launch nothing, and may be called from any thread. A callback
/// says why it refuses or fails by `ggml_ext_refuse`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_kernel_desc {
    /// `sizeof(struct ggml_ext_kernel_desc)`.
    pub struct_size: usize,
    /// Unique on the device; letters, digits, '.', '_' and '-'. Copied.
    pub name: *const c_char,
    /// Single nodes of this operator are offered to `supports`. `GGML_OP_NONE`: none, the registration is a fusion rule only.
    /// `GGML_OP_CUSTOM` goes with `op_name`.
    pub op: ggml_op,
    /// Name of the registered operator; NULL with a built-in one. Copied.
    pub op_name: *const c_char,
    /// Higher is asked first; equal: first registered, first asked.
    pub priority: i32,
    /// For rules: `match` is only asked about nodes of this operator. `GGML_OP_NONE`: all nodes. `GGML_OP_CUSTOM`: all registered ones.
    pub match_op: ggml_op,
    /// For the callbacks.
    pub user_data: *mut c_void,
    /// Whether the kernel computes the step rightly. Required with `op`; for a rule NULL means that `match` has decided.
    pub supports: Option<unsafe extern "C" fn(step: *const ggml_ext_step, user_data: *mut c_void) -> bool>,
    /// Whether the kernel is to run although the device can compute the node itself. NULL: yes.
    pub preferred: Option<unsafe extern "C" fn(step: *const ggml_ext_step, user_data: *mut c_void) -> bool>,
    /// Makes the host's state for a step and says how much scratch memory it needs. It may run when only memory is measured: it
    /// launches nothing and allocates nothing on the device. NULL: no state, no scratch.
    pub prepare: Option<
        unsafe extern "C" fn(
            step: *const ggml_ext_step,
            out: *mut ggml_ext_prepared,
            user_data: *mut c_void,
        ) -> ggml_status,
    >,
    /// Computes the step, in the order of the backend's work. Required. Any other answer than success ends the graph and goes to the
    /// caller; nothing is tried in its place.
    pub execute: Option<unsafe extern "C" fn(run: *const ggml_ext_run, user_data: *mut c_void) -> ggml_status>,
    /// Gives back what `prepare` made: once for each `prepare` that succeeded. NULL: nothing to do.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void, user_data: *mut c_void)>,
    /// A rule: how many nodes of `graph`, from node `first` on, one launch replaces; below 2: none. The library then checks that nothing
    /// else needs what disappears; mathematics, formats, shapes and layouts are the rule's to answer for. NULL: no rule.
    pub r#match: Option<unsafe extern "C" fn(graph: *mut ggml_cgraph, first: c_int, user_data: *mut c_void) -> c_int>,
    /// A rule: brings nodes together before rules are asked, by `ggml_ext_graph_delay` alone. NULL: nothing.
    pub optimize: Option<unsafe extern "C" fn(graph: *mut ggml_cgraph, user_data: *mut c_void)>,
    /// Releases the registration with others; NULL: it stays for ever.
    pub scope: ggml_ext_scope_t,
}

/// How often what happened to a registration.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_counters {
    /// Bytes of this structure, set by the caller; members beyond it are not written.
    pub struct_size: usize,
    /// Steps of plans that it was chosen for.
    pub selected: u64,
    /// Launches.
    pub ran: u64,
    /// Nodes that its launches replaced, where they were more than one.
    pub fused_nodes: u64,
    /// Nodes and matches that it was asked about and that came to nothing: `supports` or `preferred` said no, or the match was not legal.
    pub refused: u64,
    /// Callbacks that failed: `prepare`, `execute`, a `match` that leaves the graph.
    pub errors: u64,
    /// Nanoseconds of the calling thread in `execute`, while profiling was on.
    pub ns: u64,
}

/// `skip_alloc` of a backend, found by `ggml_backend_reg_get_proc_address` under the name `ggml_backend_skip_alloc`: whether the backend's
/// own code computes node number `node` of `graph` within a later node, and leaves its data untouched, so that the scheduler need not
/// allocate it. `graph` is what the backend will be given to compute in one call, after its own reordering. The library asks for every
/// node, and allocates it all the same when something else needs it.
pub type ggml_backend_skip_alloc_t =
    Option<unsafe extern "C" fn(backend: ggml_backend_t, graph: *const ggml_cgraph, node: c_int) -> bool>;

c_enum! {
/// Forms of an explained plan.
pub enum ggml_ext_explain_format {
    /// Lines of text.
    GGML_EXT_EXPLAIN_TEXT = 0,
    /// One JSON object.
    GGML_EXT_EXPLAIN_JSON = 1,
    /// A graph for Graphviz.
    GGML_EXT_EXPLAIN_DOT = 2,
}
}

/// What `ggml_ext_cpu_parallel_v1` runs on each of `nth` threads.
pub type ggml_ext_cpu_task_t = Option<unsafe extern "C" fn(ith: c_int, nth: c_int, user_data: *mut c_void)>;
/// `ggml_ext_cpu_parallel_v1`, as `ggml_backend_reg_get_proc_address` of the CPU gives it: runs a function on a CPU backend's threads.
pub type ggml_ext_cpu_parallel_v1_t = Option<
    unsafe extern "C" fn(backend: ggml_backend_t, task: ggml_ext_cpu_task_t, user_data: *mut c_void) -> ggml_status,
>;

c_enum! {
/// How a case of `ggml_ext_check` ended.
pub enum ggml_ext_check_outcome {
    /// As it must be.
    GGML_EXT_CHECK_PASSED = 0,
    /// Not as it must be; the text says why.
    GGML_EXT_CHECK_FAILED = 1,
    /// It shows nothing about this registration; the text says why.
    GGML_EXT_CHECK_NOT_APPLICABLE = 2,
    /// Found out and not judged, since nothing is promised; the text says what.
    GGML_EXT_CHECK_NOTED = 3,
}
}

/// A case of `ggml_ext_check`.
#[repr(C)]
pub struct ggml_ext_check_case {
    /// Set by the library.
    pub struct_size: usize,
    /// Its name, as in the list at `ggml_ext_check`.
    pub name: *const c_char,
    /// How it ended.
    pub outcome: ggml_ext_check_outcome,
    /// How often the registration ran for it.
    pub n_runs: u32,
    /// Why, or "". Valid during the call.
    pub text: *const c_char,
}

/// What `ggml_ext_check` is to check, and against what. `build` and `struct_size` are enough.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_ext_check_params {
    /// `sizeof(struct ggml_ext_check_params)`.
    pub struct_size: usize,
    /// Builds a small graph in `ctx` that has the operator or the pattern in it, and answers its result. Inputs are made by
    /// `ggml_new_tensor_*`, anew in each call, and are best read by the operator itself. It is called often. The same seed gives the same
    /// graph, other seeds may give other shapes. It may find that a tensor it makes has another layout than it asked for, no
    /// elements, or is one that it made before; what cannot be built like that is answered with NULL and is no failure. Required.
    pub build:
        Option<unsafe extern "C" fn(ctx: *mut ggml_context, seed: u64, user_data: *mut c_void) -> *mut ggml_tensor>,
    /// Builds the same from other operators: `inputs` are tensors as `build` made them, in that order, contiguous. It gives the
    /// result that the registration must have. NULL: the graph of `build` is computed without the registration, which is what an
    /// override and a fusion are to be compared with.
    pub reference: Option<
        unsafe extern "C" fn(
            ctx: *mut ggml_context,
            inputs: *const *mut ggml_tensor,
            n_inputs: c_int,
            seed: u64,
            user_data: *mut c_void,
        ) -> *mut ggml_tensor,
    >,
    /// Writes the elements of input number `index` to `data`: contiguous, in the format and shape that `input` has (its strides do not
    /// matter here), `size` bytes. False, or NULL: numbers from -1 to 1, integers 0 and 1, at random. An input that it fills is left
    /// out of the cases with special numbers. The same arguments give the same elements; the seed may be another than that of `build`.
    pub fill: Option<
        unsafe extern "C" fn(
            input: *const ggml_tensor,
            index: c_int,
            seed: u64,
            data: *mut c_void,
            size: usize,
            user_data: *mut c_void,
        ) -> bool,
    >,
    /// Told of each case when all are done. NULL: nobody.
    pub on_case: Option<unsafe extern "C" fn(done: *const ggml_ext_check_case, user_data: *mut c_void)>,
    /// How many states of `prepare` have not been given back to `destroy`. NULL: the memory in use is looked at, where that can be done.
    pub live: Option<unsafe extern "C" fn(user_data: *mut c_void) -> i64>,
    /// The normalised squared error, `sum((a - b)^2) / sum(b^2)`, that results may have; 0: they are the same bit for bit (any NaN is
    /// like any other).
    pub max_nmse: f64,
    /// Seeds 1 to this are tried in the plain case; 0: 3.
    pub n_seeds: u32,
    /// Threads of the CPU that are tried, from 1 on; 0: 3.
    pub n_threads: u32,
    /// Names of cases that are left out, with commas between; a name stands for all cases that begin with it and a dot. NULL: none.
    pub leave_out: *const c_char,
    /// For the callbacks.
    pub user_data: *mut c_void,
}

/// What `ggml_ext_check` found.
#[repr(C)]
pub struct ggml_ext_check_report {
    /// Bytes of this structure, set by the caller; members beyond it are not written.
    pub struct_size: usize,
    /// Cases.
    pub n_cases: u32,
    /// Cases that passed.
    pub n_passed: u32,
    /// Cases that failed.
    pub n_failed: u32,
    /// Cases that show nothing about this registration.
    pub n_not_applicable: u32,
    /// Cases that found something that is not judged.
    pub n_noted: u32,
    /// How often the registration ran.
    pub n_runs: u32,
    /// The first case that failed, or NULL. Valid, as `text` is, until the next check on this thread.
    pub failed_case: *const c_char,
    /// Why it failed, or NULL.
    pub text: *const c_char,
}

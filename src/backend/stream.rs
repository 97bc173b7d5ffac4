//! Backends (streams of work) and events in them.

use super::handle::{handle, text};
use super::{tensor_data, Buffer, Buft, Device};
use crate::error;
use crate::graph;
use ggml_oxide_abi::*;
use std::ffi::c_char;

handle! {
    /// A stream of work on a device.
    Backend(ggml_backend)
}

handle! {
    /// A point in a backend's stream.
    Event(ggml_backend_event)
}

/// The functions of a backend that can do nothing: what others add to.
pub const NO_FUNCTIONS: ggml_backend_i = ggml_backend_i {
    get_name: None,
    free: None,
    set_tensor_async: None,
    get_tensor_async: None,
    set_tensor_2d_async: None,
    get_tensor_2d_async: None,
    cpy_tensor_async: None,
    synchronize: None,
    graph_plan_create: None,
    graph_plan_free: None,
    graph_plan_update: None,
    graph_plan_compute: None,
    graph_compute: None,
    event_record: None,
    event_wait: None,
    graph_optimize: None,
};

impl Backend {
    /// Its functions.
    pub fn iface(self) -> ggml_backend_i {
        self.get().iface
    }

    /// Sixteen bytes that name its kind.
    pub fn guid(self) -> ggml_guid_t {
        self.get().guid
    }

    /// Its name, as a C string.
    pub fn name_ptr(self) -> *const c_char {
        // SAFETY: the table's functions take the handle they came with.
        self.get().iface.get_name.map_or(c"".as_ptr(), |f| unsafe { f(self.as_raw()) })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        text(self.name_ptr())
    }

    /// Frees it.
    ///
    /// # Safety
    /// Nothing uses the handle any more.
    pub unsafe fn free(self) {
        if let Some(f) = self.get().iface.free {
            // SAFETY: as `name_ptr`.
            unsafe { f(self.as_raw()) }
        }
    }

    /// Where it runs.
    pub fn device(self) -> Option<Device> {
        // SAFETY: a backend's device outlives it.
        unsafe { Device::from_raw(self.get().device) }
    }

    /// The memory it works in.
    pub fn buft(self) -> Option<Buft> {
        self.device().and_then(Device::buft)
    }

    /// Waits for all its work.
    pub fn synchronize(self) {
        if let Some(f) = self.get().iface.synchronize {
            // SAFETY: as `name_ptr`.
            unsafe { f(self.as_raw()) }
        }
    }

    /// Starts computing a graph whose tensors are allocated, all of it by the backend's own code.
    ///
    /// # Safety
    /// `graph` is live, and so are its tensors and their storage until the backend was synchronised.
    pub unsafe fn compute_async(self, graph: *mut ggml_cgraph) -> ggml_status {
        const CALL: &str = "ggml_backend_graph_compute";
        // SAFETY: the caller's promise.
        let fault = unsafe { graph.as_ref().and_then(|g| graph::fault(g)) };
        if let Some(cause) = fault {
            error::report(&cause.within(CALL));
            return GGML_STATUS_FAILED;
        }
        match self.get().iface.graph_compute {
            // SAFETY: as `name_ptr`.
            Some(f) => unsafe { f(self.as_raw(), graph) },
            None => {
                error::fail(GGML_EXT_CODE_BACKEND, format!("{CALL}: backend '{}' cannot compute", self.name()));
                GGML_STATUS_FAILED
            }
        }
    }

    /// The backend's own choice of nodes that need no memory, if it has one.
    pub fn skip_alloc(self) -> ggml_backend_skip_alloc_t {
        let function = self.device().and_then(Device::reg)?.proc_address(c"ggml_backend_skip_alloc");
        // SAFETY: what a backend gives under this name has this type; NULL is `None`.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, ggml_backend_skip_alloc_t>(function) }
    }

    /// Whether [`Backend::optimize`] does anything.
    pub fn has_optimize(self) -> bool {
        self.get().iface.graph_optimize.is_some()
    }

    /// Lets the backend reorder a graph's nodes before they are allocated. `keep(tensor, until)` is told what must live longer.
    ///
    /// # Safety
    /// `graph` and its tensors are live.
    pub unsafe fn optimize(self, graph: *mut ggml_cgraph, mut keep: impl FnMut(*mut ggml_tensor, *mut ggml_tensor)) {
        unsafe extern "C" fn add<F: FnMut(*mut ggml_tensor, *mut ggml_tensor)>(
            user_data: *mut std::ffi::c_void,
            tensor: *mut ggml_tensor,
            until: *mut ggml_tensor,
        ) {
            // SAFETY: `user_data` is the closure of the call below, which is still running.
            unsafe { (*user_data.cast::<F>())(tensor, until) }
        }
        fn adder<F: FnMut(*mut ggml_tensor, *mut ggml_tensor)>(_: &F) -> ggml_backend_graph_optimize_params {
            ggml_backend_graph_optimize_params { add_alloc_dep: Some(add::<F>), user_data: std::ptr::null_mut() }
        }
        if let Some(f) = self.get().iface.graph_optimize {
            let mut params = adder(&keep);
            params.user_data = std::ptr::from_mut(&mut keep).cast();
            // SAFETY: as `name_ptr`; the parameters live through the call.
            unsafe { f(self.as_raw(), graph, &mut params) }
        }
    }

    /// Whether it can use such memory.
    pub fn supports_buft(self, buft: Buft) -> bool {
        self.device().is_some_and(|d| d.supports_buft(buft))
    }

    /// Whether the node is worth moving its weights to the device.
    pub fn offload_op(self, op: &ggml_tensor) -> bool {
        self.device().is_some_and(|d| d.offload_op(op))
    }

    /// Copies `src`, behind the work of `from`, to `dst`, before the further work of `self`.
    ///
    /// # Safety
    /// Tensors are NULL or live.
    pub unsafe fn copy_async(self, from: Backend, src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool {
        // SAFETY: as `name_ptr`; the backend checks the tensors.
        if self.get().iface.cpy_tensor_async.is_some_and(|f| unsafe { f(from.as_raw(), self.as_raw(), src, dst) }) {
            return true;
        }
        from.synchronize();
        self.synchronize();
        // SAFETY: the caller's promise.
        unsafe { tensor_data::copy("ggml_backend_tensor_copy_async", src, dst) }
    }

    /// A buffer of its memory.
    pub fn alloc(self, size: usize) -> Option<Buffer> {
        self.buft().and_then(|b| b.alloc(size))
    }

    /// Marks `event` as reached when the work so far is done.
    pub fn record(self, event: Event) {
        if let Some(f) = self.get().iface.event_record {
            // SAFETY: as `name_ptr`.
            unsafe { f(self.as_raw(), event.as_raw()) }
        }
    }

    /// Holds further work until `event` is reached.
    pub fn wait(self, event: Event) {
        if let Some(f) = self.get().iface.event_wait {
            // SAFETY: as `name_ptr`.
            unsafe { f(self.as_raw(), event.as_raw()) }
        }
    }
}

impl Event {
    /// A new event of `device`; `None` where it has none.
    pub fn new(device: Device) -> Option<Self> {
        // SAFETY: the table's functions take the handle they came with.
        device.iface().event_new.and_then(|f| unsafe { Self::from_raw(f(device.as_raw())) })
    }

    fn device(self) -> Option<Device> {
        // SAFETY: an event's device outlives it.
        unsafe { Device::from_raw(self.get().device) }
    }

    /// Frees it.
    ///
    /// # Safety
    /// Nothing uses the handle any more.
    pub unsafe fn free(self) {
        if let Some((device, f)) = self.device().and_then(|d| Some((d, d.iface().event_free?))) {
            // SAFETY: as `new`.
            unsafe { f(device.as_raw(), self.as_raw()) }
        }
    }

    /// Waits until it is reached.
    pub fn synchronize(self) {
        if let Some((device, f)) = self.device().and_then(|d| Some((d, d.iface().event_synchronize?))) {
            // SAFETY: as `new`.
            unsafe { f(device.as_raw(), self.as_raw()) }
        }
    }
}

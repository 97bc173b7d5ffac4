//! For the tests: devices of memory that only they can reach.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::backend::{host, tensor_data, Backend, Buffer, Buft};
use crate::graph::{self, testing::*};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

pub(super) type T = *mut ggml_tensor;

/// A device in test: what it can do, and what it did.
pub(super) struct Fake {
    pub(super) kind: ggml_backend_dev_type,
    pub(super) runs: fn(&ggml_tensor) -> bool,
    pub(super) offloads: bool,
    pub(super) buft: Box<ggml_backend_buffer_type>,
    pub(super) device: Box<ggml_backend_device>,
    pub(super) backend: Box<ggml_backend>,
    /// Names of computed nodes, and "alloc".
    pub(super) log: Mutex<Vec<String>>,
    /// What `graph_optimize` asks for.
    pub(super) keep: Mutex<Option<(usize, usize)>>,
    pub(super) refuse: Mutex<bool>,
}

impl Fake {
    pub(super) fn new(kind: ggml_backend_dev_type, runs: fn(&ggml_tensor) -> bool, offloads: bool) -> &'static Fake {
        let buft = ggml_backend_buffer_type {
            iface: ggml_backend_buffer_type_i {
                get_name: Some(name),
                alloc_buffer: Some(alloc),
                alloc_buffer_n: None,
                get_alignment: Some(alignment),
                get_max_size: None,
                get_alloc_size: None,
                get_alloc_size_n: None,
                is_host: Some(is_host),
            },
            device: null_mut(),
            context: null_mut(),
        };
        let device = ggml_backend_device {
            iface: ggml_backend_device_i {
                get_name: Some(device_name),
                get_description: None,
                get_memory: None,
                get_type: Some(device_kind),
                get_props: None,
                init_backend: None,
                get_buffer_type: Some(device_buft),
                get_host_buffer_type: None,
                buffer_from_host_ptr: None,
                supports_op: Some(supports_op),
                supports_buft: Some(supports_buft),
                offload_op: Some(offload_op),
                event_new: Some(event_new),
                event_free: Some(event_free),
                event_synchronize: Some(event_synchronize),
            },
            reg: null_mut(),
            context: null_mut(),
        };
        let backend = ggml_backend {
            guid: null_mut(),
            iface: ggml_backend_i {
                get_name: Some(backend_name),
                graph_compute: Some(compute),
                graph_optimize: Some(optimize),
                event_record: Some(event_record),
                event_wait: Some(event_wait),
                ..crate::backend::NO_FUNCTIONS
            },
            device: null_mut(),
            context: null_mut(),
        };
        let fake = Box::into_raw(Box::new(Fake {
            kind,
            runs,
            offloads,
            buft: Box::new(buft),
            device: Box::new(device),
            backend: Box::new(backend),
            log: Mutex::default(),
            keep: Mutex::default(),
            refuse: Mutex::default(),
        }));
        // SAFETY: leaked; wired before anybody sees it.
        unsafe {
            (*fake).buft.context = fake.cast();
            (*fake).buft.device = &raw mut *(*fake).device;
            (*fake).device.context = fake.cast();
            (*fake).backend.context = fake.cast();
            (*fake).backend.device = &raw mut *(*fake).device;
            &*fake
        }
    }
    pub(super) fn gpu(runs: fn(&ggml_tensor) -> bool) -> &'static Fake {
        Self::new(GGML_BACKEND_DEVICE_TYPE_GPU, runs, false)
    }
    pub(super) fn cpu() -> &'static Fake {
        Self::new(GGML_BACKEND_DEVICE_TYPE_CPU, |_| true, false)
    }
    /// # Safety
    /// `context` is that of a fake's structure.
    pub(super) unsafe fn of<'a>(context: *mut c_void) -> &'a Fake {
        // SAFETY: the caller's promise.
        unsafe { &*context.cast::<Fake>() }
    }
    pub(super) fn handle(&self) -> Backend {
        // SAFETY: leaked.
        unsafe { Backend::from_raw(std::ptr::from_ref(&*self.backend).cast_mut()) }.unwrap()
    }
    pub(super) fn memory(&self) -> Buft {
        // SAFETY: leaked.
        unsafe { Buft::from_raw(std::ptr::from_ref(&*self.buft).cast_mut()) }.unwrap()
    }
    pub(super) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
    pub(super) fn say(&self, line: impl Into<String>) {
        self.log.lock().unwrap().push(line.into());
    }
}

// What follows is called with a fake's own structures.
unsafe extern "C" fn name(_: ggml_backend_buffer_type_t) -> *const c_char {
    c"fake".as_ptr()
}
unsafe extern "C" fn alignment(_: ggml_backend_buffer_type_t) -> usize {
    32
}
unsafe extern "C" fn is_host(buft: ggml_backend_buffer_type_t) -> bool {
    // SAFETY: a fake's.
    unsafe { Fake::of((*buft).context) }.kind == GGML_BACKEND_DEVICE_TYPE_CPU
}
unsafe extern "C" fn alloc(buft: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t {
    // SAFETY: a fake's.
    let fake = unsafe { Fake::of((*buft).context) };
    if *fake.refuse.lock().unwrap() {
        return null_mut();
    }
    fake.say("alloc");
    let inner = host::buffer_type_cpu().alloc(size).unwrap();
    Buffer::new(fake.memory(), inner.iface(), inner.context(), size).as_raw()
}
unsafe extern "C" fn device_name(_: ggml_backend_dev_t) -> *const c_char {
    c"fake".as_ptr()
}
unsafe extern "C" fn device_kind(d: ggml_backend_dev_t) -> ggml_backend_dev_type {
    // SAFETY: a fake's.
    unsafe { Fake::of((*d).context) }.kind
}
unsafe extern "C" fn device_buft(d: ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
    // SAFETY: a fake's.
    unsafe { Fake::of((*d).context) }.memory().as_raw()
}
unsafe extern "C" fn supports_op(d: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
    // SAFETY: a fake's.
    unsafe { (Fake::of((*d).context).runs)(&*op) }
}
unsafe extern "C" fn supports_buft(d: ggml_backend_dev_t, buft: ggml_backend_buffer_type_t) -> bool {
    // SAFETY: a fake's.
    unsafe { Fake::of((*d).context) }.memory().as_raw() == buft
}
unsafe extern "C" fn offload_op(d: ggml_backend_dev_t, _: *const ggml_tensor) -> bool {
    // SAFETY: a fake's.
    unsafe { Fake::of((*d).context) }.offloads
}
unsafe extern "C" fn event_new(d: ggml_backend_dev_t) -> ggml_backend_event_t {
    Box::into_raw(Box::new(ggml_backend_event { device: d, context: null_mut() }))
}
unsafe extern "C" fn event_free(_: ggml_backend_dev_t, event: ggml_backend_event_t) {
    // SAFETY: made by `event_new`.
    drop(unsafe { Box::from_raw(event) });
}
unsafe extern "C" fn event_synchronize(_: ggml_backend_dev_t, _: ggml_backend_event_t) {}
unsafe extern "C" fn event_record(_: ggml_backend_t, _: ggml_backend_event_t) {}
unsafe extern "C" fn event_wait(_: ggml_backend_t, _: ggml_backend_event_t) {}
unsafe extern "C" fn backend_name(_: ggml_backend_t) -> *const c_char {
    c"fake".as_ptr()
}
unsafe extern "C" fn compute(b: ggml_backend_t, g: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: a fake's, and a live graph. Every node and source must lie where the device can reach it.
    unsafe {
        let fake = Fake::of((*b).context);
        for &node in graph::nodes(&*g) {
            let t = &*node;
            for s in t.src.iter().filter_map(|&s| s.as_ref()).chain([t]) {
                assert_eq!((*s.buffer).buft, fake.memory().as_raw(), "'{}' is out of reach", shape::name(s));
            }
            if !ggml_oxide_shape::is_view(t.op) {
                fake.say(shape::name(t));
            }
        }
        evaluate(&*g);
    }
    GGML_STATUS_SUCCESS
}
unsafe extern "C" fn optimize(b: ggml_backend_t, g: *mut ggml_cgraph, p: *mut ggml_backend_graph_optimize_params) {
    // SAFETY: a fake's, a live graph and live parameters.
    unsafe {
        let keep = *Fake::of((*b).context).keep.lock().unwrap();
        if let Some((tensor, until)) = keep {
            let nodes = graph::nodes(&*g);
            if let (Some(&tensor), Some(&until)) = (nodes.get(tensor), nodes.get(until)) {
                (*p).add_alloc_dep.unwrap()((*p).user_data, tensor, until);
            }
        }
    }
}

pub(super) fn sched(team: &[&Fake], parallel: bool) -> Sched {
    let backends: Vec<Backend> = team.iter().map(|f| f.handle()).collect();
    Sched::new(&backends, None, parallel, true).unwrap()
}

pub(super) fn run(s: &mut Sched, g: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: the bench's.
    let status = unsafe { s.compute_async(g) }.unwrap();
    s.synchronize();
    status
}

pub(super) fn fill(t: T, data: &[f32]) {
    // SAFETY: the range is checked.
    unsafe { tensor_data::set("test", t, data.as_ptr().cast(), tensor_data::Rows::range(0, data.len() * 4)) }
}

/// A tensor with data in the memory of `fake`, as a weight.
pub(super) fn weight(b: &mut Bench, fake: &Fake, data: &[f32]) -> T {
    let t = b.leaf(data.len() as i64);
    // SAFETY: the bench's.
    let buffer = unsafe { crate::alloc::whole::alloc(&mut [t], fake.memory()) }.unwrap().unwrap();
    buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fake.take_log();
    fill(t, data);
    t
}

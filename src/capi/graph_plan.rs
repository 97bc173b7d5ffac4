//! Entry points of ggml-backend.h for plans: graphs that a backend prepares once and computes many times.

use super::backend::handle;
use crate::backend::Backend;
use crate::entry;
use crate::error;
use ggml_oxide_abi::*;

entry! {
    /// A plan for computing the graph on the backend, freed by `ggml_backend_graph_plan_free`; NULL with an error where the backend
    /// has no plans. The graph's tensors stay as they are while there is the plan; the graph itself need not. Registrations
    /// of ggml-ext.h take no part.
    pub fn ggml_backend_graph_plan_create(backend: ggml_backend_t, cgraph: *mut ggml_cgraph) -> ggml_backend_graph_plan_t {
        const CALL: &str = "ggml_backend_graph_plan_create";
        let Some(backend) = handle!(Backend, backend, "ggml_backend_graph_plan_create") else { return std::ptr::null_mut() };
        match backend.iface().graph_plan_create {
            _ if cgraph.is_null() => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: the graph must not be NULL"));
                std::ptr::null_mut()
            }
            Some(create) => create(backend.as_raw(), cgraph),
            None => {
                error::fail(GGML_EXT_CODE_BACKEND, format!("{CALL}: backend '{}' has no plans", backend.name()));
                std::ptr::null_mut()
            }
        }
    }
    /// Frees a plan of the backend; NULL is no change.
    pub fn ggml_backend_graph_plan_free(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t) {
        if let Some(free) = handle!(Backend, backend, "ggml_backend_graph_plan_free").and_then(|b| b.iface().graph_plan_free) {
            if !plan.is_null() {
                free(backend, plan);
            }
        }
    }
    /// Computes a plan of the backend.
    pub fn ggml_backend_graph_plan_compute(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t) -> ggml_status {
        const CALL: &str = "ggml_backend_graph_plan_compute";
        let Some(backend) = handle!(Backend, backend, "ggml_backend_graph_plan_compute") else { return GGML_STATUS_FAILED };
        match backend.iface().graph_plan_compute {
            _ if plan.is_null() => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: the plan must not be NULL"));
                GGML_STATUS_FAILED
            }
            Some(compute) => compute(backend.as_raw(), plan),
            None => {
                error::fail(GGML_EXT_CODE_BACKEND, format!("{CALL}: backend '{}' has no plans", backend.name()));
                GGML_STATUS_FAILED
            }
        }
    }
}

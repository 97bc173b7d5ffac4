//! Entry points of ggml-backend.h for a device made of several, which divide tensors among them.

use crate::backend::{meta, Device};
use crate::capi::Fallback;
use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

impl Fallback for ggml_backend_meta_split_axis {
    fn fallback() -> Self {
        GGML_BACKEND_SPLIT_AXIS_UNKNOWN
    }
}

entry! {
    /// Name of a way to divide a tensor.
    pub fn ggml_backend_meta_split_axis_name(split_axis: ggml_backend_meta_split_axis) -> *const c_char {
        match split_axis {
            GGML_BACKEND_SPLIT_AXIS_0 => c"0",
            GGML_BACKEND_SPLIT_AXIS_1 => c"1",
            GGML_BACKEND_SPLIT_AXIS_2 => c"2",
            GGML_BACKEND_SPLIT_AXIS_3 => c"3",
            GGML_BACKEND_SPLIT_AXIS_MIRRORED => c"MIRRORED",
            GGML_BACKEND_SPLIT_AXIS_PARTIAL => c"PARTIAL",
            GGML_BACKEND_SPLIT_AXIS_NONE => c"NONE",
            _ => c"UNKNOWN",
        }
        .as_ptr()
    }
    /// A device made of `n_devs` others, 1 to `GGML_BACKEND_META_MAX_DEVICES`, or NULL with an error. Its backend, memory and buffers are made
    /// of theirs. `get_split_state` is asked how each tensor is divided that is no graph's; graphs' tensors follow from them, and a
    /// node that cannot is an error with its name. The device lives as long as the process; the same arguments give the same one.
    pub fn ggml_backend_meta_device(devs: *mut ggml_backend_dev_t, n_devs: usize, get_split_state: ggml_backend_meta_get_split_state_t, get_split_state_ud: *mut c_void) -> ggml_backend_dev_t {
        const CALL: &str = "ggml_backend_meta_device";
        let made = if n_devs == 0 || n_devs > GGML_BACKEND_META_MAX_DEVICES {
            Err(Error::argument(format!("{n_devs} devices: there must be 1 to {GGML_BACKEND_META_MAX_DEVICES}")))
        } else if devs.is_null() {
            Err(Error::null("list of devices"))
        } else {
            let list = std::slice::from_raw_parts(devs, n_devs);
            let devices: Option<Vec<Device>> = list.iter().map(|&d| Device::from_raw(d)).collect();
            devices.ok_or_else(|| Error::null("device")).and_then(|devices| meta::device(devices, get_split_state, get_split_state_ud))
        };
        made.unwrap_or_else(|e| {
            error::report(&e.within(CALL));
            null_mut()
        })
    }
}

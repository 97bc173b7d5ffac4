//! Structures of ggml-backend.h for a device made of several.

use crate::*;
use core::ffi::c_void;

/// Devices that one can be made of.
pub const GGML_BACKEND_META_MAX_DEVICES: usize = 16;

/// How a tensor is divided over devices.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_meta_split_state {
    /// Along which dimension, or how else.
    pub axis: ggml_backend_meta_split_axis,
    /// Along a dimension: elements of each segment for each device, all devices of segment 0 first. A segment comes
    /// `nr` times; all together are the dimension.
    pub ne: [i64; 256],
    /// How many times each segment comes.
    pub nr: [u32; 16],
    /// Segments.
    pub n_segments: u32,
}

// 16 segments, written out since the headers' generator takes no products.
const _: () = assert!(16 * GGML_BACKEND_META_MAX_DEVICES == 256);

/// Tells how a tensor is divided.
pub type ggml_backend_meta_get_split_state_t =
    Option<unsafe extern "C" fn(tensor: *const ggml_tensor, userdata: *mut c_void) -> ggml_backend_meta_split_state>;

//! The functions of one ggml, found by name in a shared library that is opened for this program alone: two libraries with the
//! same names live side by side, and the same code calls either. May import: the layouts of the C interface.

use ggml_oxide_abi::*;
use libloading::os::unix::{Library, Symbol, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

/// A function of the library, or of one that it needs.
///
/// # Safety
/// `F` is the type of the function pointer, which is not called after the library is closed.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> Result<F, libloading::Error> {
    // SAFETY: as the caller says.
    let symbol: Symbol<F> = unsafe { library.get(name.as_bytes())? };
    Ok(*symbol)
}

macro_rules! table {
    ($($name:ident($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// One library's functions, under their C names.
        #[allow(non_snake_case)]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            /// Ends the idle threads of the library's OpenMP, where it has one (GNU's and LLVM's both offer it).
            pub pause_openmp: Option<unsafe extern "C" fn(c_int) -> c_int>,
            _library: Library,
        }

        impl Api {
            /// Opens the library and finds every function.
            ///
            /// # Errors
            /// A text that names the file and the function missing.
            pub fn open(path: &Path) -> Result<Api, String> {
                // SAFETY: loading runs the library's initialisers; both libraries are ones that the user asked for.
                let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                Ok(Api {
                    $($name: {
                        // SAFETY: the type is the declaration of the C header, as tests/abi holds ours against upstream's.
                        unsafe { find::<unsafe extern "C" fn($($arg),*) $(-> $result)?>(&library, stringify!($name)) }
                            .map_err(|e| format!("{}: {e}", path.display()))?
                    },)*
                    pause_openmp: {
                        // SAFETY: the type is the one of OpenMP 5.0: int omp_pause_resource_all(omp_pause_resource_t).
                        unsafe { find::<unsafe extern "C" fn(c_int) -> c_int>(&library, "omp_pause_resource_all") }.ok()
                    },
                    _library: library,
                })
            }
        }
    };
}

type Tensor = *mut ggml_tensor;
type Context = *mut ggml_context;

table! {
    ggml_version() -> *const c_char;
    ggml_init(ggml_init_params) -> Context;
    ggml_free(Context);
    ggml_tensor_overhead() -> usize;
    ggml_graph_overhead() -> usize;
    ggml_new_graph(Context) -> *mut ggml_cgraph;
    ggml_new_graph_custom(Context, usize, bool) -> *mut ggml_cgraph;
    ggml_build_forward_expand(*mut ggml_cgraph, Tensor);
    ggml_new_tensor_4d(Context, ggml_type, i64, i64, i64, i64) -> Tensor;
    ggml_set_input(Tensor);
    ggml_set_output(Tensor);
    ggml_nbytes(*const ggml_tensor) -> usize;
    ggml_row_size(ggml_type, i64) -> usize;
    ggml_quantize_chunk(ggml_type, *const f32, *mut c_void, i64, i64, i64, *const f32) -> usize;
    ggml_fp16_to_fp32_row(*const u16, *mut f32, i64);
    ggml_backend_cpu_init() -> *mut ggml_backend;
    ggml_backend_cpu_set_n_threads(*mut ggml_backend, c_int);
    ggml_backend_free(*mut ggml_backend);
    ggml_backend_get_default_buffer_type(*mut ggml_backend) -> *mut ggml_backend_buffer_type;
    ggml_backend_alloc_ctx_tensors(Context, *mut ggml_backend) -> *mut ggml_backend_buffer;
    ggml_backend_buffer_set_usage(*mut ggml_backend_buffer, ggml_backend_buffer_usage);
    ggml_backend_cpu_buffer_from_ptr(*mut c_void, usize) -> *mut ggml_backend_buffer;
    ggml_backend_buffer_get_type(*mut ggml_backend_buffer) -> *mut ggml_backend_buffer_type;
    ggml_backend_buffer_free(*mut ggml_backend_buffer);
    ggml_gallocr_new(*mut ggml_backend_buffer_type) -> *mut ggml_gallocr;
    ggml_gallocr_reserve(*mut ggml_gallocr, *mut ggml_cgraph) -> bool;
    ggml_gallocr_alloc_graph(*mut ggml_gallocr, *mut ggml_cgraph) -> bool;
    ggml_gallocr_free(*mut ggml_gallocr);
    ggml_backend_tensor_set(Tensor, *const c_void, usize, usize);
    ggml_backend_tensor_get(*const ggml_tensor, *mut c_void, usize, usize);
    ggml_backend_graph_compute(*mut ggml_backend, *mut ggml_cgraph) -> ggml_status;
    ggml_backend_sched_new(*mut *mut ggml_backend, *mut *mut ggml_backend_buffer_type, c_int, usize, bool, bool) -> *mut ggml_backend_sched;
    ggml_backend_sched_free(*mut ggml_backend_sched);
    ggml_backend_sched_get_n_splits(*mut ggml_backend_sched) -> c_int;
    ggml_backend_sched_reset(*mut ggml_backend_sched);
    ggml_backend_sched_reserve(*mut ggml_backend_sched, *mut ggml_cgraph) -> bool;
    ggml_backend_sched_alloc_graph(*mut ggml_backend_sched, *mut ggml_cgraph) -> bool;
    ggml_backend_sched_set_tensor_backend(*mut ggml_backend_sched, Tensor, *mut ggml_backend);
    ggml_mul_mat(Context, Tensor, Tensor) -> Tensor;
    ggml_im2col(Context, Tensor, Tensor, c_int, c_int, c_int, c_int, c_int, c_int, bool, ggml_type) -> Tensor;
    ggml_conv_2d(Context, Tensor, Tensor, c_int, c_int, c_int, c_int, c_int, c_int) -> Tensor;
    ggml_conv_2d_direct(Context, Tensor, Tensor, c_int, c_int, c_int, c_int, c_int, c_int) -> Tensor;
    ggml_flash_attn_ext(Context, Tensor, Tensor, Tensor, Tensor, f32, f32, f32) -> Tensor;
    ggml_rms_norm(Context, Tensor, f32) -> Tensor;
    ggml_norm(Context, Tensor, f32) -> Tensor;
    ggml_group_norm(Context, Tensor, c_int, f32) -> Tensor;
    ggml_soft_max(Context, Tensor) -> Tensor;
    ggml_silu(Context, Tensor) -> Tensor;
    ggml_gelu(Context, Tensor) -> Tensor;
    ggml_gelu_quick(Context, Tensor) -> Tensor;
    ggml_scale(Context, Tensor, f32) -> Tensor;
    ggml_add(Context, Tensor, Tensor) -> Tensor;
    ggml_mul(Context, Tensor, Tensor) -> Tensor;
    ggml_cast(Context, Tensor, ggml_type) -> Tensor;
    ggml_cont(Context, Tensor) -> Tensor;
    ggml_permute(Context, Tensor, c_int, c_int, c_int, c_int) -> Tensor;
    ggml_reshape_3d(Context, Tensor, i64, i64, i64) -> Tensor;
    ggml_upscale(Context, Tensor, c_int, ggml_scale_mode) -> Tensor;
    ggml_rope(Context, Tensor, Tensor, c_int, c_int) -> Tensor;
    ggml_get_rows(Context, Tensor, Tensor) -> Tensor;
    ggml_concat(Context, Tensor, Tensor, c_int) -> Tensor;
    ggml_repeat(Context, Tensor, Tensor) -> Tensor;
}

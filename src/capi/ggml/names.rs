//! Entry points of ggml.h: names of formats, operators and statuses.

use crate::entry;
use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr, CString};
use std::sync::LazyLock;

/// The names of an enumeration by value: those of its constants, without what they begin with.
struct Table(Vec<CString>);

impl Table {
    fn new(names: impl Iterator<Item = (&'static str, i32)>, prefix: &str, count: i32) -> Self {
        let mut table = vec![c"NONE".to_owned(); count as usize];
        for (name, value) in names.filter(|&(_, value)| (0..count).contains(&value)) {
            table[value as usize] = crate::error::c_string(name.strip_prefix(prefix).unwrap_or(name));
        }
        Table(table)
    }
    fn get(&self, value: i32) -> *const c_char {
        let name = usize::try_from(value).ok().and_then(|i| self.0.get(i));
        name.map_or(c"unknown".as_ptr(), |name| name.as_ptr())
    }
}

macro_rules! table {
    ($ty:ident, $prefix:literal, $count:expr) => {
        LazyLock::new(|| Table::new($ty::NAMES.iter().map(|(name, value)| (*name, value.0)), $prefix, $count.0))
    };
}
static OPS: LazyLock<Table> = table!(ggml_op, "GGML_OP_", GGML_OP_COUNT);
static UNARY_OPS: LazyLock<Table> = table!(ggml_unary_op, "GGML_UNARY_OP_", GGML_UNARY_OP_COUNT);
static GLU_OPS: LazyLock<Table> = table!(ggml_glu_op, "GGML_GLU_OP_", GGML_GLU_OP_COUNT);

/// Formats by id; a removed or unknown one is none.
static TYPES: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let last = ggml_oxide_types::Type::ALL.last().map_or(0, |ty| ty.id());
    (0..=last).map(|id| crate::error::c_string(ggml_oxide_types::name_of_id(id))).collect()
});

/// What an operator is drawn as where its own name, in lower case and with `(x)`, does not do.
const SYMBOLS: &[(ggml_op, &CStr)] = &[
    (GGML_OP_NONE, c"none"),
    (GGML_OP_DUP, c"x"),
    (GGML_OP_ADD, c"x+y"),
    (GGML_OP_ADD_ID, c"x[i]+y"),
    (GGML_OP_ADD1, c"x+y"),
    (GGML_OP_ACC, c"view(x,nb,offset)+=y->x"),
    (GGML_OP_SUB, c"x-y"),
    (GGML_OP_MUL, c"x*y"),
    (GGML_OP_DIV, c"x/y"),
    (GGML_OP_SQR, c"x^2"),
    (GGML_OP_SQRT, c"\xe2\x88\x9ax"),
    (GGML_OP_SUM, c"\xce\xa3x"),
    (GGML_OP_SUM_ROWS, c"\xce\xa3x_k"),
    (GGML_OP_MEAN, c"\xce\xa3x/n"),
    (GGML_OP_CONCAT, c"concat(x, y)"),
    (GGML_OP_MUL_MAT, c"X*Y"),
    (GGML_OP_MUL_MAT_ID, c"X[i]*Y"),
    (GGML_OP_OUT_PROD, c"X*Y"),
    (GGML_OP_SCALE, c"x*v"),
    (GGML_OP_SET, c"y-\\>view(x)"),
    (GGML_OP_CPY, c"x-\\>y"),
    (GGML_OP_ARANGE, c"arange(start, stop, step)"),
    (GGML_OP_TIMESTEP_EMBEDDING, c"timestep_embedding(timesteps, dim, max_period)"),
    (GGML_OP_FILL, c"fill(x, c)"),
    (GGML_OP_RWKV_WKV6, c"rwkv_wkv6(k, v, r, tf, td, s)"),
    (GGML_OP_GATED_LINEAR_ATTN, c"gated_linear_attn(k, v, q, gate, s)"),
    (GGML_OP_RWKV_WKV7, c"rwkv_wkv7(r, w, k, v, a, b, s)"),
    (GGML_OP_SOLVE_TRI, c"A X = B, A triangular, solve X"),
    (GGML_OP_GATED_DELTA_NET, c"gated_delta_net(q, k, v, g, beta, s)"),
    (GGML_OP_LIGHTNING_INDEXER, c"lightning_indexer(q, k, weights, mask)"),
    (GGML_OP_DSV4_HC_COMB, c"dsv4_hc_comb(mixes, scale, base)"),
    (GGML_OP_DSV4_HC_PRE, c"dsv4_hc_pre(x, weights)"),
    (GGML_OP_DSV4_HC_POST, c"dsv4_hc_post(x, residual, post, comb)"),
    (GGML_OP_MAP_CUSTOM1, c"map_custom(x)"),
    (GGML_OP_MAP_CUSTOM2, c"map_custom(x,y)"),
    (GGML_OP_MAP_CUSTOM3, c"map_custom(x,y,z)"),
    (GGML_OP_CROSS_ENTROPY_LOSS, c"cross_entropy_loss(x,y)"),
    (GGML_OP_CROSS_ENTROPY_LOSS_BACK, c"cross_entropy_loss_back(x,y)"),
    (GGML_OP_OPT_STEP_ADAMW, c"adamw(x)"),
    (GGML_OP_OPT_STEP_SGD, c"sgd(x)"),
];
static OP_SYMBOLS: LazyLock<Table> = LazyLock::new(|| {
    let symbol = |(value, name): (i32, &CString)| match SYMBOLS.iter().find(|(op, _)| op.0 == value) {
        Some(&(_, symbol)) => symbol.to_owned(),
        None => crate::error::c_string(&format!("{}(x)", name.to_string_lossy().to_lowercase())),
    };
    Table((0..).zip(&OPS.0).map(symbol).collect())
});

entry! {
    /// Name of a format as files and logs spell it, "NONE" for an unknown one. Never NULL.
    pub fn ggml_type_name(r#type: ggml_type) -> *const c_char {
        let name = usize::try_from(r#type.0).ok().and_then(|i| TYPES.get(i));
        name.map_or(c"NONE".as_ptr(), |name| name.as_ptr())
    }
    /// Name of an operator, "unknown" for one that there is not. Never NULL.
    pub fn ggml_op_name(op: ggml_op) -> *const c_char {
        OPS.get(op.0)
    }
    /// A short formula of an operator. Never NULL.
    pub fn ggml_op_symbol(op: ggml_op) -> *const c_char {
        OP_SYMBOLS.get(op.0)
    }
    /// Name of a unary function. Never NULL.
    pub fn ggml_unary_op_name(op: ggml_unary_op) -> *const c_char {
        UNARY_OPS.get(op.0)
    }
    /// Name of a gated unit. Never NULL.
    pub fn ggml_glu_op_name(op: ggml_glu_op) -> *const c_char {
        GLU_OPS.get(op.0)
    }
    /// Name of a node's operator, of its function for unary and gated ones. Never NULL.
    pub fn ggml_op_desc(t: *const ggml_tensor) -> *const c_char {
        let Some(t) = t.as_ref() else {
            return c"unknown".as_ptr();
        };
        match t.op {
            GGML_OP_UNARY => UNARY_OPS.get(t.op_params[0]),
            GGML_OP_GLU => GLU_OPS.get(t.op_params[0]),
            op => OPS.get(op.0),
        }
    }
    /// The function of a unary node; `GGML_UNARY_OP_COUNT` with an error for others.
    pub fn ggml_get_unary_op(tensor: *const ggml_tensor) -> ggml_unary_op {
        match tensor.as_ref() {
            Some(t) if t.op == GGML_OP_UNARY => ggml_unary_op(t.op_params[0]),
            _ => {
                crate::error::fail(GGML_EXT_CODE_BAD_ARGUMENT, "ggml_get_unary_op: the tensor is no unary node");
                GGML_UNARY_OP_COUNT
            }
        }
    }
    /// The function of a gated node; `GGML_GLU_OP_COUNT` with an error for others.
    pub fn ggml_get_glu_op(tensor: *const ggml_tensor) -> ggml_glu_op {
        match tensor.as_ref() {
            Some(t) if t.op == GGML_OP_GLU => ggml_glu_op(t.op_params[0]),
            _ => {
                crate::error::fail(GGML_EXT_CODE_BAD_ARGUMENT, "ggml_get_glu_op: the tensor is no gated node");
                GGML_GLU_OP_COUNT
            }
        }
    }
    /// What a status means. Never NULL.
    pub fn ggml_status_to_string(status: ggml_status) -> *const c_char {
        let text = match status {
            GGML_STATUS_ALLOC_FAILED => c"GGML status: error (failed to allocate memory)",
            GGML_STATUS_FAILED => c"GGML status: error (operation failed)",
            GGML_STATUS_SUCCESS => c"GGML status: success",
            GGML_STATUS_ABORTED => c"GGML status: warning (operation aborted)",
            _ => c"GGML status: unknown",
        };
        text.as_ptr()
    }
}

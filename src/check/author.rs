//! What the author of a registration gives the check: a graph, a reference, contents.

use crate::error::{self, Error};
use crate::ext::callback;
use crate::ext::structs::In;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, CStr};

// SAFETY: a plain C structure of numbers, pointers and optional functions, `struct_size` first.
unsafe impl In for ggml_ext_check_params {
    const NAME: &'static str = "ggml_ext_check_params";
    const FIRST: usize = size_of::<ggml_ext_check_params>();
}

/// The parameters, checked.
pub struct Author {
    params: ggml_ext_check_params,
    leave_out: Vec<String>,
}

impl Author {
    /// Checks the parameters.
    ///
    /// # Safety
    /// Names are NULL or C strings; the callbacks take the arguments that their types say.
    pub unsafe fn new(params: ggml_ext_check_params) -> Result<Self, Error> {
        if params.build.is_none() {
            return Err(Error::null("callback 'build'"));
        }
        if !(params.max_nmse >= 0.0 && params.max_nmse.is_finite()) {
            return Err(Error::argument(format!("max_nmse is {}, it must be 0 or more", params.max_nmse)));
        }
        if params.n_threads as usize > GGML_MAX_N_THREADS || params.n_seeds > 1 << 16 {
            let (seeds, threads) = (params.n_seeds, params.n_threads);
            let text = format!("{seeds} seeds and {threads} threads, it can be 65536 and {GGML_MAX_N_THREADS}");
            return Err(Error::argument(text));
        }
        let mut leave_out = Vec::new();
        if !params.leave_out.is_null() {
            // SAFETY: the caller's promise.
            let list = unsafe { CStr::from_ptr(params.leave_out) }.to_string_lossy();
            leave_out.extend(list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()));
        }
        Ok(Author { params, leave_out })
    }

    /// Seeds of the plain case.
    pub fn seeds(&self) -> std::ops::RangeInclusive<u64> {
        1..=match self.params.n_seeds {
            0 => 3,
            n => u64::from(n),
        }
    }

    /// Threads that are tried.
    pub fn n_threads(&self) -> c_int {
        match self.params.n_threads {
            0 => 3,
            n => n as c_int,
        }
    }

    /// The error that results may have; 0: none.
    pub fn max_nmse(&self) -> f64 {
        self.params.max_nmse
    }

    /// Whether there is a reference of the author's own.
    pub fn has_reference(&self) -> bool {
        self.params.reference.is_some()
    }

    /// Whether the case is not wanted.
    pub fn leaves_out(&self, case: &str) -> bool {
        let begins =
            |group: &str| case.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.leave_out.iter().any(|group| begins(group))
    }

    /// Names that are left out and are no case's nor the beginning of one's.
    pub fn unknown<'a>(&'a self, cases: &[&str]) -> Option<&'a str> {
        let known = |name: &str| {
            cases
                .iter()
                .any(|case| case.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        self.leave_out.iter().map(String::as_str).find(|name| !known(name))
    }

    /// Lets the graph be built; its result, or why there is none.
    ///
    /// # Safety
    /// `ctx` is live and nobody else uses it.
    pub unsafe fn build(&self, ctx: *mut ggml_context, seed: u64) -> Result<*mut ggml_tensor, String> {
        let Some(build) = self.params.build else { return Err("there is no build".into()) };
        // SAFETY: the caller's promise; the callback takes a context, a seed and its own data.
        result("build", || unsafe { build(ctx, seed, self.params.user_data) })
    }

    /// Lets the reference be built.
    ///
    /// # Safety
    /// As [`Author::build`]; the inputs are live.
    pub unsafe fn reference(
        &self,
        ctx: *mut ggml_context,
        inputs: &[*mut ggml_tensor],
        seed: u64,
    ) -> Result<*mut ggml_tensor, String> {
        let Some(reference) = self.params.reference else { return Err("there is no reference".into()) };
        let n = inputs.len() as c_int;
        // SAFETY: the caller's promise; the callback takes a context, tensors, a seed and its own data.
        result("reference", || unsafe { reference(ctx, inputs.as_ptr(), n, seed, self.params.user_data) })
    }

    /// Lets the author fill `data` with the elements of input number `index`; false: the author does not.
    ///
    /// # Safety
    /// `input` is live; `data` has as many bytes as its elements take.
    pub unsafe fn fill(&self, input: *const ggml_tensor, index: usize, seed: u64, data: &mut [u8]) -> bool {
        let Some(fill) = self.params.fill else { return false };
        let (at, size) = (data.as_mut_ptr().cast(), data.len());
        // SAFETY: the caller's promise.
        callback::call(|| unsafe { fill(input, index as c_int, seed, at, size, self.params.user_data) })
    }

    /// States that the author knows to be live; `None`: the author does not count.
    pub fn live(&self) -> Option<i64> {
        let live = self.params.live?;
        // SAFETY: the callback takes its own data.
        Some(callback::call(|| unsafe { live(self.params.user_data) }))
    }

    /// Tells the author of a case.
    pub fn tell(&self, case: &ggml_ext_check_case) {
        if let Some(on_case) = self.params.on_case {
            // SAFETY: the callback takes a case that lives through the call, and its own data.
            callback::call(|| unsafe { on_case(case, self.params.user_data) });
        }
    }
}

/// What a callback that builds has built, or why it has not.
fn result(what: &str, build: impl FnOnce() -> *mut ggml_tensor) -> Result<*mut ggml_tensor, String> {
    let (tensor, failure) = error::aside(|| callback::call(build));
    let why = || match failure.as_str() {
        "" => callback::reason("it gave no reason"),
        text => text.to_owned(),
    };
    // SAFETY: NULL or a tensor of the context that the callback was given.
    match unsafe { tensor.as_ref() } {
        None => Err(format!("{what} answers NULL: {}", why())),
        Some(t) if crate::tensor::is_poisoned(t) => Err(format!("{what}: {}", why())),
        Some(t) if t.op == GGML_OP_NONE => Err(format!("{what} answers '{}', which nothing computes", shape::name(t))),
        Some(_) => Ok(tensor),
    }
}

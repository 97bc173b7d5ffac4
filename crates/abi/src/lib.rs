//! C layouts and constants of ggml, one module per header. No logic lives here and nothing is imported:
//! every other crate of the project stands on this one.
//!
//! Enumerations of C are integers that a caller can set to anything, so each is a newtype over `c_int` with
//! constants ([`c_enum`]); the header tool writes them as `enum`s.
#![allow(non_camel_case_types)]

/// Declares a C enumeration as a newtype over `c_int`. The body is that of an `enum`, so that the header tool reads it as one.
#[macro_export]
macro_rules! c_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:expr,)* }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub ::core::ffi::c_int);
        $($(#[$vmeta])* #[allow(missing_docs)] pub const $variant: $name = $name($value);)*
        impl $name {
            /// Every named value, in order of declaration.
            pub const NAMES: &'static [(&'static str, $name)] = &[$((stringify!($variant), $variant)),*];
        }
        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match Self::NAMES.iter().find(|(_, v)| v == self) {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }
    };
}

mod alloc;
mod backend;
mod backend_enums;
mod backend_impl;
mod consts;
mod cpu;
mod cpu_enums;
mod enums;
mod ext;
mod gguf;
mod gguf_enums;
mod graph;
mod meta;
mod opt;
mod opt_enums;
mod sched;
mod sd;
mod tensor;

pub use alloc::*;
pub use backend::*;
pub use backend_enums::*;
pub use backend_impl::*;
pub use consts::*;
pub use cpu::*;
pub use cpu_enums::*;
pub use enums::*;
pub use ext::*;
pub use gguf::*;
pub use gguf_enums::*;
pub use graph::*;
pub use meta::*;
pub use opt::*;
pub use opt_enums::*;
pub use sched::*;
pub use sd::*;
pub use tensor::*;

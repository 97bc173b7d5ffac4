//! Devices, backends, buffers, events and the registry. Imports: `error`, `tensor`.
//!
//! Ours and foreign ones look alike: each handle type here ([`Buft`], [`Buffer`], [`Backend`], [`Device`], [`Reg`], [`Event`]) wraps a
//! pointer to a structure of functions, whoever filled it in, and is the only way in which the rest of the library reaches
//! them. A function that a foreign table leaves out is answered by its documented default, a required one by an error.

mod buffer;
mod buft;
pub mod cpu;
mod device;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod elf;
mod handle;
pub mod host;
pub mod meta;
mod module;
mod module_check;
mod registry;
mod stream;
pub mod tensor_data;

pub use buffer::Buffer;
pub use buft::Buft;
pub use device::Device;
pub use registry::{registry, Reg};
pub use stream::{Backend, Event, NO_FUNCTIONS};

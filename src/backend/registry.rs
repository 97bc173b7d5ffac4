//! What devices the process has. The CPU is always there; modules and applications add theirs.

use super::handle::{handle, text};
use super::{cpu, module, Backend, Device};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void, CStr};
use std::path::Path;
use std::sync::{OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

handle! {
    /// A family of devices.
    Reg(ggml_backend_reg)
}

impl Reg {
    /// Its name, as a C string.
    pub fn name_ptr(self) -> *const c_char {
        // SAFETY: the table's functions take the handle they came with.
        self.get().iface.get_name.map_or(c"".as_ptr(), |f| unsafe { f(self.as_raw()) })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        text(self.name_ptr())
    }

    /// How many devices it has.
    pub fn device_count(self) -> usize {
        // SAFETY: as `name_ptr`.
        self.get().iface.get_device_count.map_or(0, |f| unsafe { f(self.as_raw()) })
    }

    /// Device number `index`; `None` when there is no such.
    pub fn device(self, index: usize) -> Option<Device> {
        if index >= self.device_count() {
            return None;
        }
        // SAFETY: as `name_ptr`; devices live as long as their entry.
        self.get().iface.get_device.and_then(|f| unsafe { Device::from_raw(f(self.as_raw(), index)) })
    }

    /// A function that not every backend has; NULL when this one has not.
    pub fn proc_address(self, name: &CStr) -> *mut c_void {
        // SAFETY: as `name_ptr`.
        self.get().iface.get_proc_address.map_or(std::ptr::null_mut(), |f| unsafe { f(self.as_raw(), name.as_ptr()) })
    }

    /// The first of the functions that an entry must have and this one has not.
    pub fn missing(self) -> Option<&'static str> {
        let iface = &self.get().iface;
        let there = [
            ("get_name", iface.get_name.is_some()),
            ("get_device_count", iface.get_device_count.is_some()),
            ("get_device", iface.get_device.is_some()),
        ];
        there.into_iter().find(|(_, there)| !there).map(|(name, _)| name)
    }

    /// Version of the interface it was built for.
    pub fn api_version(self) -> i32 {
        self.get().api_version
    }
}

struct Entry {
    reg: Reg,
    /// The module that it came from. Dropping it unloads the module.
    library: Option<libloading::Library>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    devices: Vec<Device>,
}

impl State {
    /// Where the family is, which is not the CPU.
    fn place(&self, reg: Reg) -> Result<usize, Error> {
        let found = self.entries.iter().position(|e| e.reg == reg).filter(|_| reg != cpu::reg());
        found.ok_or_else(|| Error::argument("the entry is not registered, or is the CPU's"))
    }

    fn add(&mut self, reg: Reg, library: Option<libloading::Library>) {
        if self.entries.iter().any(|e| e.reg == reg) {
            return;
        }
        self.devices.extend((0..reg.device_count()).filter_map(|i| reg.device(i)));
        self.entries.push(Entry { reg, library });
    }
}

/// The process's devices.
pub struct Registry {
    state: RwLock<State>,
}

/// The registry, made with the CPU in it on first use.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut state = State::default();
        state.add(cpu::reg(), None);
        Registry { state: RwLock::new(state) }
    })
}

impl Registry {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a family of devices; a second time is no change.
    pub fn add(&self, reg: Reg) {
        self.write().add(reg, None);
    }

    /// Adds one device.
    pub fn add_device(&self, device: Device) {
        let mut state = self.write();
        if !state.devices.contains(&device) {
            state.devices.push(device);
        }
    }

    /// Loads a module and adds its devices.
    pub fn load(&self, path: &Path) -> Result<Reg, Error> {
        let (reg, library) = module::open(path)?;
        self.write().add(reg, Some(library));
        Ok(reg)
    }

    /// Loads the best module of each known name in `folder` (none: beside the program and in the current folder), then the one
    /// that the environment variable GGML_BACKEND_PATH names.
    pub fn load_all(&self, folder: Option<&Path>) {
        for path in module::find_all(folder) {
            if let Err(e) = self.load(&path) {
                crate::log::line(GGML_LOG_LEVEL_DEBUG, &e.text);
            }
        }
        if let Some(path) = std::env::var_os("GGML_BACKEND_PATH").filter(|p| !p.is_empty()) {
            if let Err(e) = self.load(Path::new(&path)) {
                error::report(&e);
            }
        }
    }

    /// Whether there is such a family that may go: an error for others and for the CPU.
    pub fn may_unload(&self, reg: Reg) -> Result<(), Error> {
        self.read().place(reg).map(|_| ())
    }

    /// The devices that go when the family does.
    pub fn devices_of(&self, reg: Reg) -> Vec<Device> {
        self.read().devices.iter().copied().filter(|d| d.reg() == Some(reg)).collect()
    }

    /// Removes a family and its devices, and unloads its module. The CPU stays. A module can have made more families, such as one
    /// for each server, whose devices name the module's own: they go along, since their functions do.
    pub fn unload(&self, reg: Reg) -> Result<(), Error> {
        let mut state = self.write();
        let at = state.place(reg)?;
        let entry = state.entries.remove(at);
        if entry.library.is_some() {
            let of_module = |r: Reg| (0..r.device_count()).any(|i| r.device(i).and_then(Device::reg) == Some(reg));
            state.entries.retain(|e| e.library.is_some() || !of_module(e.reg));
        }
        state.devices.retain(|d| d.reg() != Some(reg));
        drop(state);
        drop(entry.library);
        Ok(())
    }

    /// Families.
    pub fn regs(&self) -> Vec<Reg> {
        self.read().entries.iter().map(|e| e.reg).collect()
    }

    /// Family number `index`.
    pub fn reg(&self, index: usize) -> Option<Reg> {
        self.read().entries.get(index).map(|e| e.reg)
    }

    /// The family of that name, in any case of letters.
    pub fn reg_by_name(&self, name: &str) -> Option<Reg> {
        self.regs().into_iter().find(|r| r.name().eq_ignore_ascii_case(name))
    }

    /// How many devices there are.
    pub fn device_count(&self) -> usize {
        self.read().devices.len()
    }

    /// Device number `index`.
    pub fn device(&self, index: usize) -> Option<Device> {
        self.read().devices.get(index).copied()
    }

    /// The device of that name, in any case of letters.
    pub fn device_by_name(&self, name: &str) -> Option<Device> {
        let devices = self.read().devices.clone();
        devices.into_iter().find(|d| d.name().eq_ignore_ascii_case(name))
    }

    /// The first device of that kind.
    pub fn device_by_kind(&self, kind: ggml_backend_dev_type) -> Option<Device> {
        let devices = self.read().devices.clone();
        devices.into_iter().find(|d| d.kind() == kind)
    }

    /// A backend on a GPU, else on an integrated GPU, else on the CPU.
    pub fn init_best(&self) -> Option<Backend> {
        let kinds = [GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU, GGML_BACKEND_DEVICE_TYPE_CPU];
        let device = kinds.into_iter().find_map(|kind| self.device_by_kind(kind))?;
        // SAFETY: no parameters.
        unsafe { device.init(std::ptr::null()) }
    }
}

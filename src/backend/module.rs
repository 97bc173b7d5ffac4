//! Backend modules: shared libraries with an entry point `ggml_backend_init` that returns a registry entry. What must be true of one
//! is in [`super::module_check`].

use super::{module_check, Reg};
use crate::error::Error;
use ggml_oxide_abi::*;
use libloading::Library;
use std::ffi::c_int;
use std::path::{Path, PathBuf};

/// Names of modules that are looked for, in this order. The CPU is built in; a module for it is loaded by its path.
const NAMES: [&str; 15] = [
    "blas", "zendnn", "cann", "cuda", "hip", "metal", "rpc", "sycl", "vulkan", "virtgpu", "opencl", "hexagon", "musa",
    "openvino", "zdnn",
];

/// Where the builder of the library says that modules are installed.
const INSTALLED: Option<&str> = option_env!("GGML_BACKEND_DIR");

fn fault(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(GGML_EXT_CODE_BACKEND, format!("ggml_backend_load: {}: {why}", path.display()))
}

/// Functions of this library that a module may have too: ggml's CPU module has the first, one with all of ggml inside the second.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OURS_TOO: [&str; 2] = ["ggml_backend_cpu_reg", "ggml_init"];

/// Maps a module into the process. All that it imports is looked up at once: a name that is missing is an error here, where
/// looked up at the first call it would end the process.
#[cfg(unix)]
fn map(path: &Path) -> Result<Library, String> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    #[allow(unused_mut)]
    let mut flags = RTLD_NOW | RTLD_LOCAL;
    // Where module and library both have a function, the module must find its own: the search begins in the module. Only then,
    // since such a search also finds the C library before what the program puts in its place, as sanitizers do.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if super::elf::is_cut(path) == Some(true) {
        return Err("the file is cut short".into());
    } else if super::elf::exposes(path, &OURS_TOO) == Some(true) {
        flags |= libc::RTLD_DEEPBIND;
    }
    // SAFETY: loading runs the module's initialisers; the caller chose the file.
    let library = unsafe { Library::open(Some(path), flags) };
    library.map(Into::into).map_err(|e| module_check::loader_text(&e.to_string()))
}
#[cfg(not(unix))]
fn map(path: &Path) -> Result<Library, String> {
    // SAFETY: loading runs the module's initialisers; the caller chose the file.
    unsafe { Library::new(path) }.map_err(|e| e.to_string())
}

/// Loads a module and asks it for its registry entry.
pub fn open(path: &Path) -> Result<(Reg, Library), Error> {
    let library = map(path).map_err(|why| fault(path, why))?;
    if score(&library) == Some(0) {
        return Err(fault(path, "the module says that it cannot run on this machine"));
    }
    module_check::names(&library).map_err(|why| fault(path, why))?;
    // SAFETY: the name belongs to a function of this type in every backend module.
    let init = unsafe { library.get::<unsafe extern "C" fn() -> ggml_backend_reg_t>(b"ggml_backend_init\0") }
        .map_err(|_| fault(path, "no backend module: it has no ggml_backend_init"))?;
    // SAFETY: as above; the entry lives as long as the module stays loaded.
    let reg = unsafe { Reg::from_raw(init()) }.ok_or_else(|| fault(path, "ggml_backend_init gave no entry"))?;
    module_check::entry(reg).map_err(|why| fault(path, why))?;
    Ok((reg, library))
}

/// What the module answers to "how well do you fit this machine": 0 not at all, `None` when it cannot be asked.
fn score(library: &Library) -> Option<c_int> {
    // SAFETY: the name belongs to a function of this type in every module that has it.
    unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"ggml_backend_score\0").ok().map(|f| f()) }
}

/// The best module of each known name in `folder`, or in the default folders.
pub fn find_all(folder: Option<&Path>) -> Vec<PathBuf> {
    let folders = match folder {
        Some(folder) => vec![folder.to_owned()],
        None => {
            let beside = std::env::current_exe().ok().and_then(|p| p.parent().map(Path::to_owned));
            let installed = INSTALLED.filter(|folder| !folder.is_empty());
            installed.map(PathBuf::from).into_iter().chain(beside).chain(std::env::current_dir().ok()).collect()
        }
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
        found.sort();
        files.extend(found);
    }
    NAMES.iter().filter_map(|name| best(&files, name)).collect()
}

/// The variant `libggml-<name>-*.so` with the highest score, else `libggml-<name>.so`.
fn best(files: &[PathBuf], name: &str) -> Option<PathBuf> {
    let plain = format!("{}ggml-{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let variant = format!("{}ggml-{name}-", std::env::consts::DLL_PREFIX);
    let file_name = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let scored = files
        .iter()
        .filter(|p| file_name(p).starts_with(&variant) && file_name(p).ends_with(std::env::consts::DLL_SUFFIX))
        .filter_map(|p| Some((score(&map(p).ok()?)?, p)))
        .filter(|(score, _)| *score > 0)
        // of equal ones the first: folders are in the order in which they count
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    scored.map(|(_, p)| p.clone()).or_else(|| files.iter().find(|p| file_name(p) == plain).cloned())
}

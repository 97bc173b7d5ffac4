//! Machines whose memory is near some processors and far from others.
//!
//! Work is cut by shape and not by threads, and any thread can draw any piece: results do not depend on where threads run, and neither
//! does their place on what was asked for here. What a strategy asks for, the system does by the way that the process is started
//! (numactl) and by the processors of a pool (`ggml_threadpool_params.cpumask`).

use ggml_oxide_abi::*;
use std::sync::OnceLock;

/// Whether there is more than one node, once it was asked for.
static SEVERAL: OnceLock<bool> = OnceLock::new();

/// How many nodes of memory the system has; 1 where it does not say.
fn count() -> usize {
    let numbered = |name: String| {
        name.strip_prefix("node").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    names.filter(|e| numbered(e.file_name().to_string_lossy().into_owned())).count().max(1)
}

/// Finds out about the machine. Counts once: false, and no change, afterwards.
pub fn init(strategy: ggml_numa_strategy) -> bool {
    SEVERAL.set(strategy != GGML_NUMA_STRATEGY_DISABLED && count() > 1).is_ok()
}

/// Whether [`init`] found more than one node.
pub fn several() -> bool {
    SEVERAL.get().copied().unwrap_or(false)
}

//! What the environment says about registrations: `GGML_EXT_FORBID` and `GGML_EXT_FORCE`, lists of names with commas between.

use std::cell::RefCell;
use std::sync::{Arc, RwLock};

/// The switches, read when a plan is made or a program asks a device.
#[derive(Clone, Default, PartialEq)]
pub struct Policy {
    forbid: String,
    force: String,
}

fn lists(list: &str, name: &str) -> bool {
    list.split(',').any(|item| item.trim() == name || item.trim() == "*")
}

thread_local! {
    static INSTEAD: RefCell<Option<Arc<Policy>>> = const { RefCell::new(None) };
}

/// Runs `f`; what it does on this thread goes by `policy` in place of the environment.
pub fn with<R>(policy: Policy, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<Policy>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INSTEAD.set(self.0.take());
        }
    }
    let _restore = Restore(INSTEAD.replace(Some(Arc::new(policy))));
    f()
}

/// Whether this thread is inside of [`with`].
pub fn is_replaced() -> bool {
    INSTEAD.with_borrow(Option::is_some)
}

static LAST: RwLock<Option<Arc<Policy>>> = RwLock::new(None);

/// The switches as the environment has them now.
pub fn refresh() -> Arc<Policy> {
    if let Some(instead) = INSTEAD.with_borrow(Clone::clone) {
        return instead;
    }
    let get = |key| std::env::var(key).unwrap_or_default();
    let now = Policy { forbid: get("GGML_EXT_FORBID"), force: get("GGML_EXT_FORCE") };
    let last = environment();
    if *last == now {
        return last;
    }
    let now = Arc::new(now);
    *LAST.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(now.clone());
    now
}

/// The switches as they were when last read.
pub fn last() -> Arc<Policy> {
    if let Some(instead) = INSTEAD.with_borrow(Clone::clone) {
        return instead;
    }
    environment()
}

fn environment() -> Arc<Policy> {
    LAST.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone().unwrap_or_default()
}

impl Policy {
    /// The same, and `name` is treated as absent.
    pub fn forbidding(&self, name: &str) -> Policy {
        Policy { forbid: format!("{},{name}", self.forbid), force: self.force.clone() }
    }

    /// The same, and `name` alone goes before all others.
    pub fn forcing(&self, name: &str) -> Policy {
        Policy { forbid: self.forbid.clone(), force: name.to_owned() }
    }

    /// Whether the registration is to be treated as absent.
    pub fn forbids(&self, name: &str) -> bool {
        !self.forbid.is_empty() && lists(&self.forbid, name)
    }

    /// Whether the registration goes before all others and before native code, wherever it supports the step.
    pub fn forces(&self, name: &str) -> bool {
        !self.force.is_empty() && lists(&self.force, name)
    }

    /// Whether nothing is forced, so that the order of registrations stands.
    pub fn forces_none(&self) -> bool {
        self.force.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abi_3_names_between_commas() {
        let policy = Policy { forbid: "a, b.c ,d".into(), force: String::new() };
        assert!(policy.forbids("a") && policy.forbids("b.c") && policy.forbids("d"));
        assert!(!policy.forbids("b") && !policy.forbids("") && !policy.forces("a") && policy.forces_none());
        let other = policy.forbidding("x").forcing("y");
        assert!(other.forbids("x") && other.forbids("d") && other.forces("y"));
        with(other, || assert!(refresh().forbids("x") && last().forces("y")));
        assert!(!refresh().forbids("x") && !last().forces("y"));
        assert!(Policy { forbid: "*".into(), ..Default::default() }.forbids("anything"));
    }
}

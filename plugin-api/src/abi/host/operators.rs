//! What the host does for operators.

use std::ffi::c_void;

use super::super::layout::{RawTable, Table};
use super::super::tables::HostOps;
use super::Host;

impl Host {
    /// What the host does for operators.
    pub(in crate::abi) fn ops(&self) -> Result<HostOperators<'_>, String> {
        let table =
            self.tables.ops.ok_or_else(|| format!("this host does not offer {}", HostOps::ID));
        Ok(HostOperators { host: self, table: table? })
    }
}

/// The host's services for an operator.
#[derive(Clone, Copy)]
pub(in crate::abi) struct HostOperators<'h> {
    host: &'h Host,
    table: Table<HostOps>,
}

impl HostOperators<'_> {
    /// Becomes an owner of a tensor's bytes.
    ///
    /// # Safety
    /// `owner` is that of a tensor that the host told in this call.
    pub(in crate::abi) unsafe fn keep(&self, owner: *const c_void) -> Kept {
        // SAFETY: by this function's contract.
        unsafe { (self.table.retain())(owner) };
        Kept { owner, table: self.table }
    }

    /// Hands over that a tensor of the result has the bytes of an argument.
    pub(in crate::abi) fn share(&self, index: u32, arg: u32) -> Result<(), String> {
        // SAFETY: `run` is alive.
        match unsafe { (self.table.share())(self.host.run, index, arg) } {
            true => Ok(()),
            false => Err(self.host.last_error()),
        }
    }

    /// Hands over the bytes of a tensor of the result.
    ///
    /// # Safety
    /// The bytes stay as they are until the host tells `release` of this plugin's operators of `owner`.
    pub(in crate::abi) unsafe fn give(
        &self,
        index: u32,
        bytes: &[u8],
        owner: *mut c_void,
    ) -> Result<(), String> {
        let (data, len) = (bytes.as_ptr(), bytes.len() as u64);
        // SAFETY: `run` is alive, and by this function's contract.
        match unsafe { (self.table.give())(self.host.run, index, data, len, owner) } {
            true => Ok(()),
            false => Err(self.host.last_error()),
        }
    }
}

/// An owner of bytes of the host's.
pub(in crate::abi) struct Kept {
    owner: *const c_void,
    table: Table<HostOps>,
}

// SAFETY: the bytes are never written, and owners are counted atomically.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `self` owns a count.
        unsafe { (self.table.release())(self.owner) };
    }
}

//! Runs objects in this process, through ORC's LLJIT.
//!
//! ```text
//! let mut jit = Jit::new()?;
//! unsafe { jit.define("weights", address)? };   // what the objects leave undefined
//! jit.add_object(&object)?;
//! let address = jit.lookup("kernel")?;          // links what is needed, the first time
//! ```
//!
//! Objects see the symbols that were defined here, each other's, and the few of the C library
//! that LLVM calls by itself. The rest of the process is invisible to them, so that what runs
//! here also links as a library.
//!
//! The code lives as long as the [`Jit`]; addresses from [`Jit::lookup`] must not outlive it.

use std::{
    any::Any,
    collections::{BTreeSet, HashSet},
    ffi::{CStr, CString, c_char, c_void},
    fmt,
    ptr::{NonNull, null_mut},
    sync::{Mutex, PoisonError},
};

use inkwell::llvm_sys::{
    core::LLVMCreateMemoryBufferWithMemoryRangeCopy,
    error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage},
    orc2::{
        LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags,
        LLVMOrcAbsoluteSymbols, LLVMOrcCSymbolMapPair, LLVMOrcDisposeMaterializationUnit,
        LLVMOrcExecutionSessionSetErrorReporter, LLVMOrcJITDylibDefine,
        lljit::{
            LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile,
            LLVMOrcLLJITGetExecutionSession, LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup,
            LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
        },
    },
};

use object::{Object, ObjectSymbol};

use super::{LlvmError, machine};
use crate::object::symbols;

/// What position-independent code of other compilers names, and a linker makes.
const TABLE_OF_ADDRESSES: &str = "_GLOBAL_OFFSET_TABLE_";

/// Objects linked into this process.
pub struct Jit {
    raw: LLVMOrcLLJITRef,
    /// What ORC reports while it links; boxed because ORC holds its address.
    reports: Box<Reports>,
    /// What was defined here and what the objects define; nothing else is looked at.
    defined: HashSet<String>,
    /// What the objects leave undefined.
    needed: BTreeSet<String>,
    /// Owners of memory that defined symbols point into. Dropped after the code.
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

type Reports = Mutex<Vec<String>>;

// SAFETY: LLJIT ties nothing to the thread that made it: its session, symbol tables and memory
// manager are reached from any thread under the session's own lock.
unsafe impl Send for Jit {}
// SAFETY: through `&Jit` only `lookup` reaches LLVM, which ORC documents as safe to call from
// several threads at once; everything that adds takes `&mut Jit`.
unsafe impl Sync for Jit {}

impl Jit {
    /// An empty one for this machine.
    pub fn new() -> Result<Jit, LlvmError> {
        machine::initialize();
        let mut raw = null_mut();
        // SAFETY: a null builder asks for the defaults; `raw` is written when no error is given.
        let error = unsafe { LLVMOrcCreateLLJIT(&mut raw, null_mut()) };
        check(error, "start the in-process linker")?;
        let mut jit = Jit {
            raw,
            reports: Box::default(),
            defined: HashSet::new(),
            needed: BTreeSet::new(),
            kept: Vec::new(),
        };
        jit.collect_reports();
        jit.define_runtime()?;
        Ok(jit)
    }

    /// Gives `name` to the code or data at `address`.
    ///
    /// # Safety
    /// `address` must be what the objects use it for: a function of the type they call, or memory
    /// as large and as aligned as they read. It must stay so as long as code of this `Jit` runs;
    /// [`Jit::keep`] can see to that.
    pub unsafe fn define(&mut self, name: &str, address: *const c_void) -> Result<(), LlvmError> {
        // SAFETY: passed on to the caller.
        unsafe { self.define_all(&[(name, address)]) }
    }

    /// [`Jit::define`] for many at once, which is faster than one by one.
    ///
    /// # Safety
    /// As for [`Jit::define`], for each of them.
    pub unsafe fn define_all(
        &mut self,
        entries: &[(&str, *const c_void)],
    ) -> Result<(), LlvmError> {
        // All names are checked before the first is interned: an interned one must be given away.
        let names = entries.iter().map(|(name, _)| c_name(name)).collect::<Result<Vec<_>, _>>()?;
        let exported = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8;
        let callable = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8;
        let mut pairs: Vec<LLVMOrcCSymbolMapPair> = Vec::with_capacity(entries.len());
        for (name, (_, address)) in names.iter().zip(entries) {
            // SAFETY: `raw` is live and `name` is a C string; the entry is given to the unit below.
            let entry = unsafe { LLVMOrcLLJITMangleAndIntern(self.raw, name.as_ptr()) };
            let flags = LLVMJITSymbolFlags { GenericFlags: exported | callable, TargetFlags: 0 };
            let symbol = LLVMJITEvaluatedSymbol { Address: address.addr() as u64, Flags: flags };
            pairs.push(LLVMOrcCSymbolMapPair { Name: entry, Sym: symbol });
        }
        // SAFETY: the pairs are read during the call, and their names become the unit's.
        let unit = unsafe { LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len()) };
        // SAFETY: `raw` is live; the dylib belongs to it.
        let dylib = unsafe { LLVMOrcLLJITGetMainJITDylib(self.raw) };
        // SAFETY: dylib and unit are live; on success the unit belongs to the dylib.
        let error = unsafe { LLVMOrcJITDylibDefine(dylib, unit) };
        let result = self.checked(error, "define symbols");
        if result.is_err() {
            // SAFETY: a failed definition leaves the unit with its caller, and nobody else has it.
            unsafe { LLVMOrcDisposeMaterializationUnit(unit) };
        }
        result?;
        self.defined.extend(entries.iter().map(|(name, _)| (*name).to_owned()));
        Ok(())
    }

    /// Holds `owner` until the code is gone.
    pub fn keep(&mut self, owner: Box<dyn Any + Send + Sync>) {
        self.kept.push(owner);
    }

    /// Adds a relocatable object; it is copied, and linked when something in it is looked up.
    pub fn add_object(&mut self, object: &[u8]) -> Result<(), LlvmError> {
        self.note_symbols(object)?;
        let name = c"object".as_ptr();
        // SAFETY: the range is that of a slice and the name a C string; both are copied.
        let buffer = unsafe {
            LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast::<c_char>(),
                object.len(),
                name,
            )
        };
        // SAFETY: `raw` is live; the dylib belongs to it.
        let dylib = unsafe { LLVMOrcLLJITGetMainJITDylib(self.raw) };
        // SAFETY: all three are live, and the buffer becomes the JIT's, with an error or without.
        let error = unsafe { LLVMOrcLLJITAddObjectFile(self.raw, dylib, buffer) };
        self.checked(error, "add an object")
    }

    /// What the objects need and nothing defines so far.
    pub fn missing(&self) -> Vec<String> {
        self.needed.iter().filter(|name| !self.defined.contains(*name)).cloned().collect()
    }

    /// The address of a function or of data, linked and ready.
    pub fn lookup(&self, name: &str) -> Result<NonNull<c_void>, LlvmError> {
        if !self.defined.contains(name) {
            return Err(LlvmError::NoSuchFunction { name: name.to_owned() });
        }
        self.check_needed()?;
        let text = c_name(name)?;
        let mut address = 0;
        // SAFETY: `raw` is live, `text` is a C string, and `address` is written on success.
        let error = unsafe { LLVMOrcLLJITLookup(self.raw, &mut address, text.as_ptr()) };
        self.checked(error, "link")?;
        NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))
            .ok_or_else(|| LlvmError::NoSuchFunction { name: name.to_owned() })
    }

    /// [`Jit::lookup`] as a function pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be an `extern "C"` function pointer type, the type of that function. What is
    /// returned must not be called after the `Jit` is gone.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, LlvmError> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>(), "F is a function pointer") };
        let address = self.lookup(name)?;
        // SAFETY: same size, and by contract `F` is the function pointer type of this address.
        Ok(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
    }

    /// Reads what `object` defines and needs.
    fn note_symbols(&mut self, object: &[u8]) -> Result<(), LlvmError> {
        let file = object::File::parse(object).map_err(|error| LlvmError::Jit {
            action: "read an object",
            message: error.to_string(),
        })?;
        for symbol in file.symbols().filter(|symbol| !symbol.is_local()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() {
                self.needed.insert(name.to_owned());
            } else {
                self.defined.insert(name.to_owned());
            }
        }
        for name in ["", TABLE_OF_ADDRESSES] {
            self.needed.remove(name);
        }
        Ok(())
    }

    /// LLJIT would look for the rest in the process; here it is an error, as it is for a library.
    fn check_needed(&self) -> Result<(), LlvmError> {
        let symbols = self.missing();
        if symbols.is_empty() {
            return Ok(());
        }
        let allowed = symbols::ALLOWED_UNDEFINED.map(str::to_owned).to_vec();
        Err(LlvmError::UndefinedSymbols { symbols, allowed })
    }

    /// Makes ORC tell us what went wrong in place of printing it.
    fn collect_reports(&mut self) {
        // SAFETY: `raw` is live; the session belongs to it.
        let session = unsafe { LLVMOrcLLJITGetExecutionSession(self.raw) };
        let cx = (&raw const *self.reports).cast_mut().cast::<c_void>();
        // SAFETY: the box that `cx` points into is dropped after the session, and `report` takes
        // it for what it is.
        unsafe { LLVMOrcExecutionSessionSetErrorReporter(session, report, cx) };
    }

    /// Defines [`symbols::ALLOWED_UNDEFINED`].
    fn define_runtime(&mut self) -> Result<(), LlvmError> {
        let symbols = [
            ("memcpy", memcpy as *const c_void),
            ("memmove", memmove as *const c_void),
            ("memset", memset as *const c_void),
            ("memcmp", memcmp as *const c_void),
        ];
        // SAFETY: they are the C library's own functions under their own names, there for ever.
        unsafe { self.define_all(&symbols) }
    }

    /// An error with everything that ORC reported on the way to it.
    fn checked(&self, error: LLVMErrorRef, action: &'static str) -> Result<(), LlvmError> {
        let reports = {
            let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *reports)
        };
        match message(error) {
            None => Ok(()),
            Some(text) => {
                // The reports name the cause, the error only what could not be had because of it.
                let message = [reports, vec![text]].concat().join("; ");
                Err(LlvmError::Jit { action, message })
            }
        }
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: `raw` is live and not used again. `reports` and `kept` are dropped after this.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.raw) };
        // Nobody is left to hear of it; reading the message frees it.
        let _ = message(error);
    }
}

impl fmt::Debug for Jit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jit").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: i32, bytes: usize) -> *mut c_void;
    fn memcmp(a: *const c_void, b: *const c_void, bytes: usize) -> i32;
}

/// Called by ORC with the address of [`Reports`].
extern "C" fn report(cx: *mut c_void, error: LLVMErrorRef) {
    let Some(text) = message(error) else { return };
    // SAFETY: `cx` is what `collect_reports` registered, alive as long as the session that calls.
    let reports = unsafe { &*cx.cast::<Reports>() };
    reports.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

fn check(error: LLVMErrorRef, action: &'static str) -> Result<(), LlvmError> {
    match message(error) {
        None => Ok(()),
        Some(message) => Err(LlvmError::Jit { action, message }),
    }
}

/// Takes an LLVM error apart; `None` for success.
fn message(error: LLVMErrorRef) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: not null, and owned by us; the call consumes it.
    let raw = unsafe { LLVMGetErrorMessage(error) };
    // SAFETY: LLVM gives a C string that lives until it is disposed of.
    let text = unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned();
    // SAFETY: it came from `LLVMGetErrorMessage` and is not used again.
    unsafe { LLVMDisposeErrorMessage(raw) };
    Some(text)
}

fn c_name(name: &str) -> Result<CString, LlvmError> {
    CString::new(name).map_err(|_| LlvmError::NoSuchFunction { name: name.to_owned() })
}

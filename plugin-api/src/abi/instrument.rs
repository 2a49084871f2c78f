//! The instruments of a plugin: what `#[instrument]` expands to, and the table that the host calls.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::time::Duration;

use abi_stable::std_types::RStr;

use super::guard::guard;
use super::host::Host;
use super::read::readable;
use super::tables::{Event, Failure, HostRef, InstrumentTable, RawModule};
use crate::pass::{Instrument, Module, Outcome, PassContext, Result};

/// An instrument as `#[instrument]` registers it.
pub struct InstrumentItem {
    /// Its name.
    pub name: &'static str,
    /// Its manifest record.
    pub manifest: &'static str,
    /// Makes one.
    pub create: fn() -> Box<dyn Instrument>,
}

/// The instruments of this library. The linker collects them; no code runs at load.
#[linkme::distributed_slice]
pub static INSTRUMENTS: [InstrumentItem];

/// The instruments in the order of their names.
pub(super) fn instruments() -> &'static [&'static InstrumentItem] {
    static SORTED: OnceLock<Vec<&'static InstrumentItem>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = INSTRUMENTS.iter().collect();
        items.sort_by_key(|item| item.name);
        items
    })
}

/// What a pointer to an instrument leads to.
type Boxed = Box<dyn Instrument>;

unsafe extern "C" fn instrument_count() -> u32 {
    instruments().len() as u32
}

unsafe extern "C" fn instrument_name(index: u32) -> RStr<'static> {
    RStr::from_str(instruments().get(index as usize).map_or("", |item| item.name))
}

unsafe extern "C" fn create(index: u32) -> *mut c_void {
    let Some(item) = instruments().get(index as usize) else { return std::ptr::null_mut() };
    // One that panics when it is made is none.
    guard(item.create).map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)).cast())
}

unsafe extern "C" fn destroy(instrument: *mut c_void) {
    if !instrument.is_null() {
        // SAFETY: the caller gives up what `create` made. A destructor that panics is nobody's error.
        let boxed = unsafe { Box::from_raw(instrument.cast::<Boxed>()) };
        let _ = guard(|| drop(boxed));
    }
}

unsafe extern "C" fn tell(
    instrument: *mut c_void,
    host: HostRef,
    event: u32,
    pass: RStr<'_>,
    before: *const RawModule,
    after: *const RawModule,
    nanoseconds: u64,
) -> bool {
    // SAFETY: the caller is a host that upholds the contract of `InstrumentTable::tell`.
    let Ok(host) = (unsafe { Host::new(host) }) else { return true };
    // SAFETY: as above: `instrument` is what `create` made, and no one else uses it during the call.
    let Some(instrument) = (unsafe { instrument.cast::<Boxed>().as_mut() }) else { return true };
    let pass = readable(pass);
    let told = guard(|| {
        let cx = PassContext::new(host.clone());
        // SAFETY: as above: both are null or modules of this host.
        let [before, after] = [before, after]
            .map(|raw| (!raw.is_null()).then(|| unsafe { Module::copied(&host, raw) }));
        let wall = Duration::from_nanos(nanoseconds);
        tell_of(&mut **instrument, Event(event), &pass, before, after, wall, &cx)
    });
    let (failure, text) = match told {
        Ok(Ok(answer)) => return answer,
        Ok(Err(error)) => (Failure::ERROR, error.message().to_owned()),
        Err(panic) => (Failure::PANIC, panic),
    };
    host.fail(failure, &text, None);
    false
}

/// An event of a later host's is none of this build's.
fn tell_of(
    instrument: &mut dyn Instrument,
    event: Event,
    pass: &str,
    before: Option<Module>,
    after: Option<Module>,
    wall: Duration,
    cx: &PassContext,
) -> Result<bool> {
    match (event, &before, &after) {
        (Event::ENTER, ..) => instrument.enter(cx)?,
        (Event::MAY_RUN, Some(module), _) => return instrument.should_run(pass, module, cx),
        (Event::BEFORE, Some(module), _) => instrument.before(pass, module, cx)?,
        (Event::RAN, Some(before), Some(after)) => {
            instrument.after(pass, Outcome::Ran { before, after, wall }, cx)?;
        }
        (Event::SKIPPED, ..) => instrument.after(pass, Outcome::Skipped, cx)?,
        (Event::FAILED, ..) => instrument.after(pass, Outcome::Failed, cx)?,
        (Event::EXIT, ..) => instrument.exit(cx)?,
        _ => {}
    }
    Ok(true)
}

pub(super) static INSTRUMENT_TABLE: InstrumentTable = InstrumentTable {
    size: size_of::<InstrumentTable>(),
    count: instrument_count,
    name: instrument_name,
    create,
    destroy,
    tell,
};

//! Turns a panic into a message before it reaches the border.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f`; a panic in it comes back as `panic at FILE:LINE:COLUMN: MESSAGE`.
///
/// While `f` runs, this library's panic hook stays silent on this thread and notes the place.
pub fn guard<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let result = catch_unwind(AssertUnwindSafe(f));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    result.map_err(|payload| {
        let message = text_of(&*payload);
        // A payload may panic again in its destructor.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        let place = PLACE.with(|place| std::mem::take(&mut *place.borrow_mut()));
        format!("panic at {place}: {message}")
    })
}

fn install_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let outer = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.with(Cell::get) == 0 {
                return outer(info);
            }
            let place = info.location().map_or("an unknown place".to_owned(), |at| at.to_string());
            PLACE.with(|slot| *slot.borrow_mut() = place);
        }));
    });
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

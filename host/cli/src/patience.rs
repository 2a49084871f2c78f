//! Operators that never have a value: passes evaluate them and wait. They cannot be stopped, so the program ends, and says
//! which one it was.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use super::output::{Failure, report};
use tenon_compiler::eval::{LimitError, longest_evaluation};
use tenon_compiler::io::wait_for_writes;
use tenon_compiler::passes::{HostOption, Settings};
use tenon_compiler::registry::leave;

/// Seconds that one call of an operator may take.
static PATIENCE: HostOption = HostOption {
    key: "evaluate.patience",
    default: 600,
    min: 1,
    max: 1 << 30,
    help: "seconds that one call of a plugin's operator may take when a pass has it evaluated",
};

inventory::submit!(&PATIENCE);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);

/// From now on ends the program with an error when an operator takes longer than the settings of the first call allow.
pub(super) fn limit_evaluations(settings: &Settings) {
    static ONCE: Once = Once::new();
    let seconds = PATIENCE.get(settings).unsigned_abs();
    ONCE.call_once(|| drop(thread::spawn(move || watch(seconds))));
}

fn watch(seconds: u64) {
    loop {
        thread::sleep(LOOK);
        let Some((op, _)) = longest_evaluation().filter(|(_, time)| time.as_secs() >= seconds)
        else {
            continue;
        };
        let problem = LimitError::Patience { op: op.to_owned(), seconds };
        let more =
            format!("`--config evaluate.patience={}` waits longer", seconds.saturating_mul(10));
        let _writes = wait_for_writes();
        report(&Failure::new(problem.to_string()).help(more), false);
        leave(1);
    }
}

//! What random modules are made of in tests of the host.

use tenon_compiler::testing::Vocabulary;

pub(crate) fn vocabulary() -> Vocabulary {
    Vocabulary::new(
        &["test.opposite", "test.double", "test.ramp", "test.distance"],
        &["test.total", "test.less", "test.times", "test.highest", "test.lowest"],
    )
}

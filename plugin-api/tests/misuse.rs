//! Wrong use of `#[pass]` and `plugin!` is an error of the compiler that says what to do. `TRYBUILD=overwrite`
//! writes the messages anew.

#[test]
fn wrong_use_says_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

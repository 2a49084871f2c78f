//! §2.6: options of passes and of the host.
//!
//! TVM has one table of keys; here an option belongs to a pass, whose plugin declares it, or to the host.

use tenon_compiler::passes::{Settings, plan, plan_with};
use tenon_compiler::registry::{Manifest, OptionValue, Registry};

use crate::support::House;

fn registry() -> Registry {
    House::new("[passes.\"test.Options\".options]\ncount = 1\nscale = 2\n").registry()
}

fn set(text: &str) -> Result<Settings, String> {
    let mut settings = Settings::default();
    match settings.set_text(&registry(), text) {
        Ok(()) => Ok(settings),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn refused(text: &str) -> String {
    set(text).expect_err("this is refused")
}

#[test]
fn c099_a_value_that_fits_is_kept() {
    let settings = set("test.Options.on=false, Options.mode=small, print.elements=3").unwrap();
    assert_eq!(settings.get("test.Options.on"), Some(&OptionValue::Bool(false)));
    assert_eq!(settings.get("test.Options.mode"), Some(&OptionValue::Str("small".to_owned())));
    assert_eq!(settings.get("print.elements"), Some(&OptionValue::Int(3)));
    assert_eq!(settings.get("test.Options.count"), None);
}

#[test]
fn c100_an_unknown_key_is_an_error_with_the_nearest() {
    let mut settings = Settings::default();
    let error = settings.set_text(&registry(), "test.Options.coumt=1").unwrap_err().to_diagnostic();
    assert_eq!(error.message, "there is no option `test.Options.coumt`");
    assert_eq!(error.help, ["did you mean `test.Options.count`?"]);
    let error = settings.set_text(&registry(), "use_fast_math=1").unwrap_err().to_diagnostic();
    assert_eq!(error.help, ["`tenon options list` shows all"]);
}

#[test]
fn c101_no_value_is_an_error() {
    let error = refused("test.Options.count=");
    assert_eq!(error, "the configuration does not read well: expected a value");
}

#[test]
fn c102_a_value_of_another_type_is_an_error_that_names_both() {
    let error = refused("test.Options.on=x");
    assert_eq!(error, "option `test.Options.on` is of type bool, and \"x\" is not");
}

/// TVM takes a number for a truth value and the reverse.
#[test]
fn c103_types_are_not_mixed_but_for_an_integer_as_a_float() {
    assert!(refused("test.Options.on=2").ends_with("is of type bool, and 2 is not"));
    assert!(refused("test.Options.count=true").ends_with("is of type int, and true is not"));
    assert!(refused("test.Options.count=1.0").ends_with("is of type int, and 1.0 is not"));
    assert!(refused("test.Options.count=\"3\"").ends_with("is of type int, and \"3\" is not"));
    let settings = set("test.Options.scale=2").unwrap();
    assert_eq!(settings.get("test.Options.scale"), Some(&OptionValue::Float(2.0)));
}

/// TVM has options that are objects, with fields; here each field is an option.
#[test]
fn c104_c105_c107_an_option_is_set_alone_and_the_others_keep_their_defaults() {
    let registry = registry();
    let settings = set("test.Options.sizes=[16]").unwrap();
    let plan = plan_with(&registry, "test.Options", &settings).unwrap();
    let options: Vec<String> = plan
        .passes()
        .next()
        .unwrap()
        .options
        .iter()
        .map(|option| format!("{}={}", option.name, option.value))
        .collect();
    assert_eq!(
        options,
        ["count=1", "scale=2.0", "on=true", "mode=\"fast\"", "sizes=[16]", "names=[]"]
    );
    let error = plan_with(&registry, "test.Options{size=16}", &settings).unwrap_err();
    assert_eq!(error.to_string(), "`test.Options` has no option `size`");
    assert!(refused("test.Options.sizes=16").ends_with("is of type [int], and 16 is not"));
}

#[test]
fn c108_all_options_are_listed_with_owner_type_default_and_range() {
    let declared = Settings::declared(&registry());
    let find = |key: &str| declared.iter().find(|option| option.key == key).expect("it is listed");
    let count = find("test.Options.count");
    assert_eq!((&*count.owner, &*count.record.help), ("test.faulty", "how many"));
    assert_eq!(count.record.ty.to_string(), "int");
    assert_eq!(count.record.default_value(), OptionValue::Int(-3));
    let elements = find("print.elements");
    assert_eq!((&*elements.owner, elements.record.ty.to_string()), ("tenon", "int".to_owned()));
    assert!(
        declared.iter().all(|option| option.owner != "tenon" || !option.record.help.is_empty())
    );
    assert!(declared.is_sorted_by(|a, b| a.key < b.key), "each key is declared once");
}

#[test]
fn c109_an_option_that_is_declared_twice_is_refused() {
    let option = r#"{"name":"n","type":"int","default":1}"#;
    let records = [
        r#"{"plugin":"acme.p","format":1,"version":"1.0.0"}"#.to_owned(),
        format!(r#"{{"pass":"acme.P","kind":"prim","options":[{option},{option}]}}"#),
    ];
    let error = Manifest::parse(records.join("\n")).unwrap_err();
    assert_eq!(error.to_string(), "pass `acme.P`: two options are called `n`");
}

/// The host's options are read through the items that declare them, a pass's by the pass. What a pass reads and
/// does not declare is an error of the pass; TVM takes it for unset.
#[test]
fn c110_what_is_not_declared_cannot_be_set() {
    assert_eq!(refused("print.element_count=3"), "there is no option `print.element_count`");
}

#[test]
fn a_pipeline_s_own_values_are_above_the_configuration_and_that_above_the_registry() {
    let registry = registry();
    let settings = set("Options.count=2, Options.scale=3").unwrap();
    let text = |plan: tenon_compiler::passes::Plan| plan.to_string();
    let plain = text(plan(&registry, "Options").unwrap());
    assert_eq!(plain, "test.Options{count=1, scale=2.0}");
    let configured = text(plan_with(&registry, "Options", &settings).unwrap());
    assert_eq!(configured, "test.Options{count=2, scale=3.0}");
    let given = text(plan_with(&registry, "Options{count=4}", &settings).unwrap());
    assert_eq!(given, "test.Options{count=4, scale=3.0}");
}

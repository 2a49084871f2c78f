//! Rules of somebody else's for nodes of a domain of their own.

use tenon_plugin_api::rule::prelude::*;

use super::*;

/// `Scaled`: each element times a number.
#[rule(import.onnx, domain = "own", key = "Scaled", since = 1, until = 2)]
fn scaled(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let by = node.float_or("by", 1.0)?;
    let by = node.scalar_like(x, by)?;
    Ok(vec![node.apply("multiply", &[x, by])?])
}

/// Where it makes no difference it is nothing.
#[rule(import.onnx, domain = "own", key = "Scaled", since = 1, until = 2, benefit = 2)]
fn not_scaled(node: &mut Node<'_>) -> Result<Option<Vec<Value>>, Problem> {
    Ok((node.float_or("by", 1.0)? == 1.0).then_some(vec![node.input(0)?]))
}

/// Fails in the way that an attribute says.
#[rule(import.onnx, domain = "own", key = "Failing")]
fn failing(node: &mut Node<'_>) -> Outputs {
    match node.text("how", "")?.as_str() {
        "invalid" => invalid("it is wrong"),
        "unsupported" => unsupported("a failing node"),
        "constant" => node.not_constant(0),
        "operator" => node.call("multiply", &[], &[]).map(|y| vec![y]),
        "element" => {
            let dtype = node.element_type("code")?;
            unsupported(format!("{dtype:?}"))
        }
        "error" => Err(PassError::new("it does not know why").into()),
        "panic" => panic!("it is surprised"),
        "bytes" => Ok(vec![node.constant(DType::F32, &[2], &[0; 3])?]),
        "dimensions" => {
            let known = Known { dtype: DType::F32, shape: vec![], elements: vec![Dim(1)] };
            Ok(vec![node.known(&known)?])
        }
        "term" => Ok(vec![node.shape(&[Dim(u32::MAX)])?]),
        "other" => {
            // Numbers of what comes from elsewhere are looked at.
            let many: Vec<Value> =
                (0..100).map(|_| node.scalar(DType::F32, 0.0)).collect::<Result<_, _>>()?;
            STOLEN.with(|stolen| stolen.set(many.last().copied()));
            Ok(many)
        }
        "stolen" => Ok(STOLEN.with(std::cell::Cell::get).into_iter().collect()),
        _ => Ok(node.all_inputs()?),
    }
}

/// Declines whatever it is asked.
#[rule(import.onnx, domain = "own", key = "Declined")]
fn declined(_: &mut Node<'_>) -> Option<Vec<Value>> {
    None
}

thread_local! {
    static STOLEN: std::cell::Cell<Option<Value>> = const { std::cell::Cell::new(None) };
}

fn own(op: &str, attributes: &[Message]) -> Model {
    model(13)
        .input("x", FLOAT, &[N(2)])
        .with(1, node(op, &["x"], &["y"], attributes).bytes(7, "own"))
        .output("y")
}

#[test]
fn a_domain_of_its_own_is_imported() {
    assert_eq!(
        own("Scaled", &[float("by", 2.0)]).text(),
        "fn @main(%x: f32[2]) -> f32[2]\n%y = multiply(%x, const(f32[], 2))\nret %y"
    );
    assert_eq!(own("Scaled", &[]).text(), "fn @main(%x: f32[2]) -> f32[2]\nret %x");
    let unknown = own("Scaled", &[float("by", 2.0), int("speed", 1)]).error();
    assert!(unknown.contains("Scaled (own 1): attribute `speed`"), "{unknown}");
}

#[test]
fn a_rule_holds_in_its_versions_alone() {
    let error = |version| {
        let set = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
        let graph = own("Scaled", &[]).graph;
        let model =
            Message::new().int(1, 8).message(8, set("", 13)).message(8, set("own", version));
        let file = Mapping::in_memory(Path::new("m.onnx"), model.message(7, graph).0);
        let imported =
            import_mapping(&tenon_compiler::testing::cx(), &file, &ImportOptions::default());
        imported.err().map(|error| error.to_string())
    };
    assert_eq!(error(2), None);
    for version in [0, 3, -1] {
        let expected = format!("Scaled (own {version}) — once: the one that makes `y`");
        assert!(error(version).is_some_and(|error| error.contains(&expected)), "{version}");
    }
}

#[test]
fn what_a_rule_says_reaches_the_user() {
    let error = |how: &str| own("Failing", &[string("how", how)]).error();
    let listed = |how: &str, text: &str| {
        let expected = format!("Failing (own 1): {text} — once: the one that makes `y`");
        assert!(error(how).contains(&expected), "{}", error(how));
    };
    assert_eq!(
        error("invalid"),
        "`m.onnx` is not a valid model: the Failing (own 1) that makes `y`: it is wrong; it is given f32[2]"
    );
    listed("unsupported", "a failing node");
    listed("constant", "input 1 must be a constant here");
    listed("operator", "`multiply`: it takes 2 arguments, not 0");
    listed("error", "it does not know why");
    listed("bytes", "3 bytes are no constant of type f32[2]");
    listed("dimensions", "1 dimensions are no tensor of type f32[]");
    listed("term", "there is no dimension 4294967295");
    let panic = error("panic");
    assert!(panic.contains("`import.onnx:own::Failing`"), "{panic}");
    assert!(panic.contains("it is surprised"), "{panic}");
    let attributes = [string("how", "element"), int("code", 99)];
    let code = own("Failing", &attributes).error();
    assert!(code.contains("there is no element type of code 99"), "{code}");
    assert!(own("Declined", &[]).error().contains("Declined (own 1) — once"));
}

#[test]
fn a_value_of_another_import_is_not_believed() {
    assert!(own("Failing", &[string("how", "other")]).import(&[]).is_ok());
    let error = own("Failing", &[string("how", "stolen")]).error();
    assert!(error.contains("which is not there"), "{error}");
}

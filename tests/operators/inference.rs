//! Types and errors of inference: `types.ir` and `errors.ir`.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use tenon_compiler::infer::{infer, infer_module};
use tenon_compiler::ir::{Context, Module, View};
use tenon_plugin_api::abi::op::operators;

use super::case::read;

/// One for each file.
pub(crate) fn trials(folder: &Path) -> Vec<Trial> {
    let text = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).expect("the suite can be read");
        text.split_once('\n').expect("it begins with a line of its own").1.to_owned()
    };
    let (declared, wrong) = (text("types.ir"), text("errors.ir"));
    vec![
        Trial::test("types", move || types(&declared)),
        Trial::test("errors", move || errors(&wrong)),
        Trial::test("examples", examples),
    ]
}

/// Each function is of the type that it declares.
fn types(text: &str) -> Result<(), Failed> {
    let module = read(text);
    let names = module.iter().map(|(name, _)| module.cx().terms().str(name));
    let problem = |name| Some(format!("{name}: {}", declared_is_inferred(&module, name).err()?));
    all_of(names.filter_map(problem))
}

/// The example at the top of each operator's file has the type that it says.
fn examples() -> Result<(), Failed> {
    all_of(operators().iter().filter_map(|item| {
        let problem = example(item.manifest).err()?;
        Some(format!("{}: {problem}", item.schema.name))
    }))
}

/// `%y = op(%a, %b) { axis = 1 }    f32[n, 3], f32[3]  =>  f32[n]`
fn example(manifest: &str) -> Result<(), String> {
    let manifest: serde_json::Value =
        serde_json::from_str(manifest).map_err(|it| it.to_string())?;
    let header = manifest["header"].as_str().unwrap_or("");
    let line = header.lines().skip_while(|line| *line != "```ir").nth(1);
    let (call, types) = line.and_then(|line| line.split_once("    ")).ok_or("it has no example")?;
    let (args, result) = types.split_once("=>").ok_or("its example says no type")?;
    let open = call.find('(').ok_or("its example is no call")?;
    let close = call[open..].find(')').ok_or("its example is no call")? + open;
    let names = call[open + 1..close].split(", ");
    let params: Vec<String> =
        names.zip(split_types(args)).map(|(name, ty)| format!("{name}: {ty}")).collect();
    let bound = call.split(' ').next().unwrap_or("");
    let (params, result) = (params.join(", "), result.trim());
    let text = format!("fn @main({params}) -> {result} {{\n  {call}\n  ret {bound}\n}}\n");
    declared_is_inferred(&read(&text), "main").map_err(|problem| format!("{problem}\n{text}"))
}

/// Types with commas between them, which types have as well.
fn split_types(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut types) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    types.push(text[start..].trim());
    types
}

/// Each text gives the message that stands behind it.
fn errors(text: &str) -> Result<(), Failed> {
    let mut problems = Vec::new();
    let mut rest = text;
    while let Some((input, after)) = rest.split_once("//! ") {
        let (expected, after) = after.split_once('\n').unwrap_or((after, ""));
        problems.extend(says(input, expected).err());
        rest = after;
    }
    all_of(problems.into_iter())
}

/// An error when there are problems.
fn all_of(problems: impl Iterator<Item = String>) -> Result<(), Failed> {
    let problems: Vec<String> = problems.collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}

fn declared_is_inferred(module: &Module, name: &str) -> Result<(), String> {
    let func = module.get_str(name).ok_or("the function is there")?;
    let typed = infer(func, &|_| None).map_err(|errors| errors[0].to_string())?;
    let body = typed.view();
    let View::Function { body: value, result, .. } = body.view(body.root()) else {
        return Err("a graph function is expected".into());
    };
    let text = |ty| body.terms().type_text(ty);
    match (body.ty(value), result) {
        (Some(inferred), Some(declared)) if inferred == declared => Ok(()),
        (Some(inferred), Some(declared)) => {
            Err(format!("{} is declared, {} is inferred", text(declared), text(inferred)))
        }
        _ => Err("a type is missing".into()),
    }
}

fn says(input: &str, expected: &str) -> Result<(), String> {
    let found = match infer_module(&read(input)) {
        Ok(_) => "ok".to_owned(),
        Err(errors) => format!("error {}", errors[0].1),
    };
    match found == expected {
        true => Ok(()),
        false => Err(format!("expected: {expected}\n   found: {found}")),
    }
}

//! Types and errors of inference: `types.ir` and `errors.ir`.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use tenon_host::infer::{infer, infer_module};
use tenon_host::ir::{Context, Module, View};

use super::case::read;

pub(crate) fn trials(folder: &Path) -> Vec<Trial> {
    let text = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).expect("the suite can be read");
        text.split_once('\n').expect("it begins with a line of its own").1.to_owned()
    };
    let module = read(&text("types.ir"));
    let names: Vec<_> = module.iter().map(|(name, _)| name).collect();
    let mut trials: Vec<Trial> = names
        .into_iter()
        .map(|name| {
            let module = module.clone();
            let text = module.cx().terms().str(name).to_owned();
            Trial::test(format!("types::{text}"), move || declared_is_inferred(&module, &text))
        })
        .collect();
    let errors = text("errors.ir");
    let mut rest = errors.as_str();
    while let Some((input, after)) = rest.split_once("//! ") {
        let (expected, after) = after.split_once('\n').unwrap_or((after, ""));
        let (input, expected) = (input.to_owned(), expected.to_owned());
        let name = format!("errors::{}", expected.chars().take(60).collect::<String>());
        trials.push(Trial::test(name, move || says(&input, &expected)));
        rest = after;
    }
    trials
}

fn declared_is_inferred(module: &Module, name: &str) -> Result<(), Failed> {
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
            Err(format!("{} is declared, {} is inferred", text(declared), text(inferred)).into())
        }
        _ => Err("a type is missing".into()),
    }
}

fn says(input: &str, expected: &str) -> Result<(), Failed> {
    let found = match infer_module(&read(input)) {
        Ok(_) => "ok".to_owned(),
        Err(errors) => format!("error {}", errors[0].1),
    };
    match found == expected {
        true => Ok(()),
        false => Err(format!("expected: {expected}\n   found: {found}").into()),
    }
}

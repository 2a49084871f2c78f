//! A tensor program that `call_tir` or `call_scalar` calls takes what it is given, and makes what is expected. One
//! that is called by itself writes to its last arguments, which are no constants.

use crate::check::{Report, Rule, Subject};
use crate::diagnostics::count_of;
use crate::infer::fits;
use crate::op_names::{CALL_SCALAR, CALL_TIR};
use crate::{Args, BodyView, Context, DType, DimBindings, Expr, Kind, Type, TypeView, View};

pub(super) const RULE: Rule = Rule {
    name: "calls",
    demands: "a tensor program is given what its parameters say, and writes to no constant",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    for expr in subject.of_kind(Kind::CALL) {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let out = match body.op_name(callee) {
            Some(CALL_TIR) => body.terms().attrs(attrs).term("out").map(|out| Type(out.0)),
            Some(CALL_SCALAR) => Some(subject.module.cx().static_tensor_type(DType::I64, &[])),
            _ => {
                if let Some(problem) = written_constant(subject, callee, args) {
                    report.at(expr, || problem);
                }
                continue;
            }
        };
        let mut given: Vec<Option<Type>> = args.skip(1).iter().map(|arg| body.ty(arg)).collect();
        match out.map(|out| body.terms().ty(out)) {
            Some(TypeView::Tuple(fields)) => given.extend(fields.iter().map(|&field| Some(field))),
            _ => given.push(out),
        }
        if let Some(problem) = mismatch(subject, body, args.at(0), &given) {
            report.at(expr, || problem);
        }
    }
}

/// That a tensor program which is called by itself writes to a constant.
fn written_constant(subject: &Subject<'_>, callee: Expr, args: Args<'_>) -> Option<String> {
    let View::Global { name } = subject.body.view(callee) else { return None };
    let program = subject.module.get(name)?.view();
    let View::PrimFunc { params, outputs, .. } = program.view(program.root()) else { return None };
    let first = params.len() - outputs;
    let is_constant = |arg: Expr| subject.body.kind(arg) == Kind::CONSTANT;
    let index = args.iter().skip(first).position(is_constant)? + first;
    Some(format!("`@{}` writes to its argument {}, a constant", subject.str(name), index + 1))
}

/// What is wrong with calling `callee` with arguments and results of types `given`.
fn mismatch(
    subject: &Subject<'_>,
    body: BodyView<'_>,
    callee: Expr,
    given: &[Option<Type>],
) -> Option<String> {
    let View::Global { name } = body.view(callee) else {
        let kind = body.kind(callee).name();
        return Some(format!("a {kind} is called, not a function of the module"));
    };
    let text = subject.str(name);
    let Some(program) = subject.module.get(name) else {
        return Some(format!("there is no function `@{text}` in the module"));
    };
    if !program.is_prim() {
        return Some(format!("`@{text}` is called, which is not a tensor program"));
    }
    let params = program.params();
    if params.len() != given.len() {
        return Some(format!(
            "`@{text}` has {}, but {} arguments and results are given",
            count_of(params.len(), "parameter"),
            given.len()
        ));
    }
    let mut bindings = DimBindings::default();
    params.iter().zip(given).enumerate().find_map(|(index, (&param, &given))| {
        let (wanted, given) = (program.view().ty(param)?, given?);
        (!fits(subject.module.cx(), wanted, given, Some(&mut bindings))).then(|| {
            format!(
                "parameter {} of `@{text}` is {}, but {} is given",
                index + 1,
                subject.type_text(Some(wanted)),
                subject.type_text(Some(given))
            )
        })
    })
}

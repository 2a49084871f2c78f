//! Tells tensor programs how what was measured says that they run best.
//!
//! ```ir
//! prim @fused_dense_add(…) { op_name = "dense_add" } { … }
//!   => prim @fused_dense_add(…) { op_name = "dense_add", tuned = { because = "0.91 ms, where the rules choose 1.02", knobs = {rows = 6, vectors = 2}, rule = "…", trace = "…" } } { … }
//! ```
//!
//! The database is the file that the option `tune_db` names (`tenon compile --tune-db FILE`); without it nothing is done. Of the very
//! program on the very target the fastest trace is taken; of another one with the same anchor, or with an anchor of about the same
//! sizes, the knobs. `tir.ApplySchedules` applies them, and asks the rules where they do not go. Lines that cannot be read are told of.

use std::collections::HashMap;
use std::path::Path;

use tenon_plugin_api::prelude::*;
use tenon_tuning::{Best, Database, Fit};

use crate::keys::{key_of_target, keys_of};

/// Attribute of a tensor program: how it runs best, as far as somebody has measured.
pub(crate) const TUNED: &str = "tuned";

/// Tells tensor programs how what was measured says that they run best.
#[pass(
    name = "tune.ApplyDatabase",
    aliases = ["relax.MetaScheduleApplyDatabase", "relax.transform.MetaScheduleApplyDatabase"],
    phase = "fuse",
    opt_level = 1
)]
fn apply_database(module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    match options.tune_db.is_empty() {
        true => Ok(module),
        false => apply(module, Path::new(&options.tune_db), cx),
    }
}

#[derive(Options)]
struct Options {
    /// the file with what was measured
    #[option(default = "")]
    tune_db: String,
}

/// The module, whose programs are told what is in a file.
pub(crate) fn apply(mut module: Module, path: &Path, cx: &PassContext) -> Result<Module> {
    let database = Database::read(path).map_err(|error| {
        PassError::new(format!("the tuning database {} cannot be read: {error}", path.display()))
    })?;
    if database.passed_over() > 0 {
        let count = database.passed_over();
        cx.warn(&format!(
            "{count} lines of {} are passed over: torn, or of another version",
            path.display()
        ));
    }
    let mut keys_of_targets: HashMap<Attrs, String> = HashMap::new();
    for (name, func) in module.functions() {
        if !func.is_prim() {
            continue;
        }
        let target = cx.target_of(&func);
        let target = keys_of_targets
            .entry(target)
            .or_insert_with(|| key_of_target(cx.terms().attrs(target), cx.terms()));
        if let Some(told) = tell(&PrimFunc(func), &database, target, cx)? {
            module.insert(name, &told);
        }
    }
    Ok(module)
}

/// The program with what is known of it; nothing where that is nothing, or somebody has decided already.
fn tell(
    program: &PrimFunc,
    database: &Database,
    target: &str,
    cx: &PassContext,
) -> Result<Option<PrimFunc>> {
    let body = program.view();
    let attrs = body.attrs(body.root());
    let has = |key: &str| cx.terms().attrs(attrs).get(key).is_some();
    if ["schedule", "trace", "knobs"].into_iter().any(has) {
        return Ok(None);
    }
    let Some(keys) = keys_of(program)? else { return Ok(None) };
    let Some((fit, best)) = database.best(&keys, target) else { return Ok(None) };
    let tuned = tuned(fit, &best, cx);
    let mut rw = program.edit();
    let root =
        rw.with_attrs(body.root(), cx.with_attr(attrs, TUNED, AttrValue::Term(Term(tuned.0))));
    rw.set_root(root);
    Ok(Some(rw.finish()?.into()))
}

/// What is told of a program.
fn tuned(fit: Fit, best: &Best, cx: &PassContext) -> Attrs {
    let Best { ms, default_ms, knobs, rule, trace, cpu, .. } = best;
    let times = format!("{ms:.4} ms measured, where the rules choose {default_ms:.4}, on {cpu}");
    let because = match fit {
        Fit::Program => times,
        Fit::Anchor => format!("{times}, of another program with the same anchor"),
        Fit::Sizes => format!("{times}, of a program with an anchor of about the same sizes"),
    };
    let knobs: Vec<(&str, AttrValue)> =
        knobs.iter().map(|(name, value)| (name.as_str(), (*value).into())).collect();
    let mut told: Vec<(&str, AttrValue)> = vec![("because", because.as_str().into())];
    if !knobs.is_empty() {
        told.push(("knobs", AttrValue::Term(Term(cx.attrs(&knobs).0))));
    }
    told.push(("rule", rule.as_str().into()));
    if fit == Fit::Program {
        told.push(("trace", trace.as_str().into()));
    }
    cx.attrs(&told)
}

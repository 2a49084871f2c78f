//! Makes one function of calls that one code generator can compute together.
//!
//! ```ir
//! %a = @fused_conv2d_relu(%x)                 %b = @fused_conv2d_relu_add_acme(%x)
//! %b = @fused_add(%a, %x)               =>    …
//!                                             private fn @fused_conv2d_relu_add_acme(%x: …) { Codegen = "acme" } {
//!                                               %a = @fused_conv2d_relu(%x)
//!                                               %b = @fused_add(%a, %x)
//!                                               ret %b
//!                                             }
//! ```
//!
//! The functions of `relax.FuseOpsByPattern` say in `Composite` whose they are. Calls of one code generator join
//! when one reads the other and nothing of anybody else lies between. Each value has a level: the highest of what
//! it reads, and one more behind each step that leaves a code generator. What goes out of a group and comes back has
//! a higher level then, so calls that read each other on one level can be one without a circle, found in one walk.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::names;
use crate::partition::{Bindings, Group, NONE, Outline};

/// Makes one function of calls that one code generator can compute together.
#[pass(
    name = "relax.MergeCompositeFunctions",
    aliases = ["relax.transform.MergeCompositeFunctions"],
    phase = "optimize",
    after = ["relax.FuseOpsByPattern"],
    before = ["relax.RunCodegen"],
    idempotent = true
)]
fn merge_composite_functions(mut module: Module, cx: &PassContext) -> Result<Module> {
    let composites: HashMap<Symbol, (String, String)> = module
        .functions()
        .into_iter()
        .filter_map(|(name, func)| {
            let (vendor, pattern) =
                cx.terms().attrs(func.attrs()).str("Composite")?.split_once('.')?;
            Some((name, (vendor.to_owned(), pattern.to_owned())))
        })
        .collect();
    if composites.is_empty() {
        return Ok(module);
    }
    let effects_of = ModuleEffects::of(&module);
    module.map_functions(cx, |module, _, func| {
        if names::is_group(cx, &func) {
            return Ok(func);
        }
        let effects = effects_of.of_function(&func, cx);
        let mut rw = func.edit();
        for expr in rw.post_order() {
            let Some(bindings) = Bindings::of(&func, expr, &effects) else { continue };
            let groups = groups(&bindings, &composites, cx);
            if !groups.is_empty() {
                let outline = Outline { binds_constants: true };
                bindings.cut(&groups, outline, &mut rw, module, cx)?;
            }
        }
        rw.finish()
    })?;
    Ok(module)
}

fn groups(
    bindings: &Bindings<'_>,
    composites: &HashMap<Symbol, (String, String)>,
    cx: &PassContext,
) -> Vec<Group> {
    let body = bindings.body;
    // The code generator that a binding is for, and the pattern of its function.
    let callee = |number: u32| match body.view(bindings.values[number as usize]) {
        View::Call { callee, .. } => match body.view(callee) {
            View::Global { name } => {
                composites.get(&name).map(|(vendor, pattern)| (vendor.as_str(), pattern.as_str()))
            }
            _ => None,
        },
        _ => None,
    };
    let count = bindings.vars.len();
    let mut level = vec![0u32; count];
    let mut group_of = vec![NONE; count];
    let mut members: Vec<Vec<u32>> = Vec::new();
    for number in 0..count as u32 {
        let own = callee(number).map(|(vendor, _)| vendor);
        for &read in bindings.reads(number) {
            let other = callee(read).map(|(vendor, _)| vendor);
            let leaves = other.is_some() && other != own;
            let reached = level[read as usize] + leaves as u32;
            level[number as usize] = level[number as usize].max(reached);
        }
        if own.is_none() {
            continue;
        }
        let may_join = |read: u32| {
            let is_own = callee(read).map(|(vendor, _)| vendor) == own;
            is_own
                && level[read as usize] == level[number as usize]
                && bindings.is_same_block(read, number)
                && bindings.is_in_pure_block(number)
        };
        let mut group = NONE;
        for &read in bindings.reads(number).iter().filter(|&&read| may_join(read)) {
            let other = group_of[read as usize];
            if group == NONE || group == other {
                group = other;
                continue;
            }
            // The smaller one moves, so that a binding moves a logarithmic number of times.
            let (into, from) = match members[group as usize].len() < members[other as usize].len() {
                true => (other, group),
                false => (group, other),
            };
            let moved = std::mem::take(&mut members[from as usize]);
            moved.iter().for_each(|&member| group_of[member as usize] = into);
            members[into as usize].extend(moved);
            group = into;
        }
        if group == NONE {
            group = members.len() as u32;
            members.push(Vec::new());
        }
        group_of[number as usize] = group;
        members[group as usize].push(number);
    }
    members.retain(|members| !members.is_empty());
    members
        .into_iter()
        .map(|mut members| {
            members.sort_unstable();
            let called = members.iter().filter_map(|&member| callee(member));
            let labels: Vec<&str> = called.clone().map(|(_, pattern)| pattern).collect();
            let vendor = called.map(|(vendor, _)| vendor).next().unwrap_or("");
            let name = format!("fused_{}_{vendor}", names::join(labels.into_iter()));
            let attrs = cx.attrs(&[("Codegen", vendor.into())]);
            Group { members, name, attrs, codegen: None }
        })
        .collect()
}

//! Makes functions of what a code generator's patterns match.
//!
//! ```ir
//! %a = nn.conv2d(%x, const(…))            %b = @fused_conv2d_relu(%x)
//! %b = nn.relu(%a)                  =>    …
//!                                         private fn @fused_conv2d_relu(%x: …) { Composite = "acme.conv_relu", … }
//! ```
//!
//! Patterns are tried in their order, each at every binding in order, and what one has taken no later one
//! takes. Of one pattern a larger match takes over smaller ones that lie within it. A match stays in one block, and
//! is left alone when its result is not read, when it has effects, or when something between its parts depends on
//! it. The function says in `Composite` which pattern it is of. With
//! `annotate_codegen` another one around it says in `Codegen` who makes code of it; without,
//! `relax.MergeCompositeFunctions` does, for many of them at once.

use tenon_plugin_api::pattern::{Match, Pattern};
use tenon_plugin_api::prelude::*;

use crate::names;
use crate::partition::{Bindings, Group, NONE, Outline};

/// Makes functions of what a code generator's patterns match.
#[pass(
    name = "relax.FuseOpsByPattern",
    aliases = ["relax.transform.FuseOpsByPattern"],
    phase = "optimize",
    after = ["relax.FoldConstant"],
    before = ["relax.MergeCompositeFunctions", "relax.RunCodegen", "relax.AlterOpLayout"],
    idempotent = true
)]
fn fuse_ops_by_pattern(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let patterns = known_patterns(&options, cx)?;
    if patterns.is_empty() {
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
            let groups = Search::new(&bindings, &options, cx).run(&patterns, &mut rw)?;
            if !groups.is_empty() {
                bindings.cut(&groups, options.outline(), &mut rw, module, cx)?;
            }
        }
        rw.finish()
    })?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// `vendor.name = pattern`, in the order in which they are tried
    #[option(default = [])]
    patterns: Vec<String>,
    /// code generators whose own patterns are tried after those
    #[option(default = [])]
    vendors: Vec<String>,
    /// whether constants stand in the functions
    #[option(default = true)]
    bind_constants: bool,
    /// whether each becomes a function of its code generator's
    #[option(default = false)]
    annotate_codegen: bool,
}

impl Options {
    fn outline(&self) -> Outline {
        Outline { binds_constants: self.bind_constants }
    }
}

/// A pattern with its name.
struct Known {
    /// `vendor.name`.
    name: String,
    pattern: Pattern,
    /// The code generator that is asked whether it takes a match.
    generator: Option<String>,
}

fn known_patterns(options: &Options, cx: &PassContext) -> Result<Vec<Known>> {
    let read = |text: &str| {
        let Some((name, pattern)) = text.split_once('=') else {
            return Err(PassError::new(format!("`{text}` is no `vendor.name = pattern`")));
        };
        let name = name.trim();
        if !name
            .split_once('.')
            .is_some_and(|(vendor, rest)| !vendor.is_empty() && !rest.is_empty())
        {
            return Err(PassError::new(format!(
                "the pattern `{name}` is not called `vendor.name`"
            )));
        }
        let pattern = pattern.parse().map_err(|error| PassError::new(format!("{error}")))?;
        Ok(Known { name: name.to_owned(), pattern, generator: None })
    };
    let own = options.patterns.iter();
    let mut patterns = own.map(|text| read(text)).collect::<Result<Vec<_>>>()?;
    for vendor in &options.vendors {
        for text in cx.codegen_patterns(vendor)? {
            let known = read(&format!("{vendor}.{text}"))?;
            patterns.push(Known { generator: Some(vendor.clone()), ..known });
        }
    }
    Ok(patterns)
}

/// The groups in one `let`, as far as they were found.
struct Search<'a, 'b> {
    bindings: &'a Bindings<'b>,
    options: &'a Options,
    cx: &'a PassContext,
    /// The group of each binding.
    group_of: Vec<u32>,
    /// With the number of the pattern; `None` for what a larger one took over.
    groups: Vec<Option<Group>>,
    pattern_of: Vec<usize>,
    /// The binding of each value that is bound once.
    binding_of: SideTable<u32>,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(bindings: &'a Bindings<'b>, options: &'a Options, cx: &'a PassContext) -> Self {
        let mut binding_of = SideTable::new(bindings.body, NONE);
        let mut is_shared = SideTable::new(bindings.body, false);
        for (number, &value) in bindings.values.iter().enumerate() {
            is_shared[value] |= binding_of[value] != NONE;
            binding_of[value] = number as u32;
        }
        for &value in bindings.values.iter().filter(|&&value| is_shared[value]) {
            binding_of[value] = NONE;
        }
        let group_of = vec![NONE; bindings.vars.len()];
        let (groups, pattern_of) = (Vec::new(), Vec::new());
        Self { bindings, options, cx, group_of, groups, pattern_of, binding_of }
    }

    fn run(mut self, patterns: &[Known], rw: &mut Rewriter) -> Result<Vec<Group>> {
        for (number, known) in patterns.iter().enumerate() {
            for binding in 0..self.bindings.vars.len() as u32 {
                if !self.is_free(binding, number) || !self.bindings.is_read(binding) {
                    continue;
                }
                let value = self.bindings.values[binding as usize];
                let definition = |expr| self.definition(expr, binding, number);
                let found = known.pattern.find(self.bindings.body, value, definition);
                if let Some(members) = found.and_then(|found| self.members(&found, binding)) {
                    self.add(members, known, number, rw)?;
                }
            }
        }
        Ok(self.groups.into_iter().flatten().collect())
    }

    /// Whether a match of a pattern may take a binding.
    fn is_free(&self, binding: u32, pattern: usize) -> bool {
        match self.group_of[binding as usize] {
            NONE => true,
            group => self.pattern_of[group as usize] == pattern,
        }
    }

    /// What a variable is bound to, if that may belong to a match at `root`.
    fn definition(&self, mut expr: Expr, root: u32, pattern: usize) -> Expr {
        while let Some(number) = self.bindings.number(expr) {
            if !self.bindings.is_same_block(number, root) || !self.is_free(number, pattern) {
                return expr;
            }
            let value = self.bindings.values[number as usize];
            // What is bound twice belongs to nobody.
            match self.bindings.body.kind(value) {
                Kind::VAR => expr = value,
                _ if self.binding_of[value] == NONE => return expr,
                _ => return value,
            }
        }
        expr
    }

    /// The bindings of a match in order, if all of it may move.
    fn members(&self, found: &Match, root: u32) -> Option<Vec<u32>> {
        let body = self.bindings.body;
        let mut members = Vec::new();
        for &expr in &found.inside {
            if let View::Call { callee, .. } = body.view(expr) {
                let op = body.op_name(callee)?;
                if op == "call_tir" || self.bindings.effects.has_effect(expr) {
                    return None;
                }
            }
            match self.binding_of[expr] {
                NONE => {}
                number => members.push(number),
            }
        }
        members.sort_unstable();
        members.dedup();
        // A pattern that is a mere `*` matches nothing that could be computed.
        members.contains(&root).then_some(members)
    }

    /// Adds a group, unless it shares a binding with another one that does not lie within it, or its code
    /// generator does not want it.
    fn add(
        &mut self,
        members: Vec<u32>,
        known: &Known,
        pattern: usize,
        rw: &mut Rewriter,
    ) -> Result<()> {
        let mut within: Vec<u32> =
            members.iter().map(|&member| self.group_of[member as usize]).collect();
        within.retain(|&group| group != NONE);
        within.sort_unstable();
        within.dedup();
        let lies_within = |&group: &u32| {
            let group = self.groups[group as usize].as_ref();
            group.is_some_and(|group| {
                group.members.iter().all(|member| members.binary_search(member).is_ok())
            })
        };
        if !within.iter().all(lies_within)
            || !self.bindings.may_cut(&members, &self.group_of, &self.groups)
        {
            return Ok(());
        }
        let group = self.group(members, &known.name);
        if let Some(generator) = &known.generator {
            let (function, _) =
                self.bindings.outline(&group, self.options.outline(), rw, self.cx)?;
            if !self.cx.is_accepted(generator, &function)? {
                return Ok(());
            }
        }
        within.iter().for_each(|&group| self.groups[group as usize] = None);
        let number = self.groups.len() as u32;
        group.members.iter().for_each(|&member| self.group_of[member as usize] = number);
        self.groups.push(Some(group));
        self.pattern_of.push(pattern);
        Ok(())
    }

    fn group(&self, members: Vec<u32>, pattern: &str) -> Group {
        let body = self.bindings.body;
        let labels: Vec<&str> = members
            .iter()
            .filter_map(|&member| match body.view(self.bindings.values[member as usize]) {
                View::Call { callee, .. } => body.op_name(callee),
                _ => None,
            })
            .map(|op| op.rsplit('.').next().unwrap_or(op))
            .collect();
        let name = format!("fused_{}", names::join(labels.into_iter()));
        let attrs = self.cx.attrs(&[("Composite", pattern.into()), ("Primitive", 1i64.into())]);
        let vendor = pattern.split('.').next().filter(|_| self.options.annotate_codegen);
        let codegen = vendor.map(str::to_owned);
        Group { members, name, attrs, codegen }
    }
}

//! What the programs of a function do to its tensors.

use std::collections::HashMap;

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

/// What happens to the tensors of a function, those that are views of each other together.
pub(super) struct Uses {
    /// The tensor that a variable is memory of: a parameter, or one that is made here.
    pub(super) root: SideTable<Option<Expr>>,
    /// Where tensors are made: the number of the binding, and its value.
    pub(super) made: HashMap<Expr, (usize, Expr)>,
    /// How many programs write each.
    pub(super) writes: SideTable<u32>,
    /// What something else than programs and views touches, and results.
    is_kept: SideTable<bool>,
    /// The first binding that names the memory again.
    pub(super) viewed: HashMap<Expr, usize>,
}

impl Uses {
    pub(super) fn of(
        body: BodyView<'_>,
        (block, bindings): (Expr, LetView<'_>),
        mut inputs: impl FnMut(Expr) -> Option<usize>,
    ) -> Self {
        let mut uses = Self {
            root: SideTable::new(body, None),
            made: HashMap::new(),
            writes: SideTable::new(body, 0),
            is_kept: SideTable::new(body, false),
            viewed: HashMap::new(),
        };
        if let View::Function { params, .. } = body.view(body.root()) {
            params.iter().for_each(|param| uses.root[param] = Some(param));
        }
        let mut is_understood = SideTable::new(body, false);
        for (number, (var, value)) in bindings.bindings().enumerate() {
            let View::Call { callee, args, .. } = body.view(value) else { continue };
            match body.op_name(callee) {
                Some("builtin.alloc_tensor") => {
                    uses.root[var] = Some(var);
                    uses.made.insert(var, (number, value));
                }
                Some("memory.view") if args.len() == 1 => {
                    is_understood[value] = true;
                    uses.root[var] = uses.root[args.at(0)];
                    if let Some(root) = uses.root[var] {
                        uses.viewed.entry(root).or_insert(number);
                    }
                }
                _ => {
                    let Some(inputs) = inputs(value) else { continue };
                    is_understood[value] = true;
                    for written in args.skip(inputs).iter().filter_map(|arg| uses.root[arg]) {
                        uses.writes[written] += 1;
                    }
                }
            }
        }
        let mut keep = |expr: Expr| {
            if let Some(root) = uses.root[expr] {
                uses.is_kept[root] = true;
            }
        };
        keep(bindings.result());
        for expr in body.post_order() {
            if expr != block && expr != body.root() && !is_understood[expr] {
                body.operands(expr).iter().for_each(&mut keep);
            }
        }
        uses
    }

    /// Whether a tensor is made here, written by one program, and not more than read besides.
    pub(super) fn is_free(&self, var: Expr) -> bool {
        self.made.contains_key(&var) && self.writes[var] == 1 && !self.is_kept[var]
    }

    /// Whether nothing is written any more to what is there.
    pub(super) fn is_final(&self, body: BodyView<'_>, value: Expr) -> bool {
        match self.root[value] {
            Some(root) => {
                let writes = u32::from(self.made.contains_key(&root));
                self.writes[root] == writes && !self.is_kept[root]
            }
            None => body.kind(value) == Kind::CONSTANT,
        }
    }
}

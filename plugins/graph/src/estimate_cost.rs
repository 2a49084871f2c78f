//! Says how much arithmetic each function does, and how many bytes its calls read and write.
//!
//! ```ir
//! fn @main(%x: f32[2, 64], %w: f32[64, 10]) {         fn @main(…) { bytes = 3312, flops = 2580 } {
//!   %a = matmul(%x, %w)                                 %a = matmul(%x, %w)
//!   %b = nn.relu(%a)                             =>     %b = nn.relu(%a)
//!   ret %b                                              ret %b
//! }                                                   }
//! ```
//!
//! What a call costs says a rule of the facet `cost`, and of an operator without one its fusion pattern: an operation for each
//! element of the result of an element-wise call, for each element of the argument of a reduction, none where elements are
//! moved. Calls of which nobody knows are counted and named. Each tensor counts as often as it is read or written, as if
//! nothing were fused. A note tells the sums; where they are plain numbers they are attributes of the function as well, of
//! the function as it was then.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::{Cost, CostOf, DimSum, Rules};

/// Says how much arithmetic each function does, and how many bytes its calls read and write.
#[pass(
    name = "tenon.EstimateCost",
    aliases = ["raf.pass_.EstimateGFLOPS"],
    phase = "optimize",
    until = "builtin",
    asks = ["cost"],
    idempotent = true
)]
fn estimate_cost(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut rules = cx.rules::<CostOf>();
    module.map_functions(cx, |_, name, func| {
        let mut rw = func.edit();
        let sums = Sums::of(&func, &mut rw, &mut rules, cx)?;
        cx.note(&format!("@{}: {}", cx.terms().str(name), sums.told(cx)));
        let mut attrs = func.attrs();
        for (key, sum) in [("flops", sums.flops.dim(cx)), ("bytes", sums.bytes.dim(cx))] {
            attrs = match cx.terms().dim_value(sum) {
                Some(sum) => cx.with_attr(attrs, key, sum.into()),
                None => cx.without_attr(attrs, key),
            };
        }
        // What rules have built to find out is left behind.
        let mut rw = func.edit();
        if attrs != func.attrs() {
            let root = rw.with_attrs(func.view().root(), attrs);
            rw.set_root(root);
        }
        rw.finish()
    })?;
    Ok(module)
}

/// What the calls of a function cost together.
#[derive(Default)]
struct Sums {
    flops: DimSum,
    bytes: DimSum,
    /// The call that does most, as far as numbers are known.
    most: Option<(i64, String)>,
    /// How many calls nobody knows the cost of, and what the first of them calls.
    unknown: usize,
    first_unknown: String,
}

impl Sums {
    fn of(
        func: &Function,
        rw: &mut Rewriter,
        rules: &mut Rules<CostOf>,
        cx: &PassContext,
    ) -> Result<Self> {
        let body = func.view();
        let mut sums = Self::default();
        for expr in body.post_order() {
            let View::Call { callee, .. } = body.view(expr) else { continue };
            let (op, cost) = match body.view(callee) {
                View::Op { name } => (cx.terms().str(name), cost_of(rw, rules, cx, name, expr)?),
                _ => ("a function", None),
            };
            sums.add(cx, op, cost);
        }
        Ok(sums)
    }

    fn add(&mut self, cx: &PassContext, op: &str, cost: Option<Cost>) {
        let Some(cost) = cost else {
            if self.unknown == 0 {
                op.clone_into(&mut self.first_unknown);
            }
            self.unknown += 1;
            return;
        };
        self.flops.add(cx, cost.flops);
        self.bytes.add(cx, cost.bytes);
        if let Some(flops) = cx.terms().dim_value(cost.flops)
            && flops > self.most.as_ref().map_or(0, |(most, _)| *most)
        {
            self.most = Some((flops, op.to_owned()));
        }
    }

    fn told(&self, cx: &PassContext) -> String {
        let terms = cx.terms();
        let mut text = format!(
            "{} operations, {} bytes read and written",
            terms.dim_text(self.flops.dim(cx)),
            terms.dim_text(self.bytes.dim(cx))
        );
        if let Some((flops, op)) = &self.most {
            text.push_str(&format!("; at most {flops} operations in one call, of `{op}`"));
        }
        if self.unknown > 0 {
            text.push_str(&format!(
                "; {} calls of unknown cost, the first of `{}`",
                self.unknown, self.first_unknown
            ));
        }
        text
    }
}

fn cost_of(
    rw: &mut Rewriter,
    rules: &mut Rules<CostOf>,
    cx: &PassContext,
    op: Symbol,
    call: Expr,
) -> Result<Option<Cost>> {
    if let Some(cost) = rules.cost(rw, op, call)? {
        return Ok(Some(cost));
    }
    let info = cx.op_info(cx.terms().str(op));
    Ok(info.and_then(|info| Cost::by_pattern(rw, call, info.pattern)))
}

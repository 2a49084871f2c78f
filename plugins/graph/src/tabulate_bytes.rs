//! Looks up what is computed of one byte and becomes a byte again.
//!
//! ```ir
//! %a = multiply(cast(subtract(cast(%x) { dtype = "i32" }, 3)) { dtype = "f32" }, 0.1)        %x: u8[n, 64]
//! %b = tanh(%a)
//! %y = cast(clip(add(round(divide(%b, 0.01)), 128)) { max = 255.0, min = 0.0 }) { dtype = "u8" }
//!                        =>
//! %y = take(const(u8[256], …), %x)
//! ```
//!
//! Bytes that become themselves, or the nearest within bounds, are left where they are: so it is with what stands between two tensors on
//! one scale.
//!
//! ```ir
//! %a = nn.relu(multiply(cast(subtract(cast(%x) { dtype = "i32" }, 3)) { dtype = "f32" }, 0.1))
//! %y = cast(clip(add(round(divide(%a, 0.1)), 3)) { max = 255.0, min = 0.0 }) { dtype = "u8" }
//!                        =>
//! %y = clip(%x) { min = 3.0 }
//! ```
//!
//! There are 256 bytes, so all that element-wise calls make of a tensor of bytes and of numbers that are known is a table, which is
//! computed here. It is done where the calls take longer than to look up: where there is a function such as `tanh`, or a number is rounded
//! to bytes twice. What is cheaper stays, since it fuses with the product or convolution before it.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::scaled::is_byte;

/// Calls that take a vector next to no time; others are functions.
const CHEAP: [&str; 14] = [
    "add",
    "cast",
    "clip",
    "equal",
    "greater",
    "less",
    "maximum",
    "minimum",
    "multiply",
    "nn.relu",
    "reinterpret",
    "round",
    "subtract",
    "where",
];
/// What a division takes, and what a function takes, in cheap calls.
const DIVISION: u32 = 8;
const FUNCTION: u32 = 24;
/// What it takes to keep bytes within bounds.
const BOUND: u32 = 2;
/// What it takes to look up as many elements as a vector has.
const LOOK_UP: u32 = 32;

/// Looks up what is computed of one byte and becomes a byte again.
#[pass(
    name = "relax.TabulateBytes",
    opt_level = 2,
    phase = "optimize",
    after = ["relax.KeepQuantizedWeights", "relax.KeepQuantizedConvolutions", "relax.FoldConstant"],
    before = ["relax.ConvertToDots"]
)]
fn tabulate_bytes(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    // Most functions have no bytes, and are left after one look at their types.
    if !body.post_order().any(|expr| is_byte(body, expr)) {
        return Ok(func);
    }
    let mut rw = func.edit();
    let mut tables = Tables { of: HashMap::new(), cx };
    for expr in body.post_order() {
        let View::Call { .. } = body.view(expr) else { continue };
        let Some(table) = tables.of_call(&mut rw, expr) else { continue };
        tables.of.insert(expr, table);
        if !is_byte(rw.body(), expr) {
            continue;
        }
        let bounded = table.bounded(&mut rw);
        let Some(made) = bounded.or_else(|| table.looked_up(&mut rw)) else { continue };
        if rw.body().ty(made) == body.ty(expr) {
            let cost = bounded.map_or(table.cost, |_| 1);
            if made != table.bytes {
                tables.of.insert(made, Table { cost, ..table });
            }
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// What becomes of each byte.
#[derive(Clone, Copy)]
struct Table {
    /// The tensor of bytes.
    bytes: Expr,
    /// What each of the 256 becomes.
    values: Expr,
    /// What computing an element takes, in cheap calls.
    cost: u32,
}

impl Table {
    /// What a tensor of bytes is itself: each byte becomes itself.
    fn of_bytes(rw: &mut Rewriter, bytes: Expr) -> Option<Self> {
        let all: Vec<u8> = (0..=255).collect();
        let ty = rw.cx().static_tensor_type(rw.tensor(bytes)?.0, &[256]);
        Some(Self { bytes, values: rw.constant(ty, &all), cost: 0 })
    }

    /// The bytes themselves, kept within bounds where some are moved to them; none where they become others than these.
    fn bounded(&self, rw: &mut Rewriter) -> Option<Expr> {
        let (dtype, _) = rw.tensor(self.bytes)?;
        let (least, most) = dtype.int_bounds();
        let View::Constant(values) = rw.view(self.values) else { return None };
        if rw.terms().tensor(values.ty)?.0 != dtype || self.cost <= BOUND {
            return None;
        }
        let mut all: Vec<i64> = values.bytes.iter().map(|&byte| i64::from(byte)).collect();
        if dtype == DType::I8 {
            // In the order of the bytes without sign: those below zero are behind the others.
            all = values.bytes.iter().map(|&byte| i64::from(byte.cast_signed())).collect();
            all.rotate_left(128);
        }
        let (low, high) = (*all.first()?, *all.last()?);
        if low > high || !(least..=most).zip(&all).all(|(byte, &of)| of == byte.clamp(low, high)) {
            return None;
        }
        let bounds = [("min", low, least), ("max", high, most)];
        let attrs: Vec<(&str, AttrValue)> = bounds
            .into_iter()
            .filter(|(_, bound, extreme)| bound != extreme)
            .map(|(name, bound, _)| (name, (bound as f64).into()))
            .collect();
        Some(match attrs.as_slice() {
            [] => self.bytes,
            attrs => rw.apply_with("clip", &[self.bytes], attrs),
        })
    }

    /// What becomes of the bytes from a table, where computing it takes longer.
    fn looked_up(&self, rw: &mut Rewriter) -> Option<Expr> {
        if self.cost < LOOK_UP {
            return None;
        }
        let at = match rw.tensor(self.bytes) {
            Some((DType::I8, _)) => {
                rw.apply_with("reinterpret", &[self.bytes], &[("dtype", "u8".into())])
            }
            _ => self.bytes,
        };
        Some(rw.apply("take", &[self.values, at]))
    }
}

/// The tables of what element-wise calls make of bytes.
struct Tables<'a> {
    of: HashMap<Expr, Table>,
    cx: &'a PassContext,
}

impl Tables<'_> {
    /// That of a call of which one argument is made of bytes in its shape, and the others are numbers.
    fn of_call(&mut self, rw: &mut Rewriter, expr: Expr) -> Option<Table> {
        let View::Call { callee, args, attrs } = rw.view(expr) else { return None };
        let (name, args) = (rw.body().op_name(callee)?.to_owned(), args.to_vec());
        let info = self.cx.op_info(&name)?;
        let is_simple = matches!(info.pattern, OpPattern::Elementwise | OpPattern::Broadcast);
        let (_, dims) = rw.tensor(expr)?;
        if !is_simple || !info.is_pure || dims.is_empty() {
            return None;
        }
        let mut whole: Option<Table> = None;
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let definition = rw.definition(arg);
            if rw.is_constant(definition) && rw.rank(definition)? == 0 {
                values.push(definition);
                continue;
            }
            let table = match self.of.get(&definition).copied() {
                Some(table) => table,
                None if is_byte(rw.body(), arg) && !rw.is_constant(definition) => {
                    Table::of_bytes(rw, arg)?
                }
                None => return None,
            };
            let bytes = whole.map_or(table.bytes, |whole| whole.bytes);
            let is_one = rw.definition(table.bytes) == rw.definition(bytes);
            if !is_one || rw.tensor(arg)?.1 != dims {
                return None;
            }
            let cost = whole.map_or(table.cost, |whole| whole.cost.max(table.cost));
            whole = Some(Table { cost, ..table });
            values.push(table.values);
        }
        let whole = whole?;
        let call = rw.call_op(&name, &values, attrs);
        let values = rw.evaluate(call).ok()?;
        let cost = whole.cost.saturating_add(cost_of(&name));
        (rw.extents(values)? == [256]).then_some(Table { values, cost, ..whole })
    }
}

/// What a call takes, in cheap ones.
fn cost_of(op: &str) -> u32 {
    match op {
        "divide" => DIVISION,
        op if CHEAP.contains(&op) => 1,
        _ => FUNCTION,
    }
}

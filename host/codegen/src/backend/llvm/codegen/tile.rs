//! A nest of loops that an instruction computes at once.
//!
//! ```llvm
//! for %j in 0..16 { intrinsic = "x86.avx512vnni.dot_16x4" } {           call void @tile.x86.avx512vnni.dot_16x4(
//!   for %k in 0..4 { %c[%j] = %c[%j] + … } }                     =>       ptr %a, ptr %b, ptr %c)
//! ```
//!
//! The nest says what is computed, and is compared with what the intrinsic describes; a nest that is something else is an error,
//! whoever said that they are the same. The intrinsic's own text of LLVM becomes a function of the module, which is inlined.

use std::collections::HashMap;

use inkwell::{
    attributes::AttributeLoc,
    memory_buffer::MemoryBuffer,
    module::{Linkage, Module},
    types::BasicMetadataTypeEnum,
    values::{BasicMetadataValueEnum, FunctionValue},
};
use tenon_plugin_api::rule::{TensorIntrinsic, TileElement, step_of};

use super::{
    access::{BufferLayout, Extent},
    error::{Problem, Result},
    statement::Emitter,
};
use crate::backend::llvm::attributes::{always_inline, decorate};
use crate::target::FloatMode;
use tenon_ir::{BodyView, Expr, LoopKind, View};

/// The function that the code of an intrinsic defines.
const FUNCTION: &str = "tile";

impl<'cx> Emitter<'cx, '_> {
    /// The loop `stmt` and all in it, which the intrinsic `name` computes.
    pub(super) fn tile(&mut self, stmt: Expr, name: &str) -> Result<()> {
        let Some(intrinsic) = self.intrinsics.iter().find(|known| known.name == name) else {
            return Problem::malformed(format!("nobody looked for the intrinsic `{name}`"));
        };
        self.check_target(intrinsic)?;
        let function = self.tile_function(intrinsic)?;
        let nest = Nest::of(self.body, stmt, intrinsic);
        let calls = nest.and_then(|nest| nest.operands(self.body, intrinsic).map(|it| (nest, it)));
        let (nest, operands) = calls.or_else(|why| {
            Problem::malformed(format!(
                "a loop is said to be what `{name}` computes, and is not: {why}"
            ))
        })?;
        if self.asm.mask.is_some() {
            let what = format!("`{name}` under a condition of several lanes");
            return Problem::unsupported(what, "it computes whole tiles");
        }
        for (var, first) in nest.loops {
            let first = self.value(first)?;
            self.scope.vars.insert(var, first);
        }
        self.memo.clear();
        for (var, value) in nest.names {
            let value = self.value(value)?;
            self.scope.vars.insert(var, value);
        }
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::new();
        for (operand, (element, stride)) in intrinsic.operands.iter().zip(operands) {
            let indices = element
                .indices
                .iter()
                .map(|&index| self.value(index))
                .collect::<Result<Vec<_>>>()?;
            let buffer = self.scope.buffer(self.body, element.buffer)?;
            args.push(self.asm.address(&buffer, &indices)?.into());
            if operand.rows.is_some() {
                args.push(self.asm.index(stride).into());
            }
        }
        for (&(_, extent), open) in nest.moving.iter().zip(&intrinsic.open) {
            if open.is_some() {
                args.push(self.asm.index(extent).into());
            }
        }
        self.asm.builder.build_call(function, &args, "")?;
        Ok(())
    }

    fn check_target(&self, intrinsic: &TensorIntrinsic) -> Result<()> {
        let TensorIntrinsic { name, architecture, features, .. } = intrinsic;
        let target = self.asm.target;
        let what = || format!("what the intrinsic `{name}` computes");
        if target.architecture().name() != architecture {
            let text = format!(
                "it is of {architecture}, and the target is {}",
                target.architecture().name()
            );
            return Problem::unsupported(what(), text);
        }
        if intrinsic.rounds_differently && target.float() == FloatMode::Strict {
            let text = "it rounds otherwise than the loops do, and floats are strict";
            return Problem::unsupported(what(), text);
        }
        match features.iter().find(|feature| !target.has(feature)) {
            Some(missing) => {
                let text = format!("it needs `{missing}`, which {} does not have", target.cpu());
                Problem::unsupported(what(), text)
            }
            None => Ok(()),
        }
    }

    /// The function with the code of an intrinsic.
    fn tile_function(&self, intrinsic: &TensorIntrinsic) -> Result<FunctionValue<'cx>> {
        let symbol = format!("{FUNCTION}.{}", intrinsic.name);
        let module = self.asm.module;
        if let Some(known) = module.get_function(&symbol) {
            return Ok(known);
        }
        let wrong = |why: String| {
            let what = format!("the code of the intrinsic `{}`", intrinsic.name);
            Problem::Unsupported { what, reason: why }
        };
        let text = MemoryBuffer::create_from_memory_range_copy(intrinsic.llvm.as_bytes(), FUNCTION);
        let code = self.asm.cx.create_module_from_ir(text);
        let code = code.map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        let Some(function) = code.get_function(FUNCTION).filter(|it| it.count_basic_blocks() > 0)
        else {
            return Err(wrong(format!("it does not define `@{FUNCTION}`")));
        };
        self.check_signature(function, intrinsic).map_err(wrong)?;
        function.as_global_value().set_name(&symbol);
        module.link_in_module(code).map_err(|error| wrong(error.to_string()))?;
        self.dress(module);
        let Some(function) = module.get_function(&symbol) else {
            return Problem::malformed(format!("`{symbol}` is not there"));
        };
        function.set_linkage(Linkage::Internal);
        always_inline(function);
        Ok(function)
    }

    fn check_signature(
        &self,
        function: FunctionValue<'cx>,
        intrinsic: &TensorIntrinsic,
    ) -> std::result::Result<(), String> {
        let stride = |rows: bool| if rows { "ptr, i64" } else { "ptr" };
        let operands = intrinsic.operands.iter().map(|operand| stride(operand.rows.is_some()));
        let extents = intrinsic.open.iter().flatten().map(|_| "i64");
        let wanted: Vec<&str> = operands.chain(extents).collect();
        let wanted = wanted.join(", ");
        let ty = function.get_type();
        let given: Vec<String> = ty
            .get_param_types()
            .into_iter()
            .map(|ty| match ty {
                BasicMetadataTypeEnum::PointerType(_) => "ptr".to_owned(),
                other => other.to_string().trim_matches('"').to_owned(),
            })
            .collect();
        match ty.get_return_type().is_none() && given.join(", ") == wanted {
            true => Ok(()),
            false => Err(format!("`@{FUNCTION}` is not void ({wanted})")),
        }
    }

    /// Makes functions that came with an intrinsic ones for the target.
    fn dress(&self, module: &Module<'cx>) {
        for function in module.get_functions() {
            let is_dressed = function.get_string_attribute(AttributeLoc::Function, "target-cpu");
            if function.count_basic_blocks() > 0 && is_dressed.is_none() {
                decorate(function, self.asm.target);
            }
        }
    }
}

/// The loops of a tile, and what is in them.
struct Nest {
    /// The variables with their first values.
    loops: Vec<(Expr, Expr)>,
    /// The variables of the loops that have several steps, and how many.
    moving: Vec<(Expr, i64)>,
    /// Names of values inside, in order.
    names: Vec<(Expr, Expr)>,
    store: Expr,
}

impl Nest {
    fn of(
        body: BodyView<'_>,
        mut stmt: Expr,
        intrinsic: &TensorIntrinsic,
    ) -> std::result::Result<Nest, String> {
        let (mut loops, mut moving, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let wanted = || format!("it wants the loops {}", intrinsic.nest());
        loop {
            match body.view(stmt) {
                View::For { var, min, extent, body: inside, kind: LoopKind::Serial, .. } => {
                    let View::Int(extent) = body.view(extent) else { return Err(wanted()) };
                    if extent != 1 {
                        if !intrinsic.fits(moving.len(), extent) {
                            return Err(wanted());
                        }
                        moving.push((var, extent));
                    }
                    loops.push((var, min));
                    stmt = inside;
                }
                View::Seq(stmts) if !stmts.is_empty() => {
                    for stmt in stmts.iter().take(stmts.len() - 1) {
                        let View::LetStmt { var, value } = body.view(stmt) else {
                            return Err("it holds more than one assignment".to_owned());
                        };
                        names.push((var, value));
                    }
                    stmt = stmts.at(stmts.len() - 1);
                }
                _ if moving.len() == intrinsic.axes.len() => {
                    return Ok(Nest { loops, moving, names, store: stmt });
                }
                _ => return Err(wanted()),
            }
        }
    }

    /// The first element of each operand, and the elements from one of its rows to the next.
    fn operands(
        &self,
        body: BodyView<'_>,
        intrinsic: &TensorIntrinsic,
    ) -> std::result::Result<Vec<(TileElement, i64)>, String> {
        let names: HashMap<Expr, Expr> = self.names.iter().copied().collect();
        // A name may stand for a name; each was bound before, so that comes to an end.
        let follow = |mut expr: Expr| {
            while let Some(&value) = names.get(&expr) {
                expr = value;
            }
            expr
        };
        let elements = intrinsic.elements(body, self.store, &follow)?;
        let mut operands = Vec::new();
        for (operand, element) in elements.into_iter().enumerate() {
            let layout =
                BufferLayout::of(body, element.buffer).map_err(|problem| problem.to_string())?;
            let step =
                |&(var, _): &(Expr, i64)| elements_moved(body, &layout, &element, var, &follow);
            let moves: Vec<Option<i64>> = self.moving.iter().map(step).collect();
            let stride = intrinsic.row_stride(operand, &moves)?;
            operands.push((element, stride));
        }
        Ok(operands)
    }
}

/// How many elements an access moves in a step of the loop over `var`.
fn elements_moved(
    body: BodyView<'_>,
    layout: &BufferLayout,
    element: &TileElement,
    var: Expr,
    follow: &dyn Fn(Expr) -> Expr,
) -> Option<i64> {
    // One index counts the elements of the whole buffer.
    let shape = if element.indices.len() == 1 { &[Extent::Known(1)][..] } else { &layout.shape };
    let (mut moved, mut size) = (0i64, 1i64);
    for (&index, &extent) in element.indices.iter().zip(shape).rev() {
        let step = step_of(body, index, var, follow)?;
        moved = moved.checked_add(step.checked_mul(size)?)?;
        size = size.checked_mul(extent.known()?)?;
    }
    Some(moved)
}

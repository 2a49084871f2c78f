//! The interpreter of compiled tensor programs.

use crate::Value;
use crate::budget::Budget;
use crate::env::mismatch;
use tenon_ir::{BinaryOp, Context, Cx, DType, DimBindings, Type, substitute};

use super::code::{Access, Instr, Reg};
use super::memory::{Fault, Memory, extent};
use super::scalar::{
    bit_op, compare, float_bits, float_of_bits, float_op, float_to_int, int_op, math, math2, round,
    wrap,
};
use super::shadow::Mistake;
use super::{Index, Param, Program, ProgramError};

impl Program {
    /// Runs the program on values for its parameters, which for outputs are places.
    pub(crate) fn run(
        &self,
        cx: &Cx,
        args: &[Value],
        budget: &mut Budget,
    ) -> Result<(), ProgramError> {
        if args.len() != self.params.len() {
            let expected = self.params.len();
            return Err(ProgramError::WrongArgCount { expected, found: args.len() });
        }
        let mut run = Run {
            program: self,
            cx,
            ints: self.ints.clone(),
            floats: self.floats.clone(),
            memory: Memory::new(self.buffers.len()),
            dims: DimBindings::default(),
            budget,
        };
        self.compare(cx, args, &mut run.dims)?;
        for index in 0..args.len() {
            run.bind(index, args)?;
        }
        for &(reg, dim) in &self.dims {
            run.ints[reg as usize] = extent(cx, dim, &run.dims)?;
        }
        for (number, buffer) in self.buffers.iter().enumerate() {
            if let Some(tensor) = &buffer.constant {
                run.memory.place_tensor(number as u32, tensor);
            }
        }
        run.run()
    }

    fn indices(&self, access: Access) -> &[Index] {
        &self.indices[access.first as usize..][..access.count as usize]
    }

    /// The types of the outputs, given the inputs, which are those that the parameters ask for.
    pub(crate) fn output_types(
        &self,
        cx: &Cx,
        inputs: &[Value],
    ) -> Result<Vec<Type>, ProgramError> {
        let (params, outputs) = self.params.split_at(self.params.len() - self.outputs);
        if params.len() != inputs.len() {
            let expected = params.len();
            return Err(ProgramError::WrongArgCount { expected, found: inputs.len() });
        }
        let mut dims = DimBindings::default();
        self.compare(cx, inputs, &mut dims)?;
        let ty = |output| Some(Type(substitute(cx, self.type_of(output)?.into(), &dims).0));
        Ok(outputs.iter().filter_map(ty).collect())
    }

    /// Compares buffers, the first ones of the parameters, with what those say.
    fn compare(&self, cx: &Cx, args: &[Value], dims: &mut DimBindings) -> Result<(), ProgramError> {
        let mut indices = Vec::with_capacity(args.len());
        let mut declared = Vec::with_capacity(args.len());
        for (index, (param, arg)) in self.params.iter().zip(args).enumerate() {
            if let Some(ty) = self.type_of(param) {
                indices.push(index);
                declared.push((ty, arg));
            }
        }
        match mismatch(cx, &declared, dims) {
            Some(at) => Err(self.wrong_buffer(cx, indices[at], dims, args)),
            None => Ok(()),
        }
    }

    /// The type of a buffer.
    fn type_of(&self, param: &Param) -> Option<Type> {
        match param {
            Param::Buffer(number) => Some(self.buffers[*number as usize].ty),
            Param::Int(_) | Param::Float(_) => None,
        }
    }

    fn is_output(&self, index: usize) -> bool {
        index + self.outputs >= self.params.len()
    }

    fn wrong_buffer(
        &self,
        cx: &Cx,
        index: usize,
        dims: &DimBindings,
        args: &[Value],
    ) -> ProgramError {
        let text = |ty: Type| cx.terms().type_text(Type(substitute(cx, ty.into(), dims).0));
        let expected = self.type_of(&self.params[index]).map_or_else(String::new, text);
        let place = if self.is_output(index) { " in a storage" } else { "" };
        let expected = format!("{expected}{place}");
        ProgramError::WrongArg { index, expected, found: text_of(cx, &args[index]) }
    }
}

fn text_of(cx: &Cx, arg: &Value) -> String {
    let text = |ty| cx.terms().type_text(ty);
    arg.ty(cx).map_or_else(|| arg.kind().to_owned(), text)
}

pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    cx: &'a Cx,
    pub(super) ints: Vec<i64>,
    pub(super) floats: Vec<f64>,
    pub(super) memory: Memory,
    dims: DimBindings,
    pub(super) budget: &'a mut Budget,
}

/// Where a run stops that may go on.
pub(super) enum Stop {
    /// The program, or a thread, is done.
    End,
    /// A loop over threads begins at this instruction.
    Fork(usize),
    /// A thread waits, and goes on at this instruction.
    Barrier(usize),
}

impl Run<'_> {
    /// Gives a parameter its value.
    fn bind(&mut self, index: usize, args: &[Value]) -> Result<(), ProgramError> {
        let arg = &args[index];
        let wrong = |expected: &str| {
            let expected = expected.to_owned();
            ProgramError::WrongArg { index, expected, found: text_of(self.cx, arg) }
        };
        match self.program.params[index] {
            Param::Buffer(number) => {
                let is_right = !self.program.is_output(index) || matches!(arg, Value::Place(_));
                if !is_right || !self.memory.place_value(number, arg) {
                    return Err(self.program.wrong_buffer(self.cx, index, &self.dims, args));
                }
            }
            Param::Int(reg) => {
                let Value::Scalar(value) = arg else { return Err(wrong("a dimension")) };
                self.ints[reg as usize] = *value;
            }
            Param::Float(reg) => {
                let Value::Scalar(value) = arg else { return Err(wrong("a number")) };
                self.floats[reg as usize] = *value as f64;
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ProgramError> {
        let mut at = 0;
        while let Stop::Fork(fork) = self.advance(at)? {
            at = self.run_threads(fork)?;
        }
        Ok(())
    }

    /// Goes on at an instruction until something has to be done that is not this thread's alone.
    pub(super) fn advance(&mut self, mut at: usize) -> Result<Stop, ProgramError> {
        let program = self.program;
        while let Some(&instr) = program.code.get(at) {
            at += 1;
            match instr {
                Instr::Jump { by } => at += by as usize,
                Instr::JumpUnless { cond, by } => {
                    if self.ints[cond as usize] == 0 {
                        at += by as usize;
                    }
                }
                Instr::Loop { var, min, extent, limit, by } => {
                    let first = self.ints[min as usize];
                    let end = first.saturating_add(self.ints[extent as usize]);
                    self.ints[var as usize] = first;
                    self.ints[limit as usize] = end;
                    if first >= end {
                        at += by as usize;
                    } else {
                        let steps = first.abs_diff(end).saturating_mul(u64::from(by) + 1);
                        self.budget.step(steps)?;
                    }
                }
                Instr::Next { var, limit, back } => {
                    let next = self.ints[var as usize] + 1;
                    self.ints[var as usize] = next;
                    if next < self.ints[limit as usize] {
                        at -= back as usize + 1;
                    }
                }
                Instr::Load { dst, access } => {
                    let indices = program.indices(access);
                    let loaded =
                        self.memory.load(access, indices, dst, &mut self.ints, &mut self.floats);
                    loaded.map_err(|fault| self.fault(access, fault, at - 1))?;
                }
                Instr::Store { src, access } => {
                    let indices = program.indices(access);
                    let stored = self.memory.store(access, indices, src, &self.ints, &self.floats);
                    stored.map_err(|fault| self.fault(access, fault, at - 1))?;
                }
                Instr::Launch => self.memory.launch(),
                Instr::NextBlock => self.memory.next_block(),
                Instr::Fork { .. } => return Ok(Stop::Fork(at - 1)),
                Instr::Join => return Ok(Stop::End),
                Instr::Barrier => return Ok(Stop::Barrier(at)),
                Instr::Alloc { buffer } => {
                    let described = &self.program.buffers[buffer as usize];
                    self.memory.alloc(self.cx, buffer, described, &self.dims, self.budget)?;
                }
                _ => {
                    if !self.compute(instr) {
                        let stmt = self.stmt(at - 1);
                        return Err(ProgramError::DivisionByZero { stmt });
                    }
                }
            }
        }
        Ok(Stop::End)
    }

    /// Runs an instruction that only works on registers; false for a division by zero.
    #[inline]
    fn compute(&mut self, instr: Instr) -> bool {
        match instr {
            Instr::Int { op, ty, dst, a, b, lanes } => return self.int(op, ty, dst, a, b, lanes),
            Instr::Float { op, ty, dst, a, b, lanes } => self.float(op, ty, dst, a, b, lanes),
            Instr::Compare { op, dst, a, b, lanes } => {
                for lane in 0..lanes as usize {
                    let (x, y) = (self.floats[a as usize + lane], self.floats[b as usize + lane]);
                    self.ints[dst as usize + lane] = compare(op, x, y) as i64;
                }
            }
            Instr::Bits { op, ty, dst, a, b, lanes } => {
                for lane in 0..lanes as usize {
                    let (x, y) = (self.ints[a as usize + lane], self.ints[b as usize + lane]);
                    self.ints[dst as usize + lane] = bit_op(op, ty, x, y);
                }
            }
            Instr::Select { is_float, is_vector, dst, cond, operands, lanes } => {
                for lane in 0..lanes as usize {
                    let cond = self.ints[cond as usize + if is_vector { lane } else { 0 }];
                    let from = operands[(cond == 0) as usize] as usize + lane;
                    match is_float {
                        true => self.floats[dst as usize + lane] = self.floats[from],
                        false => self.ints[dst as usize + lane] = self.ints[from],
                    }
                }
            }
            Instr::Cast { from, to, dst, a, lanes } => self.cast(from, to, dst, a, lanes),
            Instr::Reinterpret { from, to, dst, a, lanes } => {
                for lane in 0..lanes as usize {
                    let (at, to_at) = (a as usize + lane, dst as usize + lane);
                    let bits = match from.is_float() {
                        true => float_bits(from, self.floats[at]),
                        false => self.ints[at],
                    };
                    match to.is_float() {
                        true => self.floats[to_at] = float_of_bits(to, bits),
                        false => self.ints[to_at] = wrap(to, bits),
                    }
                }
            }
            Instr::Math { function, ty, dst, a, lanes } => {
                for lane in 0..lanes as usize {
                    let value = math(function, self.floats[a as usize + lane]);
                    self.floats[dst as usize + lane] = round(ty, value);
                }
            }
            Instr::Math2 { function, ty, dst, a, b, lanes } => {
                for lane in 0..lanes as usize {
                    let (x, y) = (self.floats[a as usize + lane], self.floats[b as usize + lane]);
                    self.floats[dst as usize + lane] = round(ty, math2(function, x, y));
                }
            }
            Instr::Fma { ty, dst, operands, lanes } => {
                for lane in 0..lanes as usize {
                    let [x, y, z] = operands.map(|reg| self.floats[reg as usize + lane]);
                    // Of 16-bit floats it is that of f32, rounded a second time.
                    let value = match ty {
                        DType::F64 => x.mul_add(y, z),
                        _ => f64::from((x as f32).mul_add(y as f32, z as f32)),
                    };
                    self.floats[dst as usize + lane] = round(ty, value);
                }
            }
            Instr::Ramp { ty, dst, base, stride, lanes } => {
                let (base, stride) = (self.ints[base as usize], self.ints[stride as usize]);
                for lane in 0..lanes as i64 {
                    let value = base.wrapping_add(stride.wrapping_mul(lane));
                    self.ints[dst as usize + lane as usize] = wrap(ty, value);
                }
            }
            Instr::BroadcastInt { dst, a, lanes } => {
                let value = self.ints[a as usize];
                self.ints[dst as usize..][..lanes as usize].fill(value);
            }
            Instr::BroadcastFloat { dst, a, lanes } => {
                let value = self.floats[a as usize];
                self.floats[dst as usize..][..lanes as usize].fill(value);
            }
            // Control and memory are dealt with by `run`.
            Instr::Launch
            | Instr::NextBlock
            | Instr::Fork { .. }
            | Instr::Join
            | Instr::Barrier
            | Instr::Jump { .. }
            | Instr::JumpUnless { .. }
            | Instr::Loop { .. }
            | Instr::Next { .. }
            | Instr::Alloc { .. }
            | Instr::Load { .. }
            | Instr::Store { .. } => {}
        }
        true
    }

    #[inline]
    fn int(&mut self, op: BinaryOp, ty: DType, dst: Reg, a: Reg, b: Reg, lanes: u16) -> bool {
        for lane in 0..lanes as usize {
            let (x, y) = (self.ints[a as usize + lane], self.ints[b as usize + lane]);
            match int_op(op, ty, x, y) {
                Some(value) => self.ints[dst as usize + lane] = value,
                None => return false,
            }
        }
        true
    }

    #[inline]
    fn float(&mut self, op: BinaryOp, ty: DType, dst: Reg, a: Reg, b: Reg, lanes: u16) {
        if lanes == 1 {
            let value = float_op(op, self.floats[a as usize], self.floats[b as usize]);
            self.floats[dst as usize] = round(ty, value);
            return;
        }
        // Results lie behind their operands.
        let (before, out) = self.floats.split_at_mut(dst as usize);
        let out = &mut out[..lanes as usize];
        let pairs = before[a as usize..].iter().zip(&before[b as usize..]);
        match (op, ty) {
            (BinaryOp::Add, DType::F32) => {
                out.iter_mut().zip(pairs).for_each(|(out, (x, y))| *out = (x + y) as f32 as f64);
            }
            (BinaryOp::Mul, DType::F32) => {
                out.iter_mut().zip(pairs).for_each(|(out, (x, y))| *out = (x * y) as f32 as f64);
            }
            _ => {
                let value = |x: f64, y: f64| round(ty, float_op(op, x, y));
                out.iter_mut().zip(pairs).for_each(|(out, (&x, &y))| *out = value(x, y));
            }
        }
    }

    fn cast(&mut self, from: DType, to: DType, dst: Reg, a: Reg, lanes: u16) {
        for lane in 0..lanes as usize {
            let (at, to_at) = (a as usize + lane, dst as usize + lane);
            match (from.is_float(), to.is_float()) {
                (true, true) => self.floats[to_at] = round(to, self.floats[at]),
                (true, false) => self.ints[to_at] = float_to_int(to, self.floats[at]),
                (false, false) => self.ints[to_at] = wrap(to, self.ints[at]),
                (false, true) if from == DType::U64 => {
                    self.floats[to_at] = round(to, self.ints[at] as u64 as f64);
                }
                // Rounding twice could differ for an f32 from a large i64.
                (false, true) if to == DType::F32 => {
                    self.floats[to_at] = self.ints[at] as f32 as f64;
                }
                (false, true) => self.floats[to_at] = round(to, self.ints[at] as f64),
            }
        }
    }

    pub(super) fn stmt(&self, at: usize) -> String {
        let origin = self.program.origins.get(at).copied().unwrap_or(0);
        match self.program.stmts.get(origin as usize) {
            None => "the program".to_owned(),
            Some(stmt) if stmt.name.0 == 0 => format!("{} at node {}", stmt.what, stmt.node),
            Some(stmt) => {
                let name = self.cx.terms().str(stmt.name);
                format!("{} `{name}` at node {}", stmt.what, stmt.node)
            }
        }
    }

    /// What to say of an access that failed.
    fn fault(&self, access: Access, fault: Fault, at: usize) -> ProgramError {
        let Fault { lane, mistake } = fault;
        let name = self.program.buffers[access.buffer as usize].name;
        let buffer = self.cx.terms().str(name).to_owned();
        let indices = self.program.indices(access);
        let index: Vec<i64> = indices
            .iter()
            .map(|index| self.ints[index.reg as usize + if index.is_vector { lane } else { 0 }])
            .collect();
        let stmt = self.stmt(at);
        match mistake {
            Some(Mistake::Race(who)) => return ProgramError::Race { buffer, index, who, stmt },
            Some(Mistake::Unwritten) => return ProgramError::Unwritten { buffer, index, stmt },
            None => {}
        }
        let shape = self.memory.shape(access.buffer).to_vec();
        let is_inside = index.len() == shape.len()
            && index.iter().zip(&shape).all(|(index, dim)| (0..*dim).contains(index));
        match is_inside && self.memory.is_shared(access.buffer) {
            true => ProgramError::ReadOnly(buffer),
            false => ProgramError::OutOfBounds { buffer, index, shape, stmt },
        }
    }
}

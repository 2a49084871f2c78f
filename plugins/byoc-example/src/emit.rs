//! Machine code of element-wise programs, by Cranelift: four elements at a time, then one at a time.

use std::fmt::Display;

use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32, I64, Type};
use cranelift_codegen::ir::{AbiParam, ConstantData, InstBuilder, MemFlagsData, Value};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, DataId, Linkage, Module, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use tenon_plugin_api::prelude::{PassError, Result};

use crate::program::{Binary, Program, Step, Unary};

/// Elements of a vector.
const LANES: i64 = 4;

/// Bytes of an element.
const BYTES: i64 = 4;

/// A relocatable object that defines a function for each program.
pub(crate) fn object(programs: &[(&str, Program)]) -> Result<Vec<u8>> {
    let mut flags = settings::builder();
    // The object becomes part of a shared library.
    let set = [("is_pic", "true"), ("opt_level", "speed")];
    for (name, value) in set {
        flags.set(name, value).map_err(failed)?;
    }
    let isa = cranelift_native::builder()
        .map_err(failed)?
        .finish(settings::Flags::new(flags))
        .map_err(failed)?;
    let builder = ObjectBuilder::new(isa, "example", default_libcall_names()).map_err(failed)?;
    let mut module = ObjectModule::new(builder);
    for (name, program) in programs {
        define(&mut module, name, program)
            .map_err(|error| PassError::new(format!("{name}: {error}")))?;
    }
    module.finish().emit().map_err(failed)
}

fn failed(error: impl Display) -> PassError {
    PassError::new(error.to_string())
}

fn define(module: &mut ObjectModule, name: &str, program: &Program) -> Result<()> {
    let pointer = module.target_config().pointer_type();
    let mut signature = module.make_signature();
    // The tensors, then scratch memory and threads, of which it needs neither.
    let params = program.inputs + program.results.len() + 2;
    signature.params.extend(std::iter::repeat_n(AbiParam::new(pointer), params));
    signature.returns.push(AbiParam::new(I32));
    let id = module.declare_function(name, Linkage::Export, &signature).map_err(failed)?;
    let constants = constants(module, name, program)?;
    let mut context = Context::new();
    context.func.signature = signature;
    let mut scratch = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let tensors = builder.block_params(entry).to_vec();
    let constants = constants
        .into_iter()
        .map(|data| {
            let data = module.declare_data_in_func(data?, builder.func);
            Some(builder.ins().symbol_value(pointer, data))
        })
        .collect();
    let mut work = Work { builder, program, tensors, constants };
    let mut lens: Vec<i64> = program.results.iter().map(|&result| program.lens[result]).collect();
    lens.sort_unstable();
    lens.dedup();
    for len in lens {
        let whole = len / LANES * LANES;
        work.loop_over(0, whole, F32X4, len);
        work.loop_over(whole, len, F32, len);
    }
    let done = work.builder.ins().iconst(I32, 0);
    work.builder.ins().return_(&[done]);
    work.builder.seal_all_blocks();
    work.builder.finalize(module.target_config());
    module
        .define_function(id, &mut context)
        .map_err(|error| PassError::new(format!("{error:?}")))?;
    Ok(())
}

/// The data of the constants of more than one element, by the numbers of the steps.
fn constants(
    module: &mut ObjectModule,
    name: &str,
    program: &Program,
) -> Result<Vec<Option<DataId>>> {
    let mut define = |(number, step): (usize, &Step)| {
        let Step::Constant(values) = step else { return Ok(None) };
        if values.len() == 1 {
            return Ok(None);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut data = DataDescription::new();
        data.define(bytes.into_boxed_slice());
        data.set_align(16);
        let name = format!("{name}.{number}");
        let id = module.declare_data(&name, Linkage::Local, false, false).map_err(failed)?;
        module.define_data(id, &data).map_err(failed)?;
        Ok(Some(id))
    };
    program.steps.iter().enumerate().map(&mut define).collect()
}

struct Work<'f, 'p> {
    builder: FunctionBuilder<'f>,
    program: &'p Program,
    tensors: Vec<Value>,
    /// Addresses of constants, by the numbers of their steps.
    constants: Vec<Option<Value>>,
}

impl Work<'_, '_> {
    /// Computes elements `from..to` of the results of `len` elements, in steps of the lanes of `ty`.
    fn loop_over(&mut self, from: i64, to: i64, ty: Type, len: i64) {
        if from == to {
            return;
        }
        let ins = &mut self.builder;
        let (head, after) = (ins.create_block(), ins.create_block());
        ins.append_block_param(head, I64);
        let start = ins.ins().iconst(I64, from * BYTES);
        ins.ins().jump(head, &[start.into()]);
        ins.switch_to_block(head);
        let offset = ins.block_params(head)[0];
        self.elements(offset, ty, len);
        let ins = &mut self.builder;
        let next = ins.ins().iadd_imm_s(offset, i64::from(ty.lane_count()) * BYTES);
        let more = ins.ins().icmp_imm_s(IntCC::SignedLessThan, next, to * BYTES);
        ins.ins().brif(more, head, &[next.into()], after, &[]);
        ins.switch_to_block(after);
    }

    /// The elements at one offset of the results of `len` elements.
    fn elements(&mut self, offset: Value, ty: Type, len: i64) {
        let mut values: Vec<Option<Value>> = vec![None; self.program.steps.len()];
        for number in 0..self.program.steps.len() {
            // What is of another length belongs to another loop, unless it is repeated.
            let own = self.program.lens[number];
            if own == len || own == 1 {
                values[number] = self.step(number, &values, offset, ty);
            }
        }
        let results = self.program.results.iter().enumerate();
        for (index, &result) in results.filter(|(_, result)| self.program.lens[**result] == len) {
            let tensor = self.tensors[self.program.inputs + index];
            let address = self.builder.ins().iadd(tensor, offset);
            let value = values[result].expect("a result was computed");
            self.builder.ins().store(MemFlagsData::trusted(), value, address, 0);
        }
    }

    fn step(
        &mut self,
        number: usize,
        values: &[Option<Value>],
        offset: Value,
        ty: Type,
    ) -> Option<Value> {
        let is_single = self.program.lens[number] == 1;
        let step = &self.program.steps[number];
        let address = match step {
            Step::Input(index) => Some(self.tensors[*index]),
            Step::Constant(_) => self.constants[number],
            _ => None,
        };
        let ins = &mut self.builder;
        Some(match (step, address) {
            (_, Some(address)) if is_single => {
                let value = ins.ins().load(F32, MemFlagsData::trusted(), address, 0);
                splat(ins, value, ty)
            }
            (_, Some(address)) => {
                let address = ins.ins().iadd(address, offset);
                ins.ins().load(ty, MemFlagsData::trusted(), address, 0)
            }
            (Step::Constant(single), None) => {
                let value = ins.ins().f32const(*single.first()?);
                splat(ins, value, ty)
            }
            (&Step::Unary(op, a), _) => {
                let a = values[a]?;
                match op {
                    Unary::Negative => ins.ins().fneg(a),
                    Unary::Abs => ins.ins().fabs(a),
                    Unary::Sqrt => ins.ins().sqrt(a),
                    Unary::Relu => {
                        let zero = zero(ins, ty);
                        ins.ins().fmax(a, zero)
                    }
                }
            }
            (&Step::Binary(op, a, b), _) => {
                let (a, b) = (values[a]?, values[b]?);
                match op {
                    Binary::Add => ins.ins().fadd(a, b),
                    Binary::Subtract => ins.ins().fsub(a, b),
                    Binary::Multiply => ins.ins().fmul(a, b),
                    Binary::Divide => ins.ins().fdiv(a, b),
                    Binary::Maximum => ins.ins().fmax(a, b),
                    Binary::Minimum => ins.ins().fmin(a, b),
                }
            }
            (Step::Input(_), None) => return None,
        })
    }
}

fn splat(ins: &mut FunctionBuilder<'_>, value: Value, ty: Type) -> Value {
    if ty == F32 { value } else { ins.ins().splat(ty, value) }
}

fn zero(ins: &mut FunctionBuilder<'_>, ty: Type) -> Value {
    if ty == F32 {
        return ins.ins().f32const(0.0);
    }
    let zero = ins.func.dfg.constants.insert(ConstantData::from(&[0u8; 16][..]));
    ins.ins().vconst(ty, zero)
}

//! The memory of a model that is run, and a run in it.

use std::ffi::c_void;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Model, ModelError, Run};
use crate::{
    arena::Arena,
    dlpack::{Argument, DataType, RawTensor, TensorBuffer, TensorRef},
    parallel::ThreadPool,
    signature::TensorSpec,
    status::{Failure, read_status},
};

/// A flag that nobody sets.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The memory of a model that is run. `M` is how it has the model: borrowed, or shared as an `Arc`.
#[derive(Debug)]
pub struct RunContext<M> {
    model: M,
    workspace: TensorBuffer,
    pub(super) outputs: Vec<TensorBuffer>,
    /// Whether sizes are the same for all inputs.
    is_static: bool,
    /// Room for the extents of all outputs, which a run writes where it finds them.
    extents: Vec<i64>,
    /// What functions take memory from while they run.
    arena: Arena,
}

impl<M: Deref<Target = Model>> RunContext<M> {
    /// Memory to run `model` in; see [`Model::context`].
    pub fn new(model: M) -> Result<RunContext<M>, ModelError> {
        let size = model.signature.workspace_size;
        let most = size.or(model.signature.most_workspace);
        let length = i64::try_from(most.unwrap_or(0)).unwrap_or(i64::MAX);
        let workspace = TensorBuffer::zeros(&[length], DataType::U8)?;
        let are_known = model.outputs().iter().all(TensorSpec::is_static);
        // What becomes longer where it is has another shape before.
        let is_static = size.is_some() && are_known && model.signature.grows.is_empty();
        let outputs = model.empty_outputs()?;
        let extents = vec![0; model.outputs().iter().map(|spec| spec.shape.len()).sum()];
        let arena = Arena::default();
        Ok(RunContext { model, workspace, outputs, is_static, extents, arena })
    }

    /// Bounds the bytes of memory that runs may have: of the workspace, and of what they take while they run. A run that needs more
    /// fails. There is no bound at first.
    pub fn set_memory_limit(&mut self, bytes: Option<u64>) {
        self.arena.set_limit(bytes);
    }

    /// The most bytes that the last run had at once, of the workspace and of what it took while it ran.
    pub fn most_memory(&self) -> u64 {
        self.workspace.bytes().len() as u64 + self.arena.most_taken()
    }

    /// Runs the model; the outputs stand until the next run. Without a pool it uses one thread.
    pub fn run(
        &mut self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
    ) -> Result<&[TensorBuffer], ModelError> {
        self.run_with(inputs, pool, &NEVER)?;
        Ok(&self.outputs)
    }

    /// Runs the model until somebody sets a flag. Between programs, and in each trip of a loop, the code looks at it; the outputs
    /// are then what had been written. One of a library that was compiled before there were flags is looked at once.
    ///
    /// # Errors
    /// [`ModelError::Cancelled`] when it was set.
    pub fn run_until(
        &mut self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
        cancelled: &AtomicBool,
    ) -> Result<&[TensorBuffer], ModelError> {
        self.run_with(inputs, pool, cancelled)?;
        Ok(&self.outputs)
    }

    /// Runs the model with inputs that it updates in place: `state` has one buffer for each pair of the signature's
    /// [`in_place`](crate::signature::Signature::in_place), in their order, and `inputs` the others. Of outputs that are updated
    /// inputs nothing is written anywhere else. One of [`grows`](crate::signature::Signature::grows) has room along its axis
    /// ([`TensorBuffer::with_room`]), and is longer afterwards; if the call fails, it has the shape that it had.
    pub fn run_in_place(
        &mut self,
        inputs: &[TensorRef<'_>],
        state: &mut [TensorBuffer],
        pool: Option<&ThreadPool>,
    ) -> Result<&[TensorBuffer], ModelError> {
        self.run_in_place_until(inputs, state, pool, &NEVER)
    }

    /// The same until somebody sets a flag, as [`RunContext::run_until`] does. What is updated may then be so in part.
    ///
    /// # Errors
    /// [`ModelError::Cancelled`] when it was set.
    pub fn run_in_place_until(
        &mut self,
        inputs: &[TensorRef<'_>],
        state: &mut [TensorBuffer],
        pool: Option<&ThreadPool>,
        cancelled: &AtomicBool,
    ) -> Result<&[TensorBuffer], ModelError> {
        let pairs = self.model.signature.in_place.clone();
        if state.len() != pairs.len() {
            let updated = pairs.iter().map(|pair| self.model.inputs()[pair[0]].clone());
            return Err(ModelError::State { found: state.len(), updated: updated.collect() });
        }
        for (&[_, output], buffer) in pairs.iter().zip(&mut *state) {
            std::mem::swap(&mut self.outputs[output], buffer);
        }
        let before: Vec<Vec<i64>> =
            pairs.iter().map(|&[_, output]| self.outputs[output].shape().to_vec()).collect();
        let mut result = self.check_rooms();
        if result.is_ok() {
            result = self.run_from(inputs, (&pairs, &before), pool, cancelled);
        }
        for ((&[_, output], buffer), before) in pairs.iter().zip(state).zip(&before) {
            std::mem::swap(&mut self.outputs[output], buffer);
            if result.is_err() && buffer.room().is_some() {
                buffer.resize(before).expect("it had this shape before");
            }
        }
        result.map(|()| &self.outputs[..])
    }

    /// That there is room in what becomes longer where it is.
    fn check_rooms(&self) -> Result<(), ModelError> {
        for &[input, output, axis] in &self.model.signature.grows {
            if self.outputs[output].room().is_none_or(|(found, _)| found != axis) {
                let spec = self.model.inputs()[input].clone();
                return Err(ModelError::NoRoom { spec, axis });
            }
        }
        Ok(())
    }

    /// All inputs in order, where those of `pairs` are outputs.
    fn with_state<'r>(
        &'r self,
        inputs: &[TensorRef<'r>],
        pairs: &[[usize; 2]],
    ) -> Vec<TensorRef<'r>> {
        if pairs.is_empty() {
            return inputs.to_vec();
        }
        let mut given = inputs.iter().copied();
        let count = self.model.inputs().len();
        let of = |index| pairs.iter().find(|pair| pair[0] == index);
        let input = |index| match of(index) {
            Some(&[_, output]) => Some(self.outputs[output].as_ref()),
            None => given.next(),
        };
        let all: Vec<TensorRef<'r>> = (0..count).map_while(input).collect();
        // One too many is counted as such.
        all.into_iter().chain(given).collect()
    }

    fn run_with(
        &mut self,
        inputs: &[TensorRef<'_>],
        pool: Option<&ThreadPool>,
        cancelled: &AtomicBool,
    ) -> Result<(), ModelError> {
        self.run_from(inputs, (&[], &[]), pool, cancelled)
    }

    /// Runs it with pairs of inputs and outputs that are one, and the shapes of these before.
    fn run_from(
        &mut self,
        inputs: &[TensorRef<'_>],
        (pairs, before): (&[[usize; 2]], &[Vec<i64>]),
        pool: Option<&ThreadPool>,
        cancelled: &AtomicBool,
    ) -> Result<(), ModelError> {
        let given = self.with_state(inputs, pairs);
        self.model.check(&given)?;
        // They lead to what is borrowed, and to outputs that stay where they are.
        let raw_of = |given: &[TensorRef<'_>]| -> Vec<RawTensor> {
            given.iter().map(|input| input.as_argument().raw()).collect()
        };
        let mut raw = raw_of(&given);
        if !self.is_static {
            self.resize(&raw, inputs, pairs)?;
            raw = raw_of(&self.with_state(inputs, pairs));
            for (&[input, _], before) in pairs.iter().zip(before) {
                raw[input].shape = before.as_ptr().cast_mut();
            }
        }
        let model = &*self.model;
        for &output in &model.signature.taken {
            let empty = model.empty_output(output)?;
            self.arena.keep(std::mem::replace(&mut self.outputs[output], empty));
        }
        self.arena.begin(self.workspace.bytes().len() as u64).map_err(ModelError::Limit)?;
        let table = self.arena.table();
        let mut outputs: Vec<Argument<'_>> = Vec::with_capacity(self.outputs.len());
        let mut rest = &mut self.extents[..];
        for output in &mut self.outputs {
            let (extents, behind) = rest.split_at_mut(output.shape().len());
            extents.copy_from_slice(output.shape());
            outputs.push(output.as_argument_with(extents));
            rest = behind;
        }
        let parallel = pool.map_or(std::ptr::null(), |pool| std::ptr::from_ref(pool.raw()));
        let (places, workspace) = (outputs.as_mut_ptr().cast(), self.workspace.bytes_mut());
        let workspace = workspace.as_mut_ptr().cast();
        // SAFETY: inputs and outputs are as many as the function has, of its types and shapes (`check` and `context` saw to that);
        // `Argument` is laid out as `DLTensor`. Outputs and workspace are ours, of the size and alignment that the function wants,
        // but for outputs that are inputs, in pairs that it allows. Pool, flag and arena are borrowed, and the flag is read atomically.
        let status = unsafe {
            match self.model.functions.run {
                Run::Until(run) => {
                    let flag = cancelled.as_ptr().cast_const().cast();
                    run(raw.as_ptr(), places, workspace, parallel, flag)
                }
                Run::In(run) => {
                    let flag = cancelled.as_ptr().cast_const().cast();
                    run(raw.as_ptr(), places, workspace, parallel, flag, &raw const table)
                }
                Run::Plain(_) if cancelled.load(Ordering::Relaxed) => Failure::Cancelled as i32,
                Run::Plain(run) => run(raw.as_ptr(), places, workspace, parallel),
            }
        };
        if status == 0 {
            let places: Vec<(usize, *mut c_void)> =
                model.signature.taken.iter().map(|&at| (at, outputs[at].raw().data)).collect();
            drop(outputs);
            self.take_outputs_from_arena(&places)?;
        }
        match read_status(status) {
            None if self.model.signature.found.is_empty() => Ok(()),
            None => self.shape_outputs(),
            Some((Some(Failure::Cancelled), _)) => Err(ModelError::Cancelled),
            Some((Some(Failure::Limit), _)) if self.arena.refused().is_some() => {
                Err(self.arena.refused().map_or(ModelError::Cancelled, ModelError::Limit))
            }
            Some(failure) => Err(self.failed(status, failure, inputs, pairs)),
        }
    }

    /// Makes buffers of the outputs that the function took, by their numbers and addresses.
    fn take_outputs_from_arena(
        &mut self,
        places: &[(usize, *mut c_void)],
    ) -> Result<(), ModelError> {
        for &(at, data) in places {
            let first = self.outputs[..at].iter().map(|output| output.shape().len()).sum::<usize>();
            let rank = self.outputs[at].shape().len();
            let shape = &self.extents[first..first + rank];
            let dtype = self.outputs[at].dtype();
            let Some(memory) = self.arena.taken_at(data) else {
                return Err(ModelError::Failed("an output is no memory that it took".to_owned()));
            };
            self.outputs[at] = memory.with_shape(shape, dtype)?;
        }
        Ok(())
    }

    fn failed(
        &self,
        status: i32,
        failure: (Option<Failure>, Option<usize>),
        inputs: &[TensorRef<'_>],
        pairs: &[[usize; 2]],
    ) -> ModelError {
        let given = self.with_state(inputs, pairs);
        let shapes: Vec<&[i64]> = given.iter().map(TensorRef::shape).collect();
        ModelError::Failed(self.describe(status, failure, &shapes))
    }

    /// Makes outputs and workspace as large as these inputs want them.
    fn resize(
        &mut self,
        raw: &[RawTensor],
        inputs: &[TensorRef<'_>],
        pairs: &[[usize; 2]],
    ) -> Result<(), ModelError> {
        let Some(sizes) = self.model.functions.sizes else {
            return Err(ModelError::Failed("it does not say how large its outputs are".to_owned()));
        };
        let mut bytes = 0;
        // SAFETY: as many inputs as the function has; `extents` has room for those of all outputs.
        let status = unsafe { sizes(raw.as_ptr(), self.extents.as_mut_ptr(), &raw mut bytes) };
        if let Some(failure) = read_status(status) {
            return Err(self.failed(status, failure, inputs, pairs));
        }
        let length = self.workspace.shape().first().copied().unwrap_or(0);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if bytes > length {
            self.workspace.resize(&[bytes])?;
        }
        self.shape_outputs()
    }

    /// Gives the outputs their extents, but for those that have none before they are taken.
    fn shape_outputs(&mut self) -> Result<(), ModelError> {
        let mut rest = &self.extents[..];
        for output in &mut self.outputs {
            let (shape, behind) = rest.split_at(output.shape().len());
            if shape.iter().all(|&extent| extent >= 0) {
                output.resize(shape)?;
            }
            rest = behind;
        }
        Ok(())
    }

    /// The outputs of the last run, for who keeps them; the next run has others.
    pub fn take_outputs(&mut self) -> Result<Vec<TensorBuffer>, ModelError> {
        let next = self.model.empty_outputs()?;
        Ok(std::mem::replace(&mut self.outputs, next))
    }

    /// Bytes of the workspace that it has.
    pub fn workspace_size(&self) -> usize {
        self.workspace.bytes().len()
    }

    /// The outputs of the last run.
    pub fn outputs(&self) -> &[TensorBuffer] {
        &self.outputs
    }

    fn describe(
        &self,
        status: i32,
        (failure, argument): (Option<Failure>, Option<usize>),
        shapes: &[&[i64]],
    ) -> String {
        let what = failure.map_or("a failure of an external function", Failure::text);
        if failure.is_some_and(Failure::is_of_check) {
            let check = argument.and_then(|number| self.model.signature.checks.get(number));
            let check = check.map_or(String::new(), |check| {
                format!(": {check}{}", self.model.symbols_in(check, shapes))
            });
            return format!("{what}{check} (status {status})");
        }
        let all = self.model.inputs().iter().chain(self.model.outputs());
        let shape = argument.and_then(|index| shapes.get(index));
        match (argument.and_then(|index| all.clone().nth(index)), shape) {
            (Some(spec), Some(shape)) => {
                format!("{what} ({spec}, and {shape:?} is given; status {status})")
            }
            (Some(spec), None) => format!("{what} ({spec}, status {status})"),
            (None, _) => format!("{what} (status {status})"),
        }
    }
}

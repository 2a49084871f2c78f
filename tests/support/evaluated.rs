//! Modules by the reference evaluator, for suites that compare compiled code with it.

use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::ir::Module;

/// The tensors that `main` gives.
pub(crate) fn evaluated(module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let arguments = inputs.iter().cloned().map(Value::Tensor).collect();
    let result =
        Evaluator::new(module).call("main", arguments).map_err(|error| error.to_string())?;
    Ok(match &result {
        Value::Tuple(tuple) => tuple.fields().iter().filter_map(Value::to_tensor).collect(),
        other => other.to_tensor().into_iter().collect(),
    })
}

//! The names of what the host's own run-time executes.

/// Name of the call of a tensor program whose results are new tensors.
pub const CALL_TIR: &str = "call_tir";
/// Name of the call of a tensor program whose result is one new dimension.
pub const CALL_SCALAR: &str = "call_scalar";
/// Name of the call of a function, a closure or something external that promises to have no effect.
pub const CALL_PURE: &str = "call_pure";
/// The attribute of a function that names the parameters, shapes of one extent, that callers from outside give as a number
/// and not as a list of one.
pub const SCALARS: &str = "scalars";
/// Name of the operator that calls a function again and again.
pub const LOOP: &str = "loop";
/// Name of the operator that says what symbols stand for.
pub const BIND_DIMS: &str = "bind_dims";
/// Name of the operator that makes a closure.
pub const MAKE_CLOSURE: &str = "make_closure";
/// Name of the operator that makes a tensor.
pub const ALLOC_TENSOR: &str = "builtin.alloc_tensor";
/// Name of the operator that makes a storage.
pub const MEMORY_ALLOC_STORAGE: &str = "memory.alloc_storage";
/// Name of the operator that makes a tensor in a storage.
pub const MEMORY_ALLOC_TENSOR: &str = "memory.alloc_tensor";
/// Name of the operator that looks at a tensor as one of another shape.
pub const MEMORY_VIEW: &str = "memory.view";
pub const MEMORY_PART: &str = "memory.part";
/// Name of the operator that ends the life of a tensor or storage.
pub const MEMORY_KILL: &str = "memory.kill";
/// Name of the operator that copies the elements of a tensor to another one.
pub const MEMORY_COPY: &str = "memory.copy";
/// Name of the operator that looks at a tensor as it lies in memory with room along an axis.
pub const MEMORY_ROOM: &str = "memory.room";
/// Ends the call where a truth value is false.
pub const EXPECT: &str = "expect";
/// Ends the call where extents are not what they must be.
pub const EXPECT_FIT: &str = "expect_fit";
/// Class of the object that a storage is.
pub const STORAGE_CLASS: &str = "storage";
/// Class of the object that an external function is as an argument.
pub const EXTERN_CLASS: &str = "extern";

/// Of a module that is ready to be executed with shapes that are known at run time.
pub mod vm {
    /// Name of the operator that makes a storage of a size that is a value.
    pub const ALLOC_STORAGE: &str = "vm.alloc_storage";
    /// Name of the operator that makes a tensor in a storage, of a shape that is a value.
    pub const ALLOC_TENSOR: &str = "vm.alloc_tensor";
    /// Name of the operator that looks at a tensor as one of another shape, which is a value.
    pub const VIEW: &str = "vm.view";
    /// Name of the operator that ends the life of a tensor or storage.
    pub const KILL_OBJECT: &str = "vm.kill_object";
    /// Name of the operator that makes a closure.
    pub const MAKE_CLOSURE: &str = "vm.make_closure";
    /// Name of the call of a closure.
    pub const INVOKE_CLOSURE: &str = "vm.invoke_closure";
    /// Name of the operator that makes the heap of a function's dimensions.
    pub const ALLOC_SHAPE_HEAP: &str = "vm.alloc_shape_heap";
    /// Name of the operator that compares a shape with what was declared, and reads dimensions off it.
    pub const MATCH_SHAPE: &str = "vm.match_shape";
    /// Name of the operator that makes a shape of integers and dimensions on the heap.
    pub const MAKE_SHAPE: &str = "vm.make_shape";
    /// Name of the operator that gives the shape of a tensor.
    pub const SHAPE_OF: &str = "vm.shape_of";
    /// Name of the operator that makes a tensor of a shape.
    pub const SHAPE_TO_TENSOR: &str = "vm.shape_to_tensor";
    /// Name of the operator that makes a shape of a tensor.
    pub const TENSOR_TO_SHAPE: &str = "vm.tensor_to_shape";
    /// Name of the operator that reads a dimension.
    pub const LOAD_DIM: &str = "vm.load_dim";

    /// The attribute of a graph function that matches the shapes of its parameters itself.
    pub const MATCHES_PARAMETERS: &str = "matches_parameters";
}

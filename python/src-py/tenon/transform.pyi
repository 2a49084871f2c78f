"""The passes of all plugins of the package, by their names. Made by python/make_stubs.py."""

from typing import Any

from ._context import PassContext as PassContext
from ._passes import Pass as Pass
from ._passes import PassInfo as PassInfo
from ._passes import Sequential as Sequential
from ._passes import function_pass as function_pass
from ._passes import module_pass as module_pass
from ._passes import prim_func_pass as prim_func_pass

def pass_(name: str, **options: Any) -> Pass:
    """The pass of this name or alias, with options."""

def AdjustMatmulOrder() -> Pass:
    """Associates products of three matrices the way that takes fewer multiplications."""

def AlterOpImpl(*, kernels: list[str] = [], layouts: list[str] = []) -> Pass:
    """Puts other tensor programs into the place of those that compute an operator.

    Args:
        kernels: `operator = function`: what computes it instead
        layouts: `function: NCHW->NCHW8c, -, NCHW8c->NCHW`: what is done to each argument and result, `-` for nothing
    """

def AlterOpLayout() -> Pass:
    """Gives convolutions and products the blocked layouts of the target's vector units."""

def AnnotateOpPattern() -> Pass:
    """Says of a tensor program how it may be fused."""

def AppendInPlace() -> Pass:
    """Has results that are parameters with something behind them lie where the parameters do."""

def ApplyDatabase(*, tune_db: str = '') -> Pass:
    """Tells tensor programs how what was measured says that they run best.

    Args:
        tune_db: the file with what was measured
    """

def ApplySchedules(*, explain_schedules: bool = False) -> Pass:
    """Schedules tensor programs by what is known of them.

    Args:
        explain_schedules: also say which rules were asked and did not match, and why: the attribute `declined` of a program
    """

def AttachGlobalSymbol() -> Pass:
    """Gives public functions their link names."""

def BackwardFoldScaleAxis() -> Pass:
    """Moves constant scales of channels backward into the weights in front of them."""

def BindParams(*, params: list[str] = [], function: str = 'main') -> Pass:
    """Makes constants of parameters.

    Args:
        params: values by names of parameters: `w=0.5`, `w=[1, 2]`, `w=@weights.0`
        function: the function whose parameters they are
    """

def BindSymbolicVars(*, vars: list[str] = [], function: str = '') -> Pass:
    """Gives symbolic dimensions their values.

    Args:
        vars: values of symbols, each as `n=8`
        function: the function to look at; all graph functions where it is empty
    """

def BindThreads() -> Pass:
    """Puts the threads of a device around all that they run, and barriers between."""

def CallTIRRewrite() -> Pass:
    """Makes the memory of results explicit."""

def CanonicalizeBindings() -> Pass:
    """Removes bindings that only rename, and projections of known tuples."""

def CanonicalizeCast() -> Pass:
    """Gives each reader of a value that is cast to a wider type a cast of its own."""

def CanonicalizeOps() -> Pass:
    """Writes special operators by plain ones."""

def CombineParallelConv2D(*, min_branches: int = 3, max_width: int = 0) -> Pass:
    """Computes convolutions that share their data as one convolution.

    Args:
        min_branches: fewest convolutions that are combined
        max_width: most filters of a combined convolution; 0 for any number
    """

def CombineParallelDense(*, min_branches: int = 3, max_width: int = 0) -> Pass:
    """Computes dense layers that share their data as one layer.

    Args:
        min_branches: fewest layers that are combined
        max_width: most outputs of a combined layer; 0 for any number
    """

def CombineParallelMatmul(*, min_branches: int = 2, max_width: int = 0) -> Pass:
    """Computes matrix products that share their left argument as one product.

    Args:
        min_branches: fewest products that are combined
        max_width: most columns of a combined product; 0 for any number
    """

def CompactBuffers() -> Pass:
    """Makes buffers where they are used, and no larger than that."""

def ComputePrimValue() -> Pass:
    """Has tensor programs compute the dimensions that are passed on as values."""

def ConvertLayout(*, desired_layouts: list[str] = []) -> Pass:
    """Gives convolutions another layout, and carries along what stands around them.

    Args:
        desired_layouts: operators with the layouts that calls of them are to have, as in "nn.conv2d NHWC OHWI"; of others their own rules say
    """

def ConvertToDots() -> Pass:
    """Computes products and convolutions of bytes by dot products, where the processor has instructions for them."""

def ConvertToFloats() -> Pass:
    """Computes products and convolutions of bytes with constants in floats, where these hold their sums."""

def ConvertToShortDots(*, precision: str = '') -> Pass:
    """Computes products and convolutions with constants in bf16 by dot products, where these are fast.

    Args:
        precision: the floats that are asked for the whole compilation: with bf16 products are computed so
    """

def ConvertToWinograd(*, precision: str = '') -> Pass:
    """Computes convolutions of 3x3 taps by Winograd's algorithm, where that is faster.

    Args:
        precision: the floats that are asked for the whole compilation: with bf16 plain convolutions take half the time where there are fast dot products of these
    """

def DeadCodeElimination() -> Pass:
    """Removes bindings that nothing reads."""

def DecomposeOpsForTraining(*, func_name: str = '') -> Pass:
    """Replaces what training computes in another way than inference, such as statistics of batches.

    Args:
        func_name: the function; all of them when empty
    """

def EliminateCommonSubexpr(*, call_only: bool = False, skip: list[str] = []) -> Pass:
    """Computes what is written twice once.

    Args:
        call_only: merge calls alone, no projections
        skip: operators whose calls are left alone
    """

def EstimateCost() -> Pass:
    """Says how much arithmetic each function does, and how many bytes its calls read and write."""

def EtaExpand() -> Pass:
    """Wraps functions that are values in closures that call them."""

def ExpandMatmulOfSum() -> Pass:
    """Multiplies with the parts of a sum rather than with the sum."""

def ExtractBinding(*, var: str = '', function: str = 'main', ignore: list[str] = []) -> Pass:
    """Has a function return one of its bindings.

    Args:
        var: the variable to return; nothing is done where it is empty
        function: the function that binds it
        ignore: variables that become parameters
    """

def FastMath() -> Pass:
    """Replaces arithmetic by cheaper arithmetic that rounds differently."""

def FlattenBuffer() -> Pass:
    """Makes every access one-dimensional."""

def FoldConstant(*, max_growth: int = 4, max_fill: int = 1073741824) -> Pass:
    """Evaluates calls whose arguments are all known at compile time.

    Args:
        max_growth: largest ratio of the size of a result to that of its arguments
        max_fill: largest size in bytes of a result of shapes alone
    """

def FoldScaleAxis() -> Pass:
    """Moves constant scales of channels into weights: first backward, then forward."""

def ForwardFoldScaleAxis() -> Pass:
    """Moves constant scales of channels forward into the weights behind them."""

def FuseLoops() -> Pass:
    """Makes one loop of loops over neighbouring elements."""

def FuseOps(*, max_depth: int = 256) -> Pass:
    """Groups calls of tensor programs that are worth one program.

    Args:
        max_depth: most calls in one group
    """

def FuseOpsByPattern(*, patterns: list[str] = [], vendors: list[str] = [], bind_constants: bool = True, annotate_codegen: bool = False) -> Pass:
    """Makes functions of what a code generator's patterns match.

    Args:
        patterns: `vendor.name = pattern`, in the order in which they are tried
        vendors: code generators whose own patterns are tried after those
        bind_constants: whether constants stand in the functions
        annotate_codegen: whether each becomes a function of its code generator's
    """

def FuseTIR() -> Pass:
    """Makes one tensor program of each group of calls."""

def Gradient(*, func_name: str = 'main', require_grads: list[str] = [], target_index: int = 0) -> Pass:
    """Adds the function that computes a loss and its gradient.

    Args:
        func_name: the function that computes the loss
        require_grads: the parameters to differentiate by; all when empty
        target_index: which field of the result is the loss, where it is a tuple
    """

def InferType() -> Pass:
    """Infers the results of private functions anew."""

def InlinePrivateFunctions(*, max_copied: int = 1000000) -> Pass:
    """Puts private functions in the place of their calls.

    Args:
        max_copied: nodes that copies add at most
    """

def InplaceUpdate() -> Pass:
    """Has programs write their results over arguments that nothing reads afterwards."""

def KeepConstantLayout() -> Pass:
    """Has products read a constant as it lies, where something else does so too."""

def KeepQuantizedConvolutions() -> Pass:
    """Has convolutions of bytes on a scale compute in integers."""

def KeepQuantizedMoves() -> Pass:
    """Has bytes on a scale stay bytes where they are only moved."""

def KeepQuantizedWeights(*, weights: str = '') -> Pass:
    """Has products read constant weights as the integers that they are stored as.

    Args:
        weights: what constant floats become: int8 or int4, behind a colon the elements that share a scale
    """

def KillAfterLastUse() -> Pass:
    """Says of tensors and storages when they are not used any more."""

def LambdaLift() -> Pass:
    """Makes functions of the module of those that stand within another."""

def LegalizeOps(*, skip: list[str] = []) -> Pass:
    """Turns operator calls into calls of tensor programs.

    Args:
        skip: operators that are left alone
    """

def LiftTransformParams() -> Pass:
    """Moves what depends on weights alone into a function of its own, which runs once."""

def LivenessAnalysis() -> Pass:
    """Says how much memory the values of each function take."""

def LowerAllocTensor() -> Pass:
    """Gives each tensor that has no place yet a storage of its own."""

def LowerBlocks() -> Pass:
    """Turns blocks into plain statements."""

def LowerExternalCalls() -> Pass:
    """Makes tensor programs of calls of external functions."""

def LowerIntrinsics() -> Pass:
    """Replaces `exp`, `log` and their like by arithmetic."""

def MarkTasks() -> Pass:
    """Says of tensor programs what they are known by in a database."""

def MemorySchedule() -> Pass:
    """Orders bindings so that less memory is alive at a time."""

def MergeCompositeFunctions() -> Pass:
    """Makes one function of calls that one code generator can compute together."""

def MergeFunctions() -> Pass:
    """Merges tensor programs that differ in nothing but the names of their symbols."""

def MultiplyByReciprocal() -> Pass:
    """Multiplies by the reciprocal of a scale where numbers are divided by it and rounded to bytes."""

def MutateSchedule() -> Pass:
    """Puts a schedule that differs in one decision in the place of a program's own."""

def Normalize() -> Pass:
    """Brings functions into block form, in which every call is bound to a variable."""

def NormalizeGlobalVar() -> Pass:
    """Gives functions the names that they are linked by."""

def Parallelize(*, min_work: int = 32768, min_tasks: int = 64) -> Pass:
    """Spreads the outermost independent loops over the threads.

    Args:
        min_work: loops of less work stay serial
        min_tasks: loops are joined up to so many steps
    """

def PlaceParts() -> Pass:
    """Has parts of tensors lie where the whole lies."""

def RealizeVDevice() -> Pass:
    """Has values lie where their function runs, as what they are said to lie on."""

def Rematerialization(*, memory_budget: int = 0) -> Pass:
    """Computes values again rather than keeping them, so that a function stays within a budget of memory.

    Args:
        memory_budget: bytes that may be alive at a time; 0 is no limit
    """

def RemoveNoOp() -> Pass:
    """Removes statements that change nothing that is read."""

def RemovePurityChecking() -> Pass:
    """Turns calls that promise to have no effect into plain calls."""

def RemoveUnusedFunctions() -> Pass:
    """Removes private functions that nothing reaches."""

def RemoveUnusedOutputs() -> Pass:
    """Removes results of private functions that nothing reads."""

def RemoveUnusedParameters() -> Pass:
    """Removes parameters of private functions that nothing reads."""

def ReorderPermuteDimsAfterConcat() -> Pass:
    """Transposes a concatenation once rather than each of its parts."""

def ReorderTakeAfterMatmul() -> Pass:
    """Takes columns of a product rather than of its right argument."""

def ReturnIntermediates(*, function: str = 'main') -> Pass:
    """Has a function return what its calls give, behind its results.

    Args:
        function: the function
    """

def RewriteDataflowReshape() -> Pass:
    """Makes reshapes of tensor programs that only copy elements in their order."""

def RunCodegen() -> Pass:
    """Has code generators compile the functions that are theirs."""

def Schedule(*, trace: str = '', program: str = '', seed: int = 0) -> Pass:
    """Applies a trace of schedule primitives to tensor programs.

    Args:
        trace: the instructions
        program: the program that is scheduled; empty for all
        seed: by which numbers decisions are drawn that the trace leaves open
    """

def Simplify() -> Pass:
    """Simplifies arithmetic, conditions and statements."""

def SimplifyExpr() -> Pass:
    """Applies algebraic rules: neutral elements, inverses, chains of casts, reshapes and transposes."""

def SimplifyInference(*, skip: list[str] = []) -> Pass:
    """Replaces normalizations and dropout by what is left of them at inference.

    Args:
        skip: operators that are left alone
    """

def SplitCallTIRByPattern(*, patterns: list[str] = []) -> Pass:
    """Gives the leading part of a tensor program to a program of a library's.

    Args:
        patterns: `pattern = program`: what computes the leading part of a program that does what the pattern does
    """

def StaticPlanBlockMemory() -> Pass:
    """Puts tensors into one storage, at offsets that tensors alive at the same time do not share."""

def TabulateBytes() -> Pass:
    """Looks up what is computed of one byte and becomes a byte again."""

def ToGraphNormalForm() -> Pass:
    """Turns functions into graphs, without bindings."""

def ToMixedPrecision(*, dtype: str = 'f16', precision: str = '', out_dtype: str = 'f32', narrow_params: list[str] = [], always: list[str] = [], follow: list[str] = [], never: list[str] = []) -> Pass:
    """Computes in f16 or bf16 what gains by it, and keeps the rest in f32.

    Args:
        dtype: the narrow element type; f32 leaves all as it is
        precision: the narrow element type where it is asked for the whole compilation, as `tenon compile --precision` does
        out_dtype: element type of products: f32 or the narrow one
        narrow_params: names of parameters that become narrow
        always: operators that are computed narrow
        follow: operators that are computed as their arguments are
        never: operators that are computed in f32
    """

def ToNonDataflow() -> Pass:
    """Turns dataflow blocks into plain ones."""

def TunePrograms(*, tune_db: str = '', trials: int = 64, seconds: int = 0, threads: int = 0, random: bool = False, seed: int = 0, only: list[str] = []) -> Pass:
    """Has schedules of tensor programs measured, and tells the programs which are the fastest.

    Args:
        tune_db: the file in which what is measured is kept; what stands there already is taken up
        trials: schedules that are measured, of all programs together
        seconds: seconds that are measured at most; 0 is without a limit
        threads: threads that work on a run; 0 is one for each core
        random: measure what is drawn, rather than what rules predict to be fast
        seed: another one draws other candidates
        only: the programs alone that are known by these keys
    """

def UnrollLoop(*, max_extent: int = 64, max_nodes: int = 1000000, auto_extent: int = 0) -> Pass:
    """Replaces unrolled loops by one copy of their body for each step.

    Args:
        max_extent: loops of more steps become serial
        max_nodes: the program does not grow beyond
        auto_extent: innermost serial loops of at most so many steps are unrolled as well
    """

def UpdateVDevice(*, to: str = '') -> Pass:
    """Has what is said to lie on one device lie on another.

    Args:
        to: the device that is to be said, such as "cuda:1"
    """

def VMBuiltinLower() -> Pass:
    """Turns operators on memory, closures and shapes into what an executor does."""

def VMShapeLower() -> Pass:
    """Keeps the dimensions of a function on a heap, which its arguments' shapes fill at run time."""

def VectorizeInnermost() -> Pass:
    """Vectorizes loops over neighbouring elements."""

def VectorizeLoop(*, lanes: int = 0) -> Pass:
    """Turns vectorized loops into vector code.

    Args:
        lanes: steps of one vector; 0 for what the target's registers hold
    """

def VectorizeReduction(*, lanes: int = 0, reassociate: bool = True) -> Pass:
    """Sums along rows in vectors, one part of the sum in each lane.

    Args:
        lanes: parts of a sum; 0 for what the target's registers hold
        reassociate: floats may be added in another order, where the target does not keep it
    """

def WidenConvolutions() -> Pass:
    """Computes convolutions of f16, and of bf16 where no instruction does, in f32."""

def WidenData() -> Pass:
    """Computes products of f16, and of bf16 that no instruction multiplies, of data in f32."""

def __getattr__(name: str) -> Any: ...

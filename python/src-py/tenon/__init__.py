"""Tenon: a tensor compiler whose every transformation is a plugin.

>>> import numpy as np, tenon
>>> double = tenon.compile("fn @main(%x: f32[n]) -> f32[n] {\\n  %y = add(%x, %x)\\n  ret %y\\n}")
>>> double(np.array([1, 2, 3], np.float32))
array([2., 4., 6.], dtype=float32)
"""

from . import cluster, instrument, torch, transform
from ._compile import compile, load
from ._context import PassContext
from ._core import Array, Flag, __version__
from ._errors import (
    CompileError,
    Error,
    ModelError,
    PassError,
    PipelineError,
    RunError,
    TenonWarning,
)
from ._executable import Benchmark, Executable, KernelTime, Profile, State, TensorSpec
from ._extend import Operator, ProgramOf, Rule, Site, op, rule
from ._ir import ExprMutator, ExprVisitor, FunctionBuilder, Node, nodes
from ._module import Function, Module, from_onnx, parse, read
from ._passes import (
    Pass,
    PassInfo,
    Sequential,
    function_pass,
    module_pass,
    prim_func_pass,
)
from ._schedule import Handle, Schedule
from ._session import Session
from ._tune import Tuned, TunedTask, tune

__all__ = [
    "Array",
    "Benchmark",
    "CompileError",
    "Error",
    "Executable",
    "ExprMutator",
    "ExprVisitor",
    "Flag",
    "Function",
    "FunctionBuilder",
    "Handle",
    "KernelTime",
    "ModelError",
    "Module",
    "Node",
    "Operator",
    "Pass",
    "PassContext",
    "PassError",
    "PassInfo",
    "PipelineError",
    "Profile",
    "ProgramOf",
    "Rule",
    "RunError",
    "Schedule",
    "Sequential",
    "Session",
    "Site",
    "State",
    "TenonWarning",
    "TensorSpec",
    "Tuned",
    "TunedTask",
    "__version__",
    "cluster",
    "compile",
    "from_onnx",
    "function_pass",
    "instrument",
    "load",
    "module_pass",
    "nodes",
    "op",
    "parse",
    "prim_func_pass",
    "read",
    "rule",
    "torch",
    "transform",
    "tune",
]

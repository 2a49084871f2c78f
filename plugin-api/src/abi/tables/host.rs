//! What the host offers: reading and editing the IR, and its services.

use std::ffi::c_void;

use abi_stable::std_types::{RSlice, RStr};

use super::super::layout::table;
use super::super::records::{RawAttribute, RawBody, RawNode, RawTensor, RawTermTable};
use super::{Item, RawEdit, RawFunction, RawModule, RawRun};
table! {
    /// Reads and edits the IR.
    HostIr = "tenon_host_ir" "tenon.host.ir/1" {
        /// Adds an owner of the run's state, which outlives the run for as long as it has one. [any thread]
        fn run_retain(run: *const RawRun) -> ();
        /// Takes an owner away. [any thread]
        fn run_release(run: *const RawRun) -> ();
        /// The term table, borrowed for as long as the run has an owner. [any thread]
        fn terms(run: *const RawRun) -> *const RawTermTable;
        /// The one term of this kind, payload and children; not for strings. [any thread]
        fn intern(
            run: *const RawRun,
            kind: u16,
            flags: u16,
            bits: u64,
            children: RSlice<'_, u32>,
        ) -> u32;
        /// The one string of these bytes; 0 for what is not UTF-8, and then the pass fails. [any thread]
        fn symbol(run: *const RawRun, text: RStr<'_>) -> u32;

        /// Adds an owner of a function. [any thread]
        fn function_retain(function: *const RawFunction) -> ();
        /// Takes an owner away. [any thread]
        fn function_release(function: *const RawFunction) -> ();
        /// Writes the first `room` bytes of the function's body, and into its `size` how many those were.
        /// The arrays are borrowed for as long as the function has an owner. [any thread]
        fn function_body(function: *const RawFunction, body: *mut RawBody, room: usize) -> ();

        /// Starts a transaction, owned by the caller: of `base`, or from nothing when it is null. Null and
        /// `last_error` when `base` belongs to another run's terms. [any thread]
        fn edit(run: *const RawRun, base: *const RawFunction) -> *mut RawEdit;
        /// Gives a transaction up. [one thread]
        fn abandon(transaction: *mut RawEdit) -> ();
        /// The body as it stands, borrowed until the transaction ends. The record stays where it is; what it
        /// says, and where its arrays are, is renewed by every edit. [one thread]
        fn transaction_body(transaction: *mut RawEdit) -> *const RawBody;
        /// Adds a node, of which `size` bytes are given; its `start` and `len` are not read. Its type is
        /// inferred when it is 0. Returns its number; 0xffffffff and `last_error` when it refers to what is
        /// not there, and then `finish` fails. [one thread]
        fn push(
            transaction: *mut RawEdit,
            node: *const RawNode,
            size: usize,
            operands: RSlice<'_, u32>,
        ) -> u32;
        /// Adds a constant of a static tensor type, copying its bytes. Returns its node; 0xffffffff and
        /// `last_error` when they do not fit the type. [one thread]
        fn constant(transaction: *mut RawEdit, ty: u32, bytes: RSlice<'_, u8>) -> u32;
        /// Adds constant `index` of `function`, sharing its bytes. Returns its node; 0xffffffff and
        /// `last_error` when there is none. [one thread]
        fn share_constant(
            transaction: *mut RawEdit,
            function: *const RawFunction,
            index: u32,
        ) -> u32;
        /// Makes every use of `node` by nodes of the base read `replacement`. When either is not there
        /// `finish` fails. [one thread]
        fn replace(transaction: *mut RawEdit, node: u32, replacement: u32) -> ();
        /// Sets the root. When it is not there `finish` fails. [one thread]
        fn set_root(transaction: *mut RawEdit, root: u32) -> ();
        /// Sets the type of a node; 0 has it inferred again. When either is not there `finish` fails.
        /// [one thread]
        fn set_type(transaction: *mut RawEdit, node: u32, ty: u32) -> ();
        /// Publishes and ends the transaction. Returns a function that the caller owns, the base itself when
        /// nothing was changed; null and `last_error` when it is not whole. [one thread]
        fn finish(transaction: *mut RawEdit) -> *const RawFunction;

        /// Writes the names of a module's functions in order, `room` at most, and returns how many functions
        /// there are. [any thread]
        fn module_names(module: *const RawModule, names: *mut u32, room: usize) -> usize;
        /// The function called `name`, owned by the caller; null when there is none. [any thread]
        fn module_get(module: *const RawModule, name: u32) -> *const RawFunction;
        /// The module's attributes, a dictionary term. [any thread]
        fn module_attrs(module: *const RawModule) -> u32;
        /// A copy of the module that shares its functions, owned by the caller. [any thread]
        fn module_clone(module: *const RawModule) -> *mut RawModule;
        /// Gives a module up. [one thread]
        fn module_release(module: *mut RawModule) -> ();
        /// Sets a function, which the module becomes another owner of. False when `name` is no name or the
        /// function belongs to another run's terms. [one thread]
        fn module_insert(module: *mut RawModule, name: u32, function: *const RawFunction) -> bool;
        /// Removes a function. [one thread]
        fn module_remove(module: *mut RawModule, name: u32) -> ();
        /// Sets the module's attributes. False when there is no such term. [one thread]
        fn module_set_attrs(module: *mut RawModule, attrs: u32) -> bool;
    }
}

table! {
    /// What the host does for a pass.
    HostServices = "tenon_host_services" "tenon.host.services/1" {
        /// The pass's options, a dictionary term with defaults filled in. [any thread]
        fn options(run: *const RawRun) -> u32;
        /// The target, a dictionary term; docs/targets.md lists its keys. [any thread]
        fn target(run: *const RawRun) -> u32;
        /// Reports a message: 1 error, 2 warning, 3 note, 4 trace. [any thread]
        fn report(run: *const RawRun, level: u32, text: RStr<'_>) -> ();
        /// Whether the pass should stop. [any thread]
        fn is_cancelled(run: *const RawRun) -> bool;
        /// Says that the pass fails, and why; the text is copied. `failure`: 1 an error, 2 a panic, 3 it was
        /// cancelled, 4 to 8 a problem of tenon.host.import/1. `node`: the node of the pass's unit that it is about, 0xffffffff for none. The first
        /// call counts, and the pass has failed whatever it returns. [any thread]
        fn fail(run: *const RawRun, failure: u32, text: RStr<'_>, node: u32) -> ();
        /// Why the last call of this thread failed, borrowed until its next call that fails; empty when none
        /// has. [any thread]
        fn last_error(run: *const RawRun) -> RStr<'static>;
        /// What is known of an operator: bit 0 known, bit 1 pure, bits 8.. the fusion pattern. Bit 2 says of a pure one
        /// that its result may stand for memory of its arguments, of another one that it writes none. [any thread]
        fn op_info(run: *const RawRun, name: u32) -> u32;
        /// Evaluates a node whose operands are constants, by the reference evaluator, and adds the result to
        /// the transaction. Returns its node; 0xffffffff and `last_error` when it cannot. [one thread]
        fn evaluate(run: *const RawRun, transaction: *mut RawEdit, node: u32) -> u32;
        /// The tensor program of an operator call: of an operator's name, attributes, argument types and a
        /// result type. It is private, and owned by the caller; null and `last_error` when there is none.
        /// [any thread]
        fn legalize(
            run: *const RawRun,
            op: u32,
            attrs: u32,
            args: RSlice<'_, u32>,
            result: u32,
        ) -> *const RawFunction;
    }
    since "1.1" {
        /// Calls `item` with `state` for every index below `count`, each once, in any order and on any threads, this one
        /// among them, and returns when all calls have. A call may ask for more of this itself, and everything that is for
        /// any thread; it holds no lock while it does. It does not unwind. False and `last_error` when there is nothing
        /// to call. [any thread]
        fn parallel_for(
            run: *const RawRun,
            count: u64,
            item: Option<Item>,
            state: *mut c_void,
        ) -> bool;
        /// As `fail`, about `node` of a program that the pass made: it is what the message shows. `function` stays the
        /// caller's. [any thread]
        fn fail_in(
            run: *const RawRun,
            failure: u32,
            text: RStr<'_>,
            function: *const RawFunction,
            node: u32,
        ) -> ();
        /// What the code of a function is for, a dictionary term as `target` gives: what the function says itself, or what the module
        /// is compiled for. 0 when that is not known. [any thread]
        fn target_of(run: *const RawRun, function: *const RawFunction) -> u32;
        /// As `legalize`, where `target` is what the program is for, a dictionary term or 0. [any thread]
        fn legalize_for(
            run: *const RawRun,
            op: u32,
            attrs: u32,
            args: RSlice<'_, u32>,
            result: u32,
            target: u32,
        ) -> *const RawFunction;
        /// Has schedules of the tensor programs of `module` measured that say in the attribute `task` what they are known by, and what
        /// is found appended to a file. `how` and the answer are dictionary terms; docs/tuning.md lists their keys. 0 when the module
        /// is that of a candidate, for which nothing is measured; 0xffffffff and `last_error` when that failed, also when the pass
        /// should stop. It returns when all is measured. [any thread]
        fn measure_schedules(run: *const RawRun, module: *const RawModule, how: u32) -> u32;
    }
}

table! {
    /// What the host does for code generators, and for the passes that share a module out among them.
    HostCodegen = "tenon_host_codegen" "tenon.host.codegen/1" {
        /// The patterns of what a code generator takes, a list term of strings `name = pattern`; 0 and
        /// `last_error` when there is none of this name. [any thread]
        fn patterns(run: *const RawRun, generator: u32) -> u32;
        /// Whether a code generator takes a graph function that one of its patterns matched: 1 when it does, 0
        /// when not; 0xffffffff and `last_error` when it cannot be asked. [any thread]
        fn accepts(run: *const RawRun, generator: u32, function: *const RawFunction) -> u32;
        /// Has a code generator compile functions `names` of `module`. Writes into `programs`, which has room
        /// for as many, for each the tensor program that calls its code, private and owned by the caller.
        /// False and `last_error` when that failed; then nothing is written. [any thread]
        fn generate(
            run: *const RawRun,
            generator: u32,
            module: *const RawModule,
            names: RSlice<'_, u32>,
            programs: *mut *const RawFunction,
        ) -> bool;
        /// Takes what a code generator made, a relocatable object, copying its bytes. The last call counts.
        /// [any thread]
        fn object(run: *const RawRun, bytes: RSlice<'_, u8>) -> ();
    }
}

table! {
    /// What the host does for operators. Unstable until operators are frozen.
    HostOps = "tenon_host_op" "tenon.host.op/1" {
        /// The attributes of a call of operator `op`, a symbol, with the defaults of those that are not given, a
        /// dictionary term; 0xffffffff and `last_error` when there is no such operator. [any thread]
        fn attributes(run: *const RawRun, op: u32, attrs: u32) -> u32;
        /// Adds an owner of a tensor's bytes, which then outlive the call. [any thread]
        fn retain(owner: *const c_void) -> ();
        /// Takes an owner away. [any thread]
        fn release(owner: *const c_void) -> ();
        /// Memory for tensor `index` of the result, as many bytes as its type and shape say, all zero; the host's. Null
        /// and `last_error` when there is no such tensor. [one thread]
        fn result(run: *const RawRun, index: u32) -> *mut u8;
        /// Says that tensor `index` of the result has the bytes of argument `arg`. False and `last_error` when one of
        /// them is not there or the lengths differ. [one thread]
        fn share(run: *const RawRun, index: u32, arg: u32) -> bool;
        /// Hands over `len` bytes at `data` as tensor `index` of the result. They stay where they are and as they are
        /// until the host tells `release` of the operator's plugin of `owner`, once, also when this fails. False and
        /// `last_error` when there is no such tensor or the length is wrong. [one thread]
        fn give(
            run: *const RawRun,
            index: u32,
            data: *const u8,
            len: u64,
            owner: *mut c_void,
        ) -> bool;
    }
    since "1.1" {
        /// Says what type inference takes for granted of two dimensions, which only a call can refute: that `extent` is `wanted`, or
        /// with `may_be_one` that or 1. What is compiled checks it. [one thread]
        fn take_to_fit(run: *const RawRun, extent: u32, wanted: u32, may_be_one: bool) -> ();
    }
}

table! {
    /// What the host does for rules, and for those who ask for them. Unstable until operators are frozen.
    HostRules = "tenon_host_rule" "tenon.host.rule/1" {
        /// The rules of a facet for a key, both symbols, in a version: a number that `ask` takes in the same run, 0 when there
        /// are none; 0xffffffff and `last_error` when they cannot be used. [any thread]
        fn find(run: *const RawRun, facet: u32, key: u32, version: u64) -> u32;
        /// Asks rules that `find` found, the best one first, until one answers. 1 when one did, 0 when all declined;
        /// 0xffffffff and `last_error` when one failed. [one thread]
        fn ask(
            run: *const RawRun,
            rules: u32,
            transaction: *mut RawEdit,
            nodes: RSlice<'_, u32>,
            data: u32,
        ) -> u32;
        /// The nodes that this thread was answered last, borrowed until it asks again. 0xffffffff stands for none.
        /// [any thread]
        fn answered_nodes(run: *const RawRun) -> RSlice<'static, u32>;
        /// The data that this thread was answered last, a term. [any thread]
        fn answered_data(run: *const RawRun) -> u32;
        /// Answers what a rule was asked: nodes, 0xffffffff for none, and data, a term. The last call counts. False and
        /// `last_error` when there is no such term. [one thread]
        fn answer(run: *const RawRun, nodes: RSlice<'_, u32>, data: u32) -> bool;
        /// What a node of a transaction stands for: the value of a variable, through variables bound to variables, with
        /// the replacements made so far. A variable whose value reads memory that somebody may write stands for itself.
        /// 0xffffffff when there is no such node. [one thread]
        fn definition(transaction: *mut RawEdit, node: u32) -> u32;
        /// Whether a node reads memory that somebody may write, and is nested in what reads it: it may be evaluated
        /// earlier than that. [one thread]
        fn is_nested_read(transaction: *mut RawEdit, node: u32) -> bool;
    }
    since "1.1" {
        /// Says why the rule that is asked has no answer, in a sentence that names the rule. Whoever asks may look at it; the
        /// last call counts. [one thread]
        fn decline(run: *const RawRun, why: RStr<'_>) -> ();
        /// What the rules said that declined what this thread asked last, by its number from 0 on, borrowed until it asks
        /// again; empty behind the last one. [any thread]
        fn declined(run: *const RawRun, index: u32) -> RStr<'static>;
    }
}

table! {
    /// What the host does for a rule of the facet `import.onnx`, which is asked about a node of a model: without a
    /// transaction, about the values that the node reads, 0xffffffff for one that is left out. It answers with the values that
    /// the node makes. Values are numbers of the function that is built from the model. What fails has one of these problems,
    /// and so has a node of which the rule tells `fail`: 4 the model's format does not allow it, 5 it is not supported, 6 it
    /// reads what must be known when it is imported, 7 an operator does not take it, 8 a tensor of it cannot be read; 1 is a
    /// mistake of the rule's. All entries are for the thread that the rule is asked on, until it has answered. Unstable until
    /// operators are frozen.
    HostImport = "tenon_host_import" "tenon.host.import/1" {
        /// The version of the operators of its domain that the node is written in. [one thread]
        fn version(run: *const RawRun) -> u64;
        /// How many outputs the node has, those without a name counted. [one thread]
        fn output_count(run: *const RawRun) -> u32;
        /// Writes an attribute of the node; its kind is 0 when there is none of this name. What it leads to is borrowed until
        /// the rule has answered. An attribute that nobody has looked at is not supported. False and `last_error` when the
        /// name or the room is none. [one thread]
        fn attribute(run: *const RawRun, name: RStr<'_>, attribute: *mut RawAttribute) -> bool;
        /// The constant that a tensor among the attributes is, a value, which shares the bytes of the model. 0xffffffff and
        /// `last_error` when there is none, or it cannot be read. [one thread]
        fn attribute_tensor(run: *const RawRun, name: RStr<'_>) -> u32;
        /// The type of elements that the format has this number for; 0xffffffff and `last_error` when there is none.
        /// [one thread]
        fn element_type(run: *const RawRun, code: u32) -> u32;
        /// The type of a value; 0 and `last_error` when there is no such value. [one thread]
        fn value_type(run: *const RawRun, value: u32) -> u32;
        /// The elements of a value as dimensions, where they are known so: writes the first `room` of them, and returns how
        /// many there are. 0xffffffff when they are not known. [one thread]
        fn elements(run: *const RawRun, value: u32, elements: *mut u32, room: u32) -> u32;
        /// Writes the tensor that a value is, when it is a constant, borrowed until the next call of this entry; `retain` of
        /// tenon.host.op/1 makes an owner of its bytes. Null writes nothing. False when it is none. [one thread]
        fn tensor(run: *const RawRun, value: u32, tensor: *mut RawTensor) -> bool;
        /// Calls an operator with arguments, values, and attributes, a dictionary term. Returns the result, a value, whose
        /// type is inferred; 0xffffffff and `last_error` when the operator does not take them. [one thread]
        fn call(run: *const RawRun, op: RStr<'_>, args: RSlice<'_, u32>, attrs: u32) -> u32;
        /// A constant of a static tensor type, copying its bytes. 0xffffffff and `last_error` when they do not fit the type.
        /// [one thread]
        fn constant(run: *const RawRun, ty: u32, bytes: RSlice<'_, u8>) -> u32;
        /// The constant with the bytes of another one, which are not copied, and of another type. 0xffffffff and `last_error`
        /// when it is no constant, or they do not fit the type. [one thread]
        fn retyped(run: *const RawRun, value: u32, ty: u32) -> u32;
        /// A tensor of integers or truth values of a static type, whose elements are these dimensions. It gets into the
        /// function only where something reads it. 0xffffffff and `last_error` when they do not fit the type. [one thread]
        fn dimensions(run: *const RawRun, ty: u32, elements: RSlice<'_, u32>) -> u32;
        /// A shape of these dimensions; 0xffffffff and `last_error` when one is no dimension. [one thread]
        fn shape(run: *const RawRun, dims: RSlice<'_, u32>) -> u32;
        /// A tuple of these values; 0xffffffff and `last_error` when one is not there. [one thread]
        fn tuple(run: *const RawRun, fields: RSlice<'_, u32>) -> u32;
        /// Writes the fields of a tuple, `room` of them. False and `last_error` when it is no tuple of so many. [one thread]
        fn items(run: *const RawRun, tuple: u32, items: *mut u32, room: u32) -> bool;
        /// Takes so many bytes of what the constants that are computed for a model may take together; false when there is not
        /// so much left. [one thread]
        fn spend(run: *const RawRun, bytes: u64) -> bool;
        /// Which problem the last entry of this table that failed told; 1 when none has. [one thread]
        fn problem(run: *const RawRun) -> u32;
    }
    since "1.1" {
        /// How many axes the model says that an output of the node has, or 0 for as few as there can be; 0xffffffff where it
        /// says nothing. [one thread]
        fn output_rank(run: *const RawRun, output: u32) -> u32;
    }
}

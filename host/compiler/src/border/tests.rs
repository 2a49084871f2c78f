//! What a plugin hands over is looked at before it is believed.

use std::sync::Arc;

use abi_stable::std_types::{RSlice, RStr};
use tenon_plugin_api::abi::layout::Table;
use tenon_plugin_api::abi::read::readable;
use tenon_plugin_api::abi::records::{RawBody, RawNode};
use tenon_plugin_api::abi::tables::{HostIr, HostRef, HostServices, NONE, RawRun};
use tenon_plugin_api::ir::{Attrs, Kind};

use super::{Call, Run, host_ref};
use crate::ir::{Context, Module};

struct Border {
    call: Arc<Call>,
    host: HostRef,
    ir: Table<HostIr>,
    services: Table<HostServices>,
}

impl Border {
    fn new() -> Self {
        let run = Run::new(crate::testing::cx(), Attrs::NONE, Attrs::NONE, Arc::default());
        let call = Arc::new(Call::new(Arc::new(run)));
        let host = host_ref(&call);
        // SAFETY: this host's tables.
        let table = |id| unsafe { (*(host.query)(RStr::from_str(id))).table };
        // SAFETY: as above.
        let ir = unsafe { Table::new(table("tenon.host.ir/1").cast()) };
        // SAFETY: as above.
        let services = unsafe { Table::new(table("tenon.host.services/1").cast()) };
        Self { call, host, ir: ir.expect("whole"), services: services.expect("whole") }
    }

    fn run(&self) -> *const RawRun {
        self.host.run
    }

    fn last_error(&self) -> String {
        // SAFETY: the run is alive.
        readable(unsafe { (self.services.last_error())(self.run()) })
    }
}

fn node(kind: Kind, data: u32) -> RawNode {
    RawNode { kind: kind.0, data, ..RawNode::default() }
}

/// Every refusal of a transaction that pushes this node, then finishes.
fn refused(node: RawNode, operands: &[u32]) -> [String; 2] {
    let border = Border::new();
    let (ir, operands) = (border.ir, RSlice::from_slice(operands));
    // SAFETY: the handles are this host's and alive.
    unsafe {
        let edit = ir.edit()(border.run(), std::ptr::null());
        assert_eq!(ir.push()(edit, &node, size_of::<RawNode>(), operands), NONE);
        let first = border.last_error();
        assert!(ir.finish()(edit).is_null());
        [first, border.last_error()]
    }
}

#[test]
fn a_node_that_refers_to_what_is_not_there_is_refused_and_so_is_the_function() {
    let operand = "a call has the operand 0, which is not there";
    assert_eq!(refused(node(Kind::CALL, 0), &[0]), [operand, operand]);
    let payload = "a variable has the payload 4000000000, which is not there";
    assert_eq!(refused(node(Kind::VAR, 4_000_000_000), &[]), [payload, payload]);
    let constant = "a constant has the constant 3, which is not there";
    assert_eq!(refused(node(Kind::CONSTANT, 3), &[]), [constant, constant]);
    let scope = RawNode { aux: 77, ..node(Kind::BUFFER, 0) };
    let second = "a buffer has the second payload 77, which is not there";
    assert_eq!(refused(scope, &[]), [second, second]);
    for wrong in [RawNode { ty: 9, ..scope }, RawNode { attrs: 9, ..node(Kind::TUPLE, 0) }] {
        assert!(refused(wrong, &[])[0].ends_with(" 9, which is not there"));
    }
}

#[test]
fn a_node_without_the_parts_of_its_kind_is_refused_when_the_function_is_published() {
    let border = Border::new();
    let ir = border.ir;
    let name = border.call.run.cx.symbol("x").0;
    // SAFETY: the handles are this host's and alive.
    unsafe {
        let edit = ir.edit()(border.run(), std::ptr::null());
        let push = |node: RawNode, operands: &[u32]| {
            ir.push()(edit, &node, size_of::<RawNode>(), RSlice::from_slice(operands))
        };
        let var = push(node(Kind::VAR, name), &[]);
        let item = push(node(Kind::TUPLE_GET_ITEM, 0), &[var, var]);
        let function = push(node(Kind::FUNCTION, 0), &[var, item]);
        ir.set_root()(edit, function);
        assert!(ir.finish()(edit).is_null());
    }
    assert_eq!(border.last_error(), "a tuple item without the operands or payload of its kind");
}

#[test]
fn replacing_typing_or_rooting_what_is_not_there_fails_when_the_function_is_published() {
    let border = Border::new();
    let ir = border.ir;
    // SAFETY: the handles are this host's and alive.
    unsafe {
        type Edit = *mut tenon_plugin_api::abi::tables::RawEdit;
        let wrongs: [(&dyn Fn(Edit), &str); 3] = [
            (&|edit| ir.replace()(edit, 1, 2), "node 1 or 2 is not in this body"),
            (&|edit| ir.set_root()(edit, 5), "the root 5 is not in this body"),
            (&|edit| ir.set_type()(edit, 6, 0), "node 6 or type 0 is not there"),
        ];
        for (wrong, message) in wrongs {
            let edit = ir.edit()(border.run(), std::ptr::null());
            wrong(edit);
            assert!(ir.finish()(edit).is_null());
            assert_eq!(border.last_error(), message);
        }
    }
}

#[test]
fn null_is_answered_like_something_that_is_not_there() {
    let Border { ir, services, .. } = Border::new();
    let (run, edit, module) = (std::ptr::null(), std::ptr::null_mut(), std::ptr::null_mut());
    let no_ids = RSlice::from_slice(&[]);
    let mut body = RawBody::EMPTY;
    // SAFETY: that null is taken is what is tested.
    unsafe {
        ir.run_retain()(run);
        ir.run_release()(run);
        assert!(ir.terms()(run).is_null());
        assert_eq!(ir.intern()(run, 1, 0, 0, no_ids), 0);
        assert_eq!(ir.symbol()(run, RStr::from_str("x")), 0);
        ir.function_retain()(std::ptr::null());
        ir.function_release()(std::ptr::null());
        ir.function_body()(std::ptr::null(), &mut body, size_of::<RawBody>());
        assert_eq!(body.node_count, 0);
        assert!(ir.edit()(run, std::ptr::null()).is_null());
        ir.abandon()(edit);
        assert!(ir.transaction_body()(edit).is_null());
        assert_eq!(ir.push()(edit, std::ptr::null(), 0, no_ids), NONE);
        assert_eq!(ir.constant()(edit, 0, RSlice::from_slice(&[])), NONE);
        assert_eq!(ir.share_constant()(edit, std::ptr::null(), 0), NONE);
        ir.replace()(edit, 0, 0);
        ir.set_root()(edit, 0);
        ir.set_type()(edit, 0, 0);
        assert!(ir.finish()(edit).is_null());
        assert_eq!(ir.module_names()(module, std::ptr::null_mut(), 9), 0);
        assert!(ir.module_get()(module, 0).is_null());
        assert_eq!(ir.module_attrs()(module), 0);
        assert!(ir.module_clone()(module).is_null());
        ir.module_release()(module);
        assert!(!ir.module_insert()(module, 0, std::ptr::null()));
        ir.module_remove()(module, 0);
        assert!(!ir.module_set_attrs()(module, 0));
        assert_eq!(services.options()(run), 0);
        assert_eq!(services.target()(run), 0);
        services.report()(run, 1, RStr::from_str("x"));
        assert!(!services.is_cancelled()(run));
        services.fail()(run, 1, RStr::from_str("x"), 0);
        assert!(services.last_error()(run).is_empty());
        assert_eq!(services.op_info()(run, 0), 0);
        assert_eq!(services.evaluate()(run, edit, 0), NONE);
        assert!(services.legalize()(run, 0, 0, no_ids, 0).is_null());
        let measure = services.measure_schedules().expect("this host has it");
        assert_eq!(measure(run, module, 0), NONE);
    }
}

/// A run that nobody has told of a program that measures.
#[test]
fn schedules_are_measured_for_who_knows_how_alone() {
    let border = Border::new();
    let module = Module::new(border.call.run.cx.clone());
    let measure = border.services.measure_schedules().expect("this host has it");
    let raw = std::ptr::from_ref(&module).cast();
    // SAFETY: the handles are this host's and alive.
    let answers = unsafe { [measure(border.run(), raw, 0), measure(border.run(), raw, 4_000_000)] };
    assert_eq!(answers, [NONE; 2]);
    assert_eq!(border.last_error(), "there is no term 4000000");
}

#[test]
fn an_empty_array_may_be_null() {
    let border = Border::new();
    let empty: RSlice<'_, u32> = {
        // SAFETY: that null is taken for an empty array is what is tested.
        unsafe { RSlice::from_raw_parts(std::ptr::null(), 0) }
    };
    // SAFETY: the run is alive.
    let list = unsafe { border.ir.intern()(border.run(), 5, 0, 0, empty) };
    assert_eq!(list, border.call.run.cx.list(&[]).0);
}

#[test]
fn a_short_body_is_written_as_far_as_there_is_room() {
    let text = "fn @main(%x: f32[4]) -> f32[4] {\n  ret test.double(%x)\n}\n";
    let source = crate::diagnostics::Source::new("small", text);
    let module =
        crate::text::parse_module(&crate::testing::cx(), &source, &mut crate::text::NoWeights);
    let module = module.expect("it parses");
    let (_, function) = module.iter().next().expect("there is one");
    let function = Arc::as_ptr(function).cast();
    let ir = Border::new().ir;
    let mut body = RawBody { reserved: 7, replaced_len: 7, ..RawBody::EMPTY };
    let room = std::mem::offset_of!(RawBody, replaced_len);
    // SAFETY: the function is alive.
    unsafe { ir.function_body()(function, &mut body, room) };
    assert_eq!((body.size as usize, body.replaced_len, body.reserved), (room, 7, 7));
    assert!(body.node_count > 0);
}

#[test]
fn handles_of_another_context_are_refused() {
    let text = "fn @main(%x: f32[4]) -> f32[4] {\n  ret test.double(%x)\n}\n";
    let source = crate::diagnostics::Source::new("small", text);
    let module =
        crate::text::parse_module(&crate::testing::cx(), &source, &mut crate::text::NoWeights);
    let module = module.expect("it parses");
    let (_, function) = module.iter().next().expect("there is one");
    let (ir, border) = (Border::new().ir, Border::new());
    // SAFETY: the handles are alive.
    unsafe {
        assert!(ir.edit()(border.run(), Arc::as_ptr(function).cast()).is_null());
        assert_eq!(border.last_error(), "the function belongs to another run's terms");
        let other = crate::ir::Module::new(border.call.run.cx.clone());
        let copy = ir.module_clone()(std::ptr::from_ref(&other).cast());
        let name = border.call.run.cx.symbol("f").0;
        assert!(!ir.module_insert()(copy, name, Arc::as_ptr(function).cast()));
        assert!(!ir.module_set_attrs()(copy, 1 << 30));
        ir.module_release()(copy);
    }
}

#[test]
fn the_first_failure_counts_and_errors_are_those_of_a_thread() {
    let border = Border::new();
    let text = RStr::from_str;
    // SAFETY: the run is alive.
    unsafe {
        border.services.fail()(border.run(), 3, text("first"), NONE);
        border.services.fail()(border.run(), 1, text("second"), 4);
    }
    let failure = border.call.failure().expect("it failed");
    assert_eq!(
        (failure.message.as_str(), failure.node, failure.is_cancelled),
        ("first", None, true)
    );
    border.call.set_error("of this thread");
    let call = &border.call;
    std::thread::scope(|scope| {
        scope.spawn(|| call.with_error(|error| assert_eq!(error, "")));
    });
    assert_eq!(border.last_error(), "of this thread");
}

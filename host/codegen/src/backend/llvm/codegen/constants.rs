//! Constants as arrays of a module: for formats of objects that [`crate::object::constants`] does not write.

use inkwell::{GlobalVisibility, context::Context, module::Module};

use super::scratch::ALIGN;

/// The module that holds the arrays. They are shared by the objects of one library and invisible outside.
pub fn build_constants<'cx>(cx: &'cx Context, constants: &[(&str, &[u8])]) -> Module<'cx> {
    let module = cx.create_module("constants");
    for (symbol, bytes) in constants {
        let value = cx.const_string(bytes, false);
        let global = module.add_global(value.get_type(), None, symbol);
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_alignment(ALIGN as u32);
        global.set_visibility(GlobalVisibility::Hidden);
    }
    module
}

//! The attributes of a node, with those of the function it stands in put in their place.

use std::collections::HashMap;

use crate::onnx::proto::{AttributeProto, AttributeValue, FunctionProto, NodeProto};

/// Attribute values by name.
pub(super) type Bound<'m> = HashMap<&'m str, &'m AttributeValue<'m>>;

/// The attributes of `node`, which stands in a function whose call gave `bound`. One that refers to an
/// attribute that the call left out is left out.
pub(super) fn resolve<'m>(
    node: &'m NodeProto<'m>,
    bound: &Bound<'m>,
) -> Vec<(&'m str, &'m AttributeValue<'m>)> {
    let resolve = |attribute: &'m AttributeProto<'m>| match attribute.value {
        AttributeValue::Reference(name, _) => bound.get(name).map(|&value| (attribute.name, value)),
        _ => Some((attribute.name, &attribute.value)),
    };
    node.attribute.iter().filter_map(resolve).collect()
}

/// What the attributes of `function` stand for in a call with these attributes.
pub(super) fn bind<'m>(
    function: &'m FunctionProto<'m>,
    given: &[(&'m str, &'m AttributeValue<'m>)],
) -> Bound<'m> {
    let defaults = function.attribute_default.iter();
    let mut bound: Bound<'m> = defaults.map(|default| (default.name, &default.value)).collect();
    bound.extend(given.iter().copied());
    bound
}

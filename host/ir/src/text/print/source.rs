//! What nodes came from, behind what stands on a line.

use std::fmt::Write;

use super::function::Printer;
use crate::text::names::write_quoted;
use crate::{Expr, Kind, NodeSource, SourcePart};

impl Printer<'_, '_> {
    /// What a node, or the variable that it is bound to, came from, where that is to be written.
    pub(super) fn source(&mut self, var: Option<Expr>, expr: Expr) {
        if !self.weights.has_sources() {
            return;
        }
        let own = [Some(expr), var].into_iter().flatten().filter(|&expr| {
            let kind = self.body.kind(expr);
            kind.has_source() || matches!(kind, Kind::VAR | Kind::PRIM_FUNC)
        });
        let source = own.map(|expr| self.body.source(expr)).find(|source| !source.is_none());
        self.write_source(source.unwrap_or_default());
    }

    fn write_source(&mut self, source: NodeSource) {
        let (parts, more) = source.parts(self.body.terms());
        let cx = self.function.cx();
        let mut between = " loc(";
        for part in parts {
            let (name, scope) = match part {
                SourcePart::Name { name, scope } => (name.to_owned(), scope),
                SourcePart::Place(at) => match cx.place_text(at) {
                    Some(place) => (place, ""),
                    None => continue,
                },
            };
            self.out.push_str(between);
            write_quoted(self.out, &name);
            if !scope.is_empty() {
                self.out.push_str(" in ");
                write_quoted(self.out, scope);
            }
            between = ", ";
        }
        // Nothing was written where there is no name for a place.
        if between == ", " {
            if more > 0 {
                let more = more.min(u32::MAX.into());
                write!(self.out, ", {more} more").expect("a string takes all");
            }
            self.out.push(')');
        }
    }
}

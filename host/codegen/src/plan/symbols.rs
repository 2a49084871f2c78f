//! What symbols stand for: extents of parameters, elements of shapes, and numbers that are found while a function runs.

use tenon_ir::{Args, DimView, Type, TypeView};

use super::{
    Agreement, CheckNumber, GivenExtent, PlannedAction, Planner, Shared, SizeStep, Step, Value,
    malformed, unsupported,
};

impl<'a> Planner<'a> {
    /// Finds out what the symbols of the parameters stand for, and what the caller's extents must be then.
    pub(super) fn bind_symbols(&mut self, types: &[Type]) -> Step<()> {
        let terms = self.body.terms();
        let (mut met, mut places) = (Vec::new(), Vec::new());
        for (input, &ty) in types.iter().enumerate() {
            let (dims, are_elements) = match terms.ty(ty) {
                TypeView::Shape(Some(dims)) => (dims, true),
                _ => (terms.tensor(ty).map_or(&[][..], |(_, dims)| dims), false),
            };
            for (axis, &dim) in dims.iter().enumerate() {
                let step = match are_elements {
                    true => {
                        let least = terms.dim_lower_bound(dim).unwrap_or(0).min(0);
                        SizeStep::Element { input, at: axis, least }
                    }
                    // What a spec says is compared with it.
                    false if terms.dim_value(dim).is_some() => continue,
                    false => SizeStep::Extent { input, axis },
                };
                met.push((dim, self.sizes.step(step)));
                places.push((input, axis, are_elements));
            }
        }
        let expected = self.sizes.bind(terms, &met, &mut self.symbols);
        for ((&(dim, found), expected), place) in met.iter().zip(expected).zip(places) {
            let Some(expected) = expected else {
                let what =
                    format!("the dimension {}, which no parameter says,", terms.dim_text(dim));
                return unsupported(
                    &what,
                    "give a parameter the symbol itself, or a multiple of it",
                );
            };
            match place {
                _ if expected == found => {}
                (.., true) => {
                    let check = self.check(Some(format!("`{}`", terms.dim_text(dim))));
                    self.agreements.push((Agreement::Equal(expected, found), check));
                }
                (input, axis, false) => self.extents.push(GivenExtent { input, axis, expected }),
            }
        }
        Ok(())
    }

    /// Notes what must hold: before anything is done, or where a branch needs it, or when it is known. `what` is that as a text.
    pub(super) fn agree(&mut self, agreement: Agreement, what: Option<String>) {
        let check = self.check(what);
        let is_found = agreement.sizes().iter().any(|&size| self.sizes.is_found(size));
        match self.depth {
            0 if !is_found => self.agreements.push((agreement, check)),
            _ => self.actions.push(PlannedAction::Agree(agreement, check)),
        }
    }

    /// The number of a check of what is being read: its text is what it says, and where that comes from.
    pub(super) fn check(&mut self, what: Option<String>) -> CheckNumber {
        let from = self.at.and_then(|at| self.function.source_text(at));
        let text = match (what, from) {
            (Some(what), Some(from)) => format!("{what}, for {from}"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => return CheckNumber::default(),
        };
        let Shared { checks, check_numbers, .. } = &mut self.shared;
        if let Some(&number) = check_numbers.get(&text) {
            return CheckNumber(number);
        }
        let next = checks.len() + 1;
        // A status has so much room for it.
        let Some(number) = u32::try_from(next).ok().filter(|&number| number < 1 << 23) else {
            return CheckNumber::default();
        };
        checks.push(text.clone());
        check_numbers.insert(text, number);
        CheckNumber(number)
    }

    /// Notes that symbols stand for the elements of a tensor from here on, each of which is at most what `most` says, if that
    /// is known.
    pub(super) fn bind_dims(
        &mut self,
        args: Args<'a>,
        ty: Type,
        most: Option<Type>,
    ) -> Step<Value> {
        let terms = self.body.terms();
        let (TypeView::Shape(Some(dims)), Some(counts)) = (terms.ty(ty), args.get(0)) else {
            return malformed("a binding of no dimensions");
        };
        let limits = match most.map(|most| terms.ty(most)) {
            Some(TypeView::Shape(Some(limits))) if limits.len() == dims.len() => limits,
            None => &[],
            Some(_) => return malformed("dimensions are bound up to no shape"),
        };
        let Value::Tensor(from) = self.resolve(counts)? else {
            return malformed("dimensions are bound to what is no tensor");
        };
        for (at, &dim) in dims.iter().enumerate() {
            let DimView::Symbol(name) = terms.dim(dim) else {
                return malformed("a dimension is bound that is no symbol");
            };
            let limit = limits.get(at).map(|&limit| self.size(limit)).transpose()?;
            let size = match limit.filter(|&limit| !self.sizes.is_open(limit)) {
                Some(limit) => self.sizes.found(limit),
                None => self.sizes.found_open(),
            };
            if self.symbols.insert(name, size).is_some() {
                let name = terms.str(name);
                return malformed(format!("the dimension `{name}` stands for something else"));
            }
            self.actions.push(PlannedAction::Find { from, at, size });
            if let Some(limit) = limit.filter(|&limit| self.sizes.is_open(limit)) {
                let most = terms.dim_text(limits[at]);
                let what = format!("`{}` must be at most `{most}`", terms.str(name));
                self.agree(Agreement::AtMost(size, limit), Some(what));
            }
        }
        // Its numbers are those of its type.
        Ok(self.tuple(Vec::new()))
    }
}

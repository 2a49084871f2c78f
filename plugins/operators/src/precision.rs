//! Operators that neither sum nor grow: they are computed in a narrow element type when their arguments are narrow.

/// The rule of such an operator.
macro_rules! follows_precision {
    ($op:ty) => {
        /// Narrow when its arguments are: it neither sums many elements nor grows.
        #[rule(precision)]
        fn precision(_: &$op, _: &mut Site<'_>) -> Option<Precision> {
            Some(Precision::Follow)
        }
    };
}

/// The rule of a product, which reads much for each element that it writes. Its sums stay wide by its attribute `out_dtype`.
macro_rules! gains_by_precision {
    ($op:ty) => {
        /// Narrow always: it reads much for each element that it writes.
        #[rule(precision)]
        fn precision(_: &$op, _: &mut Site<'_>) -> Option<Precision> {
            Some(Precision::Always { sums: Some("out_dtype".to_owned()) })
        }
    };
}

pub(crate) use {follows_precision, gains_by_precision};

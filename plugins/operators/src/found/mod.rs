//! Operators that find out how much there is: they give as many places as there may be, and a count, and what comes behind them
//! takes the first ones.
//!
//! ```ir
//! %t = nonzero(%x)                                                       (i64[2, 3*n], i64[1])
//! %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[3*n] }
//! %y = dynamic_slice(%t.0, const(i64[2], 0), shape(2, k))                i64[2, k]
//! ```

mod compress;
pub(crate) mod first;
pub mod nonzero;
pub(crate) mod numbers;
pub mod row_order;
pub(crate) mod sizes;
pub mod suppress;
mod unique;

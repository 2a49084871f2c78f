//! Loops that say how they run.

use tenon_plugin_api::ir::{Attrs, BuildPrim, DType, LoopKind};
use tenon_plugin_api::program::{Program, Scalar, Stmt};

/// A vectorized loop of up to so many vectors is written out, a longer one stays a loop.
pub(crate) const MAX_VECTORS: i64 = 4;

/// Loops that say how they run.
pub(crate) trait Loops {
    /// A loop; none when it has exactly one step.
    fn steps<'k>(
        &'k self,
        name: &str,
        extent: i64,
        kind: LoopKind,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt;

    /// A serial loop over `min .. end` where both are known only at run time.
    fn range<'k>(
        &'k self,
        name: &str,
        min: Scalar<'k>,
        end: Scalar<'k>,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt;

    /// A serial loop.
    fn serial<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.steps(name, extent, LoopKind::Serial, body)
    }

    /// A loop whose steps are independent and worth a thread. There is at most one around a statement.
    fn parallel<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.steps(name, extent, LoopKind::Parallel, body)
    }

    /// A loop to be written out.
    fn unrolled<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.steps(name, extent, LoopKind::Unrolled, body)
    }

    /// A loop that becomes vectors: as many of the target's length as go in, then shorter ones. Up to [`MAX_VECTORS`] are written
    /// out.
    fn vectorized<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.steps(name, extent, LoopKind::Vectorized, body)
    }

    /// The same, written out however many vectors it takes, for what shall stay in registers.
    fn in_registers<'k>(
        &'k self,
        name: &str,
        extent: i64,
        lanes: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        if extent <= MAX_VECTORS * lanes {
            return self.vectorized(name, extent, body);
        }
        let width = vector_width(extent, lanes);
        self.unrolled(&format!("{name}o"), extent / width, |outer| {
            self.vectorized(name, width, |inner| body(outer * width + inner))
        })
    }
}

impl Loops for Program {
    fn steps<'k>(
        &'k self,
        name: &str,
        extent: i64,
        kind: LoopKind,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        if extent == 1 {
            return body(self.index(0));
        }
        let var = self.scalar(|writer| writer.scalar_var(name, DType::I64));
        let body = body(var);
        let (zero, extent) = (self.index(0), self.index(extent));
        self.stmt(|writer| {
            let attrs = Attrs::NONE;
            writer.for_loop(var.expr(), zero.expr(), extent.expr(), kind, body.0, attrs)
        })
    }

    fn range<'k>(
        &'k self,
        name: &str,
        min: Scalar<'k>,
        end: Scalar<'k>,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        let var = self.scalar(|writer| writer.scalar_var(name, DType::I64));
        let body = body(var);
        let extent = end - min;
        self.stmt(|writer| {
            let (kind, attrs) = (LoopKind::Serial, Attrs::NONE);
            writer.for_loop(var.expr(), min.expr(), extent.expr(), kind, body.0, attrs)
        })
    }
}

/// The largest power of two that is at most `lanes` and divides `extent`.
pub(crate) fn vector_width(extent: i64, lanes: i64) -> i64 {
    let mut width = 1;
    while width * 2 <= lanes && extent % (width * 2) == 0 && extent > 0 {
        width *= 2;
    }
    width
}

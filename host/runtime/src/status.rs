//! What `<prefix>_run` returns, and what it means.
//!
//! A status is 0 for success. Otherwise its low byte says what was wrong, and the bits above it with
//! which argument: 1 for the first input and so on through the inputs, then the outputs; 0 for none
//! in particular. Of what the model itself checks, [`Failure::is_of_check`], they say which check it was: 1 for
//! the first of the list that the library has in its metadata. The codes are part of the interface of exported libraries and
//! never change.

macro_rules! failures {
    ($($name:ident = $code:literal $c_name:literal $text:literal,)*) => {
        /// Why a compiled function did not run.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Failure { $(#[doc = $text] $name = $code,)* }

        impl Failure {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Failure] = &[$(Failure::$name),*];

            /// Its name in C.
            pub fn c_name(self) -> &'static str {
                match self { $(Failure::$name => $c_name,)* }
            }

            /// What it means.
            pub fn text(self) -> &'static str {
                match self { $(Failure::$name => $text,)* }
            }
        }
    };
}

failures! {
    Null = 1 "TENON_ERROR_NULL" "a pointer is null",
    Device = 2 "TENON_ERROR_DEVICE" "the tensor is not in the memory of the processor",
    Rank = 3 "TENON_ERROR_RANK" "the tensor has another number of dimensions",
    DType = 4 "TENON_ERROR_DTYPE" "the elements of the tensor are of another type",
    Shape = 5 "TENON_ERROR_SHAPE" "the tensor has another shape",
    Strides = 6 "TENON_ERROR_STRIDES" "the tensor is not contiguous and row-major",
    Alignment = 7 "TENON_ERROR_ALIGNMENT" "the elements of the tensor are not aligned",
    Workspace = 8 "TENON_ERROR_WORKSPACE" "the workspace is null or not aligned to 64 bytes",
    Threads = 9 "TENON_ERROR_THREADS" "a parallel loop failed",
    Extents = 10 "TENON_ERROR_EXTENTS" "the shapes of the inputs do not fit together in the model",
    Size = 11 "TENON_ERROR_SIZE" "for inputs of these shapes the model needs more memory than there can be",
    Trips = 12 "TENON_ERROR_TRIPS" "a loop has ended before each trip gave its row of the result",
    Value = 13 "TENON_ERROR_VALUE" "an element of the tensor is no size: it is below zero, or too large",
    Expected = 14 "TENON_ERROR_EXPECTED" "a value that the model is given is none that it is made for",
    Alias = 15 "TENON_ERROR_ALIAS" "the memory of the tensor is that of another one, too, where that is not allowed",
    Cancelled = 16 "TENON_ERROR_CANCELLED" "the call was cancelled",
    Range = 17 "TENON_ERROR_RANGE" "an extent is outside of the range that the model was compiled for",
    Processor = 18 "TENON_ERROR_PROCESSOR" "the library has no code that the processor of this machine can run",
    Depth = 19 "TENON_ERROR_DEPTH" "a function that calls itself has gone deeper than it may, or needs more memory than there is for it",
    Weights = 20 "TENON_ERROR_WEIGHTS" "the file with the constants is not there, or is that of another library",
    Limit = 21 "TENON_ERROR_LIMIT" "the call needs more memory than it is given: more than its limit, more than there is, or there is none to take it from",
}

impl Failure {
    /// The status that says so of argument `argument`, counted from 0.
    pub fn of_argument(self, argument: usize) -> i32 {
        self as i32 | (argument as i32 + 1) << 8
    }

    /// The status that says so of a check by its number, from 1 on; 0 for none in particular.
    pub fn of_check(self, check: u32) -> i32 {
        self as i32 | (check as i32) << 8
    }

    /// Whether it says by which check of the model, and never of an argument.
    pub fn is_of_check(self) -> bool {
        matches!(self, Failure::Extents | Failure::Expected)
    }
}

/// Takes a status apart: what failed, and the argument it is about. `None` for success.
pub fn read_status(status: i32) -> Option<(Option<Failure>, Option<usize>)> {
    if status == 0 {
        return None;
    }
    let failure = Failure::ALL.iter().copied().find(|&failure| failure as i32 == status & 0xff);
    Some((failure, (status >> 8).checked_sub(1).and_then(|index| usize::try_from(index).ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_back() {
        assert_eq!(read_status(0), None);
        assert_eq!(read_status(Failure::Null as i32), Some((Some(Failure::Null), None)));
        let status = Failure::Shape.of_argument(2);
        assert_eq!(read_status(status), Some((Some(Failure::Shape), Some(2))));
        assert_eq!(read_status(-1).unwrap().0, None);
    }
}

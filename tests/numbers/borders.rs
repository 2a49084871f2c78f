//! What lies around the data of a convolution is zeros, which weights multiply as they do all else: what an infinite weight makes of
//! them is no number, as in ONNX Runtime.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;

use crate::run::{Machine, run};

/// A convolution whose data and weights are ones, but for the first weight, which is infinite.
struct Case {
    op: &'static str,
    data: &'static [usize],
    kernel: &'static [usize],
    groups: usize,
    stride: usize,
    /// On both sides of each axis.
    around: usize,
    /// Whether the kernel may be a constant too: Winograd's algorithm would compute other numbers of it.
    may_be_constant: bool,
}

const CASES: [Case; 7] = [
    Case::of(&[1, 1, 5, 5], &[1, 1, 3, 3], 1, 1, 1),
    Case::of(&[2, 16, 9, 11], &[8, 16, 3, 3], 1, 1, 1),
    Case::of(&[2, 32, 9, 11], &[32, 32, 3, 3], 1, 2, 1),
    Case::of(&[1, 3, 17, 16], &[16, 3, 7, 7], 1, 2, 3),
    Case::of(&[1, 16, 12, 13], &[16, 1, 3, 3], 16, 1, 1),
    Case::of(&[1, 32, 14, 14], &[32, 1, 5, 5], 32, 2, 2),
    Case {
        op: "nn.conv3d",
        data: &[1, 2, 4, 5, 6],
        kernel: &[3, 2, 3, 3, 3],
        groups: 1,
        stride: 1,
        around: 1,
        may_be_constant: true,
    },
];

impl Case {
    const fn of(
        data: &'static [usize],
        kernel: &'static [usize],
        groups: usize,
        stride: usize,
        around: usize,
    ) -> Self {
        let may_be_constant = groups > 1 || stride > 1;
        Self { op: "nn.conv2d", data, kernel, groups, stride, around, may_be_constant }
    }

    fn text(&self, has_constant: bool) -> String {
        let [data, kernel] = [self.data, self.kernel].map(list);
        let rank = self.data.len() - 2;
        let around = list(&vec![self.around; 2 * rank]);
        let strides = list(&vec![self.stride; rank]);
        let attrs =
            format!("{{ groups = {}, padding = {around}, strides = {strides} }}", self.groups);
        let (param, weight) = match has_constant {
            false => (format!(", %w: f32{kernel}"), "%w".to_owned()),
            true => {
                let ones = self.kernel.iter().product::<usize>() - 1;
                (String::new(), format!("const(f32{kernel}, [inf{}])", ", 1.0".repeat(ones)))
            }
        };
        let op = self.op;
        format!(
            "fn @main(%x: f32{data}{param}) {{\n  %y = {op}(%x, {weight}) {attrs}\n  ret (%y,)\n}}\n"
        )
    }

    fn inputs(&self, has_constant: bool) -> Vec<Tensor> {
        let ones = |shape: &[usize]| vec![1.0f32; shape.iter().product()];
        let mut weights = ones(self.kernel);
        weights[0] = f32::INFINITY;
        let data = Tensor::from_vec(self.data.to_vec(), ones(self.data));
        let kernel = Tensor::from_vec(self.kernel.to_vec(), weights);
        if has_constant { vec![data] } else { vec![data, kernel] }
    }

    /// Whether an element of the first channel is no number, since the first tap lies before the data along some axis; it is infinite
    /// elsewhere, and finite in all other channels.
    fn check(&self, result: &Tensor) -> Result<(), String> {
        let shape = result.shape();
        let plane: usize = shape[2..].iter().product();
        for (at, &found) in result.elements::<f32>().iter().enumerate() {
            let (channel, mut rest) = (at / plane % shape[1], at % plane);
            let mut is_before = false;
            for &extent in shape[2..].iter().rev() {
                is_before |= rest % extent * self.stride < self.around;
                rest /= extent;
            }
            let is_right = match (channel, is_before) {
                (0, true) => found.is_nan(),
                (0, false) => found == f32::INFINITY,
                _ => found.is_finite(),
            };
            if !is_right {
                return Err(format!("element {at} of {shape:?} is {found}"));
            }
        }
        Ok(())
    }
}

fn list(numbers: &[usize]) -> String {
    format!("{numbers:?}")
}

pub(crate) fn zeros_are_multiplied(machine: Machine) -> Result<(), Failed> {
    for case in &CASES {
        for has_constant in [false, true] {
            if has_constant && !case.may_be_constant {
                continue;
            }
            let text = case.text(has_constant);
            let results = run(&text, &case.inputs(has_constant), machine)?;
            case.check(&results[0]).map_err(|problem| format!("{problem}, of\n{text}"))?;
        }
    }
    Ok(())
}

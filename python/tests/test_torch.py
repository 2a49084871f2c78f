"""Models of torch: compiled from the module, and behind `torch.compile`."""

import unittest
import warnings

try:
    import torch
    from torch import nn
# One that is made for devices whose libraries are missing raises others as well.
except (ImportError, OSError, ValueError) as error:
    print(f"skipped: torch cannot be imported: {error}")
    raise SystemExit(0) from None

import tenon


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return torch.log_softmax(self.head(x.mean((2, 3))), 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)


class Odd(nn.Module):
    """What is exported to no ONNX."""

    def forward(self, x):
        return torch.special.bessel_j0(x) + 1


class Named(nn.Module):
    def forward(self, *, x):
        return x + 1


class Counting(nn.Module):
    """What writes its buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()

    def test_modules_equal_eager(self):
        for module, shape in [(Convolutions(), (2, 3, 16, 16)), (Attention(), (2, 7, 32))]:
            module.eval()
            x = torch.randn(shape)
            with torch.no_grad():
                compiled = tenon.compile(module, inputs=x, threads=1)
                result = compiled(x)
                self.assertIsInstance(result, torch.Tensor)
                close(result, module(x))
                close(compiled(x.transpose(-1, -2).contiguous().transpose(-1, -2)), module(x))

    def test_tensors_are_read_where_they_lie(self):
        double = "fn @main(%x: f32[2, 3]) -> f32[2, 3] {\n  %y = add(%x, %x)\n  ret %y\n}\n"
        compiled = tenon.compile(double)
        x = torch.randn(3, 2).T.contiguous()
        close(compiled(x), x + x)
        self.assertEqual(compiled.copied_inputs, 0)
        close(compiled(nn.Parameter(x)), x + x)
        half = tenon.compile(double.replace("f32", "bf16"))
        b = x.bfloat16()
        self.assertTrue(torch.equal(half(b), b + b))

    def test_signs_that_are_to_be_changed_are_changed(self):
        compiled = tenon.compile("fn @main(%x: f32[2, 3]) -> f32[2, 3] {\n  %y = add(%x, %x)\n  ret %y\n}\n")
        x = torch.randn(2, 3)
        self.assertTrue(torch.equal(compiled(torch._neg_view(x)), -(x + x)))
        part = torch.complex(x, x + 1).conj().imag
        self.assertTrue(part.is_neg())
        self.assertTrue(torch.equal(compiled(part), part + part))

    def test_exported_programs_equal_eager(self):
        module = Convolutions().eval()
        batch = torch.export.Dim("batch")
        program = torch.export.export(
            module, (torch.randn(2, 3, 16, 16),), dynamic_shapes=({0: batch},)
        )
        compiled = tenon.compile(program, threads=1)
        self.assertIsInstance(compiled.inputs[0].shape[0], str)
        with torch.no_grad():
            for count in (1, 2, 5):
                x = torch.randn(count, 3, 16, 16)
                close(compiled(x), module(x))
        named = torch.export.export(Named(), (), {"x": torch.randn(2)})
        with self.assertRaisesRegex(TypeError, "takes tensors in order"):
            tenon.compile(named)

    def test_a_module_needs_example_inputs(self):
        with self.assertRaisesRegex(TypeError, "inputs=\\(x,\\)"):
            tenon.compile(Convolutions())

    def test_backend_of_torch_compile(self):
        module = Convolutions().eval()
        made = torch.compile(module, backend=tenon.torch.backend)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", tenon.TenonWarning)
            for batch in (2, 3, 1):
                x = torch.randn(batch, 3, 16, 16)
                close(made(x), module(x))

    def test_the_backend_takes_options(self):
        module, x = Convolutions().eval(), torch.randn(2, 3, 16, 16)
        made = torch.compile(module, backend=tenon.torch.backend, options={"threads": 1, "opt_level": 2})
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", tenon.TenonWarning)
            close(made(x), module(x))
        torch._dynamo.reset()
        made = torch.compile(module, backend=tenon.torch.backend, options={"no_such_option": 1})
        with torch.no_grad(), self.assertWarnsRegex(tenon.TenonWarning, "no_such_option"):
            close(made(x), module(x))

    def test_what_cannot_be_exported_is_left_to_torch_and_told(self):
        made = torch.compile(Odd(), backend=tenon.torch.backend)
        x = torch.randn(4)
        with torch.no_grad(), self.assertWarnsRegex(tenon.TenonWarning, "left to torch"):
            close(made(x), Odd()(x))

    def test_weights_that_change_are_seen(self):
        module = Convolutions().eval()
        made = torch.compile(module, backend=tenon.torch.backend)
        x = torch.randn(1, 3, 16, 16)
        with torch.no_grad():
            close(made(x), module(x))
            module.head.weight.mul_(3)
            close(made(x), module(x))
            module.norm.running_mean.add_(1)
            close(made(x), module(x))
            module.head.weight.data = module.head.weight * 2
            close(made(x), module(x))

    def test_what_differs_in_training_is_trained(self):
        module = Convolutions().train()
        made = torch.compile(module, backend=tenon.torch.backend)
        x = torch.randn(4, 3, 16, 16)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", tenon.TenonWarning)
            torch.manual_seed(1)
            close(made(x), Convolutions.forward(module, x))

    def test_what_is_no_function_of_its_inputs_is_left_to_torch(self):
        def written(x):
            return x.add_(1) * 2

        zeros = torch.zeros(4)
        cases = [
            (written, "it writes an input"),
            (Counting(), "it writes a weight or a buffer"),
            (lambda x: torch.rand_like(x) + x, "it draws random numbers"),
            (nn.Dropout(0.5).train(), "it draws random numbers"),
            (nn.BatchNorm1d(4).train(), "it writes a weight or a buffer"),
            (lambda x: (x[::2], x + 1), "it returns a view of an input"),
        ]
        for function, why in cases:
            torch._dynamo.reset()
            made = torch.compile(function, backend=tenon.torch.backend)
            x = zeros.expand(3, 4).clone() if isinstance(function, nn.BatchNorm1d) else zeros.clone()
            with torch.no_grad(), self.assertWarnsRegex(tenon.TenonWarning, why):
                first = made(x)
            with torch.no_grad():
                second = made(x)
            if "random" in why:
                torch.manual_seed(3)
                again = made(x + 1)
                torch.manual_seed(3)
                self.assertTrue(torch.equal(again, made(x + 1)))
            elif function is written:
                self.assertEqual([x.tolist(), second.tolist()], [[2.0] * 4, [4.0] * 4])
            elif isinstance(function, Counting):
                self.assertEqual([first.tolist(), second.tolist()], [[1.0] * 4, [2.0] * 4])
        self.assertEqual(cases[4][0].num_batches_tracked.item(), 2)

    def test_inputs_of_which_only_the_shape_is_read_are_left_out(self):
        made = torch.compile(lambda x, y: x + torch.ones_like(y), backend=tenon.torch.backend)
        x, y = torch.randn(4), torch.randn(4)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", tenon.TenonWarning)
            for _ in range(2):
                close(made(x, y), x + 1)

    def test_what_the_exporter_gets_wrong_is_found(self):
        x = torch.tensor([-7, -3, 5])
        made = torch.compile(lambda x: x // 2, backend=tenon.torch.backend)
        with self.assertWarnsRegex(tenon.TenonWarning, "left to torch: result 0 has other elements"):
            self.assertEqual(made(x).tolist(), [-4, -2, 2])
        self.assertEqual(made(x - 2).tolist(), [-5, -3, 1])

        class Half(nn.Module):
            def forward(self, x):
                return x // 2

        with self.assertWarnsRegex(tenon.TenonWarning, "computes something else"):
            tenon.compile(Half(), inputs=x)

    def test_what_python_decides_is_told(self):
        class Branch(nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x - 1

        with self.assertWarnsRegex(tenon.TenonWarning, "Python boolean.*stays as it is for these inputs"):
            compiled = tenon.compile(Branch(), inputs=torch.ones(3))
        close(compiled(torch.ones(3)), torch.ones(3) * 2)

    def test_programs_that_write_are_refused(self):
        module = Counting()
        program = torch.export.export(module, (torch.zeros(1),))
        with self.assertRaisesRegex(ValueError, "it writes a weight or a buffer"):
            tenon.compile(program)
        with self.assertWarnsRegex(tenon.TenonWarning, "it writes a weight or a buffer"):
            tenon.compile(module, inputs=torch.zeros(1))
        self.assertEqual(module.count.item(), 0)

    def test_a_graph_without_inputs_gives_tensors(self):
        made = torch.compile(lambda: torch.zeros(3) + 1, backend=tenon.torch.backend)
        for _ in range(2):
            self.assertTrue(torch.equal(made(), torch.ones(3)))

    def test_gradients_run_in_torch(self):
        module = Convolutions().eval()
        made = torch.compile(module, backend=tenon.torch.backend)
        x = torch.randn(1, 3, 16, 16)
        made(x).sum().backward()
        self.assertIsNotNone(module.conv.weight.grad)


if __name__ == "__main__":
    unittest.main()

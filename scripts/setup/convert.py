"""Makes the embedders of the packs from published models in ONNX form.

The same files give the same bytes everywhere: float64 sums are made one after the other, and nothing is fused.

usage: convert.py mobilefacenet SOURCE BASIS OUT
       convert.py sface SOURCE OUT
       convert.py yunet SOURCE OUT WIDTH HEIGHT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

PRODUCER = "facet engine/models/convert"  # the bytes of published packs have it
SOURCE_MAX = 64 << 20
SFACE_DIM, SFACE_MEAN, SFACE_SCALE = 128, 127.5, 1 / 128
SLOPE_GAP = 1e-3  # the least distance of a PRelu's slope from 1
YUNET_OUTPUTS = {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}
YUNET_STRIDES = (8, 16, 32)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"not an ONNX model of the expected form: {what}")


def node(op: str, name: str, inputs: list[str], output: str, attributes=(), **integers: int) -> onnx.NodeProto:
    n = onnx.NodeProto(op_type=op, name=name, input=inputs, output=[output], attribute=attributes)
    for key, value in integers.items():
        n.attribute.add(name=key, i=value, type=onnx.AttributeProto.INT)
    return n


class Graph:
    """The parts of a model that change what it computes."""

    def __init__(self, file: str) -> None:
        expect(Path(file).stat().st_size <= SOURCE_MAX, "it is too large")
        m = onnx.load_model(file, load_external_data=False)
        self.source, self.name = m, m.graph.name
        self.nodes = list(m.graph.node)
        for n in self.nodes:
            n.ClearField("doc_string")
        self.values = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
        self.inputs = {v.name: [d.dim_value or -1 for d in v.type.tensor_type.shape.dim] for v in m.graph.input}
        self.outputs = {v.name: [d.dim_value or -1 for d in v.type.tensor_type.shape.dim] for v in m.graph.output}

    def readers(self, name: str) -> int:
        return sum(list(n.input).count(name) for n in self.nodes)

    def fold_constants(self) -> None:
        """Computes the weights that operators make of initialisers, and removes Constant, Dropout and unread inputs."""
        kept, same = [], {}
        for n in self.nodes:
            inputs = [same.get(i, i) for i in n.input]
            del n.input[:]
            n.input.extend(inputs)
            if n.op_type == "Dropout":
                same[n.output[0]] = inputs[0]
            elif n.op_type == "Reshape" and inputs[0] in self.values:
                self.values[n.output[0]] = self.values[inputs[0]].reshape(self.values[inputs[1]])
            elif n.op_type == "DequantizeLinear" and inputs[0] in self.values:
                self.values[n.output[0]] = dequantised(n, *(self.values[i] for i in inputs))
            elif n.op_type != "Constant":
                kept.append(n)
        self.nodes = kept
        self.inputs = {k: v for k, v in self.inputs.items() if self.readers(k) and k not in self.values}

    def save(self, file: str) -> None:
        read = {i for n in self.nodes for i in n.input}
        m = onnx.ModelProto(ir_version=self.source.ir_version, producer_name=PRODUCER)
        m.opset_import.add(version=self.source.opset_import[0].version)
        m.graph.name = self.name
        m.graph.node.extend(self.nodes)
        for name, value in self.values.items():
            if name in read:
                kind = onnx.TensorProto.FLOAT if value.dtype == np.float32 else onnx.TensorProto.INT64
                m.graph.initializer.add(dims=value.shape, data_type=kind, name=name, raw_data=value.tobytes())
        for to, values in ((m.graph.input, self.inputs), (m.graph.output, self.outputs)):
            for name, dims in values.items():
                tensor = to.add(name=name).type.tensor_type
                tensor.elem_type = onnx.TensorProto.FLOAT
                for d in dims:
                    tensor.shape.dim.add(**({"dim_param": "n"} if d < 0 else {"dim_value": d}))
        Path(file).write_bytes(m.SerializeToString())


def attribute(n: onnx.NodeProto, name: str):
    return next((onnx.helper.get_attribute_value(a) for a in n.attribute if a.name == name), 0)


def dequantised(n: onnx.NodeProto, q, scale, zero):
    """Returns (q - zero) * scale, whose scale and zero are those of a block along the last dimension."""
    block = attribute(n, "block_size")
    expect(attribute(n, "axis") == q.ndim - 1 and block >= 1, f"{n.name} has no blocks along the last dimension")
    scale, zero = (np.repeat(v, block, axis=-1)[..., : q.shape[-1]] for v in (scale, zero))
    expect(scale.shape == zero.shape == q.shape, f"{n.name} has other blocks than numbers")
    return (q.astype(np.int32) - zero).astype(np.float32) * scale


def mobilefacenet(source: str, basis_file: str, out: str) -> None:
    """Converts a MobileFaceNet that ends with a 1 x 1 convolution and a Reshape to rows of all outputs.

    The converted model returns the coordinates of the former output in an orthonormal basis, its rows. They are
    the last layer's first left singular vectors, and what they lack of its bias. A PRelu of x with slopes a becomes
    Conv(Relu(x), 1 - a) + Conv(x, a), depthwise: ONNX Runtime then keeps its blocked layout, in half the time.
    """
    g = Graph(source)
    conv, reshape = g.nodes[-2:]
    expect(conv.op_type == "Conv" and reshape.op_type == "Reshape" and len(conv.input) == 3, "another end")
    w, b = (g.values[i] for i in conv.input[1:])
    basis = np.fromfile(basis_file, "<f4").reshape(-1, len(b)).astype(np.float64)
    rows, last = w.reshape(len(b), -1).astype(np.float64), b.astype(np.float64)
    weights, bias = np.zeros((len(basis), rows.shape[1])), np.zeros(len(basis))
    for i, column in enumerate(basis.T):
        weights += column[:, None] * rows[i]
        bias += column * last[i]
    g.values[conv.input[1]] = weights.astype(np.float32).reshape(len(basis), -1, 1, 1)
    g.values[conv.input[2]] = bias.astype(np.float32)
    g.nodes[-1] = node("Flatten", reshape.name, [reshape.input[0]], reshape.output[0], axis=1)
    nodes = []
    for n in g.nodes:
        if n.op_type != "PRelu":
            nodes.append(n)
            continue
        (x, slope), y = n.input, n.output[0]
        a = g.values[slope].reshape(-1, 1, 1, 1)
        g.values[f"{y}_w_pos"], g.values[f"{y}_w_all"] = np.float32(1) - a, a
        nodes += [
            node("Relu", f"{n.name}_relu", [x], f"{y}_relu"),
            node("Conv", f"{n.name}_pos", [f"{y}_relu", f"{y}_w_pos"], f"{y}_pos", group=len(a)),
            node("Conv", f"{n.name}_all", [x, f"{y}_w_all"], f"{y}_all", group=len(a)),
            node("Add", f"{n.name}_add", [f"{y}_pos", f"{y}_all"], y),
        ]
    g.nodes = nodes
    free_batch(g, len(basis))
    g.save(out)


def free_batch(g: Graph, dim: int) -> None:
    (name, dims), (output,) = *g.inputs.items(), g.outputs
    g.inputs, g.outputs = {name: [-1, *dims[1:]]}, {output: [-1, dim]}


class Chain:
    """A graph in which each operator reads the output of the one before."""

    def __init__(self, g: Graph) -> None:
        self.g, self.rest = g, g.nodes
        self.at = self.made = next(iter(g.inputs))
        g.nodes = []
        self.sign = np.ones(3)

    def next(self, op: str):
        expect(bool(self.rest) and self.rest[0].op_type == op and self.rest[0].input[0] == self.at, f"no {op} here")
        n = self.rest.pop(0)
        self.at = n.output[0]
        return n, [self.g.values[i].astype(np.float64) for i in n.input[1:]]

    def norm(self):
        """Reads a BatchNormalization, y = scale x + shift."""
        n, (gamma, beta, mean, variance) = self.next("BatchNormalization")
        scale = gamma / np.sqrt(variance + float(attribute(n, "epsilon")))
        return scale, beta - mean * scale

    def convolution(self) -> None:
        """Converts a convolution, its normalisation and its PRelu.

        The output x becomes z = |1 - a| x, where a is the PRelu's slope. Then PRelu(x), or with slopes above 1 its
        negative, is Relu(z) + Conv(z, sign a / |1 - a|), depthwise, and the next layer's weights take the sign.
        """
        n, (w,) = self.next("Conv")
        scale, shift = self.norm()
        a = self.next("PRelu")[1][0].reshape(-1)
        expect(len(a) == len(w) == len(scale) and np.abs(1 - a).min() >= SLOPE_GAP, f"the slopes of {n.name}")
        depthwise = attribute(n, "group") == len(w) and w.shape[1] == 1
        w = w * (self.sign[:, None, None, None] if depthwise and len(self.sign) == len(w) else self.sign[:, None, None])
        gap, self.sign = np.abs(1 - a), np.copysign(1, 1 - a)
        name, values = n.output[0], self.g.values
        values[f"{name}_w"] = (w * scale[:, None, None, None] * gap[:, None, None, None]).astype(np.float32)
        values[f"{name}_b"] = (shift * gap).astype(np.float32)
        values[f"{name}_rest_w"] = (self.sign * a / gap).astype(np.float32).reshape(-1, 1, 1, 1)
        self.g.nodes += [
            node("Conv", name, [self.made, f"{name}_w", f"{name}_b"], name, n.attribute),
            node("Relu", f"{name}_relu", [name], f"{name}_relu"),
            node("Conv", f"{name}_rest", [name, f"{name}_rest_w"], f"{name}_rest", group=len(a)),
            node("Add", f"{name}_add", [f"{name}_rest", f"{name}_relu"], f"{name}_add"),
        ]
        self.made = f"{name}_add"

    def full(self) -> None:
        """Converts the full layer and the normalisations before and behind it."""
        scale, shift = self.norm()
        flatten, _ = self.next("Flatten")
        gemm, (w, b) = self.next("Gemm")
        expect(attribute(gemm, "transB") == 1 and len(w) == SFACE_DIM, f"{gemm.name} is another layer")
        last, end = self.norm()
        area = w.shape[1] // len(scale)
        scale, shift, sign = (np.repeat(v, area) for v in (scale, shift, self.sign))
        sums = np.add.accumulate(np.column_stack([b, w * shift]), axis=1)[:, -1]
        (out,) = self.g.outputs
        self.g.values[f"{out}_w"] = (w * scale * sign * last[:, None]).astype(np.float32)
        self.g.values[f"{out}_b"] = (sums * last + end).astype(np.float32)
        self.g.nodes += [
            node("Flatten", flatten.name, [self.made], flatten.name, axis=1),
            node("Gemm", gemm.name, [flatten.name, f"{out}_w", f"{out}_b"], out, transB=1),
        ]


def sface(source: str, out: str) -> None:
    """Converts OpenCV's SFace with weights of 8 bits to float32, without its preparation of the input."""
    g = Graph(source)
    g.fold_constants()
    g.name = "sface"
    c = Chain(g)
    for op, want in (("Sub", SFACE_MEAN), ("Mul", SFACE_SCALE)):
        expect(c.next(op)[1][0].tolist() in (want, [want]), f"{op} by another number")
    while c.rest[0].op_type == "Conv":
        c.convolution()
    c.full()
    expect(not c.rest, "operators behind the last layer")
    free_batch(g, SFACE_DIM)
    g.save(out)


def yunet(source: str, out: str, width: str, height: str) -> None:
    """Converts OpenCV's YuNet with weights of 8 bits to float32, for images of another size."""
    sides = int(width), int(height)
    expect(all(32 <= s <= 2048 and s % 32 == 0 for s in sides), "sides must be multiples of 32 up to 2048")
    g = Graph(source)
    g.fold_constants()
    g.name, g.inputs = "yunet", {name: [1, 3, sides[1], sides[0]] for name in g.inputs}
    wanted = {
        f"{value}_{stride}": [1, (sides[0] // stride) * (sides[1] // stride), each]
        for stride in YUNET_STRIDES
        for value, each in YUNET_OUTPUTS.items()
    }
    expect(set(wanted) == set(g.outputs), f"it has the outputs {list(g.outputs)}")
    g.outputs = {name: wanted[name] for name in g.outputs}
    g.save(out)


if __name__ == "__main__":
    kinds = {"mobilefacenet": (mobilefacenet, 3), "sface": (sface, 2), "yunet": (yunet, 4)}
    convert, arguments = kinds.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if convert is None or len(sys.argv) != 2 + arguments:
        sys.exit(__doc__)
    try:
        convert(*sys.argv[2:])
    except (ValueError, KeyError, IndexError, OSError, DecodeError) as e:
        sys.exit(f"convert.py: {e}")

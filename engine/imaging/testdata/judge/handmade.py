"""Writes the variants that Pillow reads and does not write."""

import io
import struct
import zlib

import pillow_heif
from PIL import Image

# Depths by colour type (PNG, table 11.1).
PNG_KINDS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PNG_MODES = {0: "L", 2: "RGB", 3: "P", 4: "LA", 6: "RGBA"}
# First column and row, and steps, of Adam7's passes.
PNG_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def packed(samples, bits, order=">", full=True):
    """Packs a row of bytes to samples of some bits; full says that 255 is the largest value of each."""
    if bits == 16:
        return struct.pack(f"{order}{len(samples)}H", *(v << 8 | (v * 7 & 255) for v in samples))
    if bits == 8:
        return bytes(samples)
    row = 0
    for v in samples:
        row = row << bits | (v >> 8 - bits if full else v)
    spare = -len(samples) * bits % 8
    return (row << spare).to_bytes((len(samples) * bits + spare) // 8, "big")


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def filtered(rows, step, random):
    """Filters each row by none, the byte to the left, or the one above."""
    above = bytes(len(rows[0]))
    for row in rows:
        how = random.randrange(3)
        left = (bytes(step) + row)[: len(row)]
        before = (bytes(len(row)), left, above)[how]
        yield bytes([how]) + bytes((a - b) & 255 for a, b in zip(row, before))
        above = row


def png(image, colour, depth, interlaced, random, behind=b""):
    mode = PNG_MODES[colour]
    image = image.convert("RGB").quantize(1 << depth) if mode == "P" else image.convert(mode)
    channels = len(mode) if mode != "P" else 1
    width, height, flat = *image.size, image.tobytes()
    scanlines = b""
    for x, y, across, down in PNG_PASSES if interlaced else ((0, 0, 1, 1),):
        rows = []
        for line in range(y, height, down):
            pixels = [flat[channels * (width * line + i) :][:channels] for i in range(x, width, across)]
            rows.append(packed(b"".join(pixels), depth, full=mode != "P"))
        scanlines += b"".join(filtered(rows, max(1, channels * depth // 8), random))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
    if mode == "P":
        out += chunk(b"PLTE", bytes(image.getpalette("RGB"))[: 3 << depth])
    body = zlib.compress(scanlines)
    half = len(body) // 2
    return out + chunk(b"IDAT", body[:half]) + chunk(b"IDAT", body[half:]) + behind + chunk(b"IEND", b"")


def png_late_exif(image, random):
    exif = Image.Exif()
    exif[0x0112] = 6
    return png(image, 2, 8, False, random, chunk(b"eXIf", exif.tobytes()[6:]))


def bmp(image, head, bits, top_down):
    """Writes a BMP with a header of OS/2 (12 bytes) or Windows; 32 bits name their channels in headers from 108 on."""
    width, height = image.size
    palette, size = b"", 3 if head == 12 else 4
    if bits <= 8:
        image = image.quantize(1 << bits)
        colours = image.getpalette("RGB")
        colours += [0] * ((3 << bits) - len(colours))
        entries = (bytes(colours[3 * i : 3 * i + 3][::-1]) for i in range(1 << bits))
        palette = b"".join(entry.ljust(size, b"\0") for entry in entries)
        flat, channels = image.tobytes(), 1
    else:
        flat, channels = image.tobytes("raw", "BGR" if bits == 24 else "BGRX"), bits // 8
    rows = [flat[channels * width * y :][: channels * width] for y in range(height)]
    rows = [packed(row, bits, full=False) if bits <= 8 else row for row in rows]
    body = b"".join(row + bytes(-len(row) % 4) for row in (rows if top_down else rows[::-1]))
    if head == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        fields = bits == 32 and head > 40
        info = struct.pack("<IiiHHIIIIII", head, width, -height if top_down else height, 1, bits, 3 * fields, len(body), 0, 0, 0, 0)
        masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0) if fields else bytes(16)
        info += (masks + b"BGRs").ljust(head - 40, b"\0")[: head - 40]
    start = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + info + palette + body


def heic(image, bits, chroma):
    """Writes a HEIC of 10 or 12 bits a sample, grey or of a chroma format."""
    pillow_heif.options.SAVE_HDR_TO_12_BIT = bits == 12
    mode = {"L": "I;16", "RGB": "RGB;16"}[image.mode]
    out = io.BytesIO()
    data = packed(image.tobytes(), 16, "<")
    pillow_heif.from_bytes(mode, image.size, data).save(out, quality=90, chroma=chroma)
    return out.getvalue()


def predict(row, samples, bits, order):
    """Replaces each sample of a row but the first by the difference to the one of the pixel before (TIFF 6.0, 14)."""
    form = f"{order}{len(row) * 8 // bits}{'B' if bits == 8 else 'H'}"
    values = struct.unpack(form, row)
    before = (0,) * samples + values
    return struct.pack(form, *((a - b) & (1 << bits) - 1 for a, b in zip(values, before)))


def tiff(image, samples, bits, order, tiled, compressed, predicted):
    """Writes a TIFF of strips or tiles, either byte order, 1, 8 or 16 bits."""
    image = image.convert({1: "L", 3: "RGB", 4: "RGBA"}[samples])
    width, height = image.size
    across, down = (64, 48) if tiled else (width, 37)
    blocks = []
    for y in range(0, height, down):
        for x in range(0, width, across):
            high = down if tiled else min(down, height - y)
            flat = image.crop((x, y, x + across, y + high)).tobytes()
            rows = [packed(flat[samples * across * i :][: samples * across], bits, order) for i in range(high)]
            if predicted:
                rows = [predict(row, samples, bits, order) for row in rows]
            block = b"".join(rows)
            blocks.append(zlib.compress(block) if compressed else block)
    offsets = [8]
    for block in blocks:
        offsets.append(offsets[-1] + len(block) + len(block) % 2)
    at, counts = offsets.pop(), [len(block) for block in blocks]
    entries = [(256, 3, [width]), (257, 3, [height]), (258, 3, [bits] * samples), (259, 3, [8 if compressed else 1])]
    entries += [(262, 3, [1 if samples == 1 else 2]), (277, 3, [samples])]
    entries += [(317, 3, [2])] * predicted + [(338, 3, [2])] * (samples == 4)
    if tiled:
        entries += [(322, 3, [across]), (323, 3, [down]), (324, 4, offsets), (325, 4, counts)]
    else:
        entries += [(273, 4, offsets), (278, 3, [down]), (279, 4, counts)]
    entries.sort()
    directory, extra = struct.pack(order + "H", len(entries)), b""
    for tag, kind, values in entries:
        body = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(body) > 4:
            place = at + 2 + 12 * len(entries) + 4 + len(extra)
            extra += body + bytes(len(body) % 2)
            body = struct.pack(order + "I", place)
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + body.ljust(4, b"\0")
    mark = b"II*\0" if order == "<" else b"MM\0*"
    pixels = b"".join(block + bytes(len(block) % 2) for block in blocks)
    return mark + struct.pack(order + "I", at) + pixels + directory + bytes(4) + extra

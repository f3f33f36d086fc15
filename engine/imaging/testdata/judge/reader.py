"""Reads pictures for the tests of imaging, in place of facet, and makes those that they start from.

Each request on standard input is a kind (one byte), a shrink (one byte), a length (32 bits, little-endian) and as
many bytes. "make" carries the photos' folder and a seed; its answer is a count and as many pairs of name and file, each
with its length before it. "read" carries a file; its answer is width, height (32 bits each) and RGB. A file in which Pillow
finds a fault has width 0, and the reason in place of RGB.
"""

import io
import os
import re
import struct
import sys
import tempfile

import pillow_heif
from PIL import GifImagePlugin, Image, ImageOps, TiffImagePlugin, UnidentifiedImageError

import variants

FORMATS = ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "HEIF"]
ORIENTATION = 0x0112
FAX = 2, 3, 4  # compressions of TIFF
BIG_TIFF = b"MM\0+", b"II+\0"  # an EXIF block has the head of a plain TIFF, with 42, but Pillow reads behind 43, too
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def chunk(data, kind):
    """Returns the first chunk of a kind of a PNG, or None: Pillow takes the last, and of an animation misses late ones."""
    at = data.find(kind, 0, data.find(b"IEND"))
    if at < 0:
        return None
    (length,) = struct.unpack(">I", data[at - 4 : at])
    return data[at + 4 : at + 4 + length]


def exif_of(data, image):
    block = chunk(data, b"eXIf") if image.format == "PNG" else None
    if block is None and not image.info.get("exif", b"").removeprefix(b"Exif\0\0").startswith(BIG_TIFF):
        return image.getexif()
    if block is None or block.startswith(BIG_TIFF):
        return {}
    exif = Image.Exif()
    exif.load(b"Exif\0\0" + block)
    return exif


def turned(data, image, shown):
    """Turns what is shown as the EXIF block of the file says; a block that is broken says nothing."""
    if image.format == "HEIF":  # turned by the file's boxes already
        return shown
    try:
        orientation = exif_of(data, image).get(ORIENTATION)
    except Exception:
        return shown
    if isinstance(orientation, bytes) and len(orientation) == 1:  # a byte of the type UNDEFINED
        (orientation,) = orientation
    return shown.transpose(TURNS[orientation]) if orientation in TURNS else shown


def eight_bits(image):
    """Takes the upper byte of 16, which Pillow's own conversion clips."""
    if image.mode not in ("I;16", "I;16B"):
        return image
    upper, lower = (image.tobytes()[i::2] for i in ((1, 0) if image.mode == "I;16" else (0, 1)))
    grey = Image.frombytes("L", image.size, upper)
    if isinstance(transparent := image.info.get("transparency"), int):
        alpha = bytes(255 * (a << 8 | b != transparent) for a, b in zip(upper, lower))
        grey.putalpha(Image.frombytes("L", image.size, alpha))
    return grey


def keyed(data, image):
    """Sets the transparent colour of a PNG in grey or RGB anew: its low bits count, and it has the depth of the samples."""
    stored = chunk(data, b"tRNS") if image.format == "PNG" else None
    depth = data[24]
    if stored and image.mode in ("1", "L") and depth <= 8:
        most = (1 << depth) - 1
        image = image.convert("L")
        image.info["transparency"] = (int.from_bytes(stored[:2], "big") & most) * 255 // most
    elif stored and image.mode == "RGB" and depth == 8:
        image.info["transparency"] = tuple(stored[1:6:2])
    return image


def on_white(image):
    if "transparency" in image.info or image.mode in ("LA", "PA", "RGBA", "La", "RGBa"):
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def opened(data):
    """Opens a file. libjpeg reads over stray bytes between a JPEG's segments, and Pillow's own look at its head does not."""
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        if not data.startswith(b"\xff\xd8"):
            raise
        return Image.open(io.BytesIO(without_stray_bytes(data)), formats=FORMATS)


def without_stray_bytes(data):
    """Leaves out what lies between the segments of a JPEG's head."""
    head, at = data[:2], 2
    segment = re.compile(rb"\xff+([^\x00\x01\xd0-\xd7\xff])", re.DOTALL)  # the others have no length
    while marker := segment.search(data, at):
        at = marker.start(1)
        if data[at] == 0xDA:
            return head + b"\xff" + data[at:]
        (length,) = struct.unpack(">H", data[at + 1 : at + 3])
        head += b"\xff" + data[at : at + 1 + length]
        at += 1 + length
    return data


def white_is_zero(image):
    """Reports whether Pillow shows a TIFF whose 0 is white as a negative: with 16 bits, and with one plane apart."""
    apart = image.tag_v2.get(284) == 2 and image.mode in ("1", "L") and image.tile[0].codec_name == "raw"
    return image.tag_v2.get(262) == 0 and (apart or image.mode in ("I;16", "I;16B"))


def loaded(image):
    """Decodes the pixels. libtiff guesses at a damaged fax and complains on standard error only: that is an error here."""
    if image.format != "TIFF" or image.tag_v2.get(259) not in FAX:
        return image.load()
    before = os.dup(2)
    with tempfile.TemporaryFile() as complaints:
        os.dup2(complaints.fileno(), 2)
        try:
            image.load()
        finally:
            os.dup2(before, 2)
            os.close(before)
        complaints.seek(0)
        if text := complaints.readline():
            raise ValueError("guessed: " + text.decode(errors="replace"))


def first_frame(data, image):
    """Returns the place of an animation's first frame, or None: Pillow shows what it leaves out in a colour of the file."""
    if image.format == "GIF":
        return image.tile[0].extents
    if image.format != "WEBP" or image.n_frames == 1 or image.mode != "RGB":
        return None
    place = data[data.index(b"ANMF") + 8 :]
    left, top, width, height = (int.from_bytes(place[at : at + 3], "little") for at in (0, 3, 6, 9))
    return 2 * left, 2 * top, 2 * left + width + 1, 2 * top + height + 1


def read(data, shrink):
    image = opened(data)
    if shrink > 1:
        if image.format != "JPEG":
            raise ValueError("only a JPEG is read shrunk")
        image.draft(None, (image.width // shrink, image.height // shrink))
    frame = first_frame(data, image)
    if image.format == "TIFF":  # Pillow draws strips beyond the last over the first
        image.tile = list({(tile.extents, str(tile.args)): tile for tile in reversed(image.tile)}.values())
    negative = image.format == "TIFF" and white_is_zero(image)
    loaded(image)
    shown = on_white(eight_bits(keyed(data, image)))
    if negative:
        shown = ImageOps.invert(shown)
    if frame:  # what the first frame leaves out is transparent
        screen = Image.new("RGB", image.size, "white")
        screen.paste(shown.crop(frame), frame)
        shown = screen
    return turned(data, image, shown)


def judge(data, shrink):
    try:
        image = read(data, shrink)
    except Exception as problem:  # Pillow's decoders raise many kinds
        text = f"{type(problem).__name__}: {problem}".encode()[:500]
        return struct.pack("<II", 0, len(text)) + text
    return struct.pack("<II", *image.size) + image.tobytes()


def main():
    Image.MAX_IMAGE_PIXELS = None  # facet has read them before
    GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_AFTER_DIFFERENT_PALETTE_ONLY
    for order, mode in (b"II", "I;16"), (b"MM", "I;16B"):  # 16 bits of which 0 is white
        TiffImagePlugin.OPEN_INFO[(order, 0, (1,), 1, (16,), ())] = (mode, mode)
    pillow_heif.register_heif_opener()
    while head := sys.stdin.buffer.read(6):
        kind, shrink, length = struct.unpack("<cBI", head)
        data = sys.stdin.buffer.read(length)
        if kind == b"m":
            seed, folder = data.decode().split(" ", 1)
            made = variants.make(folder, int(seed))
            sys.stdout.buffer.write(struct.pack("<I", len(made)))
            for part in (part for pair in made for part in pair):
                sys.stdout.buffer.write(struct.pack("<I", len(part)) + part)
        else:
            sys.stdout.buffer.write(judge(data, shrink))
        sys.stdout.buffer.flush()


main()

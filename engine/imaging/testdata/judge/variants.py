"""Makes small pictures in every format and variant that docs/formats/images.md names, from the sample photos."""

import io
import pathlib
import random

import handmade
from PIL import Image, ImageOps

ORIENTATION = 0x0112
PHOTO_SIDE = 400


def load(folder):
    """Returns the photos, small, in an order that does not depend on the file system."""
    photos = []
    for path in sorted(pathlib.Path(folder).glob("*/*")):
        if path.suffix in (".jpg", ".png"):
            with Image.open(path) as image:
                image.draft("RGB", (PHOTO_SIDE, PHOTO_SIDE))
                image.thumbnail((PHOTO_SIDE, PHOTO_SIDE))
                photos.append(image.convert("RGB"))
    return photos


class Maker:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.photos = load(folder)
        self.made = []

    def picture(self, mode="RGB", colours=0):
        """Returns a part of a photo, 40 to 200 pixels a side."""
        photo = self.random.choice(self.photos)
        width, height = (self.random.randint(40, min(200, side)) for side in photo.size)
        x, y = self.random.randint(0, photo.width - width), self.random.randint(0, photo.height - height)
        part = photo.crop((x, y, x + width, y + height))
        if mode in ("RGBA", "LA"):
            part.putalpha(part.convert("L").resize(part.size, box=(0, 0, width / 2, height / 2)))
            return part.convert(mode)
        if mode == "P":
            return part.quantize(colours or 256)
        if mode == "I;16":
            return part.convert("I").point(lambda v: v * 257).convert("I;16")
        return part.convert(mode)

    def saved(self, name, image, form=None, **options):
        out = io.BytesIO()
        if "orientation" in options:
            exif = Image.Exif()
            exif[ORIENTATION] = options.pop("orientation")
            options["exif"] = exif
        image.save(out, form or name.split()[0], **options)
        self.add(name, out.getvalue())

    def add(self, name, data):
        self.made.append((name.encode(), data))


def jpeg(m):
    for sampling in ("4:4:4", "4:2:2", "4:2:0"):
        for progressive in (False, True):
            quality = m.random.randint(30, 95)
            name = f"JPEG {sampling} progressive={progressive} quality={quality}"
            m.saved(name, m.picture(), subsampling=sampling, progressive=progressive, quality=quality)
    for mode in ("L", "CMYK"):
        for progressive in (False, True):
            m.saved(f"JPEG {mode} progressive={progressive}", m.picture(mode), progressive=progressive)
    m.saved("JPEG RGB", m.picture(), keep_rgb=True, quality=90)
    m.saved("JPEG CMYK 4:2:0", m.picture("CMYK"), subsampling="4:2:0")
    m.saved("JPEG restarts, blocks", m.picture(), restart_marker_blocks=3)
    m.saved("JPEG restarts, rows", m.picture(), restart_marker_rows=1, progressive=True)
    m.saved("JPEG comment, ICC, resolution", m.picture(), comment="facet", icc_profile=bytes(3000), dpi=(300, 300))
    m.saved("JPEG optimised", m.picture(), optimize=True)
    for orientation in range(1, 9):
        mode = m.random.choice(("RGB", "L", "CMYK"))
        m.saved(f"JPEG {mode} orientation={orientation}", m.picture(mode), orientation=orientation, quality=85)


def png(m):
    for mode in ("1", "L", "LA", "RGB", "RGBA", "I;16"):
        m.saved(f"PNG {mode}", m.picture(mode))
    for colours in (2, 4, 16, 256):
        m.saved(f"PNG palette of {colours}", m.picture("P", colours))
        m.saved(f"PNG palette of {colours}, one transparent", m.picture("P", colours), transparency=1)
    m.saved("PNG RGB, one transparent", m.picture("P", 8).convert("RGB"), transparency=(0, 0, 0))
    m.saved("PNG L, one transparent", m.picture("L"), transparency=80)
    for still in (False, True):
        first = m.picture()
        m.saved(f"PNG animated, {still=}", first, save_all=True, default_image=still, append_images=[ImageOps.mirror(first)])
    for orientation in range(1, 9):
        m.saved(f"PNG orientation={orientation}", m.picture(), orientation=orientation)
    for colour, depths in handmade.PNG_KINDS.items():
        for depth in depths:
            for interlaced in (False, True):
                data = handmade.png(m.picture("RGBA"), colour, depth, interlaced, m.random)
                m.add(f"PNG colour={colour} depth={depth} interlaced={interlaced}", data)
    m.add("PNG EXIF behind the pixels", handmade.png_late_exif(m.picture("RGBA"), m.random))


def gif(m):
    for colours in (2, 7, 64, 256):
        for interlace in (0, 1):
            m.saved(f"GIF {colours} colours interlace={interlace}", m.picture("P", colours), interlace=interlace)
    m.saved("GIF transparent", m.picture("P", 32), transparency=3)
    m.saved("GIF grey", m.picture("L"))
    m.saved("GIF animated", m.picture("P"), save_all=True, append_images=[m.picture("P")], duration=50)
    m.saved("GIF comment", m.picture("P"), comment=b"facet" * 100)


def bmp(m):
    for bits in (1, 4, 8, 24, 32):
        for head in (12, 40, 108, 124):
            for top_down in (False, True):
                if (head, bits) != (12, 32) and not (head == 12 and top_down):
                    data = handmade.bmp(m.picture(), head, bits, top_down)
                    m.add(f"BMP head={head} bits={bits} top_down={top_down}", data)
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        m.saved(f"BMP by Pillow {mode}", m.picture(mode))


def webp(m):
    for quality in (10, 50, 90):
        m.saved(f"WEBP lossy quality={quality}", m.picture(), quality=quality)
        m.saved(f"WEBP lossy alpha quality={quality}", m.picture("RGBA"), quality=quality)
    for mode in ("RGB", "RGBA", "L"):
        m.saved(f"WEBP lossless {mode}", m.picture(mode), lossless=True)
    m.saved("WEBP lossless exact", m.picture("RGBA"), lossless=True, exact=True)
    m.saved("WEBP few colours", m.picture("P", 8).convert("RGB"), lossless=True)
    m.saved("WEBP with ICC", m.picture(), icc_profile=bytes(999))
    for mode in ("RGB", "RGBA"):
        for lossless in (False, True):
            first = m.picture(mode)
            m.saved(f"WEBP animated {mode} {lossless=}", first, save_all=True, append_images=[ImageOps.mirror(first)], lossless=lossless)
    for orientation in range(1, 9):
        m.saved(f"WEBP orientation={orientation}", m.picture(), orientation=orientation)


def tiff(m):
    for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        for mode in ("L", "RGB", "P", "RGBA", "I;16"):
            m.saved(f"TIFF {mode} {compression}", m.picture(mode), compression=compression)
        for mode in ("L", "RGB"):
            if compression in ("tiff_lzw", "tiff_adobe_deflate"):
                m.saved(f"TIFF {mode} {compression} predictor", m.picture(mode), compression=compression, tiffinfo={317: 2})
    for compression in (None, "group3", "group4", "tiff_lzw"):
        for black in (0, 1):
            m.saved(f"TIFF 1 {compression} photometric={black}", m.picture("1"), compression=compression, tiffinfo={262: black})
    for orientation in range(1, 9):
        m.saved(f"TIFF orientation={orientation}", m.picture(), tiffinfo={ORIENTATION: orientation})
    for samples, bits in ((1, 1), (1, 8), (1, 16), (3, 8), (3, 16), (4, 8), (4, 16)):
        for order in "<", ">":
            for tiled in (False, True):
                compressed = m.random.random() < 0.7
                predicted = compressed and bits > 1 and m.random.random() < 0.5
                data = handmade.tiff(m.picture("RGBA"), samples, bits, order, tiled, compressed, predicted)
                m.add(f"TIFF samples={samples} bits={bits} order={order} {tiled=} {compressed=} {predicted=}", data)


def heic(m):
    for chroma in (420, 422, 444):
        m.saved(f"HEIF chroma={chroma}", m.picture(), quality=80, chroma=chroma)
    m.saved("HEIF grey", m.picture("L"), quality=90)
    m.saved("HEIF two", m.picture(), save_all=True, append_images=[m.picture()])
    for orientation in (3, 5, 6, 8):
        m.saved(f"HEIF orientation={orientation}", m.picture(), orientation=orientation)
    for bits in (10, 12):
        for mode, chroma in (("L", 420), ("RGB", 420), ("RGB", 422), ("RGB", 444)):
            m.add(f"HEIF {mode} chroma={chroma} {bits=}", handmade.heic(m.picture(mode), bits, chroma))


def make(folder, seed):
    m = Maker(folder, seed)
    for form in (jpeg, png, gif, bmp, webp, tiff, heic):
        form(m)
    return m.made

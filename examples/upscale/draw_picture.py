"""Draws the small picture that this example enlarges: a cat on a hill by the sea at dusk, inked lines on flat colours.

usage: draw_picture.py OUT.png|OUT.ppm [SIDE]

Shapes are signed distances in a unit square (y down), drawn at eight times the size and averaged down.
"""
import struct
import sys
import zlib

import numpy as np

SIDE = 96
OVERSAMPLE = 8
INK = (38, 28, 54)
LINE = 0.009


class Canvas:
    def __init__(self, side):
        n = side * OVERSAMPLE
        self.side = side
        self.y, self.x = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n, indexing='ij')
        self.rgb = np.zeros((n, n, 3))

    def paint(self, where, colour):
        self.rgb[where] = colour

    def shape(self, distance, colour, line=LINE):
        """Fills where distance < 0 and inks a line along the edge."""
        self.paint(distance < 0, colour)
        if line:
            self.paint(np.abs(distance) < line, INK)

    def circle(self, cx, cy, r):
        return np.hypot(self.x - cx, self.y - cy) - r

    def ellipse(self, cx, cy, rx, ry):
        scaled = np.hypot((self.x - cx) / rx, (self.y - cy) / ry)
        return (scaled - 1) * min(rx, ry)

    def segment(self, ax, ay, bx, by, r):
        dx, dy = bx - ax, by - ay
        t = np.clip(((self.x - ax) * dx + (self.y - ay) * dy) / (dx * dx + dy * dy), 0, 1)
        return np.hypot(self.x - ax - t * dx, self.y - ay - t * dy) - r

    def polygon(self, *points):
        distance = np.full(self.x.shape, np.inf)
        inside = np.zeros(self.x.shape, bool)
        for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
            distance = np.minimum(distance, self.segment(ax, ay, bx, by, 0))
            crosses = (ay > self.y) != (by > self.y)
            if ay != by:
                inside ^= crosses & (self.x < (bx - ax) * (self.y - ay) / (by - ay) + ax)
        return np.where(inside, -distance, distance)

    def arc(self, points, r):
        """A smooth stroke: a quadratic curve through a start, a pull and an end."""
        (ax, ay), (px, py), (bx, by) = points
        t = np.linspace(0, 1, 25)
        xs = (1 - t) ** 2 * ax + 2 * t * (1 - t) * px + t ** 2 * bx
        ys = (1 - t) ** 2 * ay + 2 * t * (1 - t) * py + t ** 2 * by
        return np.minimum.reduce([self.segment(xs[i], ys[i], xs[i + 1], ys[i + 1], r) for i in range(24)])

    def pixels(self):
        n = self.side
        small = self.rgb.reshape(n, OVERSAMPLE, n, OVERSAMPLE, 3).mean(axis=(1, 3))
        return np.clip(np.rint(small), 0, 255).astype(np.uint8)


def sky_and_sea(c):
    bands = [(-1.0, (66, 64, 128)), (0.14, (104, 84, 150)), (0.27, (162, 104, 156)), (0.39, (224, 132, 140)),
             (0.49, (250, 178, 130))]
    for top, colour in bands:
        c.paint(c.y > top + 0.012 * np.sin(9 * c.x + 20 * top), colour)
    c.shape(c.circle(0.30, 0.42, 0.125), (255, 238, 178), 0)
    c.paint(c.y > 0.58, (72, 108, 168))
    for y, colour in ((0.64, (58, 92, 152)), (0.70, (48, 78, 136))):
        c.paint(c.y > y + 0.008 * np.sin(30 * c.x + 40 * y), colour)
    for y, half in ((0.60, 0.10), (0.625, 0.075), (0.655, 0.085), (0.685, 0.05)):
        c.shape(c.segment(0.30 - half, y, 0.30 + half, y, 0.006), (255, 226, 170), 0)
    for x, y, r in ((0.12, 0.08, 0.006), (0.52, 0.06, 0.007), (0.90, 0.12, 0.006), (0.72, 0.05, 0.004), (0.36, 0.13, 0.004)):
        c.shape(c.circle(x, y, r), (255, 250, 230), 0)


def lighthouse(c):
    c.shape(c.polygon((0.0, 0.60), (0.03, 0.53), (0.15, 0.51), (0.22, 0.55), (0.26, 0.60)), (96, 72, 104))
    c.shape(c.polygon((0.075, 0.53), (0.09, 0.29), (0.15, 0.29), (0.165, 0.53)), (246, 238, 232))
    for top in (0.335, 0.425):
        c.paint((c.y > top) & (c.y < top + 0.045) & (c.polygon((0.075, 0.53), (0.09, 0.29), (0.15, 0.29), (0.165, 0.53)) < -LINE),
                (214, 74, 84))
    c.shape(c.polygon((0.095, 0.29), (0.095, 0.245), (0.145, 0.245), (0.145, 0.29)), (255, 232, 140))
    c.shape(c.polygon((0.08, 0.245), (0.12, 0.205), (0.16, 0.245)), (214, 74, 84))


def hill(c):
    edge = 0.80 - 0.05 * np.sin(3.2 * c.x + 0.4) - 0.10 * c.x
    c.shape(edge - c.y, (84, 148, 104))
    c.paint(c.y > edge + 0.09 + 0.01 * np.sin(22 * c.x), (62, 122, 94))
    for x, tall in ((0.05, 0.05), (0.09, 0.07), (0.22, 0.05), (0.26, 0.065), (0.34, 0.045), (0.93, 0.06), (0.965, 0.045)):
        base = 0.86 - 0.05 * np.sin(3.2 * x + 0.4) - 0.10 * x
        c.shape(c.arc(((x, base), (x + 0.005, base - tall), (x + 0.025, base - tall - 0.01)), 0.007), INK, 0)
    for x, y in ((0.15, 0.88), (0.30, 0.93), (0.07, 0.95)):
        for k in range(5):
            c.shape(c.circle(x + 0.02 * np.cos(1.2566 * k), y + 0.02 * np.sin(1.2566 * k), 0.013), (250, 220, 236), 0)
        c.shape(c.circle(x, y, 0.011), (248, 190, 70), 0)


def cat(c):
    fur, shade, white = (240, 160, 84), (206, 120, 66), (255, 244, 226)
    c.shape(c.arc(((0.84, 0.82), (1.0, 0.80), (0.92, 0.60)), 0.034), fur)
    c.shape(c.ellipse(0.67, 0.74, 0.165, 0.20), fur)
    c.paint((c.ellipse(0.67, 0.74, 0.165, 0.20) < -LINE) & (c.x > 0.755), shade)
    c.shape(c.ellipse(0.645, 0.77, 0.08, 0.12), white, 0)
    for x in (0.60, 0.70):
        c.shape(c.ellipse(x, 0.905, 0.055, 0.032), white)
    for side in (-1, 1):
        tip = 0.65 + side * 0.175
        c.shape(c.polygon((0.65 + side * 0.055, 0.32), (tip, 0.20), (0.65 + side * 0.20, 0.42)), fur)
        c.shape(c.polygon((0.65 + side * 0.095, 0.32), (tip - side * 0.01, 0.245), (0.65 + side * 0.175, 0.38)), (244, 168, 160), 0)
    head = c.ellipse(0.65, 0.44, 0.205, 0.165)
    c.shape(head, fur)
    for x, pull in ((0.605, -0.008), (0.65, 0.0), (0.695, 0.008)):
        c.paint((c.arc(((x, 0.265), (x + pull, 0.30), (x + pull, 0.335)), 0.011) < 0) & (head < -LINE), shade)
    c.paint((c.ellipse(0.65, 0.525, 0.11, 0.07) < 0) & (head < -LINE), white)
    for x in (0.565, 0.735):
        c.shape(c.ellipse(x, 0.445, 0.043, 0.056), (96, 190, 150))
        c.shape(c.ellipse(x, 0.45, 0.019, 0.045), INK, 0)
        c.shape(c.circle(x - 0.015, 0.425, 0.014), (255, 255, 255), 0)
        c.shape(c.circle(x + 0.017, 0.468, 0.008), (255, 255, 255), 0)
        c.shape(c.ellipse(x + (0.03 if x > 0.65 else -0.03), 0.51, 0.026, 0.013), (250, 140, 128), 0)
    c.shape(c.polygon((0.635, 0.498), (0.665, 0.498), (0.65, 0.515)), (214, 92, 104), 0.005)
    for side in (-1, 1):
        c.shape(c.arc(((0.65, 0.52), (0.65 + side * 0.02, 0.548), (0.65 + side * 0.045, 0.535)), 0.0055), INK, 0)
        for y in (0.505, 0.53):
            c.shape(c.segment(0.65 + side * 0.125, y, 0.65 + side * 0.235, 2 * y - 0.51, 0.0035), INK, 0)
    c.shape(c.arc(((0.52, 0.585), (0.65, 0.665), (0.78, 0.585)), 0.016), (74, 120, 200))
    c.shape(c.circle(0.65, 0.645, 0.026), (250, 206, 80))


def draw(side=SIDE):
    c = Canvas(side)
    for part in (sky_and_sea, lighthouse, hill, cat):
        part(c)
    return c.pixels()


def encode_png(pixels):
    height, width, _ = pixels.shape
    rows = b''.join(b'\0' + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b'')


def encode_ppm(pixels):
    return b'P6\n%d %d\n255\n' % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


if __name__ == '__main__':
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    image = draw(int(sys.argv[2]) if len(sys.argv) == 3 else SIDE)
    with open(sys.argv[1], 'wb') as f:
        f.write(encode_png(image) if sys.argv[1].endswith('.png') else encode_ppm(image))

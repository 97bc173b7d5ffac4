#include "draw.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace {

const Colour NAMED[] = {
    {"red", 0.85f, 0.12f, 0.10f},   {"orange", 0.96f, 0.53f, 0.10f}, {"yellow", 0.97f, 0.85f, 0.15f}, {"green", 0.22f, 0.62f, 0.22f},
    {"blue", 0.15f, 0.35f, 0.85f},  {"purple", 0.50f, 0.20f, 0.65f}, {"violet", 0.50f, 0.25f, 0.75f}, {"pink", 0.97f, 0.60f, 0.72f},
    {"brown", 0.45f, 0.28f, 0.14f}, {"black", 0.08f, 0.08f, 0.09f},  {"white", 0.95f, 0.95f, 0.93f},  {"grey", 0.55f, 0.55f, 0.57f},
    {"gray", 0.55f, 0.55f, 0.57f},  {"gold", 0.85f, 0.65f, 0.20f},   {"silver", 0.75f, 0.76f, 0.80f},
};

struct Pixel {
    float r, g, b;
};

Pixel mix(Pixel a, Pixel b, float t) { return {a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t}; }

}  // namespace

std::vector<Colour> colours_in(const std::string& text) {
    std::vector<Colour> found;
    std::string word;
    for (const char c : text + ' ') {
        if (std::isalpha(static_cast<unsigned char>(c))) {
            word += char(std::tolower(static_cast<unsigned char>(c)));
            continue;
        }
        for (const Colour& known : NAMED) {
            const bool again = std::any_of(found.begin(), found.end(), [&](const Colour& f) { return f.name == word; });
            if (known.name == word && !again && found.size() < 2) found.push_back(known);
        }
        word.clear();
    }
    return found;
}

std::vector<uint8_t> draw_ball(const std::vector<Colour>& colours, int side) {
    const Colour grey = {"grey", 0.55f, 0.55f, 0.57f};
    const Colour& from = colours.empty() ? grey : colours.front();
    const Colour& to   = colours.empty() ? grey : colours.back();
    const Pixel first = {from.r, from.g, from.b}, last = {to.r, to.g, to.b};
    const Pixel sky = {0.78f, 0.87f, 0.95f}, horizon = {0.97f, 0.92f, 0.82f}, water = {0.20f, 0.38f, 0.48f};
    std::vector<uint8_t> rgb(size_t(3) * side * side);
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            // -1 to 1, y downwards; the ball's middle is a little above the picture's.
            const float u = 2.0f * (float(x) + 0.5f) / float(side) - 1, v = 2.0f * (float(y) + 0.5f) / float(side) - 1;
            const float ripple = 0.03f * std::sin(40 * v + 5 * std::sin(7 * u));
            Pixel p            = v < 0.55f ? mix(sky, horizon, (v + 1) / 1.55f) : mix(water, horizon, 0.35f * (1 - v) + ripple);
            const float dx = u, dy = v + 0.1f, radius = 0.62f, d2 = (dx * dx + dy * dy) / (radius * radius);
            if (d2 < 1) {
                const float nx = dx / radius, ny = dy / radius, nz = std::sqrt(1 - d2);
                const float light = std::max(0.0f, -0.55f * nx - 0.6f * ny + 0.58f * nz);
                const float shine = std::pow(std::max(0.0f, -0.4f * nx - 0.45f * ny + 0.8f * nz), 30.0f);
                const Pixel own   = mix(first, last, std::clamp(0.5f + 0.6f * ny, 0.0f, 1.0f));
                p                 = mix({own.r * 0.3f, own.g * 0.3f, own.b * 0.3f}, own, light);
                p                 = mix(p, {1, 1, 1}, 0.7f * shine);
            }
            const float channels[3] = {p.r, p.g, p.b};
            for (int c = 0; c < 3; c++) {
                rgb[(size_t(y) * side + x) * 3 + c] = uint8_t(std::lround(255 * std::clamp(channels[c], 0.0f, 1.0f)));
            }
        }
    }
    return rgb;
}

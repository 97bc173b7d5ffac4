// The picture that the language model's words decide.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct Colour {
    std::string name;
    float r, g, b;  // 0 to 1
};

// The names of colours in a text, in order, each once; at most two.
std::vector<Colour> colours_in(const std::string& text);

// A ball over water, `side` x `side` RGB: lit from the left above, shaded from the first colour to the last; grey without any.
std::vector<uint8_t> draw_ball(const std::vector<Colour>& colours, int side);

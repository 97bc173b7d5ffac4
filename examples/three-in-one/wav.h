// Reads a WAV file of speech.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

// The samples of a WAV file of 16 kHz, 16 bit, mono (what Whisper hears), as floats in -1 to 1.
inline std::vector<float> read_wav(const std::string& path) {
    const uint32_t rate = 16000;
    std::ifstream f(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
    const auto word = [&](size_t at, size_t n) {
        uint32_t v = 0;
        for (size_t i = 0; i < n; i++) v |= uint32_t(uint8_t(bytes.at(at + i))) << (8 * i);
        return v;
    };
    if (bytes.size() < 12 || std::memcmp(bytes.data(), "RIFF", 4) != 0) throw std::runtime_error(path + ": not a WAV file");
    bool known = false;
    for (size_t at = 12; at + 8 <= bytes.size();) {
        const size_t size = word(at + 4, 4), body = at + 8;
        if (std::memcmp(&bytes[at], "fmt ", 4) == 0) {
            known = word(body, 2) == 1 && word(body + 2, 2) == 1 && word(body + 4, 4) == rate && word(body + 14, 2) == 16;
        } else if (std::memcmp(&bytes[at], "data", 4) == 0) {
            if (!known) throw std::runtime_error(path + ": not 16 kHz, 16 bit, mono");
            std::vector<float> out(std::min(size, bytes.size() - body) / 2);
            for (size_t i = 0; i < out.size(); i++) out[i] = float(int16_t(word(body + 2 * i, 2))) / 32768.0f;
            return out;
        }
        at = body + size + size % 2;
    }
    throw std::runtime_error(path + ": no samples");
}

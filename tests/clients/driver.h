// What the drivers of llama.cpp and whisper.cpp share: options, the clock, the log, files of floats.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ggml.h"

namespace driver {

class Arguments {
public:
    Arguments(int argc, char** argv) {
        for (int i = 2; i < argc; i++) {
            const std::string name = argv[i];
            if (name.rfind("--", 0) != 0) throw std::runtime_error("unexpected " + name);
            const bool value         = i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0;
            options[name.substr(2)] = value ? argv[++i] : "";
        }
    }
    bool has(const char* name) const { return options.count(name) != 0; }
    std::string required(const char* name) const {
        if (!has(name)) throw std::runtime_error(std::string("--") + name + " is missing");
        return options.at(name);
    }
    int number(const char* name, int otherwise) const { return has(name) ? std::stoi(options.at(name)) : otherwise; }

private:
    std::map<std::string, std::string> options;
};

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The shortest of the times of each stage, printed at the end as "seconds NAME X".
class Stages {
public:
    void add(const std::string& name, double seconds) {
        const auto at = best.find(name);
        if (at == best.end() || seconds < at->second) best[name] = seconds;
    }
    ~Stages() {
        for (const auto& [name, seconds] : best) std::printf("seconds %s %.6f\n", name.c_str(), seconds);
    }

private:
    std::map<std::string, double> best;
};

// Warnings and errors go to stderr, "LEVEL text" a line.
inline void log_line(ggml_log_level level, const char* text, void*) {
    if (level != GGML_LOG_LEVEL_WARN && level != GGML_LOG_LEVEL_ERROR) return;
    const size_t n = std::strlen(text);
    std::fprintf(stderr, "%s %s%s", level == GGML_LOG_LEVEL_WARN ? "WARN" : "ERROR", text,
                 n > 0 && text[n - 1] == '\n' ? "" : "\n");
}

// Of this program alone; getrusage would count what the starting program held before exec.
inline void print_peak() {
    std::ifstream f("/proc/self/status");
    for (std::string line; std::getline(f, line);) {
        if (line.rfind("VmHWM:", 0) == 0) std::printf("peak_kib %ld\n", std::atol(line.c_str() + 6));
    }
}

template <class T>
void append(std::ofstream& f, const T* data, size_t n) {
    f.write(reinterpret_cast<const char*>(data), std::streamsize(n * sizeof(T)));
}

inline void close(std::ofstream& f, const std::string& path) {
    f.close();
    if (!f) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace driver

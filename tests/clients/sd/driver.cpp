// Runs one case on stable-diffusion.cpp's public interface: generate a picture, upscale one, or convert a model.
// The same source is compiled for both libraries. Pictures go in and out as binary PPM. The log goes to stderr, one
// "LEVEL text" a line; stdout gets "seconds load X", "seconds work X" and "peak_kib N".
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "stable-diffusion.h"

namespace {

using Options = std::map<std::string, std::string>;

struct Picture {
    uint32_t width = 0, height = 0;
    std::vector<uint8_t> rgb;
};

Picture read_ppm(const std::string& path) {
    std::ifstream f(path, std::ios::binary);
    std::string magic;
    int depth = 0;
    Picture p;
    f >> magic >> p.width >> p.height >> depth;
    f.get();
    if (!f || magic != "P6" || depth != 255) throw std::runtime_error(path + ": not a binary 8-bit PPM");
    p.rgb.resize(size_t(3) * p.width * p.height);
    f.read(reinterpret_cast<char*>(p.rgb.data()), std::streamsize(p.rgb.size()));
    if (!f) throw std::runtime_error(path + ": cut short");
    return p;
}

void write_ppm(const std::string& path, const sd_image_t& image) {
    if (image.data == nullptr || image.channel != 3) throw std::runtime_error("the client gave no RGB picture");
    std::ofstream f(path, std::ios::binary);
    f << "P6\n" << image.width << ' ' << image.height << "\n255\n";
    f.write(reinterpret_cast<const char*>(image.data), std::streamsize(size_t(3) * image.width * image.height));
    f.close();
    if (!f) throw std::runtime_error(path + ": cannot be written");
}

void log_line(sd_log_level_t level, const char* text, void*) {
    static const char* const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    const size_t n = std::strlen(text);
    std::fprintf(stderr, "%s %s%s", names[level], text, n > 0 && text[n - 1] == '\n' ? "" : "\n");
}

void no_progress(int, int, float, void*) {}

class Clock {
public:
    void stage(const char* name) {
        const auto now = std::chrono::steady_clock::now();
        std::printf("seconds %s %.4f\n", name, std::chrono::duration<double>(now - last).count());
        last = now;
    }

private:
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

// Of this program alone; getrusage would count what the starting program held before exec.
void print_peak() {
    std::ifstream f("/proc/self/status");
    for (std::string line; std::getline(f, line);) {
        if (line.rfind("VmHWM:", 0) == 0) std::printf("peak_kib %ld\n", std::atol(line.c_str() + 6));
    }
}

class Arguments {
public:
    explicit Arguments(Options o) : options(std::move(o)) {}
    bool has(const char* name) const { return options.count(name) != 0; }
    const char* text(const char* name, const char* otherwise = nullptr) const {
        const auto at = options.find(name);
        return at == options.end() ? otherwise : at->second.c_str();
    }
    std::string required(const char* name) const {
        if (!has(name)) throw std::runtime_error(std::string("--") + name + " is missing");
        return options.at(name);
    }
    int number(const char* name, int otherwise) const { return has(name) ? std::stoi(options.at(name)) : otherwise; }
    float real(const char* name, float otherwise) const { return has(name) ? std::stof(options.at(name)) : otherwise; }
    sd_type_t type() const {
        if (!has("type")) return SD_TYPE_COUNT;
        const sd_type_t t = str_to_sd_type(text("type"));
        if (t == SD_TYPE_COUNT) throw std::runtime_error(std::string("unknown type ") + text("type"));
        return t;
    }

private:
    Options options;
};

void generate(const Arguments& args) {
    Clock clock;
    sd_ctx_params_t cp;
    sd_ctx_params_init(&cp);
    cp.model_path           = args.text("model");
    cp.taesd_path           = args.text("taesd");
    cp.n_threads            = args.number("threads", 2);
    cp.wtype                = args.type();
    cp.flash_attn           = args.has("flash");
    cp.diffusion_flash_attn = args.has("flash");
    cp.rng_type             = CPU_RNG;
    sd_ctx_t* ctx           = new_sd_ctx(&cp);
    if (ctx == nullptr) throw std::runtime_error("new_sd_ctx gave NULL");
    clock.stage("load");

    sd_img_gen_params_t gp;
    sd_img_gen_params_init(&gp);
    gp.prompt                         = args.text("prompt", "a lighthouse on a cliff above the sea, evening light");
    gp.negative_prompt                = "";
    gp.width                          = args.number("size", 256);
    gp.height                         = args.number("height", gp.width);
    gp.seed                           = args.number("seed", 42);
    gp.sample_params.sample_steps     = args.number("steps", 2);
    gp.sample_params.sample_method    = EULER_SAMPLE_METHOD;
    gp.sample_params.guidance.txt_cfg = args.real("cfg", 1.0f);
    sd_lora_t lora                    = {false, 1.0f, args.text("lora")};
    if (args.has("lora")) {
        gp.loras      = &lora;
        gp.lora_count = 1;
    }
    Picture init;
    if (args.has("init")) {
        init          = read_ppm(args.text("init"));
        gp.init_image = {init.width, init.height, 3, init.rgb.data()};
        gp.width      = int(init.width);
        gp.height     = int(init.height);
        gp.strength   = args.real("strength", 0.6f);
    }
    sd_image_t* images = generate_image(ctx, &gp);
    if (images == nullptr) throw std::runtime_error("generate_image gave NULL");
    write_ppm(args.required("out"), images[0]);
    clock.stage("work");
    free_sd_images(images, 1);
    free_sd_ctx(ctx);
}

void enlarge(const Arguments& args) {
    Clock clock;
    upscaler_ctx_t* ctx = new_upscaler_ctx(args.required("model").c_str(), false, args.number("threads", 2),
                                           args.number("tile", 128), nullptr, nullptr);
    if (ctx == nullptr) throw std::runtime_error("new_upscaler_ctx gave NULL");
    clock.stage("load");
    Picture in             = read_ppm(args.required("in"));
    const sd_image_t image = upscale(ctx, {in.width, in.height, 3, in.rgb.data()}, uint32_t(get_upscale_factor(ctx)));
    write_ppm(args.required("out"), image);
    clock.stage("work");
    std::free(image.data);
    free_upscaler_ctx(ctx);
}

void convert_model(const Arguments& args) {
    Clock clock;
    if (!convert(args.required("model").c_str(), "", args.required("out").c_str(), args.type(), "", false))
        throw std::runtime_error("convert gave false");
    clock.stage("work");
}

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 2; i < argc; i++) {
        const std::string name = argv[i];
        if (name.rfind("--", 0) != 0) throw std::runtime_error("unexpected " + name);
        const bool value   = i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0;
        o[name.substr(2)] = value ? argv[++i] : "";
    }
    return o;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    try {
        const Arguments args(parse(argc, argv));
        sd_set_log_callback(log_line, nullptr);
        sd_set_progress_callback(no_progress, nullptr);
        if (kind == "generate") {
            generate(args);
        } else if (kind == "upscale") {
            enlarge(args);
        } else if (kind == "convert") {
            convert_model(args);
        } else {
            std::fprintf(stderr, "usage: sd-driver generate|upscale|convert --model FILE --out FILE [--option value]...\n");
            return 2;
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ERROR driver: %s\n", e.what());
        return 1;
    }
    print_peak();
    return 0;
}

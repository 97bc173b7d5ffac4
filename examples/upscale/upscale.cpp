// Enlarges a picture with an ESRGAN model, through stable-diffusion.cpp's public interface.
// usage: upscale MODEL IN OUT.png [THREADS]
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "stable-diffusion.h"

// stable-diffusion.cpp's sources carry these two single-file libraries; nothing else of it compiles them.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#include "stb_image.h"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include "stb_image_write.h"

namespace {

// The network runs as one graph for a small picture, so there may be no steps to count: the time that has passed is
// shown, and the share of tiles where the picture was cut into some.
class Progress {
public:
    Progress() : ticker([this] { run(); }) {}
    ~Progress() {
        {
            std::lock_guard<std::mutex> guard(lock);
            stop = true;
        }
        wake.notify_one();
        ticker.join();
        if (tty) std::fprintf(stderr, "\r%*s\r", 50, "");
    }
    // The client counts tensors as it loads them, then tiles; only the tiles are worth showing.
    void step(int step, int steps) {
        if (!loaded) return;
        done = step;
        all  = steps;
    }
    void model_loaded() { loaded = true; }

private:
    void run() {
        std::unique_lock<std::mutex> guard(lock);
        const auto pause = std::chrono::milliseconds(tty ? 200 : 2000);
        while (!wake.wait_for(guard, pause, [this] { return stop; })) {
            const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            std::fprintf(stderr, tty ? "\r   upscaling, %.1f s" : "   upscaling, %.0f s", s);
            if (all > 1) std::fprintf(stderr, ", tile %d of %d", done.load(), all.load());
            if (!tty) std::fputc('\n', stderr);
        }
    }

    const bool tty                                    = isatty(STDERR_FILENO) != 0;
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::atomic<int> done{0}, all{0};
    std::atomic<bool> loaded{false};
    std::mutex lock;
    std::condition_variable wake;
    bool stop = false;
    std::thread ticker;
};

void on_progress(int step, int steps, float, void* progress) { static_cast<Progress*>(progress)->step(step, steps); }

struct Watch {
    Progress* progress = nullptr;
    bool seen_error    = false;
};

void on_log(sd_log_level_t level, const char* text, void* data) {
    Watch* watch = static_cast<Watch*>(data);
    if (watch->progress != nullptr && std::strstr(text, "loading tensors completed") != nullptr)
        watch->progress->model_loaded();
    if (level < SD_LOG_WARN) return;
    std::fprintf(stderr, "%s%s", level == SD_LOG_ERROR ? "error: " : "warning: ", text);
    if (level == SD_LOG_ERROR) watch->seen_error = true;
}

int fail(const std::string& what) {
    std::fprintf(stderr, "upscale: %s\n", what.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4 || argc > 5) {
        std::fprintf(stderr, "usage: upscale MODEL IN OUT.png [THREADS]\n");
        return 2;
    }
    const int threads = argc > 4 ? std::atoi(argv[4]) : sd_get_num_physical_cores();
    if (threads < 1) return fail("the number of threads must be at least 1");
    Watch watch;
    sd_set_log_callback(on_log, &watch);

    int width = 0, height = 0, channels = 0;
    std::unique_ptr<stbi_uc, void (*)(void*)> pixels(stbi_load(argv[2], &width, &height, &channels, 3), stbi_image_free);
    if (!pixels) return fail(std::string(argv[2]) + ": " + stbi_failure_reason());

    const auto start = std::chrono::steady_clock::now();
    std::unique_ptr<upscaler_ctx_t, void (*)(upscaler_ctx_t*)> context(
        new_upscaler_ctx(argv[1], false, threads, 128, nullptr, nullptr), free_upscaler_ctx);
    if (!context) return fail(std::string(argv[1]) + ": the model cannot be loaded");

    sd_image_t out{};
    {
        Progress progress;
        watch.progress = &progress;
        sd_set_progress_callback(on_progress, &progress);
        out = upscale(context.get(), {uint32_t(width), uint32_t(height), 3, pixels.get()},
                      uint32_t(get_upscale_factor(context.get())));
        sd_set_progress_callback(nullptr, nullptr);
        watch.progress = nullptr;
    }
    std::unique_ptr<uint8_t, void (*)(void*)> result(out.data, std::free);
    if (!result || watch.seen_error) return fail("upscaling failed");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (stbi_write_png(argv[3], int(out.width), int(out.height), int(out.channel), out.data, 0) == 0)
        return fail(std::string(argv[3]) + ": cannot be written");
    std::printf("%s\n%d x %d -> %u x %u in %.2f s on %d thread%s\n", argv[3], width, height, out.width, out.height, seconds,
                threads, threads == 1 ? "" : "s");
    return 0;
}

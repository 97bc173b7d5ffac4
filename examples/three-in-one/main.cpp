// Speech in, a picture out, in one process on one ggml: whisper.cpp hears the beginning of a sentence, llama.cpp finishes it, and what it
// says decides a picture that stable-diffusion.cpp's upscaler enlarges.
// usage: three-in-one SPEECH.wav WHISPER.bin LANGUAGE.gguf UPSCALER.safetensors OUT.png [THREADS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "draw.h"
#include "ggml-backend.h"
#include "llama.h"
#include "stable-diffusion.h"
#include "wav.h"
#include "whisper.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include "stb_image_write.h"

namespace {

const int SIDE = 96, WORDS = 16;

template <class T, void (*release)(T*)>
struct Release {
    void operator()(T* p) const { release(p); }
};
template <class T, void (*release)(T*)>
using Owned = std::unique_ptr<T, Release<T, release>>;

class Clock {
public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const double s = std::chrono::duration<double>(now - last).count();
        last           = now;
        return s;
    }

private:
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

// Both clients report to their own callback; only errors are shown.
void on_ggml_log(ggml_log_level level, const char* text, void*) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

void on_sd_log(sd_log_level_t level, const char* text, void*) {
    if (level == SD_LOG_ERROR) std::fputs(text, stderr);
}

std::string trimmed(std::string text, const char* what) {
    text.erase(0, text.find_first_not_of(what) == std::string::npos ? text.size() : text.find_first_not_of(what));
    text.erase(text.find_last_not_of(what) + 1);
    return text;
}

std::string hear(const char* model, const char* wav, int threads) {
    whisper_context_params cp = whisper_context_default_params();
    cp.use_gpu                = false;
    const Owned<whisper_context, whisper_free> ctx(whisper_init_from_file_with_params(model, cp));
    if (!ctx) throw std::runtime_error(std::string(model) + ": the model cannot be loaded");
    const std::vector<float> samples = read_wav(wav);
    whisper_full_params p            = whisper_full_default_params(WHISPER_SAMPLING_GREEDY);
    p.n_threads                      = threads;
    p.language                       = "en";
    p.print_progress                 = false;
    if (whisper_full(ctx.get(), p, samples.data(), int(samples.size())) != 0) throw std::runtime_error("transcription failed");
    std::string text;
    for (int i = 0; i < whisper_full_n_segments(ctx.get()); i++) text += whisper_full_get_segment_text(ctx.get(), i);
    return trimmed(text, " .!?\n");
}

// Continues `text` by the most probable tokens, to the end of the sentence.
std::string finish(const char* path, const std::string& text, int threads) {
    const Owned<llama_model, llama_model_free> model(llama_model_load_from_file(path, llama_model_default_params()));
    if (!model) throw std::runtime_error(std::string(path) + ": the model cannot be loaded");
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx                = 256;
    cp.n_threads            = threads;
    cp.n_threads_batch      = threads;
    const Owned<llama_context, llama_free> ctx(llama_init_from_model(model.get(), cp));
    if (!ctx) throw std::runtime_error("llama_init_from_model gave NULL");
    const llama_vocab* vocabulary = llama_model_get_vocab(model.get());
    std::vector<llama_token> tokens(text.size() + 8);
    const int n = llama_tokenize(vocabulary, text.data(), int(text.size()), tokens.data(), int(tokens.size()), true, false);
    if (n <= 0 || n > int(cp.n_ctx) - WORDS) throw std::runtime_error("the sentence is too long");
    const Owned<llama_sampler, llama_sampler_free> greedy(llama_sampler_init_greedy());
    llama_batch batch = llama_batch_get_one(tokens.data(), n);
    llama_token next  = 0;
    std::string said;
    for (int i = 0; i < WORDS; i++) {
        if (llama_decode(ctx.get(), batch) != 0) throw std::runtime_error("llama_decode failed");
        next = llama_sampler_sample(greedy.get(), ctx.get(), -1);
        char piece[128];
        const int length = llama_token_to_piece(vocabulary, next, piece, sizeof piece, 0, false);
        if (llama_vocab_is_eog(vocabulary, next) || length <= 0) break;
        const std::string more(piece, size_t(length));
        if (more.find_first_of(".\n") != std::string::npos) break;
        said += more;
        batch = llama_batch_get_one(&next, 1);
    }
    return said;
}

void enlarge(const char* model, std::vector<uint8_t> rgb, const char* out, int threads) {
    const Owned<upscaler_ctx_t, free_upscaler_ctx> ctx(new_upscaler_ctx(model, false, threads, 128, nullptr, nullptr));
    if (!ctx) throw std::runtime_error(std::string(model) + ": the model cannot be loaded");
    const sd_image_t big = upscale(ctx.get(), {SIDE, SIDE, 3, rgb.data()}, uint32_t(get_upscale_factor(ctx.get())));
    const std::unique_ptr<uint8_t, void (*)(void*)> data(big.data, std::free);
    if (!data) throw std::runtime_error("upscaling failed");
    if (stbi_write_png(out, int(big.width), int(big.height), int(big.channel), big.data, 0) == 0)
        throw std::runtime_error(std::string(out) + ": cannot be written");
}

void run(char** argv, int threads) {
    whisper_log_set(on_ggml_log, nullptr);
    llama_log_set(on_ggml_log, nullptr);
    sd_set_log_callback(on_sd_log, nullptr);
    sd_set_progress_callback([](int, int, float, void*) {}, nullptr);
    llama_backend_init();

    Clock clock;
    const std::string heard = hear(argv[2], argv[1], threads);
    std::printf("whisper.cpp hears            %6.2f s  \"%s ...\"\n", clock.lap(), heard.c_str());
    std::fflush(stdout);
    const std::string said = finish(argv[3], heard, threads);
    std::printf("llama.cpp says               %6.2f s  \"...%s\"\n", clock.lap(), said.c_str());
    std::fflush(stdout);
    const std::vector<Colour> colours = colours_in(said);
    std::string names;
    for (const Colour& c : colours) names += (names.empty() ? "" : " and ") + c.name;
    enlarge(argv[4], draw_ball(colours, SIDE), argv[5], threads);
    std::printf("stable-diffusion.cpp draws   %6.2f s  a ball, %s: %s\n", clock.lap(),
                names.empty() ? "grey, for no colour was named" : names.c_str(), argv[5]);
    std::printf("one ggml: version %s, %zu device%s, %s\n", ggml_version(), ggml_backend_dev_count(),
                ggml_backend_dev_count() == 1 ? "" : "s", ggml_backend_dev_description(ggml_backend_dev_get(0)));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6 || argc > 7) {
        std::fprintf(stderr, "usage: three-in-one SPEECH.wav WHISPER.bin LANGUAGE.gguf UPSCALER.safetensors OUT.png [THREADS]\n");
        return 2;
    }
    const int threads = argc > 6 ? std::atoi(argv[6]) : sd_get_num_physical_cores();
    if (threads < 1) {
        std::fprintf(stderr, "three-in-one: the number of threads must be at least 1\n");
        return 2;
    }
    try {
        run(argv, threads);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "three-in-one: %s\n", e.what());
        return 1;
    }
    return 0;
}

// Runs one case on whisper.cpp's public interface: transcribes a WAV file (16 kHz, 16 bit, mono). The same source is compiled for both
// libraries. The log goes to stderr; stdout gets the best time of each stage and the peak memory; --out gets the transcript.
#include <memory>

#include "../../../examples/three-in-one/wav.h"
#include "../driver.h"
#include "whisper.h"

namespace {

using driver::Arguments;
using driver::Stages;

struct Release {
    void operator()(whisper_context* c) const { whisper_free(c); }
};

void transcribe(const Arguments& args) {
    Stages stages;
    const std::vector<float> samples = read_wav(args.required("in"));
    double start                     = driver::now();
    whisper_context_params cp        = whisper_context_default_params();
    cp.use_gpu                       = false;
    cp.flash_attn                    = args.number("flash", 1) != 0;
    const std::unique_ptr<whisper_context, Release> ctx(whisper_init_from_file_with_params(args.required("model").c_str(), cp));
    if (!ctx) throw std::runtime_error("whisper_init_from_file_with_params gave NULL");
    stages.add("load", driver::now() - start);

    const int beams         = args.number("beams", 1);
    whisper_full_params p   = whisper_full_default_params(beams > 1 ? WHISPER_SAMPLING_BEAM_SEARCH : WHISPER_SAMPLING_GREEDY);
    p.n_threads             = args.number("threads", 2);
    p.language              = "en";
    p.print_progress        = false;
    p.no_context            = true;
    p.temperature_inc       = 0;  // one attempt at each window, so that both libraries do the same work
    p.beam_search.beam_size = beams;
    std::string text;
    // The first pass takes memory and is not timed.
    for (int repeat = 0; repeat <= args.number("repeat", 2); repeat++) {
        whisper_reset_timings(ctx.get());
        start        = driver::now();
        const int rc = whisper_full(ctx.get(), p, samples.data(), int(samples.size()));
        if (rc != 0) throw std::runtime_error("whisper_full gave " + std::to_string(rc));
        const double whole = driver::now() - start;
        text.clear();
        for (int i = 0; i < whisper_full_n_segments(ctx.get()); i++) {
            text += std::to_string(whisper_full_get_segment_t0(ctx.get(), i)) + ' ' +
                    std::to_string(whisper_full_get_segment_t1(ctx.get(), i)) + whisper_full_get_segment_text(ctx.get(), i) + '\n';
        }
        if (repeat == 0) continue;
        // Milliseconds, each the mean of its calls: encoder; decoder for one token, for one token of several beams, for a prompt.
        const std::unique_ptr<whisper_timings, void (*)(whisper_timings*)> t(whisper_get_timings(ctx.get()),
                                                                             [](whisper_timings* p) { delete p; });
        if (!t) throw std::runtime_error("whisper_get_timings gave NULL");
        stages.add("all", whole);
        stages.add("encode", t->encode_ms / 1e3);
        stages.add(beams > 1 ? "beams" : "decode", (beams > 1 ? t->batchd_ms : t->decode_ms) / 1e3);
    }
    const std::string out = args.required("out");
    std::ofstream f(out, std::ios::binary);
    f << text;
    driver::close(f, out);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    try {
        const Arguments args(argc, argv);
        whisper_log_set(driver::log_line, nullptr);
        if (kind != "transcribe") {
            std::fprintf(stderr, "usage: whisper-driver transcribe --model FILE --in FILE.wav --out FILE [--option value]...\n");
            return 2;
        }
        transcribe(args);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ERROR driver: %s\n", e.what());
        return 1;
    }
    driver::print_peak();
    return 0;
}

// Runs one case on llama.cpp's public interface: continue a text greedily, or embed sentences. The same source is compiled for
// both libraries. The log goes to stderr; stdout gets the best time of each stage and the peak memory.
//
// generate --out FILE: i32 tokens in the vocabulary, i32 steps; the f32 logits after the prompt; for each step i32 and f32 of the best
//                      token, the same of the second
// embed    --out FILE: i32 values in a vector, i32 sentences; the f32 vectors, of length 1
// widen    --out FILE: the model with its quantised weights as f16, so that nothing rounds activations to 8 bits
#include <cmath>
#include <memory>

#include "../driver.h"
#include "llama.h"

namespace {

using driver::Arguments;
using driver::Stages;

// Long enough for prompts of some hundred tokens.
const char* const STORY =
    "The lighthouse stood on a cliff above the sea, and in the evening its light could be seen from every farm on the island. The "
    "keeper had lived there for thirty years. Every morning he climbed the stairs, cleaned the lamp and wrote down the weather: the "
    "wind, the height of the waves, the ships that had passed in the night. One day in autumn a boat came in that nobody knew. It "
    "carried no sail and no name, only a box of letters that were addressed to him. He sat down by the window, opened the first of "
    "them and began to read. It had been written long before he was born, by a woman who had kept the same light, and it told him "
    "what would happen to the island if the lamp should ever go out. He read until it was dark, and then he went up the stairs.";

const char* const SENTENCES[] = {
    "A lighthouse guides ships at night.",
    "The beacon on the cliff shows sailors the way in the dark.",
    "Bread needs flour, water, salt and time.",
    "How do I multiply two matrices?",
    "The product of an m by k and a k by n matrix has m rows and n columns; each entry is a sum of k products.",
    "Heute regnet es den ganzen Tag.",
};

template <class T, void (*release)(T*)>
struct Release {
    void operator()(T* p) const { release(p); }
};
using Model   = std::unique_ptr<llama_model, Release<llama_model, llama_model_free>>;
using Context = std::unique_ptr<llama_context, Release<llama_context, llama_free>>;

std::vector<llama_token> tokens_of(const llama_model* model, const std::string& text) {
    std::vector<llama_token> out(text.size() + 8);
    const int n = llama_tokenize(llama_model_get_vocab(model), text.data(), int(text.size()), out.data(), int(out.size()), true, true);
    if (n < 0) throw std::runtime_error("llama_tokenize gave " + std::to_string(n));
    out.resize(size_t(n));
    return out;
}

Model load(const Arguments& args, Stages& stages) {
    const double start = driver::now();
    Model model(llama_model_load_from_file(args.required("model").c_str(), llama_model_default_params()));
    if (!model) throw std::runtime_error("llama_model_load_from_file gave NULL");
    stages.add("load", driver::now() - start);
    return model;
}

Context context(const Arguments& args, llama_model* model, bool embeddings) {
    llama_context_params p = llama_context_default_params();
    p.n_ctx                = uint32_t(args.number("context", 512));
    p.n_batch              = p.n_ctx;
    p.n_ubatch             = p.n_ctx;
    p.n_threads            = args.number("threads", 2);
    p.n_threads_batch      = p.n_threads;
    p.embeddings           = embeddings;
    p.flash_attn_type      = args.number("flash", 1) != 0 ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    Context out(llama_init_from_model(model, p));
    if (!out) throw std::runtime_error("llama_init_from_model gave NULL");
    return out;
}

// Threads that the program owns, made and attached as llama.cpp's own tools do it: through addresses that the CPU backend gives out.
class Pool {
public:
    Pool(llama_context* ctx, int threads) : ctx(ctx) {
        ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
        ggml_backend_reg_t reg    = ggml_backend_dev_backend_reg(device);
        const auto make           = reinterpret_cast<decltype(&ggml_threadpool_new)>(
            ggml_backend_reg_get_proc_address(reg, "ggml_threadpool_new"));
        release = reinterpret_cast<decltype(&ggml_threadpool_free)>(ggml_backend_reg_get_proc_address(reg, "ggml_threadpool_free"));
        if (make == nullptr || release == nullptr) throw std::runtime_error("the CPU backend gives no ggml_threadpool_new");
        ggml_threadpool_params p = ggml_threadpool_params_default(threads);
        pool                     = make(&p);
        if (pool == nullptr) throw std::runtime_error("ggml_threadpool_new gave NULL");
        llama_attach_threadpool(ctx, pool, nullptr);
    }
    Pool(const Pool&) = delete;
    ~Pool() {
        llama_detach_threadpool(ctx);
        release(pool);
    }

private:
    llama_context* ctx;
    ggml_threadpool* pool = nullptr;
    decltype(&ggml_threadpool_free) release;
};

struct Best {
    int32_t first;
    float first_logit;
    int32_t second;
    float second_logit;
};

Best best_two(const float* logits, int n) {
    Best b{-1, -INFINITY, -1, -INFINITY};
    for (int i = 0; i < n; i++) {
        if (logits[i] > b.first_logit) {
            b.second       = b.first;
            b.second_logit = b.first_logit;
            b.first        = i;
            b.first_logit  = logits[i];
        } else if (logits[i] > b.second_logit) {
            b.second       = i;
            b.second_logit = logits[i];
        }
    }
    return b;
}

void decode(llama_context* ctx, llama_token* tokens, int n) {
    const int rc = llama_decode(ctx, llama_batch_get_one(tokens, n));
    if (rc != 0) throw std::runtime_error("llama_decode gave " + std::to_string(rc));
}

void generate(const Arguments& args) {
    Stages stages;
    const Model model    = load(args, stages);
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    const int length = args.number("prompt", 64), steps = args.number("steps", 32);
    std::vector<llama_token> prompt = tokens_of(model.get(), STORY);
    if (int(prompt.size()) < length) throw std::runtime_error("the text has only " + std::to_string(prompt.size()) + " tokens");
    prompt.resize(size_t(length));

    const Context ctx = context(args, model.get(), false);
    std::unique_ptr<Pool> pool;
    if (args.has("pool")) pool.reset(new Pool(ctx.get(), args.number("threads", 2)));
    std::vector<float> logits;
    std::vector<Best> path;
    // The first pass takes memory and is not timed.
    for (int repeat = 0; repeat <= args.number("repeat", 3); repeat++) {
        llama_memory_clear(llama_get_memory(ctx.get()), true);
        path.clear();
        double start = driver::now();
        decode(ctx.get(), prompt.data(), length);
        const float* now = llama_get_logits_ith(ctx.get(), -1);
        if (now == nullptr) throw std::runtime_error("no logits");
        if (repeat > 0) stages.add("prompt", driver::now() - start);
        logits.assign(now, now + vocabulary);
        path.push_back(best_two(now, vocabulary));
        double spent = 0;
        while (int(path.size()) < steps) {
            llama_token token = path.back().first;
            start             = driver::now();
            decode(ctx.get(), &token, 1);
            now = llama_get_logits_ith(ctx.get(), -1);
            spent += driver::now() - start;
            path.push_back(best_two(now, vocabulary));
        }
        if (repeat > 0) stages.add("generate", spent);
    }
    std::string text;
    for (const Best& b : path) {
        char piece[128];
        const int n = llama_token_to_piece(llama_model_get_vocab(model.get()), b.first, piece, sizeof piece, 0, true);
        text.append(piece, n > 0 ? size_t(n) : 0);
    }
    std::fprintf(stderr, "INFO text: %s\n", text.c_str());
    const std::string out = args.required("out");
    std::ofstream f(out, std::ios::binary);
    const int32_t head[2] = {vocabulary, int32_t(path.size())};
    driver::append(f, head, 2);
    driver::append(f, logits.data(), logits.size());
    driver::append(f, path.data(), path.size());
    driver::close(f, out);
}

struct Batch {
    llama_batch batch;
    Batch(const std::vector<llama_token>& tokens) : batch(llama_batch_init(int(tokens.size()), 0, 1)) {
        for (size_t i = 0; i < tokens.size(); i++) {
            batch.token[i]     = tokens[i];
            batch.pos[i]       = llama_pos(i);
            batch.n_seq_id[i]  = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i]    = 1;
        }
        batch.n_tokens = int(tokens.size());
    }
    Batch(const Batch&) = delete;
    ~Batch() { llama_batch_free(batch); }
};

std::vector<float> embedding(llama_context* ctx, const std::vector<llama_token>& tokens, int size) {
    const Batch b(tokens);
    const int rc = llama_encode(ctx, b.batch);
    if (rc != 0) throw std::runtime_error("llama_encode gave " + std::to_string(rc));
    const float* e = llama_get_embeddings_seq(ctx, 0);
    if (e == nullptr) throw std::runtime_error("no embeddings");
    double square = 0;
    for (int i = 0; i < size; i++) square += double(e[i]) * e[i];
    std::vector<float> out(e, e + size);
    for (float& v : out) v = float(v / std::sqrt(square));
    return out;
}

void embed(const Arguments& args) {
    Stages stages;
    const Model model = load(args, stages);
    const int size    = llama_model_n_embd(model.get());
    const Context ctx = context(args, model.get(), true);
    std::vector<float> all;
    for (const char* sentence : SENTENCES) {
        const std::vector<float> e = embedding(ctx.get(), tokens_of(model.get(), sentence), size);
        all.insert(all.end(), e.begin(), e.end());
    }
    const std::vector<llama_token> story = tokens_of(model.get(), STORY), sentence = tokens_of(model.get(), SENTENCES[4]);
    const std::vector<float> e = embedding(ctx.get(), story, size);
    all.insert(all.end(), e.begin(), e.end());
    for (int repeat = 0; repeat < args.number("repeat", 3); repeat++) {
        double start = driver::now();
        embedding(ctx.get(), story, size);
        stages.add("text", driver::now() - start);
        embedding(ctx.get(), sentence, size);
        start = driver::now();
        for (int i = 0; i < 4; i++) embedding(ctx.get(), sentence, size);
        stages.add("sentence", (driver::now() - start) / 4);
    }
    const std::string out = args.required("out");
    std::ofstream f(out, std::ios::binary);
    const int32_t head[2] = {size, int32_t(all.size()) / size};
    driver::append(f, head, 2);
    driver::append(f, all.data(), all.size());
    driver::close(f, out);
}

void widen(const Arguments& args) {
    llama_model_quantize_params p = llama_model_quantize_default_params();
    p.nthread                     = args.number("threads", 2);
    p.ftype                       = LLAMA_FTYPE_MOSTLY_F16;
    p.allow_requantize            = true;
    const uint32_t rc = llama_model_quantize(args.required("model").c_str(), args.required("out").c_str(), &p);
    if (rc != 0) throw std::runtime_error("llama_model_quantize gave " + std::to_string(rc));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    try {
        const Arguments args(argc, argv);
        llama_log_set(driver::log_line, nullptr);
        llama_backend_init();
        if (kind == "generate") {
            generate(args);
        } else if (kind == "embed") {
            embed(args);
        } else if (kind == "widen") {
            widen(args);
        } else {
            std::fprintf(stderr, "usage: llama-driver generate|embed|widen --model FILE --out FILE [--option value]...\n");
            return 2;
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ERROR driver: %s\n", e.what());
        return 1;
    }
    driver::print_peak();
    return 0;
}

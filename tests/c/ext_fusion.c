/* Which matches of a rule are accepted, and what is computed then: EXT-40 to EXT-44, EXT-49. */
#include "ext_fusion.h"

/* Every graph is of matrices of 16 x 4. */
static struct ggml_tensor * in(int i) {
    static const char * const names[] = { "x", "p", "q", "r" };
    return k.in[i] = input(names[i], 16, 4);
}

static struct ggml_tensor * result(struct ggml_tensor * t) {
    ggml_set_output(t);
    for (int i = 0; i < TENSORS; i++) {
        if (!k.out[i]) {
            k.out[i] = t;
            break;
        }
    }
    return t;
}

static void expand(struct ggml_tensor * t) {
    if (!k.graph) {
        k.graph = ggml_new_graph_custom(ctx, 64, false);
    }
    ggml_build_forward_expand(k.graph, t);
}

static void match(struct ggml_tensor * first, int n) {
    k.first = first;
    k.n     = n;
}

/* a = x * p, b = a + q, c = b * 3 */
static struct ggml_tensor *a, *b, *c;

static void chain(void) {
    a = named(ggml_mul(ctx, in(0), in(1)), "a");
    b = named(ggml_add(ctx, a, in(2)), "b");
    c = named(ggml_scale(ctx, b, 3), "c");
}

/* accepted */

static void whole(void) { chain(), expand(result(c)), match(a, 3); }
static void front(void) { chain(), expand(result(c)), match(a, 2); }
static void back(void) { chain(), expand(result(c)), match(b, 2); }
static void used_twice(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_add(ctx, a, a);
    expand(result(ggml_mul(ctx, b, a)));
    match(a, 3);
}
static void broadcast(void) {
    struct ggml_tensor * row = k.in[1] = input("row", 16, 1);
    a = ggml_sqr(ctx, in(0));
    expand(result(ggml_add(ctx, a, row)));
    match(a, 2);
}
static void reader_after(void) {
    chain();
    expand(result(c));
    expand(result(named(ggml_sqr(ctx, c), "d")));
    match(a, 3);
}
static void inner_view(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_reshape_2d(ctx, a, 4, 16);
    expand(result(ggml_scale(ctx, b, 2)));
    match(a, 3);
}
static void inner_permuted(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_cont(ctx, ggml_transpose(ctx, a));
    expand(result(ggml_scale(ctx, b, 2)));
    match(a, 4);
}
static void inner_inplace(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale_inplace(ctx, a, 2);
    expand(result(ggml_add(ctx, b, in(1))));
    match(a, 3);
}
static void inner_cpy(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale(ctx, in(1), 0.5f);
    c = ggml_cpy(ctx, b, a); /* over a, whose old values nobody reads */
    expand(a);
    expand(result(ggml_add(ctx, c, in(2))));
    match(a, 4);
}
static void ends_in_cast(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale(ctx, a, 2);
    expand(result(ggml_cast(ctx, b, GGML_TYPE_F16)));
    match(a, 3);
}
static void ends_in_cont(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_permute(ctx, a, 1, 0, 2, 3);
    expand(result(ggml_cont(ctx, b)));
    match(a, 3);
}
static void ends_in_cpy(void) {
    struct ggml_tensor * to = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 16, 6);
    ggml_set_input(to);
    ggml_set_output(to);
    a = ggml_mul(ctx, in(0), in(1));
    b = ggml_scale(ctx, a, 2);
    k.in[2]                   = to;
    struct ggml_tensor * part = ggml_view_2d(ctx, to, 16, 4, to->nb[1], to->nb[1]);
    expand(part);
    expand(result(ggml_cpy(ctx, b, part)));
    match(a, 3);
    k.out[1] = to; /* rows before and after keep what they had */
}
static void writes_back(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale(ctx, a, 2);
    expand(result(ggml_add_inplace(ctx, a, b)));
    match(a, 3);
    k.owner = a;
}
static void writes_back_output(void) {
    writes_back();
    ggml_set_output(a);
    k.out[1] = a;
}

/* refused */

static void consumer(void) {
    chain();
    expand(result(c));
    expand(result(ggml_sqr(ctx, b)));
    match(a, 3);
}
static void consumer_elsewhere(void) {
    chain();
    expand(result(c));
    k.on_cpu[0] = ggml_sqr(ctx, b);
    expand(result(k.on_cpu[0]));
    match(a, 3);
}
static void consumer_before(void) {
    chain();
    struct ggml_tensor * d = ggml_sqr(ctx, a);
    expand(a), expand(b), expand(result(c)), expand(result(d));
    match(b, 2); /* is fine by itself: b has one reader */
    match(a, 2);
}
static void inner_output(void) {
    chain();
    expand(result(c));
    result(b);
    match(a, 3);
}
static void not_computed(void) {
    chain();
    expand(c);
    b->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    match(a, 3);
    k.garbage = true;
}
static void double_it(struct ggml_tensor * dst, const struct ggml_tensor * src, int ith, int nth, void * data) {
    (void) data;
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth) {
        ((float *) dst->data)[i] = 2 * ((const float *) src->data)[i];
    }
}
static void custom_callback(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_map_custom1(ctx, a, double_it, 1, NULL);
    expand(result(ggml_scale(ctx, b, 3)));
    match(a, 3);
}
static void a_parameter(void) {
    chain();
    b->flags |= GGML_TENSOR_FLAG_PARAM;
    expand(result(c));
    match(a, 3);
}
static void an_input(void) {
    chain();
    b->flags |= GGML_TENSOR_FLAG_INPUT;
    expand(result(c));
    match(a, 3);
}
static void unread(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale(ctx, in(1), 2);
    expand(a), expand(result(b)), result(a);
    a->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
    k.out[1] = NULL;
    match(a, 2); /* nobody reads a: it is a result */
}
static void outside_view(void) {
    chain();
    struct ggml_tensor * v = ggml_view_1d(ctx, b, 8, 0);
    expand(result(c));
    expand(result(ggml_scale(ctx, v, 5)));
    match(a, 3);
}
static void foreign_view(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_reshape_2d(ctx, a, 4, 16);
    expand(result(ggml_scale(ctx, b, 2)));
    match(b, 2);
}
static void foreign_inplace(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale_inplace(ctx, a, 2);
    expand(result(ggml_add(ctx, b, in(1))));
    match(b, 2);
}
static void foreign_write(void) {
    struct ggml_tensor * e = ggml_sqrt(ctx, ggml_sqr(ctx, in(1)));
    a = ggml_sqr(ctx, in(0));
    expand(e);
    expand(result(ggml_add_inplace(ctx, e, a)));
    match(a, 2);
}
static void part_of_owner(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_view_1d(ctx, a, 32, 0);
    expand(result(ggml_scale_inplace(ctx, b, 2)));
    match(a, 3);
}
static void other_shape_of_owner(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_reshape_2d(ctx, a, 4, 16);
    expand(result(ggml_scale_inplace(ctx, b, 2)));
    match(a, 3);
}
static void owner_read_outside(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale(ctx, a, 2);
    c = ggml_add_inplace(ctx, a, b);
    expand(result(c));
    expand(result(ggml_sub(ctx, c, a)));
    match(a, 3);
}
static void ends_in_view(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_reshape_2d(ctx, a, 4, 16);
    expand(result(ggml_scale(ctx, b, 2)));
    match(a, 2);
}
static void overwritten(void) {
    a = ggml_sqr(ctx, in(0));
    b = ggml_scale_inplace(ctx, a, 2);
    expand(b);
    expand(result(ggml_add(ctx, a, b))); /* reads a by the name that it had before it was written over */
    match(a, 3);
}

/* EXT-44: the destination of a copy lies over what the match reads. */
static void aliased(void) {
    struct ggml_tensor * z = k.in[0] = input("z", 96, 1);
    ggml_set_output(z);
    struct ggml_tensor * to = ggml_view_1d(ctx, z, 64, 32 * sizeof(float)), * from = ggml_view_1d(ctx, z, 64, 0);
    expand(to);
    a = ggml_scale(ctx, from, 2);
    expand(result(ggml_cpy(ctx, a, to)));
    match(a, 2);
    k.out[1] = z;
}

int main(void) {
    fusion_open();
    fusion_case("EXT-40: three nodes", whole, NULL);
    fusion_case("EXT-40: two of three", front, NULL);
    fusion_case("EXT-40: the last two", back, NULL);
    fusion_case("EXT-40: a node used twice inside", used_twice, NULL);
    fusion_case("EXT-40: a row for all rows", broadcast, NULL);
    fusion_case("EXT-41: the result is read", reader_after, NULL);
    fusion_case("EXT-41: another consumer", consumer, "read from outside the match");
    fusion_case("EXT-41: a consumer on another backend", consumer_elsewhere, "read from outside the match");
    fusion_case("EXT-41: a consumer of the first", consumer_before, "read from outside the match");
    fusion_case("EXT-41: an output flag", inner_output, "flagged as an output");
    fusion_case("EXT-41: no compute flag", not_computed, "not marked to be computed");
    fusion_case("EXT-41: a callback of the application", custom_callback, "pure operators");
    fusion_case("EXT-41: a parameter", a_parameter, "flagged as a parameter");
    fusion_case("EXT-41: an input", an_input, "flagged as an input");
    fusion_case("EXT-41: a second result", unread, "read by no later node");
    fusion_case("EXT-42: a view inside", inner_view, NULL);
    fusion_case("EXT-42: a transposed view inside", inner_permuted, NULL);
    fusion_case("EXT-42: an in-place node inside", inner_inplace, NULL);
    fusion_case("EXT-42: a copy over an inner node", inner_cpy, NULL);
    fusion_case("EXT-42: a view of outer storage", foreign_view, "views storage that no earlier node of the match owns");
    fusion_case("EXT-42: an in-place node over outer storage", foreign_inplace, "writes over storage that no earlier node of the match owns");
    fusion_case("EXT-42: a view of an inner node is read outside", outside_view, "read from outside the match");
    fusion_case("EXT-42: a node read after it was written over", overwritten, "has replaced");
    fusion_case("EXT-43: ends in a conversion", ends_in_cast, NULL);
    fusion_case("EXT-43: ends in CONT of a view", ends_in_cont, NULL);
    fusion_case("EXT-43: ends in a copy to given storage", ends_in_cpy, NULL);
    fusion_case("EXT-43: writes back to the first node", writes_back, NULL);
    fusion_case("EXT-43: writes back to an output", writes_back_output, NULL);
    fusion_case("EXT-43: writes back to a part", part_of_owner, "not over all of it");
    fusion_case("EXT-43: writes back in another shape", other_shape_of_owner, "not over all of it");
    fusion_case("EXT-43: writes back to what is read outside", owner_read_outside, "read from outside the match");
    fusion_case("EXT-43: writes in place to outer storage", foreign_write, "writes over storage that no earlier node of the match owns");
    fusion_case("EXT-43: ends in a view", ends_in_view, "is a view");
    fusion_case("EXT-44: the result lies over an input", aliased, NULL);
    return fusion_close();
}

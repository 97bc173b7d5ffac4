/* What the module plain_device tells about itself: ggml_backend_reg_get_proc_address(reg, "plain_counts"). */
#ifndef PLAIN_DEVICE_H
#define PLAIN_DEVICE_H

struct plain_counts {
    int graphs, nodes;        /* that its own code was given */
    int custom;               /* nodes of GGML_OP_CUSTOM among them */
    int buffers, allocations; /* alive, and ever made */
};

typedef struct plain_counts * (*plain_counts_t)(void);

#endif

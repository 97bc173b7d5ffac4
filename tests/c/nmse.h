/* How far two lists of floats are apart. */
#ifndef NMSE_H
#define NMSE_H

#include "check.h"

#include <math.h>

/* Normalised mean squared error of a against b; infinite where one of them has no finite value. */
static CHECK_UNUSED double nmse(const float * a, const float * b, int64_t n) {
    double err = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i])) {
            return INFINITY;
        }
        err += (double) (a[i] - b[i]) * (a[i] - b[i]);
        sum += (double) b[i] * b[i];
    }
    return sum > 0 ? err / sum : err;
}

#endif

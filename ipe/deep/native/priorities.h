/* Sums of priorities in a binary tree (Schaul et al., 2016), one tree after the other for a batch of seeds. A tree of `size`
   leaves, a power of 2, has 2 * size nodes: node 1 is the root, the children of node i are 2 i and 2 i + 1, and the leaves
   begin at `size`. Every node is the sum of its two children. ipe/deep/sum_tree.py does the same in NumPy, to the same bytes. */
#ifndef IPE_PRIORITIES_H
#define IPE_PRIORITIES_H

#include <stdint.h>

/* Give n leaves of each tree new values. */
void ipe_tree_set(double *nodes, int64_t trees, int64_t size, int64_t n, const int64_t *leaves, const double *values) {
    for (int64_t t = 0; t < trees; t++, nodes += 2 * size, leaves += n, values += n) {
        for (int64_t i = 0; i < n; i++) nodes[size + leaves[i]] = values[i];
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = (size + leaves[i]) / 2; k > 0; k /= 2) nodes[k] = nodes[2 * k] + nodes[2 * k + 1];
    }
}

/* Find the leaves in which n points of each tree lie: the leaves' values stand one after the other on a line. */
void ipe_tree_find(const double *nodes, int64_t trees, int64_t size, int64_t n, const double *points, int64_t *leaves) {
    for (int64_t t = 0; t < trees; t++, nodes += 2 * size, leaves += n, points += n)
        for (int64_t i = 0; i < n; i++) {
            double point = points[i];
            int64_t k = 1;
            while (k < size) {
                const double left = nodes[2 * k];
                const int right = !(point < left) && nodes[2 * k + 1] > 0.0; /* never to a sum of 0, whatever the rounding */
                if (right) point -= left;
                k = 2 * k + right;
            }
            leaves[i] = k - size;
        }
}

#endif

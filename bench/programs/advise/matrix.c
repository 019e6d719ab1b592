// matrix N: multiplies two matrices of N by N, and says a number of the product.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    size_t n = count > 1 ? strtoul(words[1], NULL, 10) : 1500;
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = calloc(n * n, sizeof *c);
    if (!a || !b || !c)
        return 1;
    for (size_t i = 0; i < n * n; i++) {
        a[i] = i % 7;
        b[i] = i % 11;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    printf("%g\n", c[n * n / 2]);
}

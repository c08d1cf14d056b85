// The peer of the primitives table: CUB from the CUDA toolkit, timed as our own rows are (events around one call, median
// of 15 after 3 warm-ups). Prints `row,elements,milliseconds`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cub/cub.cuh>

static void check(cudaError_t status, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(status));
        std::exit(1);
    }
}
#define CHECK(call) check((call), __LINE__)

__global__ void randomize(unsigned *out, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) {
        unsigned long long z = (i + 1) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        out[i] = unsigned(z ^ (z >> 31));
    }
}

template <class Operation>
static double median_milliseconds(Operation operation) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int run = 0; run < 18; run++) {
        CHECK(cudaEventRecord(start));
        operation();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float time;
        CHECK(cudaEventElapsedTime(&time, start, end));
        if (run >= 3) times.push_back(time);
    }
    CHECK(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Stable segmented sort of pairs, with random cuts: `n / mean` segments.
static void segmented_sort(size_t n) {
    unsigned *keys, *values, *sorted_keys, *sorted_values, *offsets;
    for (unsigned **array : {&keys, &values, &sorted_keys, &sorted_values}) CHECK(cudaMalloc(array, n * 4));
    randomize<<<unsigned((n + 255) / 256), 256>>>(keys, n);
    randomize<<<unsigned((n + 255) / 256), 256>>>(values, n);
    for (size_t mean : {8, 64, 1024}) {
        size_t segments = n / mean;
        std::mt19937 g(7);
        std::vector<unsigned> cuts = {0, unsigned(n)};
        for (size_t i = 1; i < segments; i++) cuts.push_back(unsigned(g() % (n + 1)));
        std::sort(cuts.begin(), cuts.end());
        CHECK(cudaMalloc(&offsets, cuts.size() * 4));
        CHECK(cudaMemcpy(offsets, cuts.data(), cuts.size() * 4, cudaMemcpyHostToDevice));
        auto sort = [&](void *scratch, size_t &bytes) {
            CHECK(cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                                            (long long)n, (long long)segments, offsets, offsets + 1));
        };
        size_t bytes = 0;
        sort(nullptr, bytes);
        void *scratch;
        CHECK(cudaMalloc(&scratch, bytes));
        double time = median_milliseconds([&] { sort(scratch, bytes); });
        std::printf("segmented_sort_pairs_L%zu,%zu,%.6f\n", mean, n, time);
        CHECK(cudaFree(scratch));
        CHECK(cudaFree(offsets));
    }
    for (unsigned *array : {keys, values, sorted_keys, sorted_values}) CHECK(cudaFree(array));
}

int main() {
    segmented_sort(size_t(1) << 24);
    for (int log : {20, 24, 27}) {
        size_t n = size_t(1) << log;
        unsigned *in, *out;
        CHECK(cudaMalloc(&in, n * 4));
        CHECK(cudaMalloc(&out, n * 4));
        randomize<<<unsigned((n + 255) / 256), 256>>>(in, n);

        double time = median_milliseconds([&] { CHECK(cudaMemcpyAsync(out, in, n * 4, cudaMemcpyDeviceToDevice)); });
        std::printf("copy,%zu,%.6f\n", n, time);

        size_t bytes = 0;
        CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, n));
        void *scratch;
        CHECK(cudaMalloc(&scratch, bytes));
        time = median_milliseconds([&] { CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n)); });
        std::printf("exclusive_sum_u32,%zu,%.6f\n", n, time);

        CHECK(cudaFree(scratch));
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
}

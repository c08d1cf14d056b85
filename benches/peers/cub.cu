// The peer of the primitives table: CUB from the CUDA toolkit, timed as our own rows are (events around one call, median
// of 15 after 3 warm-ups). Speaks the line protocol of src/peers.rs: prints `row, parameter, elements, milliseconds`,
// separated by tabs. Measures all of its rows, whatever is asked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cub/cub.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

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

struct Buffer {
    void *data = nullptr;
    explicit Buffer(size_t bytes) { CHECK(cudaMalloc(&data, bytes)); }
    ~Buffer() { cudaFree(data); }
    template <class T>
    T *as() const { return static_cast<T *>(data); }
};

// Calls CUB twice: for the size of the temporary storage, and for the work, which is timed.
template <class Call>
static double median_of(Call call) {
    size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    Buffer scratch(bytes);
    return median_milliseconds([&] { CHECK(call(scratch.data, bytes)); });
}

// CUB has one template for counts of 32 bits and one for counts of 64 bits, and neither is always the faster one. A user may
// choose, so the better time counts.
template <class Call>
static double best_of(size_t n, Call call) {
    double narrow = median_of([&](void *scratch, size_t &bytes) { return call(scratch, bytes, int(n)); });
    double wide = median_of([&](void *scratch, size_t &bytes) { return call(scratch, bytes, n); });
    return std::min(narrow, wide);
}

static void row(const char *name, size_t n, double milliseconds) {
    std::printf("%s\t\t%zu\t%.6f\n", name, n, milliseconds);
    std::fflush(stdout);
}

static void random_u32(unsigned *out, size_t n) { randomize<<<unsigned((n + 255) / 256), 256>>>(out, n); }

static void copy_and_scan(size_t n) {
    Buffer in(n * 4), out(n * 4);
    random_u32(in.as<unsigned>(), n);
    row("copy", n, median_milliseconds([&] { CHECK(cudaMemcpyAsync(out.data, in.data, n * 4, cudaMemcpyDeviceToDevice)); }));
    row("exclusive_sum_u32", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DeviceScan::ExclusiveSum(scratch, bytes, in.as<unsigned>(), out.as<unsigned>(), count);
    }));
}

static void sort(size_t n) {
    Buffer keys(n * 4), values(n * 4), keys_out(n * 4), values_out(n * 4);
    random_u32(keys.as<unsigned>(), n);
    auto k = keys.as<unsigned>(), v = values.as<unsigned>(), ko = keys_out.as<unsigned>(), vo = values_out.as<unsigned>();
    row("sort_pairs_u32_u32", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DeviceRadixSort::SortPairs(scratch, bytes, k, ko, v, vo, count);
    }));
    row("sort_keys_u32", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, k, ko, count);
    }));
}

static void sort_u64(size_t n) {
    Buffer keys(n * 8), keys_out(n * 8);
    random_u32(keys.as<unsigned>(), 2 * n);
    auto k = keys.as<unsigned long long>(), ko = keys_out.as<unsigned long long>();
    row("sort_keys_u64", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, k, ko, count);
    }));
}

struct IsOdd {
    __device__ bool operator()(unsigned x) const { return x & 1; }
};

static void select(size_t n) {
    Buffer in(n * 4), out(n * 4), count(sizeof(size_t));
    random_u32(in.as<unsigned>(), n);
    auto from = in.as<unsigned>(), to = out.as<unsigned>();
    auto selected = count.as<size_t>();
    row("select_if_50pct", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DeviceSelect::If(scratch, bytes, from, to, selected, count, IsOdd{});
    }));
    // The rejected items come out in reverse order, unlike ours.
    row("partition_two_buckets", n, best_of(n, [&](void *scratch, size_t &bytes, auto count) {
        return cub::DevicePartition::If(scratch, bytes, from, to, selected, count, IsOdd{});
    }));
}

// Stable segmented sort of pairs, with random cuts: `n / mean` segments.
static void segmented_sort(size_t n, size_t mean) {
    Buffer keys(n * 4), values(n * 4), keys_out(n * 4), values_out(n * 4);
    random_u32(keys.as<unsigned>(), n);
    size_t segments = n / mean;
    std::mt19937 g(7);
    std::vector<unsigned> cuts = {0, unsigned(n)};
    for (size_t i = 1; i < segments; i++) cuts.push_back(unsigned(g() % (n + 1)));
    std::sort(cuts.begin(), cuts.end());
    Buffer offsets(cuts.size() * 4);
    CHECK(cudaMemcpy(offsets.data, cuts.data(), cuts.size() * 4, cudaMemcpyHostToDevice));
    auto sort = [&](void *scratch, size_t &bytes) {
        CHECK(cub::DeviceSegmentedSort::StableSortPairs(
            scratch, bytes, keys.as<unsigned>(), keys_out.as<unsigned>(), values.as<unsigned>(), values_out.as<unsigned>(),
            (long long)n, (long long)segments, offsets.as<unsigned>(), offsets.as<unsigned>() + 1));
    };
    size_t bytes = 0;
    sort(nullptr, bytes);
    Buffer scratch(bytes);
    char name[64];
    std::snprintf(name, sizeof name, "segmented_sort_pairs_L%zu", mean);
    row(name, n, median_milliseconds([&] { sort(scratch.data, bytes); }));
}

// Other random numbers.
__global__ void change(const unsigned *in, unsigned *out, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] = (in[i] ^ 0x5bd1e995u) * 2654435761u;
}

struct IgnoreLowBit {
    __host__ __device__ bool operator()(unsigned a, unsigned b) const { return a >> 1 < b >> 1; }
};

template <class T>
static T *device_array(size_t n) {
    T *array;
    CHECK(cudaMalloc(&array, n * sizeof(T)));
    return array;
}

// Sorts runs of `run` keys, from bit `begin` up.
static void sort_runs(const unsigned *in, unsigned *out, size_t n, size_t run, int begin) {
    size_t bytes = 0;
    CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, run, begin, 32));
    char *scratch = device_array<char>(bytes);
    for (size_t at = 0; at < n; at += run) {
        CHECK(cub::DeviceRadixSort::SortKeys(scratch, bytes, in + at, out + at, run, begin, 32));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(scratch));
}

// Merges of sorted runs and searches in a sorted array.
static void merges_and_searches(size_t n) {
    unsigned *raw = device_array<unsigned>(n), *keys = device_array<unsigned>(n), *values = device_array<unsigned>(n);
    unsigned *keys_out = device_array<unsigned>(n), *values_out = device_array<unsigned>(n);
    randomize<<<unsigned((n + 255) / 256), 256>>>(raw, n);
    randomize<<<unsigned((n + 255) / 256), 256>>>(values, n);

    // CUB counts in `int` unless told otherwise.
    auto pairs = [&](void *scratch, size_t &bytes, const unsigned *k, const unsigned *v, unsigned *k_out, unsigned *v_out,
                     int half) {
        CHECK(cub::DeviceMerge::MergePairs(scratch, bytes, k, v, half, k + half, v + half, half, k_out, v_out,
                                           IgnoreLowBit{}));
    };
    int half = int(n / 2);
    size_t key_bytes = 0, pair_bytes = 0;
    CHECK(cub::DeviceMerge::MergeKeys(nullptr, key_bytes, keys, half, keys + half, half, keys_out, IgnoreLowBit{}));
    pairs(nullptr, pair_bytes, keys, values, keys_out, values_out, half);
    char *scratch = device_array<char>(std::max(key_bytes, pair_bytes));

    sort_runs(raw, keys, n, n / 2, 1);
    double time = median_milliseconds([&] {
        CHECK(cub::DeviceMerge::MergeKeys(scratch, key_bytes, keys, half, keys + half, half, keys_out, IgnoreLowBit{}));
    });
    std::printf("merge_keys_cmp\t\t%zu\t%.6f\n", n, time);
    time = median_milliseconds([&] { pairs(scratch, pair_bytes, keys, values, keys_out, values_out, half); });
    std::printf("merge_pairs_cmp\t\t%zu\t%.6f\n", n, time);

    // Eight runs take three passes.
    sort_runs(raw, keys, n, n / 8, 1);
    unsigned *keys_between = device_array<unsigned>(n), *values_between = device_array<unsigned>(n);
    time = median_milliseconds([&] {
        const unsigned *k = keys, *v = values;
        unsigned *k_out = keys_out, *v_out = values_out;
        for (size_t run = n / 8; run < n; run *= 2) {
            for (size_t at = 0; at < n; at += 2 * run) {
                pairs(scratch, pair_bytes, k + at, v + at, k_out + at, v_out + at, int(run));
            }
            k = k_out, v = v_out;
            k_out = k_out == keys_out ? keys_between : keys_out;
            v_out = v_out == values_out ? values_between : values_out;
        }
    });
    std::printf("merge_8way_pairs\t\t%zu\t%.6f\n", n, time);
    CHECK(cudaFree(keys_between));
    CHECK(cudaFree(values_between));

    sort_runs(raw, keys, n, n, 0);
    unsigned *needles = values, *sorted_needles = values_out;
    change<<<unsigned((n + 255) / 256), 256>>>(raw, needles, n);
    sort_runs(needles, sorted_needles, n, n, 0);
    auto search = [&](const unsigned *wanted) {
        thrust::lower_bound(thrust::cuda::par_nosync, keys, keys + n, wanted, wanted + n, keys_out);
    };
    time = median_milliseconds([&] { search(needles); });
    std::printf("lower_bound_random\t\t%zu\t%.6f\n", n, time);
    time = median_milliseconds([&] { search(sorted_needles); });
    std::printf("sorted_search\t\t%zu\t%.6f\n", n, time);

    for (void *array : {(void *)raw, (void *)keys, (void *)values, (void *)keys_out, (void *)values_out, (void *)scratch}) {
        CHECK(cudaFree(array));
    }
}

__global__ void runs_of_8(unsigned *out, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] = unsigned(i / 8);
}

__global__ void shift_right(unsigned *out, size_t n, int bits) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] >>= bits;
}

static void reduce(size_t n) {
    Buffer in(n * 4), out(4);
    random_u32(in.as<unsigned>(), n);
    row("reduce_sum_u32", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceReduce::Sum(scratch, bytes, in.as<unsigned>(), out.as<unsigned>(), int(n));
    }));
}

static void segmented_reduce(size_t n, size_t length) {
    size_t segments = n / length;
    Buffer in(n * 4), out(segments * 4), offsets((segments + 1) * 4);
    random_u32(in.as<unsigned>(), n);
    std::vector<int> host(segments + 1);
    for (size_t i = 0; i <= segments; i++) host[i] = int(i * length);
    CHECK(cudaMemcpy(offsets.data, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    int *begin = offsets.as<int>();
    row("segmented_reduce_sum_u32_L64", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceSegmentedReduce::Sum(scratch, bytes, in.as<unsigned>(), out.as<unsigned>(), int(segments), begin,
                                               begin + 1);
    }));
}

static void runs(size_t n) {
    Buffer keys(n * 4), values(n * 4), heads(n * 4), numbers(n * 4), count(8);
    runs_of_8<<<unsigned((n + 255) / 256), 256>>>(keys.as<unsigned>(), n);
    random_u32(values.as<unsigned>(), n);
    auto k = keys.as<unsigned>(), v = values.as<unsigned>(), h = heads.as<unsigned>(), m = numbers.as<unsigned>();
    auto c = count.as<int>();
    row("unique_u32_runs_of_8", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceSelect::Unique(scratch, bytes, k, h, c, int(n));
    }));
    row("run_length_encode_u32_runs_of_8", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceRunLengthEncode::Encode(scratch, bytes, k, h, m, c, int(n));
    }));
    row("reduce_by_key_u32_runs_of_8", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceReduce::ReduceByKey(scratch, bytes, k, h, v, m, c, cuda::std::plus<>{}, int(n));
    }));
    row("exclusive_sum_by_key_u32_runs_of_8", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceScan::ExclusiveSumByKey(scratch, bytes, k, v, m, int(n));
    }));
}

static void scan_u64(size_t n) {
    Buffer in(n * 8), out(n * 8);
    random_u32(in.as<unsigned>(), 2 * n);
    row("exclusive_sum_u64", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceScan::ExclusiveSum(scratch, bytes, in.as<unsigned long long>(), out.as<unsigned long long>(),
                                             int(n));
    }));
}

static void histogram(size_t n) {
    Buffer in(n * 4), counts(256 * 4);
    auto from = in.as<unsigned>();
    auto to = counts.as<int>();
    random_u32(from, n);
    shift_right<<<unsigned((n + 255) / 256), 256>>>(from, n, 24);
    row("histogram_256_even_bytes_in_u32", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, from, to, 257, 0u, 256u, int(n));
    }));
    random_u32(from, n);
    shift_right<<<unsigned((n + 255) / 256), 256>>>(from, n, 1);
    row("histogram_256_even_full_range_u32", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, from, to, 257, 0u, 1u << 31, int(n));
    }));
}

struct Saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};

static void saxpy(size_t n) {
    Buffer x(n * 4), y(n * 4), out(n * 4);
    CHECK(cudaMemset(x.data, 0, n * 4));
    CHECK(cudaMemset(y.data, 0, n * 4));
    row("transform_saxpy_f32", n, median_milliseconds([&] {
        CHECK(cub::DeviceTransform::Transform(cuda::std::make_tuple(x.as<float>(), y.as<float>()), out.as<float>(), int(n),
                                              Saxpy{3.0f}));
    }));
}

struct Before {
    __host__ __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};

static void merge_sort(size_t n) {
    Buffer keys(n * 4), values(n * 4), keys_out(n * 4), values_out(n * 4);
    random_u32(keys.as<unsigned>(), n);
    row("merge_sort_pairs_comparator", n, median_of([&](void *scratch, size_t &bytes) {
        return cub::DeviceMergeSort::SortPairsCopy(scratch, bytes, keys.as<unsigned>(), values.as<unsigned>(),
                                                   keys_out.as<unsigned>(), values_out.as<unsigned>(), int(n), Before{});
    }));
}

int main() {
    std::printf("# name: CUB\n");
    for (int log : {20, 24, 27}) reduce(size_t(1) << log);
    segmented_reduce(size_t(1) << 26, 64);
    runs(size_t(1) << 26);
    scan_u64(size_t(1) << 26);
    histogram(size_t(1) << 27);
    saxpy(size_t(1) << 27);
    merge_sort(size_t(1) << 24);
    for (int log : {20, 24, 27}) copy_and_scan(size_t(1) << log);
    for (int log : {15, 16, 17, 18, 20, 21, 24, 27}) sort(size_t(1) << log);
    sort_u64(size_t(1) << 26);
    for (int log : {20, 24, 27}) select(size_t(1) << log);
    for (size_t mean : {8, 64, 1024}) segmented_sort(size_t(1) << 24, mean);
    for (int log : {21, 24, 27}) merges_and_searches(size_t(1) << log);
}

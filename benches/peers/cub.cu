// The peer of the primitives table: CUB and Thrust, each called in the way that is fastest for the row: the better of 32-bit
// and 64-bit counts, segments of a fixed size where they have one, searches that know that the needles are sorted. Needs CUB
// 3.0 (CUDA 13.0); rows and faster calls of newer versions are compiled in if the headers have them.
//
// Speaks the line protocol of src/peers.rs. Times as our own rows are timed (src/measure.rs): "call" is one call on an idle
// device between two events, the median of 15 after 3 warm-ups; "queued" is one of eight calls in a row behind a kernel that
// waits until the host has enqueued all of them. Temporary storage is allocated before. Every result is checked; a wrong one
// ends the program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define CUB_DISABLE_TOPK_UNSUPPORTED_ARCH_ASSERT  // some versions of nvcc evaluate an assertion that was discarded
#include <cub/cub.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/functional>
#include <cuda/iterator>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>
#include <thrust/set_operations.h>
#if __has_include(<cub/device/device_find.cuh>)
#include <cub/device/device_find.cuh>
#define HAS_FIND
#endif
#if __has_include(<cub/device/device_segmented_scan.cuh>)
#include <cub/device/device_segmented_scan.cuh>
#define HAS_SEGMENTED_SCAN
#endif
// Their requirements are in headers of their own since CCCL 3.5.
#if CCCL_VERSION >= 3005000 && __has_include(<cub/device/device_batched_topk.cuh>)
#include <cub/device/device_batched_topk.cuh>
#include <cub/device/device_topk.cuh>
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/output_ordering.h>
#include <cuda/__execution/require.h>
#include <cuda/__execution/tie_break.h>
#include <cuda/argument>
#define HAS_TOP_K
#endif

typedef uint32_t u32;
typedef unsigned long long u64;

static void check(cudaError_t status, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(status));
        std::exit(1);
    }
}
#define CHECK(call) check((call), __LINE__)

// The default stream costs more per launch, because it waits for others.
static cudaStream_t stream;

// ---- Data and checks

__host__ __device__ inline u32 random_at(u64 seed, u64 index) {
    u64 z = (index + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return u32(z ^ (z >> 31));
}

template <class F>
__global__ void each_kernel(size_t n, F f) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) f(i);
}

template <class F>
static void each(size_t n, F f) {
    if (n == 0) return;
    each_kernel<<<unsigned(std::min<size_t>((n + 255) / 256, 8192)), 256, 0, stream>>>(n, f);
    CHECK(cudaGetLastError());
}

template <class T>
struct Array {
    T *data = nullptr;
    explicit Array(size_t n) { CHECK(cudaMalloc(&data, std::max<size_t>(n, 1) * sizeof(T))); }
    explicit Array(const std::vector<T> &host) : Array(host.size()) {
        CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    Array(const Array &) = delete;
    ~Array() { cudaFree(data); }
    operator T *() const { return data; }
    T at(size_t i) const {
        T value;
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(&value, data + i, sizeof(T), cudaMemcpyDeviceToHost));
        return value;
    }
};

// Whether `f` holds for all indices.
template <class F>
static bool all(size_t n, F f) {
    Array<u64> bad(1);
    u64 *count = bad;
    CHECK(cudaMemsetAsync(count, 0, 8, stream));
    each(n, [=] __device__(size_t i) {
        if (!f(i)) atomicAdd(count, 1ull);
    });
    return bad.at(0) == 0;
}

static void random_numbers(u32 *out, size_t n, u64 seed = 0) {
    each(n, [=] __device__(size_t i) { out[i] = random_at(seed, i); });
}
static void positions(u32 *out, size_t n) {
    each(n, [=] __device__(size_t i) { out[i] = u32(i); });
}

// A sum that does not depend on the order: two arrays that agree in it hold the same numbers.
template <class T>
static u64 fingerprint(const T *in, size_t n) {
    Array<u64> sum(1);
    u64 *total = sum;
    CHECK(cudaMemsetAsync(total, 0, 8, stream));
    each(n, [=] __device__(size_t i) { atomicAdd(total, (u64(in[i]) + 1) * (u64(random_at(9, u64(in[i]))) | 1)); });
    return sum.at(0);
}
template <class T>
static bool is_sorted_like(const T *out, size_t n, u64 of_input) {
    return all(n - 1, [=] __device__(size_t i) { return out[i] <= out[i + 1]; }) && fingerprint(out, n) == of_input;
}
// Whether the values are the positions of the keys, which ascend by `key >> shift`, equal ones in the order of the input.
template <class T>
static bool is_stable(const T *in, const T *keys, const u32 *values, size_t n, int shift) {
    return all(n, [=] __device__(size_t i) {
        if (values[i] >= n || in[values[i]] != keys[i]) return false;
        if (i + 1 == n) return true;
        T a = keys[i] >> shift, b = keys[i + 1] >> shift;
        return a < b || (a == b && values[i] < values[i + 1]);
    });
}

// ---- Timing

struct Time {
    double call = std::numeric_limits<double>::infinity();
    double queued = std::numeric_limits<double>::infinity();
};

// A user may choose, so the better time counts.
static Time better(Time a, Time b) { return {std::min(a.call, b.call), std::min(a.queued, b.queued)}; }

__global__ void wait_kernel(u64 nanoseconds) {
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}

static double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static const int WARM_UPS = 3, RUNS = 15;

template <class Operation>
static Time time_of(Operation operation) {
    static cudaEvent_t start = nullptr, end;
    if (!start) {
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&end));
    }
    auto elapsed = [] {
        float time;
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&time, start, end));
        return double(time);
    };
    std::vector<double> times;
    for (int run = 0; run < WARM_UPS + RUNS; run++) {
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaEventRecord(start, stream));
        operation();
        CHECK(cudaEventRecord(end, stream));
        double time = elapsed();
        if (run >= WARM_UPS) times.push_back(time);
    }
    Time found;
    found.call = median(times);
    int calls = int(std::max(2.0, std::min(8.0, 20.0 / found.call)));
    times.clear();
    for (int run = 0; run < 5; run++) {
        wait_kernel<<<1, 1, 0, stream>>>(3000000);
        operation();  // fills the caches
        CHECK(cudaEventRecord(start, stream));
        for (int call = 0; call < calls; call++) operation();
        CHECK(cudaEventRecord(end, stream));
        // If the device has already begun, it has waited for the host, or the calls wait themselves.
        bool has_waited = cudaEventQuery(start) == cudaErrorNotReady;
        double time = elapsed() / calls;
        if (!has_waited) return found;
        times.push_back(time);
    }
    CHECK(cudaGetLastError());
    found.queued = median(times);
    return found;
}

// The rows that were asked for, with their sizes.
static std::set<std::pair<std::string, size_t>> asked;

static void row(const std::string &name, size_t n, Time time, bool is_right) {
    if (!is_right) {
        std::fprintf(stderr, "wrong result: %s of %zu\n", name.c_str(), n);
        std::exit(1);
    }
    if (!asked.count({name, n})) return;
    std::printf("%s\t\t%zu\t%.6f", name.c_str(), n, time.call);
    if (time.queued < std::numeric_limits<double>::infinity()) std::printf("\tqueued=%.6f", time.queued);
    std::printf("\n");
    std::fflush(stdout);
}

// Calls CUB twice: for the size of the temporary storage, and for the work, which is timed.
template <class Call>
static Time cub_time(Call call) {
    size_t bytes = 0;
    CHECK(call((void *)nullptr, bytes));
    Array<char> scratch(bytes);
    return time_of([&] { CHECK(call((void *)scratch.data, bytes)); });
}

// CUB has one template for counts of 32 bits and one for counts of 64 bits, and neither is always the faster one.
template <class Call>
static Time cub_both(size_t n, Call call) {
    Time narrow = cub_time([&](void *scratch, size_t &bytes) { return call(scratch, bytes, int(n)); });
    return better(narrow, cub_time([&](void *scratch, size_t &bytes) { return call(scratch, bytes, n); }));
}

// Keeps what Thrust allocates, so that no allocation is timed.
struct Cache {
    typedef char value_type;
    std::multimap<size_t, char *> kept;
    std::map<char *, size_t> used;
    char *allocate(std::ptrdiff_t wanted) {
        size_t bytes = std::max<size_t>(size_t(wanted), 1);
        auto found = kept.lower_bound(bytes);
        char *memory;
        if (found != kept.end() && found->first <= 2 * bytes + 65536) {
            bytes = found->first;
            memory = found->second;
            kept.erase(found);
        } else {
            CHECK(cudaMalloc(&memory, bytes));
        }
        used[memory] = bytes;
        return memory;
    }
    void deallocate(char *memory, size_t) {
        kept.emplace(used[memory], memory);
        used.erase(memory);
    }
    void clear() {
        for (auto &entry : kept) cudaFree(entry.second);
        kept.clear();
    }
};
static Cache cache;

// ---- The rows

struct Same {
    __host__ __device__ u32 operator()(u32 x) const { return x; }
};

static void transfers(size_t n) {
    Array<u32> in(n), out(n);
    u32 *a = in, *o = out;
    random_numbers(in, n);
    auto is_same = [=] { return all(n, [=] __device__(size_t i) { return o[i] == a[i]; }); };
    Time driver = time_of([&] { CHECK(cudaMemcpyAsync(o, a, n * 4, cudaMemcpyDeviceToDevice, stream)); });
    bool is_right = is_same();
    CHECK(cudaMemsetAsync(o, 0, n * 4, stream));
    Time kernel = time_of([&] {
        CHECK(cub::DeviceTransform::Transform(cuda::std::make_tuple((const u32 *)a), o, int(n),
                                              cuda::proclaim_copyable_arguments(Same{}), stream));
    });
    row("copy", n, better(driver, kernel), is_right && is_same());
    Time fill = time_of([&] { CHECK(cudaMemsetAsync(o, 7, n * 4, stream)); });
    is_right = all(n, [=] __device__(size_t i) { return o[i] == 0x07070707u; });
#if CCCL_VERSION >= 3003000
    fill = better(fill, time_of([&] { CHECK(cub::DeviceTransform::Fill(o, int(n), 7u, stream)); }));
    is_right = is_right && all(n, [=] __device__(size_t i) { return o[i] == 7; });
#endif
    row("fill", n, fill, is_right);
}

template <class T>
static bool is_exclusive_sum(const T *in, const T *out, size_t n) {
    return all(n, [=] __device__(size_t i) { return i ? out[i] == T(out[i - 1] + in[i - 1]) : out[0] == 0; });
}

static void scan(size_t n) {
    Array<u32> in(n), out(n);
    random_numbers(in, n);
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceScan::ExclusiveSum(t, b, in.data, out.data, count, stream);
    });
    row("exclusive_sum_u32", n, time, is_exclusive_sum(in.data, out.data, n));
}

static void scan_u64(size_t n) {
    Array<u64> in(n), out(n);
    u64 *a = in;
    each(n, [=] __device__(size_t i) { a[i] = u64(random_at(0, i)) << 20; });
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceScan::ExclusiveSum(t, b, in.data, out.data, count, stream);
    });
    row("exclusive_sum_u64", n, time, is_exclusive_sum(in.data, out.data, n));
}

template <class K>
static void sort_keys_and_pairs(const char *keys_name, const char *pairs_name, size_t n) {
    Array<K> in(n), keys(n);
    Array<u32> values(n), values_out(n);
    K *a = in;
    each(n, [=] __device__(size_t i) {
        a[i] = K(sizeof(K) == 8 ? u64(random_at(0, 2 * i)) << 32 | random_at(0, 2 * i + 1) : random_at(0, i));
    });
    positions(values, n);
    u64 sum = fingerprint(in.data, n);
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceRadixSort::SortKeys(t, b, (const K *)in, keys.data, count, 0, int(8 * sizeof(K)), stream);
    });
    row(keys_name, n, time, is_sorted_like(keys.data, n, sum));
    time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceRadixSort::SortPairs(t, b, (const K *)in, keys.data, (const u32 *)values, values_out.data, count, 0,
                                               int(8 * sizeof(K)), stream);
    });
    row(pairs_name, n, time, is_stable(in.data, keys.data, values_out.data, n, 0));
}
static void sort(size_t n) { sort_keys_and_pairs<u32>("sort_keys_u32", "sort_pairs_u32_u32", n); }
static void sort_u64(size_t n) { sort_keys_and_pairs<u64>("sort_keys_u64", "sort_pairs_u64_u32", n); }

// A split into buckets by the upper bits is a sort by these bits alone.
static void multisplit(size_t n) {
    Array<u32> in(n), keys(n), values(n), values_out(n);
    random_numbers(in, n);
    positions(values, n);
    for (int bits : {3, 5, 8}) {
        Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
            return cub::DeviceRadixSort::SortPairs(t, b, (const u32 *)in, keys.data, (const u32 *)values, values_out.data, count,
                                                   32 - bits, 32, stream);
        });
        row("multisplit_pairs_" + std::to_string(1 << bits), n, time, is_stable(in.data, keys.data, values_out.data, n, 32 - bits));
    }
}

struct IsOdd {
    __host__ __device__ bool operator()(u32 x) const { return x & 1; }
};
struct Between {
    u32 from, to;
    __host__ __device__ bool operator()(u32 x) const { return x >= from && x < to; }
};

static void select(size_t n) {
    Array<u32> in(n), out(n), second(n), third(n);
    Array<unsigned char> flags(n);
    Array<size_t> count(2);
    u32 *a = in, *o = out, *p = second, *q = third;
    unsigned char *f = flags;
    random_numbers(in, n);
    each(n, [=] __device__(size_t i) { f[i] = a[i] & 1; });
    std::vector<u32> host(n), odd, even;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host.data(), a, n * 4, cudaMemcpyDeviceToHost));
    for (u32 x : host) (x & 1 ? odd : even).push_back(x);
    size_t selected = odd.size();
    Array<u32> wanted(odd), rest(even);
    u32 *w = wanted, *r = rest;
    auto has_odd = [&] {
        bool fits = count.at(0) == selected && all(selected, [=] __device__(size_t i) { return o[i] == w[i]; });
        return fits;
    };
    Time time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceSelect::If(t, b, in.data, out.data, count.data, size, IsOdd{}, stream);
    });
    row("select_if_50pct", n, time, has_odd());
    CHECK(cudaMemsetAsync(o, 0, n * 4, stream));
    time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceSelect::Flagged(t, b, in.data, flags.data, out.data, count.data, size, stream);
    });
    row("select_flagged_50pct", n, time, has_odd());
    CHECK(cudaMemsetAsync(o, 0, n * 4, stream));
    time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DevicePartition::If(t, b, in.data, out.data, count.data, size, IsOdd{}, stream);
    });
    // The rejected ones come out in reverse order, unlike ours.
    bool is_right = has_odd() && all(n - selected, [=] __device__(size_t i) { return o[n - 1 - i] == r[i]; });
    row("partition_two_buckets", n, time, is_right);
    // The parts go to three arrays, unlike ours.
    Array<int> counts(2);
    const u32 low = 0x55555556u, high = 0xAAAAAAACu;
    time = cub_time([&](void *t, size_t &b) {
        return cub::DevicePartition::If(t, b, in.data, out.data, second.data, third.data, counts.data, int(n), Between{0, low},
                                        Between{low, high}, stream);
    });
    size_t firsts = size_t(counts.at(0)), seconds = size_t(counts.at(1));
    is_right = firsts + seconds <= n && all(firsts, [=] __device__(size_t i) { return o[i] < low; }) &&
               all(seconds, [=] __device__(size_t i) { return p[i] >= low && p[i] < high; }) &&
               all(n - firsts - seconds, [=] __device__(size_t i) { return q[i] >= high; });
    size_t expected = size_t(std::count_if(host.begin(), host.end(), [](u32 x) { return x < 0x55555556u; }));
    row("partition_three_way", n, time, is_right && firsts == expected);
}

// `n / mean` segments, with equal lengths or random boundaries.
static std::vector<u32> cuts(size_t n, size_t mean, bool are_random) {
    std::vector<u32> found = {0, u32(n)};
    std::mt19937 generator(7);
    for (size_t i = 1; i < n / mean; i++) found.push_back(are_random ? u32(generator() % (n + 1)) : u32(i * mean));
    std::sort(found.begin(), found.end());
    return found;
}

static void segmented_sorts(size_t n, size_t mean, bool are_random) {
    Array<u32> in(n), keys(n), values(n), values_out(n);
    random_numbers(in, n);
    positions(values, n);
    std::vector<u32> host = cuts(n, mean, are_random);
    Array<u32> offsets(host);
    long long segments = (long long)host.size() - 1;
    const u32 *a = in, *k = keys, *v = values_out, *cut = offsets;
    u64 sum = fingerprint(a, n);
    std::string tail = (are_random ? "_L" : "_equal_L") + std::to_string(mean);
    Time time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceSegmentedSort::StableSortPairs(t, b, (const u32 *)in, keys.data, (const u32 *)values, values_out.data,
                                                         (long long)n, segments, cut, cut + 1, stream);
    });
    bool is_right = all(size_t(segments), [=] __device__(size_t s) {
        for (u32 i = cut[s]; i < cut[s + 1]; i++) {
            if (v[i] < cut[s] || v[i] >= cut[s + 1] || a[v[i]] != k[i]) return false;
            if (i + 1 < cut[s + 1] && !(k[i] < k[i + 1] || (k[i] == k[i + 1] && v[i] < v[i + 1]))) return false;
        }
        return true;
    });
    row("segmented_sort_pairs" + tail, n, time, is_right);
    CHECK(cudaMemsetAsync(keys.data, 0, n * 4, stream));
    time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceSegmentedSort::StableSortKeys(t, b, (const u32 *)in, keys.data, (long long)n, segments, cut, cut + 1,
                                                        stream);
    });
    is_right = all(size_t(segments), [=] __device__(size_t s) {
        for (u32 i = cut[s]; i + 1 < cut[s + 1]; i++) {
            if (k[i] > k[i + 1]) return false;
        }
        return true;
    });
    row("segmented_sort_keys" + tail, n, time, is_right && fingerprint(k, n) == sum);
}
static void segmented_sort(size_t n) {
    for (size_t mean : {8, 64, 1024}) segmented_sorts(n, mean, true);
}
static void row_sort_8(size_t n) { segmented_sorts(n, 8, false); }
static void row_sort_64(size_t n) { segmented_sorts(n, 64, false); }

struct IgnoreLowBit {
    __host__ __device__ bool operator()(u32 a, u32 b) const { return a >> 1 < b >> 1; }
};

// Sorts runs of `run` keys, from bit `begin` up.
static void sort_runs(const u32 *in, u32 *out, size_t n, size_t run, int begin) {
    size_t bytes = 0;
    CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, int(run), begin, 32, stream));
    Array<char> scratch(bytes);
    for (size_t at = 0; at < n; at += run) {
        CHECK(cub::DeviceRadixSort::SortKeys(scratch.data, bytes, in + at, out + at, int(run), begin, 32, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
}

static void merge(size_t n) {
    Array<u32> raw(n), in(n), values(n), keys_a(n), values_a(n), keys_b(n), values_b(n);
    random_numbers(raw, n);
    positions(values, n);
    size_t half = n / 2;
    sort_runs(raw, in, n, half, 1);
    u64 sum = fingerprint(in.data, n);
    u32 *k = keys_a;
    Time time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceMerge::MergeKeys(t, b, in.data, half, in.data + half, half, keys_a.data, IgnoreLowBit{}, stream);
    });
    bool is_right = all(n - 1, [=] __device__(size_t i) { return k[i] >> 1 <= k[i + 1] >> 1; });
    row("merge_keys_cmp", n, time, is_right && fingerprint(keys_a.data, n) == sum);
    time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceMerge::MergePairs(t, b, in.data, values.data, half, in.data + half, values.data + half, half,
                                            keys_a.data, values_a.data, IgnoreLowBit{}, stream);
    });
    row("merge_pairs_cmp", n, time, is_stable(in.data, keys_a.data, values_a.data, n, 1));

    // Eight runs take three passes. The merges of a pass run side by side.
    const int STREAMS = 4;
    sort_runs(raw, in, n, n / 8, 1);
    size_t bytes = 0;
    CHECK(cub::DeviceMerge::MergePairs(nullptr, bytes, in.data, values.data, half, in.data, values.data, half, keys_a.data,
                                       values_a.data, IgnoreLowBit{}, stream));
    bytes = (bytes + 255) / 256 * 256;
    Array<char> scratch(STREAMS * bytes);
    cudaStream_t streams[STREAMS] = {stream};
    cudaEvent_t fork, joined[STREAMS];
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    for (int i = 1; i < STREAMS; i++) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming));
    }
    Time best;
    is_right = true;
    for (int many : {1, STREAMS}) {
        best = better(best, time_of([&] {
            const u32 *kin = in, *vin = values;
            u32 *kout = keys_a, *vout = values_a;
            for (size_t run = n / 8; run < n; run *= 2) {
                CHECK(cudaEventRecord(fork, stream));
                for (int i = 1; i < many; i++) CHECK(cudaStreamWaitEvent(streams[i], fork, 0));
                int i = 0;
                for (size_t at = 0; at < n; at += 2 * run, i = (i + 1) % many) {
                    size_t size = bytes;
                    CHECK(cub::DeviceMerge::MergePairs(scratch.data + i * bytes, size, kin + at, vin + at, run, kin + at + run,
                                                       vin + at + run, run, kout + at, vout + at, IgnoreLowBit{}, streams[i]));
                }
                for (int i = 1; i < many; i++) {
                    CHECK(cudaEventRecord(joined[i], streams[i]));
                    CHECK(cudaStreamWaitEvent(stream, joined[i], 0));
                }
                kin = kout, vin = vout;
                kout = kout == keys_a.data ? keys_b.data : keys_a.data;
                vout = vout == values_a.data ? values_b.data : values_a.data;
            }
        }));
        // The third pass ends where the first one did.
        is_right = is_right && is_stable(in.data, keys_a.data, values_a.data, n, 1);
        CHECK(cudaMemsetAsync(keys_a.data, 0, n * 4, stream));
    }
    row("merge_8way_pairs", n, best, is_right);
    CHECK(cudaEventDestroy(fork));
    for (int i = 1; i < STREAMS; i++) {
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaEventDestroy(joined[i]));
    }
}

static void search(size_t n) {
    Array<u32> raw(n), hay(n), needles(n), sorted(n), out(n);
    random_numbers(raw, n);
    random_numbers(needles, n, 1);
    sort_runs(raw, hay, n, n, 0);
    sort_runs(needles, sorted, n, n, 0);
    for (bool in_order : {false, true}) {
        const u32 *wanted = in_order ? sorted.data : needles.data;
        u32 *h = hay, *o = out;
        auto fits = [=] {
            bool all_fit = all(n, [=] __device__(size_t i) {
                u32 at = o[i];
                return at <= n && (at == 0 || h[at - 1] < wanted[i]) && (at == n || h[at] >= wanted[i]);
            });
            CHECK(cudaMemsetAsync(o, 0xff, n * 4, stream));
            return all_fit;
        };
        auto policy = thrust::cuda::par_nosync(cache).on(stream);
        Time time = time_of([&] { thrust::lower_bound(policy, h, h + n, wanted, wanted + n, o); });
        bool is_right = fits();
#ifdef HAS_FIND
        time = better(time, cub_both(n, [&](void *t, size_t &b, auto count) {
            return cub::DeviceFind::LowerBound(t, b, h, count, wanted, count, o, cuda::std::less<>{}, stream);
        }));
        is_right = is_right && fits();
        if (in_order) {
            time = better(time, cub_both(n, [&](void *t, size_t &b, auto count) {
                return cub::DeviceFind::LowerBoundSortedValues(t, b, h, count, wanted, count, o, cuda::std::less<>{}, stream);
            }));
            is_right = is_right && fits();
        }
#endif
        row(in_order ? "sorted_search" : "lower_bound_random", n, time, is_right);
    }
}

static void reduce(size_t n) {
    Array<u32> in(n), out(1), sums(1);
    random_numbers(in, n);
    u32 *a = in, *s = sums;
    CHECK(cudaMemsetAsync(s, 0, 4, stream));
    each(n, [=] __device__(size_t i) { atomicAdd(s, a[i]); });
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceReduce::Sum(t, b, in.data, out.data, count, stream);
    });
    row("reduce_sum_u32", n, time, out.at(0) == sums.at(0));
}

struct Ends {
    u32 least, greatest;
};
struct EndsOfOne {
    __host__ __device__ Ends operator()(u32 x) const { return {x, x}; }
};
struct EndsOfBoth {
    __host__ __device__ Ends operator()(Ends a, Ends b) const {
        return {a.least < b.least ? a.least : b.least, a.greatest > b.greatest ? a.greatest : b.greatest};
    }
};

static void min_max(size_t n) {
    Array<u32> in(n), least(1), greatest(1);
    Array<Ends> out(1);
    random_numbers(in, n);
    Ends none = {std::numeric_limits<u32>::max(), 0};
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceReduce::TransformReduce(t, b, in.data, out.data, count, EndsOfBoth{}, EndsOfOne{}, none, stream);
    });
    size_t bytes = 0;
    CHECK(cub::DeviceReduce::Min(nullptr, bytes, in.data, least.data, int(n), stream));
    Array<char> scratch(bytes);
    CHECK(cub::DeviceReduce::Min((void *)scratch.data, bytes, in.data, least.data, int(n), stream));
    CHECK(cub::DeviceReduce::Max((void *)scratch.data, bytes, in.data, greatest.data, int(n), stream));
    Ends found = out.at(0);
    row("min_max_u32", n, time, found.least == least.at(0) && found.greatest == greatest.at(0));
}

#ifdef HAS_FIND
struct IsOne {
    __host__ __device__ bool operator()(u32 x) const { return x == 1; }
};

static void find_first(size_t n) {
    Array<u32> in(n), out(1);
    u32 *a = in;
    size_t place = n / 100;
    each(n, [=] __device__(size_t i) { a[i] = i == place; });
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceFind::FindIf(t, b, (const u32 *)a, out.data, IsOne{}, count, stream);
    });
    row("find_first_u32_at_1pct", n, time, out.at(0) == place);
}
#endif

static void segmented_reduce(size_t n) {
    const int LENGTH = 64;
    Array<u32> in(n);
    random_numbers(in, n);
    const u32 *a = in;
    for (bool are_random : {false, true}) {
        Array<u32> offsets(cuts(n, LENGTH, are_random));
        long long segments = (long long)(n / LENGTH);
        Array<u32> out(segments);
        const u32 *cut = offsets;
        u32 *o = out;
        auto fits = [=] {
            bool all_fit = all(size_t(segments), [=] __device__(size_t s) {
                u32 sum = 0;
                for (u32 i = cut[s]; i < cut[s + 1]; i++) sum += a[i];
                return o[s] == sum;
            });
            CHECK(cudaMemsetAsync(o, 0, size_t(segments) * 4, stream));
            return all_fit;
        };
        Time time = cub_time([&](void *t, size_t &b) {
            return cub::DeviceSegmentedReduce::Sum(t, b, a, o, segments, cut, cut + 1, stream);
        });
        bool is_right = fits();
#if CCCL_VERSION >= 3001000
        if (!are_random && n % LENGTH == 0) {
            time = better(time, cub_time([&](void *t, size_t &b) {
                return cub::DeviceSegmentedReduce::Sum(t, b, a, o, segments, LENGTH, stream);
            }));
            is_right = is_right && fits();
        }
#endif
        row(are_random ? "segmented_reduce_sum_u32_random_L64" : "segmented_reduce_sum_u32_L64", n, time, is_right);
    }
}

#ifdef HAS_SEGMENTED_SCAN
static void segmented_scan(size_t n) {
    Array<u32> in(n), out(n);
    random_numbers(in, n);
    const u32 *a = in, *o = out;
    for (size_t length : {8, 64, 1024}) {
        Array<u32> offsets(cuts(n, length, false));
        const u32 *cut = offsets;
        size_t segments = n / length;
        Time time = cub_time([&](void *t, size_t &b) {
            return cub::DeviceSegmentedScan::ExclusiveSegmentedSum(t, b, in.data, out.data, cut, cut + 1, segments, stream);
        });
        bool is_right = all(segments, [=] __device__(size_t s) {
            u32 sum = 0;
            for (u32 i = cut[s]; i < cut[s + 1]; i++) {
                if (o[i] != sum) return false;
                sum += a[i];
            }
            return true;
        });
        row("segmented_exclusive_sum_u32_L" + std::to_string(length), n, time, is_right);
    }
}
#endif

static void runs(size_t n) {
    Array<u32> keys(n), values(n), heads(n), numbers(n);
    Array<int> count(1);
    u32 *k = keys, *v = values, *h = heads, *m = numbers;
    each(n, [=] __device__(size_t i) { k[i] = u32(i / 8); });
    random_numbers(values, n);
    size_t found = (n + 7) / 8;
    auto has_heads = [&] {
        bool fits = size_t(count.at(0)) == found && all(found, [=] __device__(size_t i) { return h[i] == i; });
        CHECK(cudaMemsetAsync(h, 0xff, n * 4, stream));
        return fits;
    };
    Time time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceSelect::Unique(t, b, k, h, count.data, size, stream);
    });
    row("unique_u32_runs_of_8", n, time, has_heads());
    time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceRunLengthEncode::Encode(t, b, k, h, m, count.data, size, stream);
    });
    bool is_right = all(n / 8, [=] __device__(size_t i) { return m[i] == 8; });
    row("run_length_encode_u32_runs_of_8", n, time, has_heads() && is_right);
    time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceReduce::ReduceByKey(t, b, k, h, v, m, count.data, cuda::std::plus<>{}, size, stream);
    });
    is_right = all(n / 8, [=] __device__(size_t i) {
        u32 sum = 0;
        for (int j = 0; j < 8; j++) sum += v[8 * i + j];
        return m[i] == sum;
    });
    row("reduce_by_key_u32_runs_of_8", n, time, has_heads() && is_right);
    time = cub_both(n, [&](void *t, size_t &b, auto size) {
        return cub::DeviceScan::ExclusiveSumByKey(t, b, k, v, m, size, cuda::std::equal_to<>{}, stream);
    });
    is_right = all(n, [=] __device__(size_t i) { return i % 8 ? m[i] == m[i - 1] + v[i - 1] : m[i] == 0; });
    row("exclusive_sum_by_key_u32_runs_of_8", n, time, is_right);
}

struct ShiftRight {
    int bits;
    __host__ __device__ u32 operator()(u32 x) const { return x >> bits; }
};

// Times a histogram of as many bins as there are numbers, and compares it with one by plain atomics.
template <class Samples>
static void histogram_of(const char *name, size_t n, Samples samples, int bins) {
    Array<u32> counts(bins), wanted(bins);
    u32 *c = counts, *w = wanted;
    CHECK(cudaMemsetAsync(w, 0, size_t(bins) * 4, stream));
    each(n, [=] __device__(size_t i) { atomicAdd(w + u32(samples[i]), 1u); });
    Time time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceHistogram::HistogramEven(t, b, samples, c, bins + 1, 0, bins, int(n), stream);
    });
    row(name, n, time, all(size_t(bins), [=] __device__(size_t i) { return c[i] == w[i]; }));
}

static void histogram(size_t n) {
    Array<u32> in(n);
    Array<unsigned char> bytes(n);
    u32 *a = in;
    unsigned char *b = bytes;
    each(n, [=] __device__(size_t i) { a[i] = random_at(0, i) >> 24, b[i] = (unsigned char)(random_at(0, i) >> 24); });
    histogram_of("histogram_256_even_bytes_in_u32", n, (const u32 *)a, 256);
    histogram_of("histogram_256_u8", n, (const unsigned char *)b, 256);
    each(n, [=] __device__(size_t i) { a[i] = random_at(0, i) >> 1; });
    // Bins of 2^23 numbers: a shift is faster than the general division.
    histogram_of("histogram_256_even_full_range_u32", n, cuda::make_transform_iterator((const u32 *)a, ShiftRight{23}), 256);
    each(n, [=] __device__(size_t i) { a[i] = random_at(0, i) >> 16; });
    histogram_of("histogram_65536_even_u32", n, (const u32 *)a, 65536);
    each(n, [=] __device__(size_t i) {
        double fraction = random_at(0, i) / 4294967296.0;
        a[i] = u32(fraction * fraction * fraction * fraction * 65536.0);
    });
    histogram_of("histogram_65536_skewed_u32", n, (const u32 *)a, 65536);
}

struct Saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};

static void transform(size_t n) {
    Array<float> x(n), y(n), out(n);
    float *a = x, *b = y, *o = out;
    each(n, [=] __device__(size_t i) { a[i] = float(random_at(1, i) % 1024), b[i] = float(random_at(2, i) % 1024); });
    auto in = cuda::std::make_tuple((const float *)a, (const float *)b);
    // The function looks at the values of its arguments alone, so these may be copied to shared memory first.
    auto function = cuda::proclaim_copyable_arguments(Saxpy{3.0f});
    Time time = time_of([&] { CHECK(cub::DeviceTransform::Transform(in, o, int(n), function, stream)); });
    time = better(time, time_of([&] { CHECK(cub::DeviceTransform::Transform(in, o, (long long)n, function, stream)); }));
    row("transform_saxpy_f32", n, time, all(n, [=] __device__(size_t i) { return o[i] == 3.0f * a[i] + b[i]; }));
}

static void differences(size_t n) {
    Array<u32> in(n), out(n);
    random_numbers(in, n);
    const u32 *a = in, *o = out;
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceAdjacentDifference::SubtractLeftCopy(t, b, in.data, out.data, count, cuda::std::minus<>{}, stream);
    });
    row("adjacent_difference_u32", n, time,
        all(n, [=] __device__(size_t i) { return o[i] == (i ? a[i] - a[i - 1] : a[i]); }));
}

static void permute(size_t n) {
    Array<u32> in(n), out(n), at(n);
    random_numbers(in, n);
    u32 *a = in, *o = out, *p = at;
    auto policy = thrust::cuda::par_nosync(cache).on(stream);
    each(n, [=] __device__(size_t i) { p[i] = u32((u64(random_at(3, i)) * n) >> 32); });
    Time time = time_of([&] { thrust::gather(policy, p, p + n, a, o); });
    row("gather_u32", n, time, all(n, [=] __device__(size_t i) { return o[i] == a[p[i]]; }));
    if (n & (n - 1)) return;  // an odd multiple is a permutation only modulo a power of two
    each(n, [=] __device__(size_t i) { p[i] = u32((i * 0x9E3779B1ull + 12345) & (n - 1)); });
    time = time_of([&] { thrust::scatter(policy, a, a + n, p, o); });
    row("scatter_u32", n, time, all(n, [=] __device__(size_t i) { return o[p[i]] == a[i]; }));
}

// Each range to the other end.
static void copy_ranges(size_t n) {
    const size_t LENGTH = 1024;
    if (n % LENGTH) return;
    unsigned count = unsigned(n / LENGTH);
    Array<u32> in(n), out(n), lengths(count);
    Array<const u32 *> from(count);
    Array<u32 *> to(count);
    random_numbers(in, n);
    const u32 *a = in, **f = from;
    u32 *o = out, **t = to, *l = lengths;
    each(count, [=] __device__(size_t i) {
        f[i] = a + i * LENGTH;
        t[i] = o + (count - 1 - i) * LENGTH;
        l[i] = LENGTH;
    });
    Time time = cub_time([&](void *scratch, size_t &b) {
        return cub::DeviceCopy::Batched(scratch, b, from.data, to.data, lengths.data, count, stream);
    });
    row("copy_ranges_of_1024_u32", n, time, all(n, [=] __device__(size_t i) {
            return o[(count - 1 - i / LENGTH) * LENGTH + i % LENGTH] == a[i];
        }));
}

struct Before {
    __host__ __device__ bool operator()(u32 a, u32 b) const { return a < b; }
};

static void merge_sort(size_t n) {
    Array<u32> in(n), keys(n), values(n), values_out(n);
    random_numbers(in, n);
    positions(values, n);
    u64 sum = fingerprint(in.data, n);
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceMergeSort::SortKeysCopy(t, b, in.data, keys.data, count, Before{}, stream);
    });
    row("merge_sort_keys", n, time, is_sorted_like(keys.data, n, sum));
    time = cub_both(n, [&](void *t, size_t &b, auto count) {
        return cub::DeviceMergeSort::SortPairsCopy(t, b, in.data, values.data, keys.data, values_out.data, count, Before{},
                                                   stream);
    });
    row("merge_sort_pairs_comparator", n, time, is_stable(in.data, keys.data, values_out.data, n, 0));
}

// Two sides of n different keys each, a quarter of them on both. Thrust waits for the count, so these calls cannot queue.
static void sets(size_t n) {
    Array<u32> first(n), second(n), out(2 * n);
    u32 *a = first, *b = second, *o = out;
    each(n, [=] __device__(size_t i) { a[i] = u32(4 * i + random_at(0, i) % 4), b[i] = u32(4 * i + random_at(1, i) % 4); });
    std::vector<u32> host_a(n), host_b(n), expected;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host_a.data(), a, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(host_b.data(), b, n * 4, cudaMemcpyDeviceToHost));
    auto policy = thrust::cuda::par_nosync(cache).on(stream);
    size_t found = 0;
    auto fits = [&] {
        std::vector<u32> result(found);
        CHECK(cudaMemcpy(result.data(), o, found * 4, cudaMemcpyDeviceToHost));
        bool is_right = result == expected;
        expected.clear();
        return is_right;
    };
    Time time = time_of([&] { found = size_t(thrust::set_intersection(policy, a, a + n, b, b + n, o) - o); });
    std::set_intersection(host_a.begin(), host_a.end(), host_b.begin(), host_b.end(), std::back_inserter(expected));
    row("set_intersection_u32", n, time, fits());
    time = time_of([&] { found = size_t(thrust::set_union(policy, a, a + n, b, b + n, o) - o); });
    std::set_union(host_a.begin(), host_a.end(), host_b.begin(), host_b.end(), std::back_inserter(expected));
    row("set_union_u32", n, time, fits());
    time = time_of([&] { found = size_t(thrust::set_difference(policy, a, a + n, b, b + n, o) - o); });
    std::set_difference(host_a.begin(), host_a.end(), host_b.begin(), host_b.end(), std::back_inserter(expected));
    row("set_difference_u32", n, time, fits());
}

#ifdef HAS_TOP_K
// The keys, whatever their order, and their positions.
template <class T>
static bool are_largest(std::vector<T> input, size_t k, std::vector<T> keys, const std::vector<u32> &places) {
    bool fits = true;
    for (size_t i = 0; i < k; i++) fits = fits && places[i] < input.size() && input[places[i]] == keys[i];
    std::sort(keys.begin(), keys.end(), std::greater<T>());
    std::partial_sort(input.begin(), input.begin() + k, input.end(), std::greater<T>());
    return fits && std::equal(keys.begin(), keys.end(), input.begin());
}

template <class T>
static std::vector<T> download(const T *from, size_t n) {
    std::vector<T> host(n);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

static void top_k(size_t n) {
    const int K = 100;
    if (n < K) return;
    Array<u32> in(n), keys(K), places(K), keys_out(K), places_out(K);
    random_numbers(in, n);
    namespace ex = cuda::execution;
    auto env = cuda::std::execution::env{
        cuda::stream_ref{stream}, ex::require(ex::determinism::not_guaranteed, ex::output_ordering::unsorted)};
    auto numbers = cuda::make_counting_iterator(u32(0));
    size_t sort_bytes = 0;
    // In descending order, as ours: a sort of the hundred follows.
    auto sort = [&](void *scratch) {
        return cub::DeviceRadixSort::SortPairsDescending(scratch, sort_bytes, (const u32 *)keys, keys_out.data,
                                                         (const u32 *)places, places_out.data, K, 0, 32, stream);
    };
    CHECK(sort(nullptr));
    Array<char> sort_scratch(sort_bytes);
    Time time = cub_both(n, [&](void *t, size_t &b, auto count) {
        cudaError_t status = cub::DeviceTopK::MaxPairs(t, b, (const u32 *)in, keys.data, numbers, places.data, count, K, env);
        return t && status == cudaSuccess ? sort(sort_scratch.data) : status;
    });
    std::vector<u32> sorted = download(keys_out.data, K);
    bool is_right = are_largest(download(in.data, n), K, sorted, download(places_out.data, K));
    row("top_k_100_u32", n, time, is_right && std::is_sorted(sorted.begin(), sorted.end(), std::greater<u32>()));
}

// Which of equal keys is found is left open, and their order, unlike in ours.
template <class T, int COLUMNS, int K>
static void top_k_of_rows(const char *name, size_t n) {
    size_t rows = n / COLUMNS;
    if (rows == 0 || n % COLUMNS) return;
    Array<T> in(n), keys(rows * K);
    Array<u32> places(rows * K);
    T *a = in;
    each(n, [=] __device__(size_t i) { a[i] = T(random_at(0, i)); });
    namespace ex = cuda::execution;
    auto env = cuda::std::execution::env{
        cuda::stream_ref{stream},
        ex::require(ex::determinism::not_guaranteed, ex::tie_break::unspecified, ex::output_ordering::unsorted)};
    auto keys_in = cuda::make_strided_iterator(cuda::make_counting_iterator((const T *)in.data), COLUMNS);
    auto keys_out = cuda::make_strided_iterator(cuda::make_counting_iterator(keys.data), K);
    auto values_in = cuda::make_constant_iterator(cuda::make_counting_iterator(u32(0)));
    auto values_out = cuda::make_strided_iterator(cuda::make_counting_iterator(places.data), K);
    Time time = cub_time([&](void *t, size_t &b) {
        return cub::DeviceBatchedTopK::MaxPairs(t, b, keys_in, keys_out, values_in, values_out, cuda::args::constant<COLUMNS>{},
                                                cuda::args::constant<K>{}, cuda::args::immediate{cuda::std::int64_t(rows)}, env);
    });
    bool is_right = true;
    for (size_t r = 0; r < rows; r += std::max<size_t>(1, rows / 13)) {
        is_right = is_right && are_largest(download(in.data + r * COLUMNS, COLUMNS), K, download(keys.data + r * K, K),
                                           download(places.data + r * K, K));
    }
    row(name, n, time, is_right);
}
static void top_8_of_rows(size_t n) { top_k_of_rows<u32, 1024, 8>("top_8_of_rows_of_1024", n); }
// Rows that need more than one block each.
#if CCCL_VERSION >= 3006000
#define HAS_TOP_K_OF_LONG_ROWS
static void top_100_of_rows(size_t n) { top_k_of_rows<u32, 131072, 100>("top_100_of_rows_of_131072", n); }
static void top_64_of_rows(size_t n) { top_k_of_rows<float, 32768, 64>("top_64_of_rows_of_32768_f32", n); }
static void top_64_of_long_rows(size_t n) { top_k_of_rows<float, 131072, 64>("top_64_of_rows_of_131072_f32", n); }
#endif
#endif

// Rows that one function measures together.
struct Group {
    void (*measure)(size_t n);
    std::vector<const char *> rows;
};

static const std::vector<Group> GROUPS = {
    {transfers, {"copy", "fill"}},
    {scan, {"exclusive_sum_u32"}},
    {scan_u64, {"exclusive_sum_u64"}},
    {sort, {"sort_keys_u32", "sort_pairs_u32_u32"}},
    {sort_u64, {"sort_keys_u64", "sort_pairs_u64_u32"}},
    {multisplit, {"multisplit_pairs_8", "multisplit_pairs_32", "multisplit_pairs_256"}},
    {select, {"select_if_50pct", "select_flagged_50pct", "partition_two_buckets", "partition_three_way"}},
    {segmented_sort,
     {"segmented_sort_pairs_L8", "segmented_sort_pairs_L64", "segmented_sort_pairs_L1024", "segmented_sort_keys_L8",
      "segmented_sort_keys_L64", "segmented_sort_keys_L1024"}},
    {row_sort_8, {"segmented_sort_pairs_equal_L8", "segmented_sort_keys_equal_L8"}},
    {row_sort_64, {"segmented_sort_pairs_equal_L64", "segmented_sort_keys_equal_L64"}},
    {merge, {"merge_keys_cmp", "merge_pairs_cmp", "merge_8way_pairs"}},
    {search, {"lower_bound_random", "sorted_search"}},
    {reduce, {"reduce_sum_u32"}},
    {min_max, {"min_max_u32"}},
#ifdef HAS_FIND
    {find_first, {"find_first_u32_at_1pct"}},
#endif
    {segmented_reduce, {"segmented_reduce_sum_u32_L64", "segmented_reduce_sum_u32_random_L64"}},
    {runs,
     {"unique_u32_runs_of_8", "run_length_encode_u32_runs_of_8", "reduce_by_key_u32_runs_of_8",
      "exclusive_sum_by_key_u32_runs_of_8"}},
    {histogram,
     {"histogram_256_even_bytes_in_u32", "histogram_256_even_full_range_u32", "histogram_256_u8", "histogram_65536_even_u32",
      "histogram_65536_skewed_u32"}},
    {transform, {"transform_saxpy_f32"}},
    {differences, {"adjacent_difference_u32"}},
    {permute, {"gather_u32", "scatter_u32"}},
    {copy_ranges, {"copy_ranges_of_1024_u32"}},
    {merge_sort, {"merge_sort_keys", "merge_sort_pairs_comparator"}},
    {sets, {"set_intersection_u32", "set_union_u32", "set_difference_u32"}},
#ifdef HAS_SEGMENTED_SCAN
    {segmented_scan,
     {"segmented_exclusive_sum_u32_L8", "segmented_exclusive_sum_u32_L64", "segmented_exclusive_sum_u32_L1024"}},
#endif
#ifdef HAS_TOP_K
    {top_k, {"top_k_100_u32"}},
    {top_8_of_rows, {"top_8_of_rows_of_1024"}},
#endif
#ifdef HAS_TOP_K_OF_LONG_ROWS
    {top_100_of_rows, {"top_100_of_rows_of_131072"}},
    {top_64_of_rows, {"top_64_of_rows_of_32768_f32"}},
    {top_64_of_long_rows, {"top_64_of_rows_of_131072_f32"}},
#endif
};

int main(int count, char **arguments) {
    std::printf("# name: CUB %d.%d\n", CCCL_MAJOR_VERSION, CCCL_MINOR_VERSION);
    if (count > 1 && std::string(arguments[1]) == "rows") {
        for (const Group &group : GROUPS) {
            for (const char *name : group.rows) std::printf("%s\n", name);
        }
        return 0;
    }
    for (std::string line; std::getline(std::cin, line);) {
        if (line.empty() || line[0] == '#') continue;
        // section, row, parameter, elements, operations of one run
        std::vector<std::string> fields;
        std::stringstream in(line);
        for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
        if (fields.size() != 5) {
            std::fprintf(stderr, "not a row: %s\n", line.c_str());
            return 1;
        }
        asked.insert({fields[1], size_t(std::stoull(fields[3]))});
    }
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const Group &group : GROUPS) {
        std::set<size_t> sizes;
        for (const auto &wanted : asked) {
            bool is_here = std::any_of(group.rows.begin(), group.rows.end(), [&](const char *name) { return wanted.first == name; });
            // CUB counts in `int` in some calls, and merges halves and eighths.
            if (is_here && wanted.second >= 1024 && wanted.second % 8 == 0 && wanted.second < size_t(1) << 31) {
                sizes.insert(wanted.second);
            }
        }
        for (size_t n : sizes) {
            std::printf("# measuring %s of %zu\n", group.rows[0], n);
            std::fflush(stdout);
            group.measure(n);
            cache.clear();
        }
    }
    return 0;
}

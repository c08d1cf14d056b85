// The peer of the primitives table: CUB from the CUDA toolkit, timed as our own rows are (events around one call, median
// of 15 after 3 warm-ups). Prints `row,elements,milliseconds`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

struct IsOdd {
    __host__ __device__ bool operator()(unsigned number) const { return number % 2 == 1; }
};

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

int main() {
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

        size_t *count;
        CHECK(cudaMalloc(&count, sizeof(size_t)));
        auto select = [&] { CHECK(cub::DeviceSelect::If(scratch, bytes, in, out, count, n, IsOdd{})); };
        scratch = nullptr;
        select();
        CHECK(cudaMalloc(&scratch, bytes));
        std::printf("select_if_50pct,%zu,%.6f\n", n, median_milliseconds(select));
        CHECK(cudaFree(scratch));

        // The rejected items come out in reverse order, unlike ours.
        auto partition = [&] { CHECK(cub::DevicePartition::If(scratch, bytes, in, out, count, n, IsOdd{})); };
        scratch = nullptr;
        partition();
        CHECK(cudaMalloc(&scratch, bytes));
        std::printf("partition_two_buckets,%zu,%.6f\n", n, median_milliseconds(partition));
        CHECK(cudaFree(scratch));
        CHECK(cudaFree(count));

        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
}

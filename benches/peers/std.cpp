// A peer in plain C++: std::unordered_map beside the dictionaries, and std::sort beside the primitives. It shows the line
// protocol that src/peers.rs describes, and needs nothing but a compiler:
//
//     c++ -O3 -std=c++17 -o std-peer benches/peers/std.cpp
//     cargo run --release -- --peer ./std-peer
//
// Keys and values have 32 bits. Every result is checked before its time is printed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

using Table = std::unordered_map<uint32_t, uint32_t>;

// Different indices give different keys, in random order. Keys that are present are even, absent ones odd.
static uint32_t key_of(uint32_t index, bool present) {
    uint32_t mixed = (index * 0x2c9277b5u) & 0x7fffffffu;
    return ((mixed ^ (mixed >> 16)) * 0x1b873593u) << 1 | uint32_t(!present);
}

static void expect(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "wrong result: %s\n", what);
    std::exit(1);
}

// The times of some runs in milliseconds: the median, the shortest, the longest.
struct Times {
    double median, shortest, longest;
};

static Times time_of(const std::function<void()> &prepare, const std::function<void()> &run) {
    std::vector<double> times;
    for (int i = 0; i < 3; i++) {
        prepare();
        auto start = std::chrono::steady_clock::now();
        run();
        std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
        times.push_back(std::max(time.count(), 1e-6));
    }
    std::sort(times.begin(), times.end());
    return {times[1], times.front(), times.back()};
}

static Table build(size_t n) {
    Table table;
    for (size_t i = 0; i < n; i++) table[key_of(uint32_t(i), true)] = uint32_t(i);
    return table;
}

static bool lookups(size_t n, size_t work, bool present, Times &times) {
    Table table = build(n);
    std::vector<uint32_t> keys(work), found(work);
    for (size_t i = 0; i < work; i++) keys[i] = key_of(uint32_t(i * 2654435761u % n), present);
    times = time_of([] {}, [&] {
        for (size_t i = 0; i < work; i++) {
            auto at = table.find(keys[i]);
            found[i] = at == table.end() ? UINT32_MAX : at->second;
        }
    });
    for (size_t i = 0; i < work; i++) {
        uint32_t expected = present ? uint32_t(i * 2654435761u % n) : UINT32_MAX;
        expect(found[i] == expected, "lookup");
    }
    return true;
}

// The rows that this peer knows.
static const char *const ROWS[] = {"bulk build",         "insert, all batches", "lookup, all present",
                                   "lookup, all absent", "sort_keys_u32",       "reduce_sum_u32"};

// Measures a row. Returns whether this peer knows it.
static bool measure(const std::string &row, size_t n, size_t work, Times &times) {
    if (row == "bulk build" || row == "insert, all batches") {
        Table table;
        times = time_of([&] { table.clear(); }, [&] { table = build(n); });
        expect(table.size() == n, "build");
        return true;
    }
    if (row == "lookup, all present") return lookups(n, work, true, times);
    if (row == "lookup, all absent") return lookups(n, work, false, times);
    if (row == "sort_keys_u32") {
        std::vector<uint32_t> keys(n);
        times = time_of(
            [&] {
                for (size_t i = 0; i < n; i++) keys[i] = key_of(uint32_t(i), true);
            },
            [&] { std::sort(keys.begin(), keys.end()); });
        expect(std::is_sorted(keys.begin(), keys.end()), "sort");
        return true;
    }
    if (row == "reduce_sum_u32") {
        std::vector<uint32_t> numbers(n, 3);
        uint32_t sum = 0;
        times = time_of([] {}, [&] { sum = std::accumulate(numbers.begin(), numbers.end(), 0u); });
        expect(sum == uint32_t(3 * n), "sum");
        return true;
    }
    return false;
}

int main(int count, char **arguments) {
    std::printf("# name: C++ std\n");
    if (count > 1 && std::string(arguments[1]) == "rows") {
        for (const char *row : ROWS) std::printf("%s\n", row);
        return 0;
    }
    std::string line;
    while (std::getline(std::cin, line)) {
        // The keys and values of a comparison. This program has uniform keys of 32 bits with values of 4 bytes, which it
        // need not say: its answers to questions about others are left out.
        if (line[0] == '#') continue;
        // section, row, parameter, elements, operations of one run
        std::vector<std::string> fields;
        std::stringstream in(line);
        for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
        if (fields.size() != 5) {
            std::fprintf(stderr, "not a row: %s\n", line.c_str());
            return 1;
        }
        size_t n = std::stoull(fields[3]), work = std::stoull(fields[4]);
        Times times;
        if (measure(fields[1], n, work, times)) {
            std::printf("%s\t%s\t%zu\t%.6f\t%.6f\t%.6f\n", fields[1].c_str(), fields[2].c_str(), n, times.median,
                        times.shortest, times.longest);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// One thing that each request does, alone, so that its cost can be counted.
struct MicroBenchmark: Sendable {
    /// Its name in the budget.
    let name: String
    /// Sets the step up and returns the work to be counted.
    let make: @Sendable () throws -> () -> Void

    static let all: [MicroBenchmark] = heads + lookUps
}

@main
struct Program {
    /// Prints the names (`micro-benchmarks`), or runs one step COUNT times and prints the time of one
    /// (`micro-benchmarks NAME COUNT`).
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let name = arguments.first else {
            for benchmark in MicroBenchmark.all { print(benchmark.name) }
            return
        }
        guard arguments.count == 2, let count = arguments.last.flatMap({ Int($0) }), count > 0,
            let benchmark = MicroBenchmark.all.first(where: { $0.name == name })
        else {
            print("usage: micro-benchmarks [NAME COUNT]; without arguments it prints the names")
            exit(64)
        }
        let run = try benchmark.make()
        // Memory that is used again is there before anything is counted.
        for _ in 0..<16 { run() }
        let clock = ContinuousClock()
        let began = clock.now
        for _ in 0..<count { run() }
        print((clock.now - began) / .nanoseconds(1) / Double(count))
    }
}

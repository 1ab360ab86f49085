// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

@Suite("The whole daemon among simulated callers, servers, disks and clocks")
struct SimulationTests {
    @Test("no rule of logging in and forwarding is broken in any run", arguments: UInt64(1)...8)
    func seeds(seed: UInt64) {
        let report = SimulationReport(seed: seed, steps: 2_000)
        #expect(report.violation == nil, "Tests/Simulation/run \(seed) --steps 2000")
    }

    @Test("a crash tells the run in which it was")
    func crash() async throws {
        let crashed = await #expect(processExitsWith: .failure, observing: [\.standardOutputContent]) {
            CrashLine.install()
            CrashLine.set("seed 7")
            raise(SIGILL)
        }
        let output = String(decoding: try #require(crashed).standardOutputContent, as: UTF8.self)
        #expect(output.contains("seed 7: crashed\n"))
    }

    @Test("everything in a run follows from its seed")
    func repeated() throws {
        // Beside other tests, descriptors have other numbers in each run.
        let seed = try #require((UInt64(3)...100).first { !SimulationReport(seed: $0, steps: 1).isCrowded })
        let (first, second) = (SimulationReport(seed: seed, steps: 1_000), SimulationReport(seed: seed, steps: 1_000))
        #expect(first.trace == second.trace && first.answers == second.answers)
    }

    @Test("a run has requests that are answered, and refused ones")
    func answers() {
        let reports = (1...3).map { SimulationReport(seed: UInt64($0), steps: 1_000) }
        let answers = reports.reduce(into: [String: Int]()) { $0.merge($1.answers, uniquingKeysWith: +) }
        #expect(answers["200", default: 0] > 20 && answers["refused", default: 0] > 3)
    }
}

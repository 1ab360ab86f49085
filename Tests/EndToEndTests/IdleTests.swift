// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

extension RealTimeTests {
    /// How often something happens is counted over a time.
    @Suite("A daemon that has nothing to do")
    struct IdleTests {
        /// How often the threads of a process have gone to sleep by themselves: as often as they were woken.
        private func sleeps(of process: pid_t) -> Int {
            entries(of: "/proc/\(process)/task").reduce(0) { sum, thread in
                let status = String(decoding: readFile("/proc/\(process)/task/\(thread)/status"), as: UTF8.self)
                let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
                return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
            }
        }

        @Test("wakes at most twice a second, all its threads together, also with sessions held and connections kept")
        func idle() async throws {
            var configuration = BankConfiguration()
            configuration.workers = 4
            configuration.bank = ["check: { path: /balance, every: 30s }"]
            try await withBank(configuration) { bank in
                let kept = try bank.connect()
                _ = await offPool {
                    kept.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return kept.response()
                }
                try await bank.expect("/balance", status: 200)
                let process = try bank.daemon.child.pid
                // Until what the last request has left behind is put away (`WorkerLimits.quietTime`, `SpareMemory`).
                try await pause(for: .seconds(4))
                let before = sleeps(of: process)
                #expect(before > 10)
                try await pause(for: .seconds(10))
                let woken = sleeps(of: process) - before
                #expect(woken <= 20, "\(woken) times in 10 s")
                withExtendedLifetime(kept) {}
            }
        }
    }
}

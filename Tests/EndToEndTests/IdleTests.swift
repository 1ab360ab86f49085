// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

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
            try await Task.sleep(for: .seconds(4))
            let before = sleeps(of: process)
            #expect(before > 10)
            try await Task.sleep(for: .seconds(10))
            let woken = sleeps(of: process) - before
            #expect(woken <= 20, "\(woken) times in 10 s")
            withExtendedLifetime(kept) {}
        }
    }

    @Test("is ready soon after its start, with a login that nobody has asked for yet")
    func start() async throws {
        var configuration = BankConfiguration()
        let manager = try NotifySocket()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        try await withBank(configuration, startsDaemon: false) { bank in
            var best = Duration.seconds(60)
            for round in 1...4 {
                let began = ContinuousClock.now
                async let started = bank.startDaemon()
                #expect(await manager.wait(for: "READY=1", times: round))
                best = min(best, ContinuousClock.now - began)
                _ = try await started
                await bank.stopDaemon()
            }
            #expect(bank.pinAnswers == 0)
            // The bound is 50 ms for a release build on a machine that does nothing else.
            #expect(best < .milliseconds(600), "\(best)")
        }
    }
}

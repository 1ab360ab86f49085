// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("Thousands of callers")
struct ManyCallersTests {
    private static func script(_ name: String, file: String = #filePath) -> String {
        file.split(separator: "/").dropLast(2).map { "/\($0)" }.joined() + "/Benchmarks/\(name)"
    }

    @Test(
        "5,000 idle connections cost at most 12 KiB each, and a slow loris on 1,000 of them disturbs nobody",
        .enabled(if: mayOpenThousands()))
    func idle() async throws {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.more = ["limits: { callers: 5200 }"]
        try await withBank(configuration) { bank in
            let measured = try await Command.run(
                [
                    "/usr/bin/env", "python3", Self.script("idle"), "--pid", "\(try bank.daemon.child.pid)", "--port",
                    "\(bank.port)", "--path", "/open/x", "--seconds", "3",
                ], in: bank.folder)
            #expect(measured.exit == 0, "\(measured.errors)")
            let figures = JSON(parsing: Array(measured.output.utf8))
            func number(_ path: String...) -> Double {
                switch path.reduce(figures, { $0?[$1] }) {
                case .integer(let value): Double(value)
                case .double(let value): value
                default: .infinity
                }
            }
            #expect(number("callers") == 5000)
            #expect(number("bytes_each") <= 12 * 1024, "\(measured.output)")
            #expect(number("refused_afterwards") == 0)
            // The other tests' load is in both; a stall of the loop would be tenths of a second.
            let timeout = 20 + 5 * number("alone", "median_ms")
            #expect(number("with_loris", "median_ms") <= timeout, "\(measured.output)")
        }
    }

    @Test("callers for whom there is no descriptor are told so, and are served when there is room again")
    func descriptors() async throws {
        try await withBank { bank in
            try await bank.expect("/open/x", status: 200)
            let daemon = try bank.daemon
            // What it has now, and a few: those for callers, and none for more.
            let limit = daemon.descriptorLimit(forMore: 8)
            let limited = try await Command.run(
                ["/usr/bin/prlimit", "--pid", "\(daemon.child.pid)", "--nofile=\(limit):\(limit)"], in: bank.folder)
            #expect(limited.exit == 0, "\(limited.errors)")
            // Descriptors that were in use for a moment when they were counted serve more callers than those few. All ask
            // at once: who says nothing for a while after connecting is closed (`WorkerLimits.silentTime`).
            let (callers, codes) = try await offPool {
                let callers = try (0..<100).map { _ in try bank.connect() }
                for caller in callers { caller.send("GET /none HTTP/1.1\r\nHost: evil.example\r\n\r\n") }
                return (callers, callers.map { $0.response()?.code })
            }
            #expect(codes.count { $0 == "overloaded" } >= 20, "\(codes)")
            #expect(codes.count { $0 == "host-not-allowed" } >= 6, "\(codes)")
            #expect(codes.allSatisfy { $0 != nil })
            #expect(await daemon.waitForLog("no file descriptor is left"))
            for caller in callers { caller.finish() }
            let isServed = await eventually { (try? RawConnection(port: bank.port)).map(Self.isServed) ?? false }
            #expect(isServed)
        }
    }

    private static func isServed(_ caller: RawConnection) -> Bool {
        caller.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return caller.response()?.status == 200
    }

    @Test("limits.callers beyond what the process may open is told by check and by the daemon")
    func openFiles() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["limits: { callers: 1048576, exchanges: 1048576 }"]
        try await withBank(configuration) { bank in
            let check = try await bank.countersign("check")
            #expect(check.exit == 0)
            #expect(check.errors.contains("limits.callers: warning: this process may open"))
            let daemon = try bank.daemon
            #expect(await daemon.waitForLog("limits.callers cannot be reached"))
        }
    }
}

/// Whether this machine lets the daemon have so many descriptors, and the script that calls it.
private func mayOpenThousands() -> Bool {
    var limit = rlimit()
    return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max >= 16_000
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
import Testing

@Suite("The memory of the daemon, as root reads it", .enabled(if: getuid() == 0))
struct ReleasedMemoryTests {
    @Test("holds no heap of copies of a dropped session, nor does the environment a credential from elsewhere")
    func dropped() async throws {
        let credentials = try Folder()
        let secret = "kept-elsewhere-7f3a91"
        credentials.write("ann", to: "ann.username")
        credentials.write(secret, to: "ann.password")
        credentials.write("test", to: "reports.client-id")
        credentials.write("test", to: "reports.client-secret")
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.mobileFirst = []
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        configuration.challenges = [
            "name: ann\nupstream: server\nscheme: basic\ncredential: ann",
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """,
        ]
        try await withBank(configuration) { bank in
            let seen = Mutex<Set<String>>([])
            bank.upstream.override { request in
                // Not what the token's client proves itself by.
                if let value = request.field("authorization"), !request.path.hasSuffix("/token") {
                    _ = seen.withLock { $0.insert(value) }
                }
                guard request.path.hasPrefix("/basic/") else { return nil }
                guard request.field("authorization") != nil else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", #"Basic realm="Demo""#)])
                }
                return .text(200, "welcome\n")
            }
            for _ in 0..<3 {
                try await bank.expect("/balance", status: 200)
                try await bank.expect("/basic/", status: 200)
            }
            let values = seen.withLock { $0 }.compactMap { $0.split(separator: " ").last.map(String.init) }
            let token = try #require(values.first { $0.hasPrefix("ey") })
            let basic = try #require(values.first { !$0.hasPrefix("ey") })
            let pid = try bank.daemon.child.pid
            // What is in use is there: a search that finds nothing would prove nothing.
            let texts = ["Bearer \(token)", "Basic \(basic)", basic, secret]
            let before = try await countInMemory(of: pid, texts, in: bank.folder)
            #expect(before.count == 4 && before.prefix(3).allSatisfy { $0 > 0 }, "\(before)")
            #expect(!String(decoding: readFile("/proc/\(pid)/environ"), as: UTF8.self).contains(secret))

            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
            var after = before
            for _ in 0..<20 where after[1] + after[2] > 0 {
                after = try await countInMemory(of: pid, texts, in: bank.folder)
            }
            // No more than the one copy that the last transfer of a route still had.
            #expect(after[1] == 0 && after[2] == 0 && after[0] <= 1 && after[3] <= 1, "\(after)")
        }
    }
}

/// How often each of `texts` stands in the memory of a process.
private func countInMemory(of pid: pid_t, _ texts: [String], in folder: Folder) async throws -> [Int] {
    let script =
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Tests/Scripts/count-in-memory"
    let run = try await Command.run([script, "\(pid)"] + texts, in: folder)
    #expect(run.exit == 0, "\(run)")
    return run.output.split(separator: "\n").compactMap { Int($0) }
}

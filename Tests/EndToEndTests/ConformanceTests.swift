// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("An outside driver of raw sockets, written from the standard and not from this code")
struct ConformanceTests {
    /// `Tests/Conformance/EXCEPTIONS` lists what may fail, with the reason.
    @Test("finds nothing wrong")
    func driver() async throws {
        try await Slots.run {
            let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
            let folder = try Folder()
            defer { folder.removeAll() }
            let run = try await Command.run(
                ["/usr/bin/env", "python3", "\(root)/Tests/Conformance/run", "--start", "countersign", Binary.path],
                in: folder, within: .seconds(300))
            #expect(run.exit == 0, "\(run.output.suffix(20_000))\(run.errors.suffix(4_000))")
            // A driver that ran next to nothing has not found nothing wrong.
            let cases = run.output.split(separator: "\n").last { $0.hasPrefix("all ") }?.split(separator: " ")
            #expect(cases.flatMap { Int($0[1]) } ?? 0 > 1_000, "\(run.output)")
        }
    }
}

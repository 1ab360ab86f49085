// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Downloads from servers whose login page comes in place of the page")
struct DownloadTests {
    private static let kinds: [FakeKind] = [.webSEAL, .undertow]

    /// Ends the session at the server, or drops the daemon's.
    private static func end(_ isOver: Bool, _ bank: Bank, _ fake: FakeServer) async throws {
        if isOver {
            try await bank.expect("/app/guide.html", status: 200)
            try await fake.direct("/-fake/expire")
        } else {
            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
        }
    }

    @Test(
        "curl and wget continue files as directly, without a session and after its end", arguments: kinds,
        [false, true])
    func continued(_ kind: FakeKind, isOver: Bool) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.direct("/-fake/validators")
            for name in ["file.bin", "guide.html"] {
                let whole = try await fake.direct("/open/\(name)").body
                for kept in [100, 5_000] {
                    for program in [["curl", "-q", "-sS", "-C", "-", "-o"], ["wget", "-q", "-c", "-O"]] {
                        try await Self.end(isOver, bank, fake)
                        bank.folder.write(Array(whole.prefix(kept)), to: "part")
                        let run = try await Command.run(program + ["part", bank.url("/app/\(name)")], in: bank.folder)
                        let got = bank.folder.bytes(of: "part")
                        #expect(run.exit == 0 && got == whole, "\(program[0]) \(name) \(kept): \(run.errors)")
                    }
                }
            }
        }
    }

    @Test("wget measures and finds files as directly without a session", arguments: kinds)
    func measured(_ kind: FakeKind) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.direct("/-fake/validators")
            let length = try await fake.direct("/open/guide.html").body.count
            let size = try await bank.curl("/app/guide.html", "-I")
            #expect(size.status == 200 && size.field("content-length") == "\(length)", "\(size.fields)")
            try await Self.end(false, bank, fake)
            let spider = try await Command.run(["wget", "-q", "--spider", bank.url("/app/missing")], in: bank.folder)
            #expect(spider.exit == 8, "\(spider.errors)")
        }
    }

    @Test(
        "ranges and preconditions are answered for the page, not for the login page", arguments: kinds, [false, true])
    func conditions(_ kind: FakeKind, isOver: Bool) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.direct("/-fake/validators")
            let login = try await fake.direct("/app/guide.html").field("etag") ?? ""
            let tag = try await fake.direct("/open/guide.html").field("etag") ?? ""
            #expect(!tag.isEmpty && login != tag)
            var conditions = [["-r", "100-109"], ["-r", "5000-"], ["-r", "5-9", "-H", "If-Range: \(tag)"]]
            // A proof that is two seconds old would be enough for these; `RealTimeTests` lets the time pass.
            if !isOver {
                conditions += [
                    ["-H", "If-None-Match: \(login)"], ["-H", "If-None-Match: \(tag)"], ["-H", "If-Match: \(tag)"],
                    ["-z", "Wed, 01 Jan 2025 00:00:00 GMT"], ["-r", "5-9", "-H", "If-Range: \(login)"],
                ]
            }
            for options in conditions {
                try await Self.end(isOver, bank, fake)
                let direct = try await fake.direct("/open/guide.html", options)
                let through = try await Curl.run(options + [bank.url("/app/guide.html")], in: bank.folder)
                #expect(through.status == direct.status && through.body == direct.body, "\(options) \(through.summary)")
                for name in ["etag", "content-range"] {
                    #expect(through.field(name) == direct.field(name), "\(options)")
                }
            }
        }
    }
}

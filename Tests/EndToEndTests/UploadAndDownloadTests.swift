// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// Bodies of 64 MiB, far more than is kept for resending, on sessions that do not exist yet. The root of each server is
/// open, so that a request for it teaches the daemon nothing.
@Suite("A cold upload of 64 MiB arrives once and whole", .serialized)
struct ColdUploadTests {
    static let size = 64 << 20
    /// The most memory, in kilobytes, that both uploads of a test may cost the daemon.
    static let memory = 32 << 10
    /// Without `Expect`: the caller sends whether or not it is asked to.
    static let framings = [["-H", "Expect:"], ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"]]

    /// A file of that size, and its SHA-256.
    struct Upload {
        let file: String
        let digest: String

        init(in folder: Folder) async throws {
            file = folder.path(of: "upload")
            let made = try await Command.run(
                ["/bin/sh", "-c", "head -c \(size) /dev/urandom >upload && sha256sum upload"], in: folder)
            digest = String(made.output.prefix(64))
        }

        /// Sends it by POST, framed as `options` say.
        func send(to url: String, _ options: [String], in folder: Folder) async throws -> Curl {
            try await Curl.run(
                options + ["-X", "POST", "-H", "Content-Type: application/octet-stream", "-T", file, url],
                in: folder)
        }
    }

    /// Sends the file by both framings, each on a cold session, through `bank` to `path`.
    private func uploadBoth(through bank: Bank, to path: String, check: (Curl, Upload) -> Void) async throws {
        let upload = try await Upload(in: bank.folder)
        let idle = try bank.daemon.peakKilobytes
        for framing in Self.framings {
            let answer = try await upload.send(to: bank.url(path), framing, in: bank.folder)
            #expect(answer.status == 200, "\(framing): \(answer.summary)")
            check(answer, upload)
            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
        }
        #expect(try bank.daemon.peakKilobytes - idle <= Self.memory)
        #expect(!bank.folder.text(of: "daemon.log").contains("body-not-replayable"))
    }

    /// Runs a scenario with a server in front of a counter of uploads, and the daemon in front of that.
    private func withCounter(
        _ challenge: String, _ start: (UInt16) async throws -> (port: UInt16, stop: () async -> Void), path: String
    ) async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.environment = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo"]
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: guarded"
        configuration.challenges = ["name: corp\nupstream: guarded\ncredential: corp\n\(challenge)"]
        try await withBank(configuration, startsDaemon: false) { bank in
            let (port, log) = (Ports.next(), bank.folder.path(of: "arrived"))
            let counter = try await ScriptServer("upload-counter", ["\(port)", log], in: bank.folder)
            let server = try await start(port)
            bank.configure { $0.upstreams = ["guarded:\n  url: http://127.0.0.1:\(server.port)/"] }
            var result: Result<Void, any Error> = .success(())
            do {
                try await bank.startDaemon()
                try await uploadBoth(through: bank, to: path) { _, upload in
                    let posts = bank.folder.text(of: "arrived").split(separator: "\n").filter { $0.hasPrefix("POST") }
                    #expect(posts.last.map(String.init) == "POST \(path) \(Self.size) \(upload.digest) ann")
                }
                let posts = bank.folder.text(of: "arrived").split(separator: "\n").filter { $0.hasPrefix("POST") }
                #expect(posts.count == Self.framings.count)
            } catch {
                result = .failure(error)
            }
            await bank.stopDaemon()
            await server.stop()
            await counter.stop()
            try result.get()
        }
    }

    @Test("at nginx with Basic")
    func nginx() async throws {
        try await withCounter(
            "scheme: basic",
            {
                let server = try await GuardedServer.nginx(before: $0)
                return (server.port, { await server.stop() })
            }, path: "/up")
    }

    @Test("at Apache with Basic and with Digest", arguments: ["basic", "digest"])
    func apache(scheme: String) async throws {
        try await withCounter(
            "scheme: \(scheme)",
            {
                let server = try await GuardedServer.apache(before: $0, opensRoot: true)
                return (server.port, { await server.stop() })
            }, path: scheme == "basic" ? "/basic/up" : "/up")
    }

    @Test("at Apache with a login form that no preset knows")
    func apacheForm() async throws {
        try await withCounter(
            """
            gateway: none
            detect: { status: 401, form-fields: [httpd_username, httpd_password] }
            login:
              url: form
              parameters: { httpd_username: "{username}", httpd_password: "{password}" }
              fields: hidden
            """,
            {
                let server = try await ApacheForm(before: $0)
                return (server.port, { await server.stop() })
            }, path: "/open/up")
    }

    @Test("at Apache with Negotiate")
    func negotiate() async throws {
        try await withBank(startsDaemon: false) { bank in
            let (kdc, web) = (Ports.next(), Ports.next())
            let place = bank.folder.path(of: "realm")
            // Apache's children are another user.
            unsafe chmod(bank.folder.path, 0o711)
            let realm = try await ScriptServer("kerberos-realm", [place, "\(kdc)", "\(web)"], in: bank.folder)
            bank.configure {
                $0.upstreams = ["corp: { url: 'http://localhost:\(web)/' }"]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: corp"
                $0.challenges = ["name: corp\nupstream: corp\nscheme: negotiate\ncredential: robot"]
                $0.environment["KRB5_CONFIG"] = "\(place)/krb5.conf"
                $0.environment["KRB5CCNAME"] = "FILE:\(place)/no-cache"
                $0.environment["COUNTERSIGN_ROBOT__PRINCIPAL"] = "robot"
                $0.environment["COUNTERSIGN_ROBOT__KEYTAB"] = "\(place)/robot.keytab"
            }
            try await bank.startDaemon()
            try await uploadBoth(through: bank, to: "/digest") { answer, upload in
                #expect(answer.field("x-digest") == upload.digest)
            }
            func posts() -> [Substring] {
                bank.folder.text(of: "realm/access.log").split(separator: "\n").filter { $0.hasPrefix("POST") }
            }
            // Apache logs a little after it has answered.
            #expect(await eventually { posts().count == 2 })
            #expect(posts().allSatisfy { $0.contains(" 200 ") })
            await realm.stop()
        }
    }
}

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

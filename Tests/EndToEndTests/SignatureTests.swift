// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("Requests signed for AWS, at servers that check signatures")
struct SignatureTests {
    private static let key = ["ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "demo-secret"]

    /// Returns the verifier, with a challenge that signs for `service`.
    private static func verifier(
        _ service: String, more: String = "", _ arguments: String..., fields: [String: String] = key
    ) -> FakeKind {
        FakeKind(
            script: "../signatures/aws-verifier", arguments: arguments,
            challenge: "sign: { aws: { region: eu-west-1, service: \(service)\(more) } }", fields: fields)
    }

    /// Returns SeaweedFS, with a challenge that signs for it.
    private static func store(more: String = "", upstream: String = "") -> FakeKind {
        FakeKind(
            script: "../signatures/seaweedfs", arguments: ["${FOLDER}/store"] + (0..<7).map { _ in "\(Ports.next())" },
            challenge: "sign: { aws: { region: eu-west-1, service: s3\(more) } }", upstream: upstream, fields: key)
    }

    @Test(
        "200 generated requests have byte for byte the signatures of botocore", arguments: ["s3", "execute-api"],
        [false, true])
    func reference(service: String, isTemporary: Bool) async throws {
        var fields = Self.key
        if isTemporary {
            fields = [
                "ACCESS_KEY_ID": "ASIAEXAMPLE", "SECRET_ACCESS_KEY": "demo-secret",
                "SESSION_TOKEN": "session/token+1==",
            ]
        }
        try await withFake(Self.verifier(service, fields: fields)) { bank, fake in
            let answers = try await bank.storm(connections: 10, requests: 20) { number in
                GeneratedRequest(number, isStore: service == "s3").text
            }
            #expect(answers.count == 200)
            let wrong = fake.requests.filter { !$0.hasSuffix(" 200 ok") }
            #expect(fake.requests.count == 200 && wrong.isEmpty, "\(wrong.first ?? "")")
        }
    }

    @Test("a wrong secret passes the server's refusal on, once for each request, and nothing latches")
    func wrongSecret() async throws {
        var fields = Self.key
        fields["SECRET_ACCESS_KEY"] = "another-secret"
        try await withFake(Self.verifier("s3", fields: fields)) { bank, fake in
            for _ in 0..<3 {
                let answer = try await bank.expect("/b/k", status: 403)
                #expect(answer.text.contains("SignatureDoesNotMatch"))
            }
            #expect(fake.requests.count == 3)
            await bank.stopDaemon()
            let log = bank.folder.text(of: "daemon.log")
            #expect(!log.contains("another-secret") && !log.contains("Signature="))
        }
    }

    @Test("a clock that is wrong costs one request, and is told", arguments: [1200, -1200])
    func clock(ahead seconds: Int) async throws {
        try await withFake(Self.verifier("s3", "--fast", "\(seconds)")) { bank, fake in
            for _ in 0..<5 { try await bank.expect("/b/k", "-X", "PUT", "-d", "body", status: 200) }
            #expect(fake.requests.filter { $0.hasSuffix("RequestTimeTooSkewed") }.count == 1, "\(fake.requests)")
            #expect(fake.requests.count == 6)
            let status = try await bank.admin("/status")
            #expect(status.text.contains("the server's, whose time is signed from now on"), "\(status.text)")
        }
    }

    @Test("a caller's own signature, date and token are replaced, and its signed chunks refused")
    func callersOwn() async throws {
        try await withFake(Self.verifier("s3")) { bank, fake in
            try await bank.expect(
                "/b/k", "-H", "Authorization: AWS4-HMAC-SHA256 Credential=dummy/1/2/s3/aws4_request, Signature=00",
                "-H",
                "X-Amz-Date: 20000101T000000Z", "-H", "X_Amz_Security_Token: dummy", status: 200)
            let refused = try await bank.expect(
                "/b/k", "-X", "PUT", "-d", "x", "-H", "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
                status: 400, code: "bad-request")
            #expect(refused.detail.contains("chunks that the caller has signed itself"))
            #expect(fake.requests.count == 1)
            try await bank.expect("/b/k?X-Amz-Signature=00", status: 403)
        }
    }

    @Test(
        "chunks of a client with dummy keys are taken off, and the data is signed as any other",
        arguments: ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
    func chunks(form: String) async throws {
        try await withFake(Self.verifier("s3")) { bank, fake in
            let signature = form.contains("UNSIGNED") ? "" : ";chunk-signature=" + String(repeating: "0a", count: 32)
            let trailer = form.contains("TRAILER") ? "x-amz-checksum-crc32:AAAAAA==\r\n\r\n" : "\r\n"
            let data = String(repeating: "0123456789abcdef", count: 4_096)
            bank.folder.write(
                "10000\(signature)\r\n\(data)\r\n5\(signature)\r\nhello\r\n0\(signature)\r\n\(trailer)", to: "chunks")
            let upload = [
                "-X", "PUT", "--data-binary", "@\(bank.folder.path(of: "chunks"))", "-H",
                "Content-Encoding: aws-chunked",
                "-H", "x-amz-content-sha256: \(form)", "-H", "x-amz-trailer: x-amz-checksum-crc32",
                "-H", "x-amz-sdk-checksum-algorithm: CRC32", "-H", "Content-Type: text/plain",
            ]
            let stored = try await Curl.run(
                upload + ["-H", "x-amz-decoded-content-length: 65541", bank.url("/b/k")], in: bank.folder)
            #expect(stored.status == 200, "\(stored.summary)")
            let wrong = try await Curl.run(
                upload + ["-H", "x-amz-decoded-content-length: 65540", bank.url("/b/k")], in: bank.folder)
            #expect(wrong.status == 400 && wrong.code == "bad-request", "\(wrong.summary)")
            #expect(fake.requests.count == 1, "\(fake.requests)")
        }
    }

    @Test("a body that is longer than what is kept is refused before any of it is sent")
    func longBody() async throws {
        var kind = Self.verifier("sqs")
        kind.upstream = "\n  replay: { memory: 1KiB, disk: 0B }"
        try await withFake(kind) { bank, fake in
            bank.folder.write([UInt8](repeating: 97, count: 5_000), to: "body")
            let body = "@\(bank.folder.path(of: "body"))"
            let answer = try await bank.expect("/q", "--data-binary", body, status: 413, code: "body-not-replayable")
            #expect(answer.detail.contains("The signature for sqs covers the whole body"), "\(answer.detail)")
            try await bank.expect(
                "/q", "--data-binary", body, "-H", "Transfer-Encoding: chunked", status: 413,
                code: "body-not-replayable")
            #expect(fake.requests.isEmpty)
            try await bank.expect("/q", "--data-binary", "short", status: 200)
        }
    }

    @Test("uploads of a byte, a mebibyte and 64 MiB arrive whole at SeaweedFS, signed or unsigned")
    func uploads() async throws {
        for (more, upstream) in [("", "\n  replay: { disk: 80MiB }"), (", payload: unsigned", "")] {
            try await withFake(Self.store(more: more, upstream: upstream)) { bank, fake in
                try await bank.expect("/shelf", "-X", "PUT", status: 200)
                for size in [1, 1 << 20, 64 << 20] {
                    bank.folder.write([UInt8](repeating: UInt8(truncatingIfNeeded: size >> 4), count: size), to: "body")
                    let stored = try await bank.curl("/shelf/a%20b/\(size)", "-T", bank.folder.path(of: "body"))
                    #expect(stored.status == 200, "\(stored.summary)")
                    let read = try await bank.curl("/shelf/a%20b/\(size)")
                    #expect(read.status == 200 && sha256(read.body) == sha256(bank.folder.bytes(of: "body")))
                }
                // Without a signature it has nothing to give.
                #expect(try await fake.direct("/shelf/a%20b/1").status == 403)
            }
        }
    }

    @Test("a program with boto3 and dummy keys uses SeaweedFS through the proxy")
    func storeClient() async throws {
        try await withFake(Self.store(upstream: "\n  replay: { disk: 80MiB }")) { bank, _ in
            try await Self.useStore(bank)
        }
    }

    @Test("a program with boto3 and dummy keys uses moto, which checks keys and policies")
    func moto() async throws {
        try await withMoto { bank, fake in
            try await bank.configureKey(of: fake)
            try await Self.useStore(bank)
        }
    }

    private static func useStore(_ bank: Bank) async throws {
        let program = Repository.path(of: "Tests/Scripts/signatures/store-client")
        let run = try await Command.run([program, "\(bank.port)", "0", "1", "1048576"], in: bank.folder)
        #expect(run.output == "ok\n", "\(run.errors)")
    }

    @Test(
        "a role's key, of a web identity or of a signed request, signs until its end",
        arguments: ["web-identity", "access-key"])
    func role(proof: String) async throws {
        try await withMoto { bank, fake in
            try await bank.configureKey(
                of: fake,
                more: """
                    , assume-role: { url: "http://127.0.0.1:\(fake.port)/", role: "\(fake.lines("role").first ?? "")", with: \(proof) }
                    """)
            for _ in 0..<3 {
                let answer = try await bank.curl("/?list-type=2")
                #expect(answer.status == 200 && answer.text.contains("ListAllMyBucketsResult"), "\(answer.summary)")
            }
            let login = try await bank.countersign("login", "portal")
            #expect(login.exit == 0 && login.output.contains("role: 200, a key for"), "\(login.output)\(login.errors)")
        }
    }

    @Test("ECR's token for a registry is obtained by a signed request")
    func registry() async throws {
        try await withMoto { bank, fake in
            let port = Ports.next()
            let registry = try await ScriptServer("signatures/aws-verifier", ["\(port)"], in: bank.folder)
            do {
                try await bank.configureKey(
                    of: fake, service: "ecr", more: ", registry: \"http://127.0.0.1:\(fake.port)/\"", upstream: port)
                for _ in 0..<3 { try await bank.expect("/registry/v2/", status: 200) }
            } catch {
                await registry.stop()
                throw error
            }
            await registry.stop()
            let requests = registry.output.split(separator: "\n").filter { $0.hasPrefix("request ") }
            #expect(requests.count == 3 && requests.allSatisfy { $0.hasSuffix(" 200 ok") }, "\(requests)")
        }
    }

    /// Runs a scenario with moto; the daemon is started by `configureKey`.
    private func withMoto(_ scenario: (Bank, FakeServer) async throws -> Void) async throws {
        let kind = FakeKind(
            script: "../signatures/moto", challenge: "sign: { aws: { region: eu-west-1, service: s3 } }",
            fields: Self.key)
        try await withFake(kind, scenario)
    }
}

extension Bank {
    /// Starts the daemon again, with the key that moto has made, and another challenge.
    fileprivate func configureKey(
        of fake: FakeServer, service: String = "s3", more: String = "", upstream: UInt16? = nil
    ) async throws {
        let key = (fake.lines("key").first ?? "").split(separator: " ").map(String.init)
        try #require(key.count == 2)
        await stopDaemon()
        configure {
            $0.environment["COUNTERSIGN_ANN__ACCESS_KEY_ID"] = key[0]
            $0.environment["COUNTERSIGN_ANN__SECRET_ACCESS_KEY"] = key[1]
            $0.environment["COUNTERSIGN_ANN__TOKEN"] = "web-token"
            if let upstream { $0.upstreams = ["app:\n  url: \"http://127.0.0.1:\(upstream)/\""] }
            $0.challenges = [
                """
                name: portal
                upstream: app
                credential: ann
                sign: { aws: { region: eu-west-1, service: \(service)\(more) } }
                """
            ]
        }
        try await startDaemon()
    }
}

/// A request with an odd path, repeated and empty parameters, blanks and Unicode in its values.
private struct GeneratedRequest {
    let text: String

    init(_ number: Int, isStore: Bool) {
        var chance = SplitMix(state: UInt64(truncatingIfNeeded: number))
        let segments = ["a", "", "%20x", "b%2Fc", "%C3%BC", "~", "d.e", "$".percent, "()".percent, "-_"]
        let raw = ["..", ".", "%7e", "a;b=c", "(2)", "!", "*", "%2f"]
        let path = (0..<Int.random(in: 1...5, using: &chance)).map { _ in
            (isStore ? segments : segments + raw).randomElement(using: &chance) ?? ""
        }.joined(separator: "/")
        let words = ["", "v", "a%20b", "%C3%BC", "%2F", "1", "%3D%26", "~"]
        let parameters = (0..<Int.random(in: 0...4, using: &chance)).map { _ in
            let name = ["a", "b", "A", "list-type", "x%20y"].randomElement(using: &chance) ?? ""
            return "\(name)=\(words.randomElement(using: &chance) ?? "")"
        }
        let target = "/\(path)" + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
        let method = ["GET", "PUT", "POST", "DELETE", "PATCH"].randomElement(using: &chance) ?? "GET"
        var fields = "Host: localhost\r\nUser-Agent: generated/\(number)\r\n"
        if Bool.random(using: &chance) { fields += "Content-Type: text/plain;  charset=utf-8\r\n" }
        if Bool.random(using: &chance) { fields += "x-amz-meta-note:   two   words  \r\nX-Amz-Meta-Empty:\r\n" }
        if Bool.random(using: &chance) { fields += "x-amz-meta-b: 2\r\nX-AMZ-Meta-B: 1\r\n" }
        let body =
            method == "GET" || method == "DELETE"
            ? "" : String(repeating: "ä", count: Int.random(in: 0...2_000, using: &chance))
        let framing = method == "GET" || method == "DELETE" ? "" : "Content-Length: \(body.utf8.count)\r\n"
        text = "\(method) \(target) HTTP/1.1\r\n\(fields)\(framing)\r\n\(body)"
    }
}

extension String {
    /// The text with each byte percent-encoded.
    fileprivate var percent: String { utf8.map { "%" + String($0, radix: 16, uppercase: true) }.joined() }
}

@Suite("APIs with a signature of their own, by the recipes of the documentation")
struct HMACRecipeTests {
    private static let apis = ["coinbase", "okx", "bybit", "app-configuration", "bitstamp"]

    /// Returns the lines of `sign` in the recipe of that name, without their common indentation.
    private static func recipe(_ name: String) throws -> String {
        let lines = Repository.text(of: "docs/challenges/signatures.md").split(
            separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(of: "  - name: \(name)") else {
            throw ChildError(description: "signatures.md has no recipe \(name)")
        }
        let challenge = lines[(start + 1)...].prefix { $0.hasPrefix("    ") }
        return challenge.drop { !$0.hasPrefix("    sign:") }.map { $0.dropFirst(4) }.joined(separator: "\n")
    }

    private static func kind(_ api: String, secret: String = "demo-secret") throws -> FakeKind {
        let challenge = try recipe(api)
        // As the API hands it out.
        let isBase64 = challenge.contains("secret-encoding: base64")
        let inBase64 = ["demo-secret": "ZGVtby1zZWNyZXQ=", "other-secret": "b3RoZXItc2VjcmV0"][secret] ?? ""
        return FakeKind(
            script: "../signatures/hmac-verifier", arguments: [api], challenge: challenge,
            fields: [
                "SECRET": isBase64 ? inBase64 : secret, "KEY": "key-1", "ID": "id-1", "PASSPHRASE": "pass-phrase",
            ])
    }

    @Test("requests pass a server that checks them as the API describes it", arguments: apis)
    func passes(api: String) async throws {
        try await withFake(Self.kind(api)) { bank, fake in
            for _ in 0..<3 {
                try await bank.expect("/v1/a%20b?x=1&y=%C3%BC", status: 200)
                try await bank.expect("/v1/orders", status: 200)
                try await bank.expect(
                    "/v1/orders", "-d", #"{"price":"1.10"}"#, "-H", "Content-Type: application/json", status: 200)
                try await bank.expect("/v1/orders", "-X", "POST", "-d", "", status: 200)
            }
            #expect(
                fake.requests.count == 12 && fake.requests.allSatisfy { $0.hasSuffix(" 200 ok") }, "\(fake.requests)")
        }
    }

    @Test("with another secret the server refuses the signature, and no log holds it", arguments: apis)
    func refused(api: String) async throws {
        try await withFake(Self.kind(api, secret: "other-secret")) { bank, fake in
            let answer = try await bank.expect("/v1/orders", status: 401)
            #expect(answer.text == "signature", "\(answer.text)")
            await bank.stopDaemon()
            let log = bank.folder.text(of: "daemon.log")
            #expect(!log.contains("other-secret") && !log.contains("pass-phrase"))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A container registry with token authentication")
struct RegistryTests {
    private static func withRegistry(
        password: String = "demo", token: String = "", tokenPath: String = "/token",
        _ scenario: (_ bank: Bank, _ registry: ContainerRegistry) async throws -> Void
    ) async throws {
        let registry = try await ContainerRegistry()
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: registry"
        configuration.upstreams = [
            "registry:\n  url: http://127.0.0.1:\(registry.port)/\n  replay: { memory: 64KiB, disk: 0 }"
        ]
        let address = "http://127.0.0.1:\(registry.tokenPort)\(tokenPath)"
        configuration.challenges = [
            """
            name: registry
            upstream: registry
            scheme: bearer
            credential: ann
            token: { grant: registry, url: "\(address)"\(token) }
            """
        ]
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": password]
        do {
            try await withBank(configuration) { try await scenario($0, registry) }
        } catch {
            await registry.stop()
            throw error
        }
        await registry.stop()
    }

    @Test("an image is pushed and pulled by callers that know of no token, each with one token for all its requests")
    func pushAndPull() async throws {
        try await Self.withRegistry { bank, registry in
            // More than is kept for a replay, so that it must go on a session that is there.
            let layer = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let config = Array(#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}"#.utf8)
            for blob in [layer, config] { try await bank.push(blob, to: "ann/app") }
            let manifest = manifest(config: config, layer: layer)
            let put = try await bank.curl(
                "/v2/ann/app/manifests/latest", "-X", "PUT", "-H", "Content-Type: \(mediaType)", "--data-binary",
                manifest)
            #expect(put.status == 201, "\(put.summary)")
            #expect(registry.tokenRequests == ["200 repository:ann/app:pull,push"])

            for _ in 0..<2 {
                let got = try await bank.expect(
                    "/v2/ann/app/manifests/latest", "-H", "Accept: \(mediaType)", status: 200)
                #expect(got.text == manifest)
                for blob in [layer, config] {
                    let pulled = try await bank.expect("/v2/ann/app/blobs/sha256:\(sha256(blob))", status: 200)
                    #expect(pulled.body == blob)
                }
            }
            #expect(registry.tokenRequests.dropFirst() == ["200 repository:ann/app:pull"])
        }
    }

    @Test("a body longer than what is kept goes at once, where no token is there yet")
    func longBodyFirst() async throws {
        try await Self.withRegistry { bank, registry in
            try await bank.expect("/v2/", status: 200)
            let layer = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
            let file = bank.folder.write(layer, to: "layer")
            let answer = try await bank.curl("/v2/ann/app/blobs/uploads/", "-X", "POST", "--data-binary", "@\(file)")
            #expect(answer.status == 202, "\(answer.summary)")
        }
    }

    @Test("another repository is another token, and what the account may not do is the caller's answer")
    func scopes() async throws {
        try await Self.withRegistry { bank, registry in
            for _ in 0..<2 {
                try await bank.expect("/v2/public/app/tags/list", status: 404)
                try await bank.expect("/v2/ann/app/tags/list", status: 404)
            }
            #expect(
                registry.tokenRequests == ["200 repository:public/app:pull", "200 repository:ann/app:pull"])
            for _ in 0..<2 {
                let refused = try await bank.expect("/v2/bob/secret/tags/list", status: 401)
                #expect(refused.text.contains("UNAUTHORIZED"))
            }
            #expect(registry.tokenRequests.count <= 4)
            try await bank.expect("/v2/ann/app/tags/list", status: 404)
        }
    }

    @Test("a wrong password reaches the token service once, whatever is asked for then")
    func wrongPassword() async throws {
        try await Self.withRegistry(password: "wrong") { bank, registry in
            try await bank.expect("/v2/ann/app/tags/list", status: 502, code: "login-rejected")
            try await bank.expect("/v2/ann/app/tags/list", status: 503, code: "login-latched")
            try await bank.expect("/v2/public/app/tags/list", status: 503, code: "login-latched")
            #expect(registry.tokenRequests.count == 1)
        }
    }

    @Test("a token service other than the configured one gets nothing")
    func otherService() async throws {
        try await Self.withRegistry(tokenPath: "/other") { bank, registry in
            let answer = try await bank.expect("/v2/ann/app/tags/list", status: 502, code: "login-failed")
            #expect(answer.detail.contains("token.url"))
            #expect(registry.tokenRequests.isEmpty)
        }
        try await Self.withRegistry(token: ", audience: another.tests") { bank, registry in
            let answer = try await bank.expect("/v2/ann/app/tags/list", status: 502, code: "login-failed")
            #expect(answer.detail.contains("token.audience"))
            #expect(registry.tokenRequests.isEmpty)
        }
    }
}

private let mediaType = "application/vnd.docker.distribution.manifest.v2+json"

private func manifest(config: [UInt8], layer: [UInt8]) -> String {
    func entry(_ type: String, _ blob: [UInt8]) -> String {
        #"{"mediaType":"\#(type)","size":\#(blob.count),"digest":"sha256:\#(sha256(blob))"}"#
    }
    let configEntry = entry("application/vnd.docker.container.image.v1+json", config)
    let layerEntry = entry("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)
    return #"{"schemaVersion":2,"mediaType":"\#(mediaType)","config":\#(configEntry),"layers":[\#(layerEntry)]}"#
}

extension Bank {
    /// Pushes a blob in three requests, as docker does: a POST, a PATCH with the bytes, a PUT with the digest.
    fileprivate func push(_ blob: [UInt8], to repository: String) async throws {
        let begun = try await curl("/v2/\(repository)/blobs/uploads/", "-X", "POST")
        try #require(begun.status == 202, "\(begun.summary)")
        let file = folder.write(blob, to: "blob")
        let sent = try await Curl.run(
            ["-X", "PATCH", "-H", "Content-Type: application/octet-stream", "--data-binary", "@\(file)", place(begun)],
            in: folder)
        try #require(sent.status == 202, "\(sent.summary)")
        let ended = try await Curl.run(
            ["-X", "PUT", "\(place(sent))&digest=sha256:\(sha256(blob))"], in: folder)
        try #require(ended.status == 201, "\(ended.summary)")
    }

    /// Returns the address of an upload's next request: one of the proxy, like every address from upstream.
    private func place(_ answer: Curl) -> String {
        let location = answer.field("location") ?? ""
        #expect(location.hasPrefix(url("/v2/")), "\(location)")
        return location
    }
}

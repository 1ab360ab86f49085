// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import FakeServers
import LoginExamples
import Secrets
import TestSupport
import Testing

/// Fake upstream, and a client for it.
struct Demo {
    let upstream: FakeUpstream
    let client: ChallengeClient

    func url(_ path: String) -> String { "http://127.0.0.1:\(upstream.port)\(path)" }

    var balance: String { url("/mfp/api/adapters/bank/balance") }

    /// Registers a handler of the PIN that never answers. The returned notes have an entry once it was asked.
    func registerSilentHandler() throws -> Notes {
        let asked = Notes()
        try client.registerChallengeHandler(
            PinCodeHandler { _ in
                asked.add("asked")
                await untilCancelled()
                return nil
            })
        return asked
    }
}

/// Runs `body` with an upstream and a client, and then shuts them down.
func withDemo(
    _ change: (inout ClientConfiguration) -> Void = { _ in }, _ body: (Demo) async throws -> Void
) async throws {
    let upstream = FakeUpstream()
    try upstream.start()
    defer { upstream.stop() }
    var configuration = ClientConfiguration()
    let api = try #require(WebURL("http://127.0.0.1:\(upstream.port)/mfp/api"))
    configuration.mobileFirst = MobileFirstServer(
        MobileFirstConfiguration(api: api, application: "com.sample.pincode", platform: .ios, version: "1.0"),
        keys: SharedKeys())
    change(&configuration)
    let client = try ChallengeClient(configuration)
    do {
        try await body(Demo(upstream: upstream, client: client))
    } catch {
        await client.shutdown()
        throw error
    }
    await client.shutdown()
}

/// One key for all tests, since generating one takes a second.
struct SharedKeys: SigningKeys {
    private static let made = Task { try await RSASigningKeys().generate() }

    func generate() async throws(StateError) -> any SigningKey {
        do { return try await Self.made.value } catch { throw StateError(reason: "\(error)") }
    }

    func load(_ serialized: Secret) throws(StateError) -> any SigningKey { try RSASigningKeys().load(serialized) }
    func load(pem: Secret) throws(StateError) -> any AssertionKey { try RSASigningKeys().load(pem: pem) }
}

/// Returns the client error that `body` throws; without one the test fails.
func clientError<Value>(
    _ location: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async throws -> ClientError {
    do {
        _ = try await body()
    } catch let error as ClientError {
        return error
    }
    Issue.record("no error", sourceLocation: location)
    throw CancellationError()
}

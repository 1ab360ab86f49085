// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// All that the server remembers. Its endpoints are methods in files of their own.
struct MobileFirstState: Sendable {
    var rules: MobileFirstRules
    var clients: [String: Client] = [:]
    var codes: [String: Code] = [:]
    var tokens: [String: Token] = [:]

    init(rules: MobileFirstRules) {
        self.rules = rules
    }

    /// A registered instance of an application.
    struct Client: Sendable {
        var key: RSAPublicKey
        var registration: JSON
        var checks: [String: SecurityCheckState] = [:]

        /// The issuer of its assertions: `application$platform$version`, for the web `application$web`.
        var issuer: String {
            let application = registration["application"]
            return ["id", "clientPlatform", "version"].compactMap { application?[$0]?.string }.joined(separator: "$")
        }
    }

    /// A grant code, good once, for one client and one redirect address.
    struct Code: Sendable {
        var client: String
        var scope: String
        var redirect: String
        var expires: Int64
    }

    /// An access token.
    struct Token: Sendable {
        var client: String
        var scope: Set<String>
        var expires: Int64
        var uses = 0
    }
}

/// One request to the server, with the time in its own clock (milliseconds).
struct MobileFirstCall {
    var request: FakeRequest
    /// The path below the API's base address.
    var path: String
    var basePath: String
    var now: Int64
}

/// Changes of the record by a call.
struct MobileFirstNotes: Sendable {
    var changes: [@Sendable (inout Record) -> Void] = []

    mutating func record(_ change: @escaping @Sendable (inout Record) -> Void) { changes.append(change) }
    mutating func violation(_ text: String) { record { $0.violations.append(text) } }
}

/// 400 as any endpoint answers a client that it does not know.
let unknownClientResponse = FakeResponse.json(
    400, ["errorCode": "INVALID_CLIENT_ID", "errorMsg": "The client is not registered."])

/// 401 of a resource for a token that is not valid, or no longer (RFC 6750 §3.1).
let invalidTokenResponse = FakeResponse(401, fields: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])

/// Returns a resource's 403 for a token that lacks scope; the comma after `error` and none elsewhere, as in the
/// product.
func insufficientScope(_ scope: String) -> FakeResponse {
    FakeResponse(
        403, fields: [("WWW-Authenticate", "Bearer error=\"insufficient_scope\", scope=\"\(scope)\"")])
}

/// 400 with an error code of the product's form.
func refusal(_ code: String, _ message: String, status: Int = 400) -> FakeResponse {
    .json(status, ["errorCode": .string(code), "errorMsg": .string(message)])
}

/// Returns a name that cannot be guessed: 32 hexadecimal digits.
func randomName() -> String {
    [UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)].map { part in
        let digits = String(part, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
}

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

/// The fake server's configuration, and its deviations from the ordinary; a test may change it between requests.
package struct MobileFirstRules: Sendable {
    /// The security checks that exist.
    package var checks: [SecurityCheck]
    /// Scope elements mapped to checks (`accessRestricted` to `PinCodeAttempts`); a check's own name needs no entry.
    package var scopeMapping: [String: [String]] = [:]
    /// The confidential clients.
    package var confidentialClients: [ConfidentialClient] = [
        ConfidentialClient(id: "test", secret: "test", allowedScope: "*")
    ]
    /// The longest lifetime of an access token in seconds (`maxTokenExpiration`).
    package var tokenLife: Int64 = 3600
    /// The seconds after which a token really expires, whatever `expires_in` said.
    package var earlyExpiry: Int64?
    /// Number of requests for which a token is valid; `nil`: any number.
    package var tokenUses: Int?
    /// Seconds by which the server's clock is fast.
    package var clockOffset: Int64 = 0
    /// True if answers count only when every open challenge of the scope is answered in the same request.
    package var wantsAllAnswersTogether = false
    /// Remaining attempts with which a check begins, by its name, instead of all.
    package var startingAttempts: [String: Int64] = [:]
    /// True if an unknown scope element is granted without a check, not refused.
    package var grantsUnknownScope = false
    /// The endpoints protected by the gateway's login page (`FakeMobileFirst.gateway`).
    package var guarded: Set<Endpoint> = []

    /// Creates a server with those checks.
    package init(checks: [SecurityCheck]) {
        self.checks = checks
    }

    /// Returns the names of the checks that a scope demands, in its order; `nil` if an element is unknown.
    func checks(inScope scope: String) -> [SecurityCheck]? {
        var result: [SecurityCheck] = []
        for element in scope.split(separator: " ").map(String.init) where element != "RegisteredClient" {
            guard let names = scopeMapping[element] ?? (named(element) == nil ? nil : [element]) else {
                guard grantsUnknownScope else { return nil }
                continue
            }
            for check in names.compactMap(named) where !result.contains(where: { $0.name == check.name }) {
                result.append(check)
            }
        }
        return result
    }

    func named(_ name: String) -> SecurityCheck? { checks.first { $0.name == name } }
}

/// A client that is known by identifier and secret and never challenged.
package struct ConfidentialClient: Sendable {
    /// The identifier.
    package var id: String
    /// The secret.
    package var secret: String
    /// The scope elements it may ask for, separated by spaces; `*`, alone or at the end of an element, matches
    /// anything.
    package var allowedScope: String

    /// Creates a confidential client.
    package init(id: String, secret: String, allowedScope: String) {
        self.id = id
        self.secret = secret
        self.allowedScope = allowedScope
    }

    func isAllowed(_ scope: String) -> Bool {
        let patterns = allowedScope.split(separator: " ")
        return scope.split(separator: " ").allSatisfy { element in
            element == "RegisteredClient"
                || patterns.contains { $0.last == "*" ? element.hasPrefix($0.dropLast()) : $0 == element }
        }
    }
}

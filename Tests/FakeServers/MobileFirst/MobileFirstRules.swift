// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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

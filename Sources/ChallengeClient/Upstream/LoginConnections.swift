// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Connections of the logins with separate TLS settings, at the origins of their servers.
struct LoginConnections: Sendable {
    private let all: [(login: String, origins: Set<Origin>, settings: ConnectionSettings)]

    /// Collects the settings of logins by name. Each applies to the origins of the login's own servers only.
    init(_ settings: [String: ConnectionSettings], of logins: Authenticators) {
        all = settings.sorted { $0.key < $1.key }.map { name, settings in
            (name, logins.all.filter { $0.name == name }.reduce([]) { $0.union($1.origins) }, settings)
        }
    }

    /// Returns the settings of that login for `origin`, or of any login if `login` is nil. Nil without separate
    /// settings.
    func settings(for origin: Origin, of login: String?) -> ConnectionSettings? {
        all.first { (login == nil || $0.login == login) && $0.origins.contains(origin) }?.settings
    }
}

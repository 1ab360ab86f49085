// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of `handler`: one of the program's own handlers, by its name.
package struct OwnHandlerSettings: ChallengeKind {
    /// Name of the handler.
    package var handler: String

    /// Creates the settings for a handler's name.
    package init(_ handler: String) { self.handler = handler }

    private static let handlerKey = Key(
        required: "handler", ValueForm<String>("name") { $0.handlerName() },
        "Handler in Swift that is part of this program and finds its credentials itself.")

    /// The handler's name.
    package static let keys: [any SchemaKey] = [handlerKey]
    /// Refuses the common keys, because the handler decides all of this itself.
    package static let refusalOfCommonKeys: String? =
        "cannot be used with `handler`: a handler finds its own credentials and logs in on demand"

    /// Reads the name of one of the program's handlers.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> OwnHandlerSettings? {
        fields[handlerKey].map(OwnHandlerSettings.init)
    }

    /// False: the handler finds its own credentials.
    package var needsCredential: Bool { false }

    /// No fields.
    package var neededFields: Set<String> { [] }

    /// False: the challenges that the handler answers are unknown.
    package func conflicts(with other: OwnHandlerSettings) -> Bool { false }

    /// Adds the handler's name.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) { terms.add("handler", handler) }

    /// Returns the authenticator of a gateway's or a scheme's handler.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        site.material.ownHandlers.authenticator(handler, of: challenge.name, at: site.upstream)
    }

    /// Returns the handler of a security check.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? {
        guard site.upstream.mobileFirst != nil else { return nil }
        return site.material.ownHandlers.securityCheck(handler, of: challenge.name).map { ConfiguredCheck($0) }
    }
}

/// Registry of the program's handlers.
package protocol OwnHandlerSource: Sendable {
    /// Returns the authenticator of a gateway's or a scheme's handler; nil for an unknown name.
    ///
    /// The authenticator has the challenge's name.
    func authenticator(_ handler: String, of challenge: String, at upstream: ProtectedUpstream) -> Authenticator?
    /// Returns the handler of a security check; nil for an unknown name.
    func securityCheck(_ handler: String, of challenge: String) -> HandledCheck?
}

/// Empty registry of handlers.
package struct NoOwnHandlers: OwnHandlerSource {
    /// Creates the registry.
    package init() {}

    /// Returns nil.
    package func authenticator(
        _ handler: String, of challenge: String, at upstream: ProtectedUpstream
    ) -> Authenticator? { nil }

    /// Returns nil.
    package func securityCheck(_ handler: String, of challenge: String) -> HandledCheck? { nil }
}

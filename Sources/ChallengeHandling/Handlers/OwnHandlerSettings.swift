// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// `handler`: one that the program brings along, by its name there.
package struct OwnHandlerSettings: ChallengeKind {
    /// The handler's name.
    package var handler: String

    /// The handler of that name.
    package init(_ handler: String) { self.handler = handler }

    /// `handler`.
    package static let key = "handler"
    /// None.
    package static let keys: [String] = []
    /// It is asked for all of that.
    package static let refusalOfCommonKeys: String? =
        "is the handler's own affair: it finds its credentials itself, and wins its session when it is asked"

    /// Reads the name, which the program has to know.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> OwnHandlerSettings? {
        fields.required(key)?.handlerName().map(OwnHandlerSettings.init)
    }

    /// It finds it itself.
    package var needsCredential: Bool { false }

    /// None.
    package var neededFields: Set<String> { [] }

    /// Nobody knows what it answers.
    package func rivals(_ other: OwnHandlerSettings) -> Bool { false }

    /// Its name.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) { terms.add("handler", handler) }

    /// The login of a gateway's or a scheme's handler.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        site.material.ownHandlers.authenticator(handler, of: challenge.name, at: site.upstream)
    }

    /// A security check's handler.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? {
        guard site.upstream.mobileFirst != nil else { return nil }
        return site.material.ownHandlers.securityCheck(handler, of: challenge.name).map { ConfiguredCheck($0) }
    }
}

/// The handlers that the program brings along.
package protocol OwnHandlerSource: Sendable {
    /// The authenticator of a gateway's or a scheme's handler, under the challenge's name; `nil` if there is none of that name.
    func authenticator(_ handler: String, of challenge: String, at upstream: ProtectedUpstream) -> Authenticator?
    /// The handler of a security check; `nil` if there is none of that name.
    func securityCheck(_ handler: String, of challenge: String) -> HandledCheck?
}

/// No handlers.
package struct NoOwnHandlers: OwnHandlerSource {
    /// None.
    package init() {}

    /// None.
    package func authenticator(
        _ handler: String, of challenge: String, at upstream: ProtectedUpstream
    ) -> Authenticator? { nil }

    /// None.
    package func securityCheck(_ handler: String, of challenge: String) -> HandledCheck? { nil }
}

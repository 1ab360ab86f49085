// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

/// An upstream's MobileFirst 8.0 server, and the application registered there.
public struct MobileFirstConfiguration: Sendable, Hashable {
    /// Platform that the application was registered for.
    public enum Platform: String, Sendable, Hashable, CaseIterable {
        /// The platform of the SDK for Android.
        case android
        /// The platform of the SDK for iOS.
        case ios
        /// The platform of the SDK for browsers, which sends no application version.
        case web
    }

    /// The server's API, for example `https://mfp.example.com/mfp/api`. Requests go to its origin only.
    public var api: WebURL
    /// The application's identifier at the server: `com.sample.pincode`.
    public var application: String
    /// The application's platform.
    public var platform: Platform
    /// The application's version at the server: `1.0`.
    public var version: String
    /// The scope requested in every login.
    public var scope: Scope

    /// Creates a configuration.
    public init(
        api: WebURL, application: String, platform: Platform, version: String, scope: Scope = .empty
    ) {
        self.api = api
        self.application = application
        self.platform = platform
        self.version = version
        self.scope = scope
    }

    /// Returns the scope that a login for `words` requests. It includes the configured scope and, for Android and iOS,
    /// `RegisteredClient`, as IBM's native SDKs add it to every request. The web SDK adds nothing, and neither does
    /// `web`.
    public func scope(adding words: some Sequence<String>) -> Scope {
        let own = platform == .web ? Scope.empty : Scope(["RegisteredClient"])
        return scope.union(own).union(Scope(Array(words)))
    }

    /// The issuer of assertions.
    var issuer: String {
        platform == .web ? "\(application)$web" : "\(application)$\(platform.rawValue)$\(version)"
    }

    /// Returns the redirect address of the grant code. No server listens there; the code is read from the redirect
    /// itself.
    func redirectAddress(clientID: String) -> String {
        platform == .web
            ? "\(api.appending(path: "az/v1/authorization/redirect/\(FormEncoding.percentEncoded(clientID))"))"
            : "http://mfpredirecturi"
    }

    /// The audience of assertions for the token endpoint. The SDKs differ, and the server does not check.
    var audience: String {
        platform == .web ? "az/v1/token" : "\(api.appending(path: "az/v1/token"))"
    }
}

/// Detector of responses with which a MobileFirst 8.0 resource asks for its upstream's login.
public struct MobileFirstDetector: ChallengeDetector {
    /// Creates a detector.
    public init() {}

    /// The name that `explain` shows.
    public var kind: String { "mobilefirst" }

    /// Detects bearer challenges, `insufficient_scope`, and `MFP-Conflict`.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if Self.isConflict(status: response.status, fields: response.fields) { return .replay }
        return BearerDetector().examine(response, hasSession: hasSession)
    }

    /// Returns whether the answer asks to send the request again. The field's value has no meaning.
    static func isConflict(status: Int, fields: HTTPFields) -> Bool {
        status == 409 && fields.contains { $0.name.canonicalName == "mfp-conflict" }
    }
}

extension MobileFirstConfiguration {
    private enum Keys {
        static let api = Key(
            "api", .addressWithoutQuery, without: "`/mfp/api` at the upstream's origin", "Address of the server's API.")
        static let application = Key(
            required: "application", .word, "Application id, as registered in the server's console.")
        static let platform = Key<Platform>(
            "platform", .choice, default: .ios, "Platform of the application, as registered.")
        static let version = Key("version", .text, default: "1.0", "Version of the application, as registered.")
        static let scope = Key(
            "scope", .words, default: [], words: "none",
            "Scope elements that are requested before the first request.")
    }

    /// Table of `upstreams.*.mobilefirst`.
    package static let section = KeySection(
        "upstreams.*.mobilefirst", [Keys.api, Keys.application, Keys.platform, Keys.version, Keys.scope])

    /// Reads `mobilefirst` of an upstream at `origin`.
    package static func read(_ fields: Fields, origin: Origin?) -> MobileFirstConfiguration? {
        let api = fields[Keys.api]
        let application = fields[Keys.application]
        let (platform, version, scope) = (fields[Keys.platform], fields[Keys.version], fields[Keys.scope])
        let isWritten = fields.written(Keys.api) != nil
        let standard = origin.map { WebURL(origin: $0, path: "/mfp/api") }
        if !isWritten, let standard { fields.assume(Keys.api, "\(standard)") }
        guard let application, let base = isWritten ? api : standard else { return nil }
        let path = base.path.hasSuffix("/") ? String(base.path.dropLast()) : base.path
        return MobileFirstConfiguration(
            api: WebURL(origin: base.origin, path: path), application: application, platform: platform,
            version: version, scope: Scope(scope))
    }
}

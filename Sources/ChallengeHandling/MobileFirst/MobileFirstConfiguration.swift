// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How an upstream's MobileFirst 8.0 server is spoken to, and as which application.
public struct MobileFirstConfiguration: Sendable, Hashable {
    /// What kind of client the application was registered for.
    public enum Platform: String, Sendable, Hashable, CaseIterable {
        /// As the SDK for Android.
        case android
        /// As the SDK for iOS.
        case ios
        /// As the SDK for browsers, which tells the server no application version.
        case web
    }

    /// The server's API, for example `https://mfp.example.com/mfp/api`. Requests go to its origin only.
    public var api: WebURL
    /// The application's identifier at the server: `com.sample.pincode`.
    public var application: String
    /// Its platform.
    public var platform: Platform
    /// Its version at the server: `1.0`.
    public var version: String
    /// What is asked for in every login.
    public var scope: Scope

    /// A configuration.
    public init(
        api: WebURL, application: String, platform: Platform, version: String, scope: Scope = .empty
    ) {
        self.api = api
        self.application = application
        self.platform = platform
        self.version = version
        self.scope = scope
    }

    /// The scope that a login for `words` asks for: those of the configuration come with it, and, as IBM's native SDKs
    /// add it to every request, `RegisteredClient` for Android and iOS. The web SDK adds nothing, so neither does `web`.
    public func scope(adding words: some Sequence<String>) -> Scope {
        let own = platform == .web ? Scope.empty : Scope(["RegisteredClient"])
        return scope.union(own).union(Scope(Array(words)))
    }

    /// The issuer that assertions name.
    var issuer: String {
        platform == .web ? "\(application)$web" : "\(application)$\(platform.rawValue)$\(version)"
    }

    /// Where the grant code is to be sent. Nobody is there; the code is read from the redirect itself.
    func redirectAddress(clientID: String) -> String {
        platform == .web
            ? "\(api.appending(path: "az/v1/authorization/redirect/\(FormEncoding.percentEncoded(clientID))"))"
            : "http://mfpredirecturi"
    }

    /// Whom assertions for the token endpoint are meant for: the SDKs differ, and the server does not look.
    var audience: String {
        platform == .web ? "az/v1/token" : "\(api.appending(path: "az/v1/token"))"
    }
}

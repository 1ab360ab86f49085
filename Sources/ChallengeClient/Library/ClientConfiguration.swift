// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// How a `ChallengeClient` reaches servers, what it waits for and how long, and what its logins may use of the world.
///
/// All of it has defaults that are safe: nothing leaves for an origin that is neither asked for nor named here, no secret goes to
/// another machine in the clear, and nothing is waited for without an end.
public struct ClientConfiguration: Sendable {
    /// How long is waited for what. None is endless.
    public struct Timeouts: Sendable {
        /// For a connection, TLS included; 5 s.
        public var connect = Duration.seconds(5)
        /// For the head of a response, from when its request is sent; 60 s.
        public var response = Duration.seconds(60)
        /// For the next piece of a response's body, whoever is slow, the server or the program that reads it; 5 minutes.
        public var idle = Duration.seconds(300)
        /// For the next piece of a request's body from the program that sends it; 60 s.
        public var requestBody = Duration.seconds(60)
        /// For a login that a request needs, its challenge handlers included; 3 minutes. The login itself goes on.
        public var login = Duration.seconds(180)
        /// For one answer of a challenge handler, perhaps a person's; 2 minutes.
        public var handler = Duration.seconds(120)

        /// The defaults.
        public init() {}
    }

    /// How much there may be of what.
    public struct Limits: Sendable {
        /// Requests at once; further ones fail as `overloaded`. 256.
        public var requests = 256
        /// Requests that wait for a login at once. 256.
        public var waiters = 256
        /// How much of a request's body is kept in memory for sending it again after a login, in bytes: 1 MiB. A longer one is
        /// streamed; where it meets a challenge after more of it has gone, the request fails as `bodyNotReplayable`.
        public var replay = 1024 * 1024

        /// The defaults.
        public init() {}
    }

    /// How long is waited for what.
    public var timeouts = Timeouts()
    /// How much there may be of what.
    public var limits = Limits()
    /// How connections are made.
    public var connections = ConnectionOptions()
    /// The MobileFirst 8.0 server whose security checks are answered, if there is one.
    public var mobileFirst: MobileFirstServer?
    /// The origins that login forms may go to besides that of the request itself. What a server says cannot add to them.
    public var loginOrigins: Set<Origin> = []
    /// Where handlers that use stored credentials (`CredentialChallengeHandler`) find them; nowhere.
    public var credentials: any CredentialProvider = FixedCredentials()
    /// Where is kept which credentials were rejected and are not sent again; in memory only, as long as the client is there.
    public var attempts: any AttemptStore = UnkeptAttempts()
    /// What is to survive the program, such as a registration at a MobileFirst server; kept in memory.
    public var state: any StateStore = MemoryState()
    /// Told of each step of each login, redacted; called on the client's own thread, and must not block.
    public var onStep: @Sendable (ConversationStep) -> Void = { _ in }

    /// The defaults.
    public init() {}
}

/// A MobileFirst 8.0 server, and the resources that it protects.
public struct MobileFirstServer: Sendable {
    /// Its address, and the application that this program is registered as.
    public var configuration: MobileFirstConfiguration
    /// The origins whose resources its access tokens are for; the server's own is always among them.
    public var resources: Set<Origin>
    /// What makes the key that the program registers with: `RSASigningKeys` of the product `Credentials`.
    public var keys: any SigningKeys

    /// A server.
    public init(_ configuration: MobileFirstConfiguration, resources: Set<Origin> = [], keys: any SigningKeys) {
        self.configuration = configuration
        self.resources = resources.union([configuration.api.origin])
        self.keys = keys
    }
}

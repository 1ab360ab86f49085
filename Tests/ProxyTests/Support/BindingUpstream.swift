// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport
import Testing

/// Server that binds each connection to the user whose `Authorization` comes first: `Tests/Scripts/binding-upstream`.
final class BindingUpstream {
    /// The protocol between proxy and server.
    enum Wire: String, CaseIterable, Sendable {
        case http1, tls, h2, h2c

        var isSecure: Bool { self == .tls || self == .h2 }
    }

    /// One request as the server has recorded it.
    struct Entry: Equatable {
        /// The number of the connection.
        let connection: Int
        /// Method and path.
        let request: String
        /// The user whom the request names, or `-`.
        let user: String
    }

    let port: UInt16
    let wire: Wire
    private let recordPort: UInt16
    private let helper: Helper

    init(_ wire: Wire = .http1) throws {
        self.wire = wire
        var arguments = [Helper.script("binding-upstream")]
        if wire.isSecure { arguments += ["--tls", Certificates.path("server.pem"), Certificates.path("server.key")] }
        if wire == .tls { arguments += ["--alpn", "http/1.1"] }
        helper = try Helper(arguments)
        (port, recordPort) = (try helper.port(), try helper.port())
    }

    var origin: Origin { Origin(scheme: wire.isSecure ? .https : .http, host: "localhost", port: port) }

    /// Returns this upstream with these logins, and with others for some callers.
    func plan(
        _ logins: [Authenticator], at pattern: String = "*",
        callers: [(callers: Set<CallerIdentity>, plan: UpstreamPlan)] = [], forwarding: ForwardingPolicy = .init()
    ) throws -> UpstreamPlan {
        var authenticators = Authenticators()
        for login in logins {
            authenticators.add(login, at: try LocationPattern("localhost:\(port)/\(pattern)"))
        }
        var connections = ConnectionSettings()
        if wire.isSecure { connections.authorities = Certificates.blob("ca.pem") }
        if wire == .h2c { connections.version = .http2 }
        return UpstreamPlan(
            name: "bank", base: WebURL(origin: origin, path: "/"), connections: connections,
            replay: ReplayTiers(memory: 65_536), forwarding: forwarding, logins: authenticators, identities: callers)
    }

    /// Returns the lines of the record: the requests so far, and the open connections with their users.
    private func lines() throws -> (requests: [[String]], open: [[String]]) {
        let text = try Peer(port: recordPort).readAll() ?? ""
        let halves = text.split(separator: "\n", omittingEmptySubsequences: false)
            .split(separator: "", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.filter { !$0.isEmpty }.map { String($0).components(by: " ") } }
        return (halves.first ?? [], halves.dropFirst().first ?? [])
    }

    /// The requests so far.
    var record: [Entry] {
        get throws {
            try lines().requests.map {
                Entry(connection: Int($0[0]) ?? 0, request: "\($0[1]) \($0[2])", user: $0[3])
            }
        }
    }

    /// The users of the open connections that are bound to one.
    var boundUsers: [String] { get throws { try lines().open.map { $0[1] }.filter { $0 != "-" } } }

    /// The number of open connections.
    var openConnections: Int { get throws { try lines().open.count } }

    /// Expects that no connection has carried requests with a user's credential, and others.
    func expectSeparate(location: SourceLocation = #_sourceLocation) throws {
        let record = try record
        for (number, entries) in Dictionary(grouping: record, by: \.connection) {
            #expect(
                Set(entries.map(\.user)).count == 1,
                "connection \(number): \(entries.map { "\($0.request) \($0.user)" })", sourceLocation: location)
        }
    }
}

/// Users whose tickets are their names. The user of a credential may be replaced by another.
final class TicketUsers: CredentialProvider, TicketProvider {
    private final class NameTicket: Ticket {
        let lifetime: Int64 = 3_600
        private let name: String
        init(_ name: String) { self.name = name }
        func token() throws(TicketError) -> TicketToken { TicketToken(bytes: Array(name.utf8), context: nil) }
    }

    private let users = Mutex<[String: String]>([:])

    /// Replaces the user of the credential of that name, which is otherwise named after its user.
    func replace(_ credential: String, by user: String) { users.withLock { $0[credential] = user } }

    func value(of name: String) -> Credential {
        let user = users.withLock { $0[name] } ?? name
        return Credential(name: name, fields: ["principal": Secret(user), "keytab": Secret("/dev/null")])
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? { value(of: name) }

    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        NameTicket(request.principal ?? "")
    }

    /// Returns a login by Negotiate with the credential of that name, which asks at `path` without a request.
    func login(
        _ credential: String, at upstream: BindingUpstream, name: String = "corp", isKept: Bool = false,
        path: String = "/secure/login"
    ) -> Authenticator {
        let plan = SchemePlan(
            name: name, schemes: [NegotiateScheme(office: self, host: "localhost")],
            key: LatchKey(origin: upstream.origin, challenge: name, credential: credential),
            address: WebURL(origin: upstream.origin, path: path))
        return Authenticator(
            name: name, trigger: .detected(SchemeDetector(plan)), isAhead: false, isKept: isKept,
            key: SessionKey(origin: upstream.origin, challenge: name, credential: credential),
            credentials: [credential], bindsConnections: true, isShareable: false,
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope, target: $0.target) })
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
public import FoundationEssentials
internal import Synchronization

/// The challenge handlers registered by a program, and the logins made of them.
final class HandlerRegistry: Sendable {
    /// The challenge name for sessions of security checks; one for all origins that they are for.
    static let mobileFirstName = "mobilefirst"

    private struct State {
        var checks: [String: any SecurityCheckChallengeHandler] = [:]
        var gateways: [PlacedGateway] = []
        var handlers: [PlacedHandler] = []
        var books = BoundedDictionary<BookKey, AnswerCache>(limit: maxBooks)
        var version: UInt64 = 1
    }

    /// A gateway's handler and its location patterns; without any, valid everywhere.
    private struct PlacedGateway {
        let gateway: HandledGateway
        let patterns: [LocationPattern]
    }

    private struct BookKey: Hashable {
        let registration: String
        let origin: Origin
    }

    /// The limit of answer books: one for each registration at each server.
    private static let maxBooks = 4096

    /// The client of the MobileFirst server, if the configuration names one.
    let mobileFirst: MobileFirstClient?
    private let configuration: ClientConfiguration
    private let calls: HandlerCalls
    private let state = Mutex(State())

    init(_ configuration: ClientConfiguration, calls: HandlerCalls) {
        self.configuration = configuration
        self.calls = calls
        mobileFirst = configuration.mobileFirst.map {
            MobileFirstClient(name: Self.mobileFirstName, configuration: $0.configuration, keys: $0.keys)
        }
    }

    /// A counter that rises with every change of the registrations.
    var version: UInt64 {
        let (version, handlers) = state.withLock { ($0.version, $0.handlers) }
        return handlers.reduce(version) { $0 &+ $1.version }
    }

    /// The origins that logins may send requests to besides the request's own.
    var loginOrigins: Set<Origin> {
        configuration.loginOrigins.union(configuration.mobileFirst.map { [$0.configuration.api.origin] } ?? [])
    }

    func logins(at origin: Origin) -> Authenticators {
        var logins = Authenticators()
        if let server = configuration.mobileFirst, server.resources.contains(origin), let login = mobileFirstLogin {
            logins.add(login)
        }
        for (challenges, pattern) in challenges(at: origin) {
            let login = challenges.login(at: origin, answers: book(of: challenges.identity, at: origin))
            if let pattern { logins.add(login, at: pattern) } else { logins.add(login) }
        }
        for placed in state.withLock({ $0.gateways }) {
            let login = placed.gateway.login(at: origin)
            if placed.patterns.isEmpty { logins.add(login) }
            for pattern in placed.patterns where pattern.mayCover(origin) { logins.add(login, at: pattern) }
        }
        return logins
    }

    /// Returns true if a session of that key belongs to a registered handler.
    func isRegistered(_ key: SessionKey) -> Bool {
        if key.challenge == Self.mobileFirstName { return true }
        let (gateways, handlers) = state.withLock { ($0.gateways, $0.handlers) }
        return gateways.contains { $0.gateway.identity == key.credential }
            || handlers.contains { $0.registrations.contains { "\($0.number)" == key.credential } }
    }

    private func challenges(at origin: Origin) -> [(HandledChallenges, LocationPattern?)] {
        state.withLock { $0.handlers }.flatMap(\.registrations).compactMap { placed in
            if let pattern = placed.pattern, !pattern.mayCover(origin) { return nil }
            let place = placed.pattern.map { " at \($0.text)" } ?? ""
            let challenges = HandledChallenges(
                placed.handler, name: "\(type(of: placed.handler))\(place)", identity: "\(placed.number)", caller: calls
            )
            return (challenges, placed.pattern)
        }
    }

    private func book(of registration: String, at origin: Origin) -> AnswerCache {
        state.withLock { state in
            let key = BookKey(registration: registration, origin: origin)
            if let known = state.books[key] { return known }
            let book = AnswerCache()
            state.books.store(book, for: key)
            return book
        }
    }
}

// Gateways and authentication schemes.
extension HandlerRegistry {
    func register(_ handler: any GatewayChallengeHandler, at patterns: [String]) throws(RegistrationError) {
        var places: [LocationPattern] = []
        for text in patterns {
            do throws(LocationError) { places.append(try LocationPattern(text)) } catch {
                throw RegistrationError(error, in: text)
            }
        }
        let gateway = HandledGateway(
            handler, identity: "\(RegistrationNumber())", caller: calls)
        let isFirst = state.withLock { state in
            guard !state.gateways.contains(where: { $0.gateway.name == handler.gatewayName }) else { return false }
            state.gateways.append(PlacedGateway(gateway: gateway, patterns: places))
            state.version += 1
            return true
        }
        if !isFirst { throw RegistrationError(gateway: handler.gatewayName) }
    }

    func unregister(gatewayName: String) {
        state.withLock { state in
            state.gateways.removeAll { $0.gateway.name == gatewayName }
            state.version += 1
        }
    }

    func register(_ handler: PlacedHandler) {
        state.withLock { state in
            state.handlers.append(handler)
            state.version += 1
        }
    }

    func unregister(_ handler: any ChallengeHandler) {
        state.withLock { state in
            guard let index = state.handlers.firstIndex(where: { $0.handler === handler }) else { return }
            // Its counter is added, so that the sum never returns to an earlier value.
            state.version &+= state.handlers.remove(at: index).version &+ 1
        }
    }
}

extension HandlerRegistry {
    /// Lets go of all handlers. One that retains its client, as a view does, would keep both alive.
    func removeAll() {
        // Released after the lock: a handler's end may call the client.
        let released = state.withLock { state in
            let all = (state.checks, state.gateways, state.handlers)
            (state.checks, state.gateways, state.handlers) = ([:], [], [])
            state.books = BoundedDictionary(limit: Self.maxBooks)
            state.version += 1
            return all
        }
        withExtendedLifetime(released) {}
    }
}

// Security checks.
extension HandlerRegistry {
    func register(_ handler: any SecurityCheckChallengeHandler) throws(RegistrationError) {
        let isFirst = state.withLock { state in
            guard state.checks[handler.securityCheck] == nil else { return false }
            state.checks[handler.securityCheck] = handler
            return true
        }
        if !isFirst { throw RegistrationError(securityCheck: handler.securityCheck) }
    }

    func unregister(securityCheck: String) {
        state.withLock { _ = $0.checks.removeValue(forKey: securityCheck) }
    }

    /// Returns the handlers for one conversation, with a stand-in if `check` has no handler.
    private func checks(answering check: String? = nil) -> [HandledCheck] {
        var handlers = state.withLock { Array($0.checks.values) }
        if let check { handlers.append(AnsweredCheck(securityCheck: check)) }
        return handlers.map { HandledCheck($0, caller: calls) }
    }

    /// The login for any scope that a resource names.
    var mobileFirstLogin: Authenticator? {
        guard let mobileFirst else { return nil }
        return authenticator { [unowned self] occasion in
            mobileFirst.login(scope: occasion.scope.words, checks: checks())
        }
    }

    /// Returns the login that answers `check` before any challenge.
    func login(answering check: String, with answer: SecretJSON) -> Authenticator? {
        guard let mobileFirst else { return nil }
        let checks = checks(answering: check)
        return authenticator { _ in mobileFirst.login(answering: check, with: answer, checks: checks) }
    }

    private func authenticator(_ makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin) -> Authenticator? {
        guard let server = configuration.mobileFirst?.configuration else { return nil }
        return Authenticator(
            name: Self.mobileFirstName, trigger: .mobileFirst, isAhead: !server.scope.isEmpty,
            key: SessionKey(
                origin: server.api.origin, challenge: Self.mobileFirstName, credential: "",
                scope: server.scope.description),
            credentials: [], isOfUpstream: true, makeLogin: makeLogin)
    }
}

/// The handler of a check that is answered without a registered one.
private struct AnsweredCheck: SecurityCheckChallengeHandler {
    let securityCheck: String

    /// Cancels, because there is no other possible answer.
    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        if case .rejected(let failure) = challenge.previousAnswer { throw failure }
        return .cancel(reason: "The server asks for \"\(securityCheck)\" again, and no handler of it is registered.")
    }
}

/// A registered handler of HTTP challenges: one for all locations, or a dispatcher with its patterns.
enum PlacedHandler {
    case dispatched(DispatchChallengeHandler)
    case everywhere(any ChallengeHandler, RegistrationNumber)

    /// The registered handler.
    var handler: any ChallengeHandler {
        switch self {
        case .dispatched(let dispatcher): dispatcher
        case .everywhere(let handler, _): handler
        }
    }

    /// A counter that rises with every change of the dispatcher.
    var version: UInt64 { if case .dispatched(let dispatcher) = self { dispatcher.version } else { 0 } }

    /// The registrations, each of which makes a login; those of a dispatcher with the most specific pattern first.
    var registrations: [(handler: any ChallengeHandler, pattern: LocationPattern?, number: RegistrationNumber)] {
        switch self {
        case .dispatched(let dispatcher):
            dispatcher.registrations.map { ($0.registration.handler, $0.pattern, $0.registration.number) }
        case .everywhere(let handler, let number): [(handler, nil, number)]
        }
    }
}

/// A failed registration of a challenge handler.
public struct RegistrationError: Error, Sendable, Equatable {
    /// The kinds of errors.
    public enum Kind: Sendable, Equatable {
        /// The security check or gateway name has a handler already. MobileFirst silently replaces it.
        case alreadyRegistered
        /// A location pattern is invalid.
        case noLocation
    }

    /// The kind.
    public var kind: Kind
    /// The cause and the remedy.
    public var detail: String

    /// Creates the error for a second handler of a security check.
    init(securityCheck: String) {
        kind = .alreadyRegistered
        detail =
            "A handler of the security check \"\(securityCheck)\" is registered already. Unregister that one first."
    }

    /// Creates the error for a second handler of a gateway.
    init(gateway: String) {
        kind = .alreadyRegistered
        detail =
            "A handler of a gateway \"\(gateway)\" is registered already. Unregister that one, or choose another name."
    }

    /// Creates the error for an invalid pattern.
    init(_ error: LocationError, in text: String) {
        kind = .noLocation
        detail = "\"\(text)\" is not a location pattern: \(error.reason)."
    }
}

extension RegistrationError: CustomStringConvertible {
    /// The detail.
    public var description: String { detail }
}

extension RegistrationError: LocalizedError {
    /// The detail, for `localizedDescription`.
    public var errorDescription: String? { detail }
}

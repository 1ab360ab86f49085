// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// The challenge handlers that a program has registered, as the logins that they make.
final class HandlerRegistry: Sendable {
    /// What the sessions of security checks are held under; one for all origins that they are for.
    static let mobileFirstName = "mobilefirst"

    private struct State {
        var checks: [String: any SecurityCheckChallengeHandler] = [:]
        var gateways: [PlacedGateway] = []
        var handlers: [PlacedHandler] = []
        var books: [BookKey: AnswerBook] = [:]
        var version: UInt64 = 1
    }

    /// A gateway's handler, and where it stands; everywhere without patterns.
    private struct PlacedGateway {
        let gateway: HandledGateway
        let patterns: [LocationPattern]
    }

    private struct BookKey: Hashable {
        let registration: String
        let origin: Origin
    }

    /// So many books are kept at most: one for each registration at each server.
    private static let mostBooks = 4096

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

    /// Moves with everything that changes what stands where.
    var version: UInt64 {
        let (version, handlers) = state.withLock { ($0.version, $0.handlers) }
        return handlers.reduce(version) { $0 &+ $1.version }
    }

    /// Where logins may send requests besides the origin of the request itself.
    var loginOrigins: Set<Origin> {
        configuration.loginOrigins.union(configuration.mobileFirst.map { [$0.configuration.api.origin] } ?? [])
    }

    /// What stands ready at `origin`.
    func logins(at origin: Origin) -> Authenticators {
        var logins = Authenticators()
        if let server = configuration.mobileFirst, server.resources.contains(origin), let login = mobileFirstLogin {
            logins.stand(login)
        }
        for (challenges, pattern) in challenges(at: origin) {
            let login = challenges.login(at: origin, book: book(of: challenges.identity, at: origin))
            if let pattern { logins.stand(login, at: pattern) } else { logins.stand(login) }
        }
        for placed in state.withLock({ $0.gateways }) {
            let login = placed.gateway.login(at: origin)
            if placed.patterns.isEmpty { logins.stand(login) }
            for pattern in placed.patterns where pattern.mayCover(origin) { logins.stand(login, at: pattern) }
        }
        return logins
    }

    /// Returns whether a session of that key belongs to somebody who is registered now.
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

    private func book(of registration: String, at origin: Origin) -> AnswerBook {
        state.withLock { state in
            let key = BookKey(registration: registration, origin: origin)
            if let known = state.books[key] { return known }
            if state.books.count >= Self.mostBooks { state.books.removeAll() }
            let book = AnswerBook()
            state.books[key] = book
            return book
        }
    }
}

// Gateways and schemes.
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
            // What it counted is added, so that the sum never falls back to what it was.
            state.version &+= state.handlers.remove(at: index).version &+ 1
        }
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

    /// The handlers for one conversation. Where none is registered for `check`, which is answered before any challenge, one stands in.
    private func checks(answering check: String? = nil) -> [HandledCheck] {
        var handlers = state.withLock { Array($0.checks.values) }
        if let check { handlers.append(AnsweredCheck(securityCheck: check)) }
        return handlers.map { HandledCheck($0, caller: calls) }
    }

    /// The login for whatever scope a resource names.
    var mobileFirstLogin: Authenticator? {
        guard let mobileFirst else { return nil }
        return standing { [unowned self] occasion in
            mobileFirst.login(scope: occasion.scope.words, checks: checks())
        }
    }

    /// The login that answers `check` ahead of any challenge.
    func login(answering check: String, with answer: SecretJSON) -> Authenticator? {
        guard let mobileFirst else { return nil }
        let checks = checks(answering: check)
        return standing { _ in mobileFirst.login(answering: check, with: answer, checks: checks) }
    }

    private func standing(_ makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin) -> Authenticator? {
        guard let server = configuration.mobileFirst?.configuration else { return nil }
        return Authenticator(
            name: Self.mobileFirstName, trigger: .mobileFirst, isAhead: !server.scope.isEmpty,
            key: SessionKey(
                origin: server.api.origin, challenge: Self.mobileFirstName, credential: "",
                scope: server.scope.description),
            credentials: [], isOfUpstream: true, makeLogin: makeLogin)
    }
}

/// Stands in for a check that is answered without a handler.
private struct AnsweredCheck: SecurityCheckChallengeHandler {
    let securityCheck: String

    /// There is no other answer.
    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        if case .rejected(let failure) = challenge.previousAnswer { throw failure }
        return .cancel(reason: "The server asks for \"\(securityCheck)\" again, and no handler of it is registered.")
    }
}

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
        var version: UInt64 = 1
    }

    /// The client of the MobileFirst server, if the configuration names one.
    let mobileFirst: MobileFirstClient?
    let rejected = RejectedAnswers()
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
    var version: UInt64 { state.withLock { $0.version } }

    /// Where logins may send requests besides the origin of the request itself.
    var loginOrigins: Set<Origin> {
        configuration.loginOrigins.union(configuration.mobileFirst.map { [$0.configuration.api.origin] } ?? [])
    }

    /// What stands ready at `origin`.
    func logins(at origin: Origin) -> StandingLogins {
        var logins = StandingLogins()
        if let server = configuration.mobileFirst, server.resources.contains(origin), let login = mobileFirstLogin {
            logins.stand(login)
        }
        return logins
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
        if !isFirst { throw RegistrationError(.alreadyRegistered, securityCheck: handler.securityCheck) }
    }

    func unregister(securityCheck: String) {
        state.withLock { _ = $0.checks.removeValue(forKey: securityCheck) }
    }

    /// The handlers for one conversation; `given` is the answer to `check` that goes out before any challenge.
    func checkHandlers(
        answering check: String? = nil, given: SecretJSON? = nil
    ) -> [any SecurityCheckChallengeHandler] {
        let registered = state.withLock { Array($0.checks.values) }
        var handlers: [any SecurityCheckChallengeHandler] = registered.map { handler in
            GuardedCheckHandler(
                handler, calls: calls, rejected: rejected, given: handler.securityCheck == check ? given : nil)
        }
        if let check, !registered.contains(where: { $0.securityCheck == check }) {
            handlers.append(
                GuardedCheckHandler(
                    AnsweredCheck(securityCheck: check), calls: calls, rejected: rejected, given: given))
        }
        return handlers
    }

    /// The login for whatever scope a resource names.
    var mobileFirstLogin: StandingLogin? {
        guard let mobileFirst else { return nil }
        return standing { [unowned self] occasion in
            mobileFirst.login(scope: occasion.scope.words, handlers: checkHandlers())
        }
    }

    /// The login that answers `check` ahead of any challenge.
    func login(answering check: String, with answer: SecretJSON) -> StandingLogin? {
        guard let mobileFirst else { return nil }
        let handlers = checkHandlers(answering: check, given: answer)
        return standing { _ in mobileFirst.login(answering: check, with: answer, handlers: handlers) }
    }

    private func standing(_ makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin) -> StandingLogin? {
        guard let server = configuration.mobileFirst?.configuration else { return nil }
        return StandingLogin(
            name: Self.mobileFirstName, trigger: .mobileFirst, isAhead: !server.scope.isEmpty,
            key: SessionKey(
                origin: server.api.origin, challenge: Self.mobileFirstName, credential: "",
                scope: server.scope.description),
            credentials: [], makeLogin: makeLogin)
    }
}

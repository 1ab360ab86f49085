// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension MobileFirstClient {
    /// The registration to use: the one in memory, the one kept, or a new one. One that is kept for another
    /// configuration is updated where only the version differs, else made anew.
    func currentRegistration(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> MobileFirstRegistration
    {
        if let registration { return registration }
        let result: MobileFirstRegistration
        if let kept = loadKept(calls) {
            switch kept.fitness(for: configuration) {
            case .current:
                registration = kept
                return kept
            case .outdated: result = try await update(kept, calls)
            case .other: result = try await register(calls)
            }
        } else {
            result = try await register(calls)
        }
        registration = result
        keep(result, calls)
        return result
    }

    /// Forgets the registration, here and in the state store: the server does not know it.
    func forgetRegistration(_ calls: MobileFirstCalls) {
        registration = nil
        do {
            try calls.conversation.state.remove(stateName)
        } catch {
            // The kept one is tried once more after a restart, and found out in the same way.
            calls.report("register: the old registration could not be removed, \(error.reason)")
        }
    }

    private var stateName: String {
        MobileFirstRegistration.stateName(
            upstream: name, application: configuration.application, identity: identity)
    }

    func loadKept(_ calls: MobileFirstCalls) -> MobileFirstRegistration? {
        do {
            guard let kept = try calls.conversation.state.load(stateName) else { return nil }
            let registration = MobileFirstRegistration(kept: kept, keys: keys)
            if registration == nil { calls.report("register: the kept registration cannot be used") }
            return registration
        } catch {
            calls.report("register: the kept registration cannot be read, \(error.reason)")
            return nil
        }
    }

    /// A registration that cannot be kept still serves this process.
    private func keep(_ registration: MobileFirstRegistration, _ calls: MobileFirstCalls) {
        do {
            try calls.conversation.state.save(registration.kept, as: stateName)
        } catch {
            calls.report("register: the registration could not be kept, \(error.reason)")
        }
    }
}

extension MobileFirstClient {
    /// POST registration/v1/self
    private func register(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> MobileFirstRegistration {
        let key: any SigningKey
        let body: SecretJSON
        do {
            key = try await keys.generate()
            body = try registrationBody(key: key, clientID: nil)
        } catch {
            throw .failed(calls.failure(error.reason))
        }
        let url = configuration.api.appending(path: "registration/v1/self")
        let response = try await calls.send(.json(.post, url, body), "register")
        guard response.status == 201 || response.status == 200 else { throw refused(response, calls) }
        guard let clientID = Self.clientID(response) else {
            throw calls.unexpected(response, "register", "The answer names no client.")
        }
        calls.report("register: \(response.status), registered as \(configuration.issuer)")
        return MobileFirstRegistration(clientID: clientID, key: key, configuration: configuration)
    }

    /// PUT registration/v1/self/{clientId}. A client that the server does not take is registered anew, as Android does
    /// on `Invalid request.`
    private func update(
        _ kept: MobileFirstRegistration, _ calls: MobileFirstCalls
    ) async throws(MobileFirstInterruption) -> MobileFirstRegistration {
        let body: SecretJSON
        do {
            body = try registrationBody(key: kept.key, clientID: kept.clientID)
        } catch {
            throw .failed(calls.failure(error.reason))
        }
        let url = configuration.api.appending(
            path: "registration/v1/self/\(FormEncoding.percentEncoded(kept.clientID))")
        do {
            let response = try await calls.send(.json(.put, url, body), "update registration")
            calls.report("update registration: \(response.status)")
            if response.status == 200 || response.status == 201 {
                return MobileFirstRegistration(clientID: kept.clientID, key: kept.key, configuration: configuration)
            }
        } catch .unknownClient {
            // Said by the step; what follows is the same.
        } catch {
            throw error
        }
        return try await register(calls)
    }

    private func registrationBody(key: any SigningKey, clientID: String?) throws(StateError) -> SecretJSON {
        let signature = try JSONWebSignature(
            signing: MobileFirstRegistration.payload(for: configuration, key: key), with: key, clientID: clientID)
        return SecretJSON(["signedRegistrationData": signature.parts])
    }

    private func refused(_ response: SideResponse, _ calls: MobileFirstCalls) -> MobileFirstInterruption {
        switch response.status {
        case 400, 404:
            return calls.unexpected(
                response, "register",
                "Check that the application \"\(configuration.application)\" with platform "
                    + "\"\(configuration.platform.rawValue)\" and version \"\(configuration.version)\" is registered there."
            )
        case 401, 403:
            calls.report("register: \(response.status)")
            return .failed(
                calls.failure(
                    "The server demands proof that the application is authentic, which only IBM's own component can "
                        + "give. Have application authenticity disabled for \"\(configuration.application)\".",
                    retryAt: calls.retryAt(response)))
        default:
            return calls.unexpected(response, "register")
        }
    }

    /// `Location: /mfp/api/registration/clients/<clientId>`: the last segment.
    private static func clientID(_ response: SideResponse) -> String? {
        guard let location = response.fields[.location] else { return nil }
        let path = location.prefix { $0 != "?" && $0 != "#" }
        guard let last = path.split(separator: "/").last else { return nil }
        return MobileFirstRegistration.clientID(String(last))
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A failure, a limited number of times or always, at one endpoint or everywhere.
package struct Fault: Sendable {
    /// The endpoint; `nil`: everywhere.
    package var endpoint: Endpoint?
    /// Number of requests that pass unharmed first.
    package var skip: Int
    /// Number of requests that then fail; `nil`: all.
    package var times: Int?
    /// The fault's effect.
    package var effect: Effect

    /// The effect of a fault on an answer.
    package enum Effect: Sendable {
        /// The server does its work, and the answer is changed or lost on its way.
        case altered(@Sendable (inout FakeResponse) -> Void)
        /// The request never reaches the server's work: this is the answer, made from the count of strikes so far.
        case instead(@Sendable (Int) -> FakeResponse)
    }

    /// Creates a fault at `endpoint` for `times` requests, after `skip` unharmed ones.
    package init(_ effect: Effect, at endpoint: Endpoint?, times: Int? = nil, skip: Int = 0) {
        self.endpoint = endpoint
        self.skip = skip
        self.times = times
        self.effect = effect
    }
}

extension Fault.Effect {
    /// That answer and no other.
    package static func answer(_ response: FakeResponse) -> Self { .instead { _ in response } }

    /// 409 with `MFP-Conflict`: the client is to send the request again unchanged.
    package static var conflict: Self { .answer(FakeResponse(409, fields: [("MFP-Conflict", "true")])) }

    /// 409 as any resource may answer it.
    package static var conflictWithoutHeader: Self { .answer(.json(409, ["error": "edited by another"])) }

    /// 400 `INVALID_CLIENT_ID` for any client.
    package static var unknownClient: Self { .answer(unknownClientResponse) }

    /// 403 `insufficient_scope` that names another scope each time.
    package static var changingScope: Self {
        .instead { insufficientScope("RegisteredClient changing\($0)") }
    }

    /// 401 `invalid_token` for any token.
    package static var invalidToken: Self { .answer(invalidTokenResponse) }

    /// Returns a server in trouble: that status, with `Retry-After` in seconds if it is given.
    package static func unavailable(_ status: Int = 503, retryAfter: Int? = nil) -> Self {
        .answer(.html(status, "<html><body>Maintenance</body></html>", fields: retryAfterField(retryAfter)))
    }

    /// Returns a redirect to another address.
    package static func redirect(to location: String) -> Self {
        .answer(FakeResponse(302, fields: [("Location", location)]))
    }

    /// The right status and type, and a body that is not JSON.
    package static var garbage: Self {
        .altered { $0.body = .bytes(Array("{\"garbage\":".utf8)) }
    }

    /// Returns the right answer under another content type.
    package static func contentType(_ type: String) -> Self {
        .altered { response in
            response.fields.removeAll { $0.name.lowercased() == "content-type" }
            response.fields.append(("Content-Type", type))
        }
    }

    /// Delays the answer by `duration`.
    package static func delay(_ duration: Duration) -> Self { .altered { $0.delivery.delay += duration } }

    /// The answer never comes; the connection stays open.
    package static var hang: Self { .altered { $0.delivery.hangs = true } }

    /// Ends the connection after `bytes` bytes of the answer, head included; 0: before the first.
    package static func cut(after bytes: Int, reset: Bool = false) -> Self {
        .altered {
            $0.delivery.cutsAfter = bytes
            $0.delivery.resets = reset
        }
    }

    /// The connection closes after the answer.
    package static var close: Self { .altered { $0.delivery.closes = true } }

    private static func retryAfterField(_ seconds: Int?) -> [(name: String, value: String)] {
        seconds.map { [("Retry-After", "\($0)")] } ?? []
    }
}

/// The faults still to come, shared by all parts of the upstream.
package final class FaultPlan: Sendable {
    private let pending = Mutex<[Entry]>([])

    /// No faults.
    package init() {}

    /// Adds a fault; of several at one endpoint the earliest added strikes until it is used up.
    package func add(_ fault: Fault) {
        pending.withLock { $0.append(Entry(fault: fault)) }
    }

    /// Removes all faults.
    package func clear() {
        pending.withLock { $0.removeAll() }
    }

    /// Runs the work of an endpoint, or returns the answer of a fault instead.
    func apply(at endpoint: Endpoint, work: () -> FakeResponse) -> FakeResponse {
        guard let strike = strike(at: endpoint) else { return work() }
        switch strike.effect {
        case .altered(let change):
            var response = work()
            change(&response)
            return response
        case .instead(let make): return make(strike.number)
        }
    }

    private func strike(at endpoint: Endpoint) -> (effect: Fault.Effect, number: Int)? {
        pending.withLock { pending in
            for index in pending.indices {
                let fault = pending[index].fault
                guard fault.endpoint == nil || fault.endpoint == endpoint else { continue }
                pending[index].met += 1
                let number = pending[index].met - fault.skip
                guard number > 0, fault.times.map({ number <= $0 }) ?? true else { continue }
                return (fault.effect, number)
            }
            return nil
        }
    }

    private struct Entry {
        var fault: Fault
        var met = 0
    }
}

/// A part of the upstream that can be made to fail by itself.
package enum Endpoint: String, Sendable, CaseIterable {
    /// `az/v1/authorization` and its redirect target.
    case authorization
    /// The area with HTTP Basic.
    case basic
    /// The area with HTTP Digest.
    case digest
    /// The area with a login page.
    case form
    /// `preauth/v1/heartbeat`.
    case heartbeat
    /// `preauth/v1/logout`.
    case logout
    /// `/oauth/api/…`.
    case oauthResource
    /// `/oauth/token`.
    case oauthToken
    /// Anything else.
    case other
    /// `preauth/v1/preauthorize`.
    case preauthorize
    /// `registration/v1/self`, also with a client's name at the end.
    case registration
    /// `adapters/…`.
    case resource
    /// `az/v1/token`.
    case token

    /// Creates the MobileFirst endpoint of that path below the API's base address (without a leading slash).
    package init(apiPath path: some StringProtocol) {
        switch path {
        case "registration/v1/self": self = .registration
        case _ where path.hasPrefix("registration/v1/self/"): self = .registration
        case "preauth/v1/preauthorize": self = .preauthorize
        case "preauth/v1/logout": self = .logout
        case "preauth/v1/heartbeat": self = .heartbeat
        case "az/v1/authorization": self = .authorization
        case _ where path.hasPrefix("az/v1/authorization/redirect/"): self = .authorization
        case "az/v1/token": self = .token
        case _ where path.hasPrefix("adapters/"): self = .resource
        default: self = .other
        }
    }
}

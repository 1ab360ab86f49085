// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// The word of a protection on a request.
enum Examination {
    /// It demands a login, or refuses one.
    case demand(ServerAnswer)
    /// The request may pass, with the attempt that it carries.
    case pass(Attempt?)
}

/// The guard of a server's resources: a scheme, a form, tokens, a security check.
protocol Protection: AnyObject {
    /// The account that it knows.
    var account: Account { get }
    /// The keys of its challenge in the configuration, without name and place.
    var configuration: [String] { get }
    /// Returns the lines of other challenges of the same server, at that place.
    func furtherChallenges(_ place: String) -> [String]
    /// Returns the fields of the credential.
    func fields(of value: String) -> [String: String]
    /// Returns a demand in place of the resource, or lets the request pass; called once for each request.
    func examine(_ request: ServerRequest) -> Examination
    /// Returns the answer at an address of its own; `nil` if the request is for a resource.
    func answer(to request: ServerRequest) -> ServerAnswer?
    /// Returns its answer to every caller at a forbidden address.
    func refusal() -> ServerAnswer
    /// Returns true if it answers in this way to a caller without a session.
    func isDemand(_ status: Int, _ body: String) -> Bool
    /// Returns true if a refusal of that status may reach a caller.
    func isRefusal(_ status: Int) -> Bool
    /// Returns true if the server asks to send a request again, which a caller may see after several attempts.
    func isConflict(_ answer: CallerAnswer) -> Bool
    /// True if its demand is recognised by its text.
    var needsBody: Bool { get }
    /// True if requests with effects carry the session even without a challenge.
    var isCarriedUnasked: Bool { get }
    /// Returns true if a request carries a session or the credential.
    func isCarried(by request: ServerRequest) -> Bool
    /// True if the credential itself is sent with each request.
    var isScheme: Bool { get }
    /// True if its sessions may end by themselves.
    var isShortLived: Bool { get }
    /// True if the daemon has one session with it, and not one of each scope or caller.
    var hasOneSession: Bool { get }
    /// Ends all sessions.
    func endSessions()
    /// The owners of the secrets that may reach the server.
    var secrets: Set<String> { get }
    /// Returns the page at an address that guests write to, which is no login page; `nil` if there are no guests.
    func guestPage(_ number: Int, for request: ServerRequest) -> ServerAnswer?
    /// True if its upstream is configured to send secrets without TLS.
    var allowsPlaintext: Bool { get }
    /// True if only the addresses that callers ask for show its login page.
    var isFoundByCallers: Bool { get }
    /// The origins of its server, if they are special.
    var origins: [String] { get }
    /// True if guests' pages need no session.
    var isGuestbookOpen: Bool { get }
    /// True if it always applies to all addresses of its server.
    var isEverywhere: Bool { get }
    /// The host name of the server.
    var host: String { get }
    /// The path of the upstream's `url`.
    var base: String { get }
    /// The credential, or the credentials by caller, in the configuration.
    var credentialChoice: String { get }
    /// Returns a further credential of that name.
    func otherCredential(named name: String) -> Credential?
    /// Changes a caller's request: adds something that the daemon has to replace.
    func alter(_ order: inout Order)
    /// Returns a request without the daemon's additions to its target; records violations.
    func received(_ request: ServerRequest) -> ServerRequest
    /// Returns a caller's target without the parts that the daemon replaces.
    func withoutOwn(_ target: String) -> String
    /// Returns cookies of the session that the server renews.
    func renewals(for request: ServerRequest) -> [(name: String, value: String)]
    /// Adds to the answer of a request that was carried out.
    func finish(_ answer: inout ServerAnswer, to request: ServerRequest, for order: Order)
    /// Returns the fault of the caller's answer; `nil` if it has none.
    func fault(in answer: CallerAnswer, to order: Order) -> String?
    /// Returns the requests of guests that only this protection has, at the server of that name.
    func visits(at name: String) -> [Visit]
    /// The name of its challenge in the configuration.
    var challengeName: String { get }
    /// The path between the upstream's address and the resources.
    var prefix: String { get }
    /// Returns true if the resource of an order refuses every caller, or has a challenge that cannot be answered.
    func isRefused(_ order: Order) -> Bool
    /// Returns true if the resource of an order has a challenge that cannot be answered.
    func isStrange(_ order: Order) -> Bool
    /// Returns true if no login of the daemon's is enough for an order.
    func isBeyondReach(_ order: Order) -> Bool
    /// Returns true if the daemon holds a session that would have answered the order.
    func serves(_ order: Order) -> Bool
    /// Returns the value that a request for a resource carries, or `nil`.
    func value(in request: ServerRequest) -> String?
    /// Records a request that is answered for every caller.
    func isPassed(_ request: ServerRequest)
    /// True if another client may try its credential meanwhile.
    var isTriedByHand: Bool { get }
    /// True if its challenge has a credential.
    var usesCredential: Bool { get }
    /// More keys of its upstream in the configuration, each after a comma.
    var upstreamConfiguration: String { get }
    /// True if a login needs a one-time password.
    var usesCodes: Bool { get }
    /// True if a wrong value locks the account.
    var locksAccounts: Bool { get }
    /// Reports to a new process what other nodes have done.
    func tell(_ process: SimulatedProcess)
}

extension Protection {
    var isCarriedUnasked: Bool { false }
    func isCarried(by request: ServerRequest) -> Bool { request.value("authorization") != nil }
    var isScheme: Bool { false }
    var secrets: Set<String> { [account.name] }
    func guestPage(_ number: Int, for request: ServerRequest) -> ServerAnswer? { nil }
    var allowsPlaintext: Bool { false }
    var isFoundByCallers: Bool { false }
    var isGuestbookOpen: Bool { false }
    var isEverywhere: Bool { false }
    var origins: [String] { [] }
    var isShortLived: Bool { true }
    var hasOneSession: Bool { true }
    func furtherChallenges(_ place: String) -> [String] { [] }
    var needsBody: Bool { false }
    func isRefusal(_ status: Int) -> Bool { false }
    func isConflict(_ answer: CallerAnswer) -> Bool { false }
    var challengeName: String { account.name }
    var prefix: String { "" }
    func isRefused(_ order: Order) -> Bool { false }
    func isStrange(_ order: Order) -> Bool { false }
    func isBeyondReach(_ order: Order) -> Bool { false }
    func serves(_ order: Order) -> Bool { false }
    func value(in request: ServerRequest) -> String? { nil }
    func isPassed(_ request: ServerRequest) {
        if let value = value(in: request) { account.isSentUnasked(value) }
    }
    var isTriedByHand: Bool { true }
    var usesCredential: Bool { true }
    var upstreamConfiguration: String { "" }
    var usesCodes: Bool { false }
    var locksAccounts: Bool { false }
    func tell(_ process: SimulatedProcess) {}
    func answer(to request: ServerRequest) -> ServerAnswer? { nil }
    var host: String { "127.0.0.1" }
    var base: String { "/base/" }
    var credentialChoice: String { account.name }
    func otherCredential(named name: String) -> Credential? { nil }
    func alter(_ order: inout Order) {}
    func received(_ request: ServerRequest) -> ServerRequest { request }
    func withoutOwn(_ target: String) -> String { target }
    func renewals(for request: ServerRequest) -> [(name: String, value: String)] { [] }
    func finish(_ answer: inout ServerAnswer, to request: ServerRequest, for order: Order) {}
    func fault(in answer: CallerAnswer, to order: Order) -> String? { nil }
    func visits(at name: String) -> [Visit] { [] }
}

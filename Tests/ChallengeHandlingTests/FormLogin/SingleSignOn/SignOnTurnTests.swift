// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import TestSupport
import Testing

@Suite("Turns of sign-ons at one provider", .timeLimit(.minutes(5)))
struct SignOnTurnTests {
    @Test("two logins at once send one password: the second waits for the first, and uses its session")
    func concurrent() async throws {
        let (sessions, realm) = (ProviderSessions(), Realm())
        let (first, second) = (try SignOn.login(sessions), try SignOn.login(from: SignOn.wiki, sessions))
        async let one = first.logIn(realm.conversation())
        async let two = second.logIn(realm.conversation())
        _ = try await (one, two)
        #expect(realm.passwords == 1)
    }

    @Test(
        "an upstream that hangs before or after the provider's part does not delay the logins of others",
        arguments: ["/", "/cb", "/me"])
    func hangingUpstream(_ path: String) async throws {
        let (sessions, realm) = (ProviderSessions(), Realm(hangsAt: "\(SignOn.wiki)\(path)"))
        let hanging = try SignOn.login(from: SignOn.wiki, sessions, proof: path == "/me" ? path : nil)
        async let late = hanging.logIn(realm.conversation())
        #expect(await eventually { realm.isHanging })
        _ = try await SignOn.login(sessions).logIn(realm.conversation())
        #expect(realm.passwords == 1)
        realm.goOn()
        _ = try await late
        #expect(realm.passwords == 1)
    }

    @Test("a login that waits for another at the provider reports it to its conversation")
    func waiting() async throws {
        let (sessions, realm) = (ProviderSessions(), Realm(hangsAt: "\(SignOn.provider)/login"))
        let waits = Mutex<[Bool]>([])
        let (first, second) = (try SignOn.login(from: SignOn.wiki, sessions), try SignOn.login(sessions))
        async let one = first.logIn(realm.conversation())
        #expect(await eventually { realm.isHanging })
        async let two = second.logIn(realm.conversation { wait in waits.withLock { $0.append(wait) } })
        #expect(await eventually { waits.withLock { $0 == [true] } })
        realm.goOn()
        _ = try await (one, two)
        #expect(waits.withLock { $0 } == [true, false])
    }
}

/// Applications and their identity provider, which answer by address and cookies in any order.
private final class Realm: SideRequests {
    private struct State {
        var passwords = 0
        var hung: CheckedContinuation<Void, Never>?
        var hasHung = false
        var isHanging = false
    }

    private let state = Mutex(State())
    private let address: String?

    /// Creates servers. The first request for `address` is answered when the test says so.
    init(hangsAt address: String? = nil) { self.address = address }

    var passwords: Int { state.withLock { $0.passwords } }
    var isHanging: Bool { state.withLock { $0.isHanging } }

    func goOn() {
        state.withLock { state in
            state.isHanging = false
            return state.hung
        }?.resume()
    }

    func conversation(waiting: @escaping @Sendable (Bool) -> Void = { _ in }) -> Conversation {
        Conversation(
            sideRequests: self, credentials: Credentials([.ann]), attempts: LocalGate(), state: MemoryStore(),
            now: { LoginRig.now }, waiting: waiting)
    }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let (origin, path) = (request.url.origin, request.url.path)
        if "\(origin)\(path)" == address, state.withLock({ !$0.hasHung }),
            request.fields[.cookie] != nil || path != "/me"
        {
            await withCheckedContinuation { continuation in
                state.withLock { ($0.hung, $0.hasHung, $0.isHanging) = (continuation, true, true) }
            }
        }
        let cookies = request.fields[.cookie] ?? ""
        if origin == SignOn.provider {
            let service = request.url.query?.replacing("service=", with: "") ?? ""
            if request.method == .post {
                state.withLock { $0.passwords += 1 }
                return redirect(to: service, set: "sso=1; Path=/")
            }
            if cookies.contains("sso=1") { return redirect(to: service) }
            return page(SignOn.form.replacing("/login", with: "/login?service=\(service)"))
        }
        if path == "/cb" { return redirect(to: "/", set: "sid=1; Path=/") }
        if cookies.contains("sid=1") { return page("Welcome") }
        return redirect(to: "\(SignOn.provider)/login?service=\(origin)/cb", set: "state=1; Path=/")
    }

    private func page(_ text: String) -> SideResponse {
        SideResponse(status: 200, fields: [.contentType: "text/html"], body: Array(text.utf8))
    }

    private func redirect(to location: String, set cookie: String? = nil) -> SideResponse {
        var fields: HTTPFields = [.location: location]
        fields[.setCookie] = cookie
        return SideResponse(status: 302, fields: fields)
    }
}

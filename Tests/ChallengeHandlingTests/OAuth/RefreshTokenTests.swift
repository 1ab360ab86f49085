// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import TestSupport
import Testing

@Suite("Refresh tokens")
struct RefreshTokenTests {
    private static func sends(_ token: String, getting next: String?) -> ScriptedStep {
        let member = next.map { #","refresh_token":"\#($0)""# } ?? ""
        return TokenScript.asked("refresh_token") { $0.form("refresh_token") == token }
            .replying(
                TokenScript.answering(#"{"access_token":"token-1","token_type":"Bearer","expires_in":60\#(member)}"#))
    }

    private static func login(_ refreshTokens: RefreshTokens? = nil) throws -> TokenLogin {
        TokenScript.login(try TokenScript.configuration(.refreshToken), refreshTokens: refreshTokens)
    }

    @Test("the credential's own refresh token is sent again and again to a server that does not rotate tokens")
    func unrotated() async throws {
        let rig = LoginRig.tokens([
            Self.sends("refresh-1", getting: nil), Self.sends("refresh-1", getting: "refresh-1"),
        ])
        for _ in 0..<2 { _ = try await rig.requestsLeft(try Self.login()) }
        #expect(rig.requests.missing.isEmpty && rig.store.names.isEmpty)
    }

    @Test("a rotated refresh token is saved and replaces the first one, even after a restart")
    func rotated() async throws {
        let store = MemoryStore()
        for (sent, next) in [("refresh-1", "refresh-2"), ("refresh-2", "refresh-3"), ("refresh-3", "refresh-4")] {
            let rig = LoginRig.tokens([Self.sends(sent, getting: next)], store: store)
            _ = try await rig.logIn(try Self.login())
        }
        #expect(store.names == ["refresh-token.api-client.https_3a_2f_2fid_2eexample_2ecom"])
    }

    @Test("the saved refresh token is dropped when the credential changes")
    func changed() async throws {
        let store = MemoryStore()
        _ = try await LoginRig.tokens([Self.sends("refresh-1", getting: "refresh-2")], store: store).logIn(
            try Self.login())
        for changes in [["refresh-token": "refresh-7"], ["client-id": "another"]] {
            let credential = TokenScript.credential(changes)
            let own = changes["refresh-token"] ?? "refresh-1"
            let rig = LoginRig.tokens([Self.sends(own, getting: nil)], credential, store: store)
            _ = try await rig.logIn(try Self.login())
        }
        // A new secret of the same client continues the same chain of refresh tokens.
        let rig = LoginRig.tokens(
            [Self.sends("refresh-2", getting: nil)], TokenScript.credential(["client-secret": "new-secret"]),
            store: store)
        _ = try await rig.logIn(try Self.login())
    }

    @Test("a refresh token that the server considers stolen is latched and not sent again")
    func reused() async throws {
        let rig = LoginRig.tokens([
            TokenScript.asked("refresh_token").replying(400, [:], #"{"error":"invalid_grant"}"#)
        ])
        #expect(await rig.lose(try Self.login()).code == .rejected)
        #expect(await rig.lose(try Self.login()).code == .latched)
    }

    @Test("no refresh token is sent if the current one cannot be determined")
    func unreadable() async throws {
        let rig = LoginRig.tokens([], store: MemoryStore(failure: StateError(reason: "no disk")))
        let failure = await rig.lose(try Self.login())
        #expect(failure.code == .failed && failure.detail.contains("no disk") && rig.latches.all.isEmpty)
    }

    @Test("no refresh token is sent if the stored one is of another version: the credential's own may have been used")
    func otherVersion() async throws {
        let store = MemoryStore()
        let name = "refresh-token.api-client.https_3a_2f_2fid_2eexample_2ecom"
        try store.save(Secret(#"{"token":1}"#), as: name)
        let rig = LoginRig.tokens([], store: store)
        let failure = await rig.lose(try Self.login())
        #expect(failure.code == .failed && failure.detail.contains("\(name).sealed") && rig.latches.all.isEmpty)
        #expect(store.values[name] != nil)
    }

    @Test("a refresh token that cannot be saved is not used until it can, and is not lost meanwhile")
    func unkept() async throws {
        let store = MemoryStore()
        let rig = LoginRig.tokens(
            [Self.sends("refresh-1", getting: "refresh-2"), Self.sends("refresh-2", getting: "refresh-3")], store: store
        )
        let login = try Self.login(RefreshTokens(credential: "api-client", origin: TokenScript.origin))
        store.saveFailure = StateError(reason: "the disk is full")
        for _ in 0..<2 {
            await #expect(throws: LoginFailure.self) { try await login.logIn(rig.conversation) }
        }
        #expect(rig.requests.sent.count == 1)
        store.saveFailure = nil
        _ = try await rig.logIn(login)
    }

    @Test("concurrent logins send their refresh tokens one after another, each the token that the previous one got")
    func concurrent() async throws {
        let rig = LoginRig.tokens([
            Self.sends("refresh-1", getting: "refresh-2"), Self.sends("refresh-2", getting: "refresh-3"),
            Self.sends("refresh-3", getting: "refresh-4"),
        ])
        let login = try Self.login(RefreshTokens(credential: "api-client", origin: TokenScript.origin))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 { group.addTask { _ = try await login.logIn(rig.conversation) } }
            try await group.waitForAll()
        }
        #expect(rig.requests.missing.isEmpty)
    }

    @Test("a hanging login blocks the refresh token until cancelled; a waiting one that is cancelled sends nothing")
    func abandoned() async throws {
        let rig = LoginRig.tokens([Self.sends("refresh-1", getting: "refresh-2")])
        await rig.latches.accept(TokenScript.key, TokenScript.client, Acceptance(path: nil, at: LoginRig.now))
        let refreshTokens = RefreshTokens(credential: "api-client", origin: TokenScript.origin)
        let login = try Self.login(refreshTokens)
        let silent = SilentRequests()
        let hanging = Conversation(
            sideRequests: silent, credentials: rig.conversation.credentials, attempts: rig.latches,
            state: rig.store, now: rig.conversation.now)
        let first = Task { try await login.logIn(hanging) }
        while silent.count == 0 { await Task.yield() }
        let second = Task { try? await login.logIn(hanging) }
        second.cancel()
        #expect(await second.value == nil)
        let third = Task { try await login.logIn(rig.conversation) }
        first.cancel()
        _ = try await third.value
        #expect(silent.count == 1)
    }

    @Test(
        "a rotated token whose answer never came is kept and latched by nothing; the next login sends it again",
        arguments: [
            .failure(SideRequestError(.timedOut, reason: "")), .failure(SideRequestError(.unreachable, reason: "")),
            .failure(SideRequestError(.badAnswer, reason: "")), .success(SideResponse(status: 502)),
            .success(SideResponse(status: 200, body: Array("{\"access_tok".utf8))),
            .success(SideResponse(status: 429, body: Array(#"{"error":"invalid_grant"}"#.utf8))),
        ] as [Result<SideResponse, SideRequestError>])
    func lostAnswer(reply: Result<SideResponse, SideRequestError>) async throws {
        let store = MemoryStore()
        let first = LoginRig.tokens([Self.sends("refresh-1", getting: "refresh-2")], store: store)
        _ = try await first.logIn(try Self.login())
        let unanswered = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-2" }.replying(reply)
        let rig = LoginRig.tokens([unanswered], store: store, latches: first.latches)
        let failure = await rig.lose(try Self.login())
        #expect(failure.isUnknown && rig.latches.all.isEmpty)
        // A server with a grace period answers now, and the chain goes on, after a restart too.
        let later = LoginRig.tokens(
            [Self.sends("refresh-2", getting: "refresh-3"), Self.sends("refresh-3", getting: nil)], store: store,
            latches: rig.latches)
        for _ in 0..<2 { _ = try await later.requestsLeft(try Self.login()) }
        #expect(later.requests.missing.isEmpty)
    }

    @Test("a rotated token that the server refuses after its answer was lost is latched, and sent no third time")
    func usedByLostAnswer() async throws {
        let asked = TokenScript.asked("refresh_token") { $0.form("refresh_token") == "refresh-1" }
        let rig = LoginRig.tokens([
            asked.replying(.failure(SideRequestError(.timedOut, reason: ""))),
            asked.replying(200, [:], #"{"error":"bad_refresh_token"}"#),
        ])
        await rig.latches.accept(TokenScript.key, TokenScript.client, Acceptance(path: nil, at: LoginRig.now))
        await #expect(throws: LoginFailure.self) { try await Self.login().logIn(rig.conversation) }
        #expect(await rig.lose(try Self.login()).code == .rejected)
        #expect(await rig.lose(try Self.login()).code == .latched)
    }

    @Test("a rejection's own refresh token is not saved")
    func refusedToken() async throws {
        let store = MemoryStore()
        let refused = TokenScript.asked("refresh_token")
            .replying(200, [:], #"{"error":"bad_refresh_token","refresh_token":"refresh-9"}"#)
        #expect(await LoginRig.tokens([refused], store: store).lose(try Self.login()).code == .rejected)
        #expect(store.names.isEmpty)
    }

    @Test("two processes with one state send their refresh tokens one after another, each the token that the other got")
    func twoProcesses() async throws {
        let turns = SharedTurns()
        let requests = RotatingRequests(turns: turns)
        let rig = LoginRig.tokens([])
        let conversation = Conversation(
            sideRequests: requests, credentials: rig.conversation.credentials, attempts: rig.latches,
            state: rig.store, turns: turns, now: rig.conversation.now)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                let login = try Self.login(RefreshTokens(credential: "api-client", origin: TokenScript.origin))
                group.addTask { _ = try await login.logIn(conversation) }
            }
            try await group.waitForAll()
        }
        #expect(requests.sent == ["refresh-1", "refresh-2"])
    }

    @Test("a refresh token that comes with an unusable token is saved anyway")
    func unusableAnswer() async throws {
        let rig = LoginRig.tokens([
            TokenScript.asked("refresh_token").replying(TokenScript.answering(#"{"refresh_token":"refresh-2"}"#)),
            Self.sends("refresh-2", getting: nil),
        ])
        await #expect(throws: LoginFailure.self) { try await Self.login().logIn(rig.conversation) }
        _ = try await rig.logIn(try Self.login())
    }
}

extension LoginRig {
    /// Runs `login`, and leaves the rest of the script for later.
    fileprivate func requestsLeft(_ login: any SessionLogin) async throws -> Session {
        try await login.logIn(conversation)
    }
}

/// Side requests that are never answered.
private final class SilentRequests: SideRequests {
    private let sent = Mutex(0)

    var count: Int { sent.withLock { $0 } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        sent.withLock { $0 += 1 }
        // Kept, since a dropped continuation is reported as leaked.
        await withCheckedContinuation { continuation in Self.waiting.withLock { $0.append(continuation) } }
        throw SideRequestError(.timedOut, reason: "never")
    }

    private static let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])
}

/// Turns of two processes.
private final class SharedTurns: LoginTurns {
    private let taken = Mutex<Set<String>>([])
    private let waits = Mutex(0)

    /// Number of logins that had to wait.
    var waitCount: Int { waits.withLock { $0 } }

    func take(_ name: String, waiting: @escaping @Sendable () -> Void) async -> LoginTurn? {
        var hasWaited = false
        while !taken.withLock({ $0.insert(name).inserted }) {
            if !hasWaited { waits.withLock { $0 += 1 } }
            hasWaited = true
            await Task.yield()
        }
        return LoginTurn { [self] in taken.withLock { _ = $0.remove(name) } }
    }
}

/// A token endpoint that rotates refresh tokens. It answers the first request when a second login waits, or has sent its own.
private final class RotatingRequests: SideRequests {
    private let turns: SharedTurns
    private let tokens = Mutex<[String]>([])

    init(turns: SharedTurns) { self.turns = turns }

    /// Refresh tokens in the order of their arrival.
    var sent: [String] { tokens.withLock { $0 } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let count = tokens.withLock { tokens in
            tokens.append(request.form("refresh_token") ?? "")
            return tokens.count
        }
        while turns.waitCount == 0, sent.count < 2 { await Task.yield() }
        return try TokenScript.answering(
            #"{"access_token":"token-1","token_type":"Bearer","expires_in":60,"refresh_token":"refresh-\#(count + 1)"}"#
        ).get()
    }
}

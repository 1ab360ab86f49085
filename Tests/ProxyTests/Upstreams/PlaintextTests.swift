// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import Glibc
import HTTPTypes
import Proxy
import Testing

/// Upstreams that the check of the settings, which comes first, would not accept.
@Suite("Secrets in the clear, at the last moment")
struct PlaintextTests {
    private func plan(host: String, isProxied: Bool, isAllowed: Bool, _ login: Authenticator) -> UpstreamPlan {
        var connections = ConnectionSettings()
        // No process listens there, so an attempt to send fails in another way than a refusal.
        if isProxied { connections.proxy = "http://127.0.0.1:1" }
        connections.allowsPlaintext = isAllowed
        return .secure(host: host, port: 1, scheme: .http, connections: connections, logins: [login])
    }

    @Test(
        "a session's fields do not leave this machine, nor go to a proxy",
        arguments: [
            ("bank.invalid", false, false), ("bank.invalid", true, false), ("localhost", true, false),
            ("127.0.0.1", true, false), ("bank.invalid", false, true), ("localhost", true, true),
            ("localhost", false, false),
        ])
    func sessions(host: String, isProxied: Bool, isAllowed: Bool) throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) { _, _, _ in .bearer("secret") }
        let proxy = try TestProxy(plan(host: host, isProxied: isProxied, isAllowed: isAllowed, login))
        let (head, body) = try proxy.fetch(get())
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        let isSent = isAllowed || host == "localhost" && !isProxied
        #expect(body.contains(isSent ? "\"code\":\"upstream-unreachable\"" : "in the clear"), "\(body)")
    }

    @Test("a session's fields are not sent in the clear to another proxy")
    func rig() throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) { _, _, _ in .bearer("secret") }
        let rig = try AuthRequestRig { _ in
            plan(host: "bank.invalid", isProxied: false, isAllowed: false, login)
        }
        let head = try rig.ask()
        #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("in the clear") && !head.contains("secret"), "\(head)")
    }

    @Test("a login's own requests are not sent in the clear", arguments: [false, true])
    func logins(isAllowed: Bool) throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) {
            (_, _, conversation) async throws(LoginFailure) in
            let url = WebURL(origin: Origin(scheme: .http, host: "bank.invalid", port: 1), path: "/login")
            do throws(SideRequestError) {
                _ = try await conversation.sideRequests.send(SideRequest(method: .get, url: url))
                return .bearer("secret")
            } catch {
                throw LoginFailure(.failed, challenge: "bank", detail: "told: \(error.kind)")
            }
        }
        let body = try TestProxy(plan(host: "bank.invalid", isProxied: false, isAllowed: isAllowed, login)).fetch(get())
            .body
        #expect(body.contains(isAllowed ? "told: unreachable" : "told: originNotAllowed"), "\(body)")
    }
}

@Suite("Authorities")
struct AuthorityTests {
    @Test("a folder of authorities, such as libcurl is built with, is not trusted besides those of the configuration")
    func folder() throws {
        let upstream = try TLSUpstream()
        #expect(try run(upstream.port) { try $0.set(.caFolder, Certificates.path("folder")) } == nil)
        let error = try run(upstream.port) { handle in
            try handle.set(.caFolder, Certificates.path("folder"))
            try ConnectionSettings.trusting("other-ca.pem").apply(
                to: handle, for: Origin(scheme: .https, host: "localhost", port: upstream.port))
        }
        #expect(error == .peerFailedVerification)
    }

    /// Runs one transfer by hand and returns its error.
    private func run(_ port: UInt16, _ setUp: (EasyHandle) throws -> Void) throws -> CurlError? {
        let multi = try MultiHandle()
        let handle = try EasyHandle()
        try handle.set(.url, "https://localhost:\(port)/")
        try setUp(handle)
        try multi.add(handle, delegate: Nobody())
        var watched: [Int32: Int16] = [:]
        var wait: Int32 = 0
        while true {
            multi.timeout()
            if let completion = multi.nextCompleted() { return completion.error }
            while let effect = multi.nextEffect() {
                switch effect {
                case .closed(let fd), .watch(let fd, .none, _): watched[fd] = nil
                case .idle: break
                case .watch(let fd, .read, _): watched[fd] = Int16(POLLIN)
                case .watch(let fd, .write, _): watched[fd] = Int16(POLLOUT)
                case .watch(let fd, .readWrite, _): watched[fd] = Int16(POLLIN | POLLOUT)
                }
            }
            var entries = watched.map { pollfd(fd: $0.key, events: $0.value, revents: 0) }
            switch multi.takeTimer() {
            case .after(let milliseconds): wait = Int32(clamping: milliseconds)
            case .cancelled: wait = 180_000
            case .unchanged: break
            }
            guard unsafe poll(&entries, nfds_t(entries.count), wait) > 0 else { continue }
            for entry in entries where entry.revents != 0 {
                multi.socketReady(
                    entry.fd, readable: entry.revents & Int16(POLLIN) != 0,
                    writable: entry.revents & Int16(POLLOUT) != 0, error: false)
            }
        }
    }
}

/// Delegate that accepts everything.
private final class Nobody: TransferDelegate {
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .consumed }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { true }
    func transferWillSend(attempt: Int) -> Bool { true }
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {}
}

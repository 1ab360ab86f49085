// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import Glibc
import Testing

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

/// Takes whatever comes.
private final class Nobody: TransferDelegate {
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .consumed }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { true }
    func transferWillSend(attempt: Int) -> Bool { true }
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import Synchronization
import TestSupport
import Testing

/// Upstream that receives long bodies, on a thread per connection, and records them.
final class UploadUpstream: Sendable {
    /// A request that arrived with its whole body.
    struct Upload: Sendable {
        var head: String
        var body: LongBody

        func has(_ field: String) -> Bool { head.contains("\r\n\(field)\r\n") }
    }

    /// Reaction to a head.
    enum Reaction: Sendable {
        /// The connection is closed after that many bytes of the body.
        case hangUp(after: Int)
        /// The body is read, after `100 Continue` if the head expects it.
        case read
        /// The body is read; an expectation is ignored.
        case readSilently
        /// The answer is sent without reading the body, and the connection is closed.
        case refuse(String)
    }

    let port: UInt16
    private let listener: Int32
    private let state = Mutex((uploads: [Upload](), heads: [String]()))
    private let react: @Sendable (_ head: String) -> Reaction
    private let answer: @Sendable (Upload) -> String

    /// Requests that arrived completely.
    var uploads: [Upload] { state.withLock { $0.uploads } }
    /// Heads of all requests.
    var heads: [String] { state.withLock { $0.heads } }

    /// Listens. `answer` returns the answer to a complete request.
    init(
        react: @escaping @Sendable (_ head: String) -> Reaction = { _ in .read },
        answer: @escaping @Sendable (Upload) -> String
    ) throws {
        self.react = react
        self.answer = answer
        let (listener, port) = loopbackSocket()
        (self.listener, self.port) = (listener, port)
        guard listen(listener, 256) == 0 else {
            throw ScriptedUpstream.Problem(doing: "listen: \(errno)")
        }
        let serve = Serving(owner: self)
        inBackground {
            while case let accepted = Glibc.accept(listener, nil, nil), accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                inBackground { serve.connection(accepted) }
            }
            _ = Glibc.close(listener)
        }
    }

    /// Its threads end by themselves once their peers are gone.
    deinit { _ = shutdown(listener, Int32(SHUT_RDWR)) }

    private struct Serving: Sendable {
        weak let owner: UploadUpstream?

        func connection(_ number: Int32) {
            let peer = Peer(accepted: number)
            while let head = try? peer.head(), let owner {
                owner.state.withLock { $0.heads.append(head) }
                Bell.shared.ring()
                let reaction = owner.react(head)
                if case .refuse(let answer) = reaction {
                    try? peer.send(answer)
                    peer.finish()
                    _ = try? peer.expectEnd()
                    return
                }
                if case .read = reaction, head.contains("\r\nExpect: 100-continue\r\n") {
                    try? peer.send("HTTP/1.1 100 Continue\r\n\r\n")
                }
                if case .hangUp(let count) = reaction {
                    _ = try? peer.read(count: count)
                    return
                }
                guard let body = try? peer.body(of: head) else { return }
                let upload = Upload(head: head, body: body)
                owner.state.withLock { $0.uploads.append(upload) }
                guard (try? peer.send(owner.answer(upload))) != nil else { return }
            }
        }
    }
}

extension Peer {
    /// Returns the decoded body after a head.
    func body(of head: String) throws -> LongBody {
        guard !head.contains("\r\nTransfer-Encoding: chunked\r\n") else { return LongBody(try chunks()) }
        let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }
        return LongBody(try read(count: length.flatMap { Int($0.dropFirst(16)) } ?? 0))
    }

    private func chunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = try read(until: "\r\n").dropLast(1)
            guard let count = Int(line, radix: 16) else { throw Problem(doing: "read a chunk size: \(line)") }
            body += try read(count: count)
            _ = try read(until: "\r\n")
            if count == 0 { return body }
        }
    }
}

/// Sends `bytes` on another thread, while the test reads the answer.
func startThread(sending bytes: [UInt8], to peer: Peer) {
    struct Carrier: @unchecked Sendable {
        // The thread only sends, and the test only receives.
        let peer: Peer
    }
    let carrier = Carrier(peer: peer)
    inBackground { try? carrier.peer.send(bytes) }
}

/// Directory of one test, removed with this object.
final class SpoolDirectory {
    let path = "/tmp/countersign-spool-\(getpid())-\(UInt64.random(in: 0 ... .max))"

    init() { unsafe mkdir(path, 0o700) }

    deinit { unsafe rmdir(path) }

    func spool(limit: Int = 256 << 20) -> ReplaySpool { ReplaySpool(directory: path, limit: limit, now: { 0 }) }
}

/// Returns the descriptors of this process for files within a directory, unnamed files included.
func descriptors(within directory: String) -> [Int] {
    (0..<4096).filter { number in
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { space in
            guard let start = space.baseAddress else { return false }
            let count = unsafe readlink("/proc/self/fd/\(number)", start, space.count)
            let target = unsafe space.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }
            return String(decoding: target, as: UTF8.self).hasPrefix(directory + "/")
        }
    }
}

/// A body that is not printed if a comparison fails.
struct LongBody: Sendable, Equatable, CustomTestStringConvertible {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a body whose bytes differ by position.
    init(count: Int) {
        bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { space, initialized in
            for index in 0..<count { unsafe space[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
            initialized = count
        }
    }

    var count: Int { bytes.count }
    var testDescription: String { "\(count) bytes, \(bytes.hashValue)" }
}

/// Returns a request with that body, by its length or in chunks.
func post(_ body: LongBody, inChunksOf chunk: Int? = nil, to path: String = "/up") -> [UInt8] {
    let body = body.bytes
    let head = "POST \(path) HTTP/1.1\r\nHost: localhost\r\n"
    guard let chunk else { return Array("\(head)Content-Length: \(body.count)\r\n\r\n".utf8) + body }
    var bytes = Array("\(head)Transfer-Encoding: chunked\r\n\r\n".utf8)
    for start in stride(from: 0, to: body.count, by: chunk) {
        let piece = body[start..<min(start + chunk, body.count)]
        bytes += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
    }
    return bytes + Array("0\r\n\r\n".utf8)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// One accepted connection, read and written by its own thread. Any wait ends as soon as the server stops.
final class Connection: Sendable {
    private let descriptor: Descriptor
    private let stop: Descriptor
    private let resets = Atomic(false)

    init(_ descriptor: Descriptor, stop: Descriptor) {
        self.descriptor = descriptor
        self.stop = stop
    }

    /// The reason for a connection's end.
    enum End: Error, Sendable {
        /// The peer left, or was silent for too long, or the server stops.
        case gone
        /// The peer sent bytes that are not a request.
        case wrong(String)
    }

    /// Returns the next bytes that come within that time; empty at the peer's orderly end.
    func receive(within time: Duration) throws(End) -> [UInt8] {
        while true {
            try wait(for: Int32(POLLIN), within: time)
            var bytes = [UInt8](repeating: 0, count: 16_384)
            let count = unsafe recv(descriptor.number, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return Array(bytes.prefix(count)) }
            guard errno == EAGAIN || errno == EINTR else { throw .gone }
        }
    }

    /// Number of unread bytes, up to a kilobyte.
    var waitingBytes: Int {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_PEEK)
        return max(unsafe recv(descriptor.number, &bytes, bytes.count, flags), 0)
    }

    /// Sends all of it.
    func send(_ bytes: some Collection<UInt8>) throws(End) {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(descriptor.number, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, flags)
            }
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                try wait(for: Int32(POLLOUT), within: .seconds(600))
            } else if errno != EINTR {
                throw .gone
            }
        }
    }

    /// Waits that long; throws as soon as the peer leaves.
    func pause(_ time: Duration) throws(End) {
        guard time > .zero else { return }
        let clock = ContinuousClock()
        let end = clock.now + time
        while clock.now < end {
            let ready = Descriptor.poll(
                [(descriptor, peerHungUp), (stop, 0)], milliseconds: milliseconds(end - clock.now))
            guard ready == [0, 0] else { throw .gone }
        }
    }

    /// Waits until the peer leaves.
    func awaitDeparture() throws(End) -> Never {
        while true { try pause(.seconds(3600)) }
    }

    deinit {
        // Ends the connection even if a program started meanwhile has inherited the descriptor.
        if !resets.load(ordering: .relaxed) { shutdown(descriptor.number, Int32(SHUT_RDWR)) }
    }

    /// Makes the end of this connection a reset.
    func resetAtClose() {
        resets.store(true, ordering: .relaxed)
        var linger = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(
            descriptor.number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    }

    /// Ends our side and reads for a moment, so that the peer's last bytes do not become a reset that destroys our
    /// answer (RFC 9112 §9.6).
    func closeGently() {
        shutdown(descriptor.number, Int32(Glibc.SHUT_WR))
        for _ in 0..<64 {
            guard let bytes = try? receive(within: .milliseconds(200)), !bytes.isEmpty else { return }
        }
    }

    private func wait(for event: Int32, within time: Duration) throws(End) {
        let clock = ContinuousClock()
        let end = clock.now + time
        repeat {
            let ready = Descriptor.poll([(descriptor, event), (stop, 0)], milliseconds: milliseconds(end - clock.now))
            guard ready[1] == 0 else { throw .gone }
            if ready[0] != 0 { return }
        } while clock.now < end
        throw .gone
    }

    /// `POLLRDHUP` of Linux's poll.h, which Glibc's module lacks.
    private var peerHungUp: Int32 { 0x2000 }

    /// Rounded up, so that a wait is never too short, and limited to the range of `poll`.
    private func milliseconds(_ time: Duration) -> Int32 {
        let (seconds, attoseconds) = time.components
        return Int32(min(max(seconds, 0), 3600) * 1000 + max(attoseconds, 0) / 1_000_000_000_000_000 + 1)
    }
}

/// A file descriptor of the system, closed with its last holder.
final class Descriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Returns a pair of sockets as a pipe. Its reading end reports a hang-up as soon as the writing end is closed: one
    /// thread can thus wake all others.
    static func pipe() -> (reading: Descriptor, writing: Descriptor)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        return (Descriptor(ends[0]), Descriptor(ends[1]))
    }

    /// Returns a listening socket on 127.0.0.1, and the port it got; throws the error number.
    static func listening(onPort port: UInt16) throws(LoopbackServerError) -> (Descriptor, UInt16) {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = socket(AF_INET, type, 0)
        guard number >= 0 else { throw LoopbackServerError(doing: "make a socket", port: port, code: errno) }
        let result = Descriptor(number)
        var on: Int32 = 1
        _ = unsafe setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard unsafe bind(number, generic, length) == 0, listen(number, 1024) == 0 else { return false }
                return unsafe getsockname(number, generic, &length) == 0
            }
        }
        guard bound else { throw LoopbackServerError(doing: "listen on 127.0.0.1", port: port, code: errno) }
        return (result, UInt16(bigEndian: address.sin_port))
    }

    /// Returns the next connection of a listening socket; `nil` if there is none.
    func acceptNext() -> Descriptor? {
        let number = accept(self.number, nil, nil)
        guard number >= 0 else { return nil }
        // Glibc's module lacks accept4, which would do it at once.
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        var on: Int32 = 1
        _ = unsafe setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return Descriptor(number)
    }

    /// Returns the events of each descriptor in turn; all zero after `milliseconds` (-1: never).
    static func poll(_ interests: [(descriptor: Descriptor, events: Int32)], milliseconds: Int32) -> [Int32] {
        var entries = interests.map {
            pollfd(fd: $0.descriptor.number, events: Int16(truncatingIfNeeded: $0.events), revents: 0)
        }
        let count = unsafe Glibc.poll(&entries, nfds_t(entries.count), milliseconds)
        // An interrupted wait has no result; the caller waits again.
        return count > 0 ? entries.map { Int32($0.revents) } : entries.map { _ in 0 }
    }
}

/// The server could not start.
package struct LoopbackServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The operation that failed.
    package var doing: String
    /// The port.
    package var port: UInt16
    /// The system's error number (`errno`).
    package var code: Int32

    /// The operation that failed, its port, and its error.
    package var description: String {
        "cannot \(doing), port \(port): error \(code)\(code == EADDRINUSE ? " (the port is taken; choose another)" : "")"
    }
}

/// The lifetime of one connection: read a request, have it answered, write the answer, and again.
struct ConnectionLoop: Sendable {
    var connection: Connection
    var idle: Duration
    var recorder: Recorder
    var inWork: InWork
    var handler: @Sendable (FakeRequest) -> FakeResponse

    private static let numbers = Atomic<UInt64>(0)

    func run() {
        var reader = RequestReader(connection, idle: idle)
        do throws(Connection.End) {
            let number = Self.numbers.add(1, ordering: .relaxed).newValue
            while let (read, staysOpen) = try reader.next() {
                var request = read
                request.connection = number
                let remarks = reader.remarks.map { "\(request.method) \(request.path): \($0)" }
                if !remarks.isEmpty { recorder.note { $0.violations += remarks } }
                guard try answer(request, staysOpen: staysOpen) else { return connection.closeGently() }
            }
        } catch {
            switch error {
            case .gone:
                if reader.isInside { recorder.note { $0.unfinishedRequests += 1 } }
            case .wrong(let problem): refuse(problem)
            }
        }
    }

    private func refuse(_ problem: String) {
        recorder.note { $0.violations.append("no request: \(problem)") }
        var writer = ResponseWriter(connection)
        try? writer.write(.text(400, "\(problem)\n"), to: "GET", date: now, staysOpen: false)
        connection.closeGently()
    }

    /// Answers one request; `false` if the connection ends with the answer.
    private func answer(_ request: FakeRequest, staysOpen: Bool) throws(Connection.End) -> Bool {
        inWork.enter(request.path, recorder)
        defer { inWork.leave(request.path) }
        let response = handler(request)
        let closes =
            switch response.body {
            case .raw, .untilClose: true
            case .bytes, .chunks, .generated: response.delivery.closes || !staysOpen
            }
        var writer = ResponseWriter(connection)
        do {
            try writer.write(response, to: request.method, date: now, staysOpen: !closes)
        } catch {
            if response.delivery.cutsAfter == nil { recorder.note { $0.abandonedAnswers += 1 } }
            throw .gone
        }
        return !closes
    }

    private var now: String { httpDate(FakeClock.system.now()) }
}

/// Number of requests in progress, by path and in all.
final class InWork: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func enter(_ path: String, _ recorder: Recorder) {
        let (all, here) = counts.withLock { counts in
            counts["*", default: 0] += 1
            counts[path, default: 0] += 1
            return (counts["*"] ?? 0, counts[path] ?? 0)
        }
        recorder.note { record in
            record.maxConcurrent["*"] = max(record.maxConcurrent["*"] ?? 0, all)
            // Limited, so that requests for ever new paths do not fill the memory.
            guard record.maxConcurrent.count < 1000 || record.maxConcurrent[path] != nil else { return }
            record.maxConcurrent[path] = max(record.maxConcurrent[path] ?? 0, here)
        }
    }

    func leave(_ path: String) {
        counts.withLock { counts in
            counts["*", default: 1] -= 1
            counts[path, default: 1] -= 1
            if counts[path] == 0 { counts[path] = nil }
        }
    }
}

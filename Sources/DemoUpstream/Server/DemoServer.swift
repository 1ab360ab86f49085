// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// A small HTTP/1.1 server on 127.0.0.1, with a thread for each connection.
final class DemoServer: Sendable {
    private struct State {
        var listener: Int32?
        var connections: Set<Int32> = []
    }

    private let state = Mutex(State())
    private let handler: @Sendable (DemoRequest) -> DemoResponse
    private let tell: DemoTeller
    /// Further connections than that are closed at once.
    private static let mostConnections = 1024

    /// A server whose requests that handler answers, on the connection's thread.
    init(tell: @escaping DemoTeller, handler: @escaping @Sendable (DemoRequest) -> DemoResponse) {
        self.tell = tell
        self.handler = handler
    }

    /// Listens on that port (0: any free one) and serves; returns the port.
    func start(port: UInt16) throws(DemoServerError) -> UInt16 {
        let (listener, port) = try Self.listen(port: port)
        state.withLock { $0.listener = listener }
        guard DemoThread.start({ [self] in accept(listener) }) else {
            close(listener)
            throw DemoServerError(doing: "start a thread", port: port, code: EAGAIN)
        }
        return port
    }

    /// Ends the listener and every connection; their threads close them.
    func stop() {
        state.withLock { state in
            if let listener = state.listener { shutdown(listener, Int32(SHUT_RDWR)) }
            state.listener = nil
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    /// A port that nobody listens on.
    static func freePort() throws(DemoServerError) -> UInt16 {
        let (listener, port) = try listen(port: 0)
        close(listener)
        return port
    }

    private func accept(_ listener: Int32) {
        defer { close(listener) }
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard state.withLock({ $0.listener == listener }) else {
                if descriptor >= 0 { close(descriptor) }
                return
            }
            guard descriptor >= 0 else {
                // The caller that waited may be gone, and there may be room again in a moment.
                usleep(10_000)
                continue
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let hasRoom = state.withLock { state in
                guard state.connections.count < Self.mostConnections else { return false }
                return state.connections.insert(descriptor).inserted
            }
            guard hasRoom, DemoThread.start({ [self] in serve(descriptor) }) else {
                end(descriptor)
                continue
            }
        }
    }

    private func serve(_ descriptor: Int32) {
        DemoConnection(descriptor).serve(handler, tell)
        end(descriptor)
    }

    /// Closes it under the lock, so that `stop` meets no descriptor that is another's by then.
    private func end(_ descriptor: Int32) {
        state.withLock { state in
            state.connections.remove(descriptor)
            close(descriptor)
        }
    }

    private static func listen(port: UInt16) throws(DemoServerError) -> (listener: Int32, port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw DemoServerError(doing: "make a socket", port: port, code: errno) }
        var on: Int32 = 1
        unsafe setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, length) == 0 && Glibc.listen(listener, 1024) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard isBound else {
            let code = errno
            close(listener)
            throw DemoServerError(doing: "listen on 127.0.0.1", port: port, code: code)
        }
        return (listener, UInt16(bigEndian: address.sin_port))
    }
}

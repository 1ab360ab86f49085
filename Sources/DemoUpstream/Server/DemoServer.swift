// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
internal import System

/// Small HTTP/1.1 server on 127.0.0.1, with a thread for each connection.
final class DemoServer: Sendable {
    private struct State {
        var listener: Int32?
        var connections: Set<Int32> = []
    }

    private let state = Mutex(State())
    private let handler: @Sendable (DemoRequest) -> DemoResponse
    private let tell: DemoTeller
    /// Maximum number of connections; further ones are closed at once.
    private static let mostConnections = 1024

    /// Creates a server that calls `handler` on the connection's thread.
    init(tell: @escaping DemoTeller, handler: @escaping @Sendable (DemoRequest) -> DemoResponse) {
        self.tell = tell
        self.handler = handler
    }

    /// Listens on a port (0: any free one), serves, and returns the port.
    func start(port: UInt16) throws(DemoServerError) -> UInt16 {
        let (listener, port) = try Self.listen(port: port)
        state.withLock { $0.listener = listener }
        do throws(ThreadError) {
            try startThread { [self] in accept(listener) }
        } catch {
            close(listener)
            throw DemoServerError(doing: "start a thread", port: port, code: error.code)
        }
        return port
    }

    /// Shuts down the listener and every connection; their threads close them.
    func stop() {
        state.withLock { state in
            if let listener = state.listener { shutdown(listener, Int32(SHUT_RDWR)) }
            state.listener = nil
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

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
                // The waiting caller may be gone, and descriptors may be available again in a moment.
                usleep(10_000)
                continue
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let hasRoom = state.withLock { state in
                guard state.connections.count < Self.mostConnections else { return false }
                return state.connections.insert(descriptor).inserted
            }
            do throws(ThreadError) {
                guard hasRoom else { throw ThreadError(code: EAGAIN) }
                try startThread { [self] in serve(descriptor) }
            } catch {
                end(descriptor)
            }
        }
    }

    private func serve(_ descriptor: Int32) {
        DemoConnection(descriptor).serve(handler, tell)
        end(descriptor)
    }

    /// Closes a connection under the lock, so that `stop` cannot shut down a reused descriptor.
    private func end(_ descriptor: Int32) {
        state.withLock { state in
            state.connections.remove(descriptor)
            close(descriptor)
        }
    }

    private static func listen(port: UInt16) throws(DemoServerError) -> (listener: Int32, port: UInt16) {
        let listener: Int32
        do throws(SystemError) {
            listener = try Sockets.makeStream(AF_INET)
        } catch {
            throw DemoServerError(doing: "make a socket", port: port, code: error.code)
        }
        Sockets.reuseAddress(listener)
        do throws(SystemError) {
            try SocketAddress(loopbackPort: port).bind(listener)
            try systemCall { Glibc.listen(listener, 1024) }
        } catch {
            close(listener)
            throw DemoServerError(doing: "listen on 127.0.0.1", port: port, code: error.code)
        }
        return (listener, SocketAddress.local(of: listener)?.hostAndPort?.port ?? port)
    }
}

/// Failure to start the demonstration's server.
package struct DemoServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Failed step.
    package let doing: String
    /// Port number.
    package let port: UInt16
    /// Error number of the system (`errno`).
    package let code: Int32

    /// Failed step, port and error.
    package var description: String {
        "cannot \(doing), port \(port): error \(code)\(code == EADDRINUSE ? " (the port is in use; choose another)" : "")"
    }
}

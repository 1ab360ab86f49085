// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// A small HTTP/1.1 server on 127.0.0.1: a thread per connection, blocking, and strict enough to notice a wrong request.
///
/// It shares no code with the proxy, so that it cannot share its mistakes.
package final class LoopbackServer: Sendable {
    private let settings: Settings
    private let state: Mutex<State>

    /// Creates a server that has every request answered by that handler, on the connection's thread; not started yet.
    ///
    /// Port 0 is a free one. A connection that is silent for `idle` is closed. Beyond `limit` connections further ones
    /// wait.
    package init(
        port: UInt16 = 0, idle: Duration = .seconds(75), limit: Int = 1024, recorder: Recorder = Recorder(),
        handler: @escaping @Sendable (FakeRequest) -> FakeResponse
    ) {
        self.settings = Settings(idle: idle, limit: max(limit, 1), recorder: recorder, handler: handler)
        self.state = Mutex(State(port: port))
    }

    deinit {
        stop()
    }

    /// The port it listens on, or is to listen on.
    package var port: UInt16 { state.withLock { $0.port } }

    /// The record of everything that happened.
    package var recorder: Recorder { settings.recorder }

    /// Binds and serves; throws if the port cannot be had. Does nothing while it serves.
    package func start() throws(LoopbackServerError) {
        try state.withLock { state throws(LoopbackServerError) in
            guard state.running == nil else { return }
            let (listener, port) = try Descriptor.listening(onPort: state.port)
            guard let stop = Descriptor.pipe(), let wake = Descriptor.pipe() else {
                throw LoopbackServerError(doing: "make a pipe", port: port, code: errno)
            }
            let acceptor = Acceptor(settings: settings, listener: listener, stop: stop.reading, wake: wake)
            guard let thread = ServerThread(running: { acceptor.run() }) else {
                throw LoopbackServerError(doing: "start a thread", port: port, code: EAGAIN)
            }
            state.port = port
            state.running = Running(thread: thread, stop: stop.writing)
        }
    }

    /// Closes the listener and every connection, also in the middle of an answer, and waits until all threads have ended.
    ///
    /// It may be started again, and then has the same port.
    package func stop() {
        let thread = state.withLock { state in
            // With the last holder of the pipe's writing end gone every wait in every thread ends.
            defer { state.running = nil }
            return state.running?.thread
        }
        thread?.join()
    }

    private struct State: Sendable {
        var port: UInt16
        var running: Running?
    }

    private struct Running: Sendable {
        var thread: ServerThread
        var stop: Descriptor
    }

    fileprivate struct Settings: Sendable {
        var idle: Duration
        var limit: Int
        var recorder: Recorder
        var handler: @Sendable (FakeRequest) -> FakeResponse
    }
}

/// Accepts connections on a thread of its own and waits for the threads it started.
private struct Acceptor: Sendable {
    var settings: LoopbackServer.Settings
    var listener: Descriptor
    var stop: Descriptor
    var wake: (reading: Descriptor, writing: Descriptor)

    func run() {
        let inWork = InWork()
        let ended = Ended()
        var threads: [Int: ServerThread] = [:]
        var last = 0
        while true {
            for number in ended.take() { threads.removeValue(forKey: number)?.join() }
            // At the limit further connections wait in the listener's queue.
            let events = threads.count < settings.limit ? Int32(POLLIN) : 0
            let ready = Descriptor.poll(
                [(listener, events), (stop, 0), (wake.reading, Int32(POLLIN))], milliseconds: -1)
            if ready[1] != 0 { break }
            if ready[2] != 0 { drain() }
            guard ready[0] != 0, let descriptor = listener.acceptNext() else { continue }
            last += 1
            let number = last
            settings.recorder.note { $0.connections += 1 }
            let loop = ConnectionLoop(
                connection: Connection(descriptor, stop: stop), idle: settings.idle, recorder: settings.recorder,
                inWork: inWork, handler: settings.handler)
            threads[number] = ServerThread {
                loop.run()
                ended.add(number)
                var byte: UInt8 = 0
                _ = unsafe write(wake.writing.number, &byte, 1)
            }
        }
        // A child that is just being started holds a copy of the descriptor; closing alone would leave the port taken until
        // that child runs its own program.
        shutdown(listener.number, Int32(SHUT_RDWR))
        for thread in threads.values { thread.join() }
    }

    private func drain() {
        var bytes = [UInt8](repeating: 0, count: 1024)
        _ = unsafe read(wake.reading.number, &bytes, bytes.count)
    }
}

/// The numbers of the threads that are about to end.
private final class Ended: Sendable {
    private let numbers = Mutex<[Int]>([])

    func add(_ number: Int) { numbers.withLock { $0.append(number) } }

    func take() -> [Int] {
        numbers.withLock { numbers in
            defer { numbers = [] }
            return numbers
        }
    }
}

/// A thread of the system that can be waited for.
struct ServerThread: Sendable {
    private let identifier: pthread_t

    /// Starts a thread that runs that work; `nil` if the system refuses one.
    init?(running work: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(Work(work))
        // Signals are for the program's own threads: a new thread inherits the mask of the one that starts it.
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        var identifier = pthread_t()
        let result = unsafe pthread_create(
            &identifier, nil,
            { pointer in
                if let pointer = unsafe pointer {
                    let work = unsafe Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue()
                    work.run()
                }
                return nil
            }, unsafe box.toOpaque())
        guard result == 0 else {
            unsafe box.release()
            return nil
        }
        self.identifier = identifier
    }

    /// Waits until the thread has ended.
    func join() {
        _ = pthread_join(identifier, nil)
    }
}

private final class Work: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}

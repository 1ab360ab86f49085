// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Synchronization

/// A client's loop on its thread, from the first request to the end; it goes when nobody holds it any more.
final class ClientLife: Sendable {
    let loop: EventLoop
    let shared: ClientShared
    let site: SiteBox
    private let numbers = Atomic<UInt64>(0)
    /// Whether it is to end. Held while something is handed to the loop, so that nothing is handed to one that has stopped.
    private let isClosed = Mutex(false)

    /// What the loop's thread puts there before its first turn, and takes away after its last.
    final class SiteBox: Sendable {
        fileprivate let site = Mutex<LoopBound<ClientSite>?>(nil)

        /// On the loop's thread; `nil` where libcurl could not be had, and at the end.
        var value: ClientSite? { site.withLock { $0 }?.value }

        /// To be called on the loop's thread.
        func empty() { site.withLock { $0 = nil } }
    }

    /// Starts the thread. Throws `unavailable` where there is none to be had.
    init(_ configuration: ClientConfiguration, clock: ManualLoopClock?) throws(ClientError) {
        let shared = ClientShared(configuration)
        self.shared = shared
        let box = SiteBox()
        site = box
        do throws(EventLoopError) {
            let thread = try EventLoopThread(name: "challenges", clock: clock) { loop in
                let runtime = try? ClientRuntime(loop: loop, worker: 0, services: shared.services, connections: 32)
                guard let runtime else { return }
                let site = ClientSite(loop: loop, runtime: runtime, shared: shared) { box.empty() }
                box.site.withLock { $0 = LoopBound(site, to: loop) }
            }
            thread.detach()
            loop = thread.loop
        } catch {
            throw ClientError(.unavailable, detail: "The client could not be made: \(error.description).")
        }
        let loop = loop
        shared.calls.begin { loop }
        shared.logins.watch { loop.execute { box.value?.loginEnded() } }
    }

    deinit { close(nil) }

    /// Runs `body` on the loop, unless the client is shut down: then `body` is not called, and `false` the answer.
    func perform(_ body: @escaping @Sendable (ClientSite) -> Void, else failed: @escaping @Sendable () -> Void = {})
        -> Bool
    {
        isClosed.withLock { isClosed in
            guard !isClosed else { return false }
            loop.execute { [site] in
                if let site = site.value { body(site) } else { failed() }
            }
            return true
        }
    }

    /// Has a body that comes in pieces handed to the request of that number.
    func feed(_ body: RequestBody, to number: UInt64) {
        guard case .pieces(_, let run) = body.content else { return }
        let (loop, site) = (loop, site)
        let task = Task.detached { [weak self] in
            let failure: (any Error)?
            do {
                try await run { [weak self] piece in
                    guard let self else { return false }
                    return await self.hand(piece, to: number)
                }
                failure = nil
            } catch {
                failure = error
            }
            loop.execute { site.value?.exchange(number)?.endPieces(failure) }
        }
        let isHeld = perform { site in
            if let exchange = site.exchange(number) { exchange.pieces = task } else { task.cancel() }
        }
        if !isHeld { task.cancel() }
    }

    /// Hands one piece over, as soon as there is room for it. Whether more is wanted.
    private func hand(_ piece: [UInt8], to number: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            let isTaken = perform { site in
                guard let exchange = site.exchange(number) else { return continuation.resume(returning: false) }
                exchange.take(piece, continuation)
            } else: {
                continuation.resume(returning: false)
            }
            if !isTaken { continuation.resume(returning: false) }
        }
    }

    /// A number for the next request.
    func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Ends all; `done` is called when the thread is about to end.
    func close(_ done: (@Sendable () -> Void)?) {
        let isFirst = isClosed.withLock { isClosed in
            defer { isClosed = true }
            if !isClosed {
                loop.execute { [site, loop] in
                    if let site = site.value {
                        site.close(done)
                    } else {
                        loop.stop()
                        done?()
                    }
                }
            }
            return !isClosed
        }
        if !isFirst { done?() }
    }
}

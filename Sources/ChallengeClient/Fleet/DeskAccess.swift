// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Synchronization

/// The way from any thread to the desk, which lives on one worker's loop. What is asked while the desk is being opened waits for it: a
/// login that came a moment too early would be one beside the fleet's.
final class DeskAccess: Sendable {
    typealias Work = @Sendable (FleetDesk?) -> Void

    private struct Desk: Sendable {
        let loop: EventLoop
        let bound: LoopBound<FleetDesk>
    }

    private enum State: Sendable {
        /// Not shared yet, or no more. Legal next: opening.
        case closed
        /// A worker was asked to open it, and that work waits. Legal next: open, closed.
        case opening([Work])
        /// Legal next: closed.
        case open(Desk)
    }

    private let state = Mutex(State.closed)

    /// A worker is about to open it.
    func begin() { state.withLock { $0 = .opening([]) } }

    /// The desk is there, on the calling thread's loop. `false`: nobody wants it any more.
    func open(_ desk: FleetDesk, on loop: EventLoop) -> Bool {
        let bound = LoopBound(desk, to: loop)
        let waiting = state.withLock { state -> [Work]? in
            guard case .opening(let waiting) = state else { return nil }
            state = .open(Desk(loop: loop, bound: bound))
            return waiting
        }
        guard let waiting else { return false }
        // Behind what the caller does first with it.
        loop.execute { for work in waiting { work(bound.value) } }
        return true
    }

    /// There is no desk from now on; `body` is the last that one does. Work that waited is done without one.
    func close(_ body: @escaping @Sendable (FleetDesk) -> Void = { _ in }) {
        let last = state.withLock { state -> State in
            defer { state = .closed }
            return state
        }
        switch last {
        case .closed: break
        case .opening(let waiting): for work in waiting { work(nil) }
        case .open(let desk): desk.loop.execute { body(desk.bound.value) }
        }
    }

    /// Has `work` done on the desk's loop; at once and without a desk where there is none.
    func onDesk(_ work: @escaping Work) {
        let present = state.withLock { state -> State in
            if case .opening(let waiting) = state { state = .opening(waiting + [work]) }
            return state
        }
        switch present {
        case .closed: work(nil)
        case .opening: break
        case .open(let desk): desk.loop.execute { work(desk.bound.value) }
        }
    }
}

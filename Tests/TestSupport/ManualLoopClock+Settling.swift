// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import EventLoop

extension ManualLoopClock {
    /// Returns a clock whose loops ring the bell of the process.
    package static func ringing() -> ManualLoopClock { ManualLoopClock { Bell.shared.ring() } }

    /// Blocks until no loop has anything left to do at the present time; see `whenSettled`. Not to be called on one of
    /// the loops. Returns false after five minutes: a loop does not come to rest.
    @discardableResult
    package func settle() -> Bool {
        let isSettled = Signal()
        whenSettled { isSettled.set() }
        return isSettled.wait()
    }

    /// The same, suspended.
    package func settle() async {
        await withCheckedContinuation { done in whenSettled { done.resume() } }
    }

    /// Lets `duration` pass, and waits until everything due in that time has happened.
    ///
    /// Work under way is done before the time passes. Returns false if a loop does not come to rest.
    @discardableResult
    package func pass(_ duration: Duration) -> Bool {
        let isSettled = settle()
        advance(by: duration)
        return settle() && isSettled
    }

    /// The same, suspended.
    package func pass(_ duration: Duration) async {
        await settle()
        advance(by: duration)
        await settle()
    }
}

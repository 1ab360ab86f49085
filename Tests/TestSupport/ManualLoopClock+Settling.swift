// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import EventLoop

extension ManualLoopClock {
    /// A clock whose loops ring the bell of the process.
    package static func ringing() -> ManualLoopClock { ManualLoopClock { Bell.shared.ring() } }

    /// Blocks until every loop has nothing left to do at the present time; see `whenSettled`. Not on one of the loops.
    package func settle() {
        let isSettled = Signal()
        whenSettled { isSettled.set() }
        precondition(isSettled.wait(), "a loop does not come to rest")
    }

    /// The same, suspended.
    package func settle() async {
        await withCheckedContinuation { done in whenSettled { done.resume() } }
    }

    /// Lets `duration` pass, and waits until all that falls due in it has happened.
    ///
    /// What is under way is done before the time passes.
    package func pass(_ duration: Duration) {
        settle()
        advance(by: duration)
        settle()
    }

    /// The same, suspended.
    package func pass(_ duration: Duration) async {
        await settle()
        advance(by: duration)
        await settle()
    }
}

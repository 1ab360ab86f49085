// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension EventLoop: SerialExecutor, TaskExecutor {
    /// Runs a piece of an `async` function on the loop's thread, between two waits.
    public func enqueue(_ job: consuming ExecutorJob) {
        accept(.task(UnownedJob(job)))
    }

    /// Stops the program if the caller is not on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the loop's thread")
    }

    /// Returns whether the caller is on the loop's thread.
    public func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }

    /// An unowned reference for `Actor.unownedExecutor`; the actor has to keep the loop.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    func runPiece(_ job: UnownedJob) {
        // Both, for a job does not tell through which of the two protocols it came (SE-0417).
        unsafe job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
}

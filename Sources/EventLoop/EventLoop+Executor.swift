// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension EventLoop: SerialExecutor, TaskExecutor {
    /// Runs a job of an `async` function on the loop's thread, between two waits.
    public func enqueue(_ job: consuming ExecutorJob) {
        submit(.task(UnownedJob(job)))
    }

    /// Stops the program if the caller is not on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the loop's thread")
    }

    /// Returns true if the caller is on the loop's thread.
    public func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }

    /// Returns an unowned reference for `Actor.unownedExecutor`; the actor must retain the loop.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    func runPiece(_ job: UnownedJob) {
        // Both, because a job does not record through which of the two protocols it came (SE-0417).
        unsafe job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
}

/// Carrier of a non-Sendable value through Sendable code, back to the loop that owns the value.
///
/// Accessing the value anywhere else stops the program, in release builds too. If the last reference is dropped on
/// another thread, the value is released on the loop.
@safe
public final class LoopBound<Value>: @unchecked Sendable {
    // Safe to share: the content is accessed only after a check for the loop's thread. Its reference is counted by
    // hand, because an automatic reference would leave a copy in `deinit` that might be the last.
    private let content: Unmanaged<Content>
    private let loop: EventLoop

    private final class Content: @unchecked Sendable {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    /// Binds `value` to `loop`; call on the loop's thread.
    public init(_ value: Value, to loop: EventLoop) {
        loop.checkIsolated()
        unsafe content = .passRetained(Content(value))
        self.loop = loop
    }

    /// The value; access on the loop's thread only.
    public var value: Value {
        get {
            loop.checkIsolated()
            return unsafe content.takeUnretainedValue().value
        }
        set {
            loop.checkIsolated()
            unsafe content.takeUnretainedValue().value = newValue
        }
    }

    deinit {
        let content = unsafe content
        if loop.isCurrent || loop.isAtRest {
            unsafe content.release()
        } else {
            loop.execute { unsafe content.release() }
        }
    }
}

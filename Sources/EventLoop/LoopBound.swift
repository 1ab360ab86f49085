// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Carries a value that is not Sendable through code that is, back to the loop that it belongs to.
///
/// Touching the value anywhere else stops the program, in release builds too. When the last reference goes on another
/// thread, the value is sent home and released there.
@safe
public final class LoopBound<Value>: @unchecked Sendable {
    // Safe to share: the content is touched only after a check that this is the loop's thread. Its reference is counted
    // by hand, since a counted one would leave a copy behind in `deinit` that might be the last.
    private let content: Unmanaged<Content>
    private let loop: EventLoop

    private final class Content: @unchecked Sendable {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    /// Binds `value` to `loop`; to be called on its thread.
    public init(_ value: Value, to loop: EventLoop) {
        loop.checkIsolated()
        unsafe content = .passRetained(Content(value))
        self.loop = loop
    }

    /// The value, on the loop's thread.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Carries a value that is not Sendable through code that is, back to the loop that it belongs to.
///
/// Touching the value anywhere else stops the program, in release builds too. When the last reference goes on another
/// thread, the value is sent home and released there.
package final class LoopBound<Value>: @unchecked Sendable {
    // Safe to share: `content` is touched only after a check that this is the loop's thread.
    private var content: Value
    private let loop: EventLoop

    /// Binds `value` to `loop`; to be called on its thread.
    package init(_ value: Value, to loop: EventLoop) {
        loop.checkIsolated()
        content = value
        self.loop = loop
    }

    /// The value, on the loop's thread.
    package var value: Value {
        get {
            loop.checkIsolated()
            return content
        }
        set {
            loop.checkIsolated()
            content = newValue
        }
    }

    deinit {
        guard !loop.isCurrent else { return }
        let last = Parcel(content: content)
        loop.execute { withExtendedLifetime(last) {} }
    }

    /// The value on its last journey.
    private struct Parcel: @unchecked Sendable {
        let content: Value
    }
}

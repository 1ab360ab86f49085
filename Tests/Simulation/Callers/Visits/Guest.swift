// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Somebody besides the ordinary callers, who holds connections of his own.
protocol Guest: AnyObject {
    /// True if no answer is awaited.
    var isIdle: Bool { get }
    /// Does one thing: comes, asks, receives, or leaves.
    func act()
    /// Closes all connections.
    func disconnect()
}

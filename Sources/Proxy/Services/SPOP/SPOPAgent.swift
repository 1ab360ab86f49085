// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What is known of a connection on which HAProxy speaks SPOP, the protocol of its stream processing offload engine.
final class SPOPAgent {
    /// The largest frame that both take, in bytes; none before the greeting.
    var frameLimit: Int?
    /// The frame that is being answered.
    var stream: UInt64 = 0
    var number: UInt64 = 0
    /// Whether the rest of a frame is waited for.
    var isMidFrame = false
    var writer = SPOPWriter()
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop

// Callers that have sent all that they will, and wait for their response or are gone.
extension DownstreamConnection {
    /// How often it is looked whether such a caller is still there.
    private static let interval = Duration.seconds(1)

    /// The caller has ended its side while its response is awaited. It may have closed its socket, too, and TCP does not tell:
    /// that is asked of the kernel, now and from time to time, so that the upstream does not work for nobody. A Unix socket
    /// tells by itself.
    func watchCaller() {
        guard !isWatched, !isUnixSocket else { return }
        isWatched = true
        lookForCaller()
    }

    /// Closes where the caller is gone.
    func lookForCaller() {
        if worker.owners.hasVanished(descriptor) {
            close()
        } else {
            timer.arm(at: worker.loop.now + Self.interval)
        }
    }
}

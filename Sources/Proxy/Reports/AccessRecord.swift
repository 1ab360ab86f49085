// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One request and what became of it, for an access log.
package struct AccessRecord: Sendable, Equatable {
    /// When it was over, in milliseconds since 1970.
    package var time: Int64 = 0
    /// The listener's name.
    package var listener = ""
    /// The caller's address without its port; `nil`: it came over a Unix socket.
    package var caller: String?
    /// The caller's uid, where the kernel tells it.
    package var user: UInt32?
    /// The method; empty where the head could not be read.
    package var method = ""
    /// The path as the caller wrote it, without its query.
    package var path = ""
    /// The query, where it is wanted and there is one.
    package var query: String?
    /// The host that was asked for, with its port.
    package var host = ""
    /// The version of HTTP: `1.1`.
    package var version = ""
    /// The status of the response; 499 where the caller went before there was one.
    package var status = 0
    /// The bytes of the response's body that were sent, or wait to be.
    package var bytes = 0
    /// True if the response was not completed.
    package var isAborted = false
    /// The code of a local reply; `nil`: the response is the upstream's.
    package var code: String?
    /// The upstream, where the request got so far.
    package var upstream: String?
    /// How long all of it took, in nanoseconds.
    package var duration: UInt64 = 0
    /// How long transfers to the upstream ran; `nil`: there was none.
    package var upstreamDuration: UInt64?
    /// Names the request, as everywhere.
    package var exchangeID = ""
    /// The challenge whose login it waited for, if it did.
    package var challenge: String?
    /// The caller's `Referer` without a query.
    package var referer: String?
    /// The caller's `User-Agent`.
    package var userAgent: String?

    /// An empty record.
    package init() {}
}

/// Where access records go. Called on a worker's thread; must not block.
package protocol AccessRecorder: Sendable {
    /// True if records are to have the query.
    var wantsQuery: Bool { get }
    /// One more.
    func write(_ record: AccessRecord)
}

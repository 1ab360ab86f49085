// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire
internal import Synchronization
internal import System

/// The path at which a listener answers the status of `/readyz`, and nothing else.
///
/// Load balancers and kubelets elsewhere have no user here and choose the `Host` freely, so neither counts. No request for the path
/// is forwarded.
package final class HealthPath: Sendable {
    /// The time for which an answer is kept, in nanoseconds: anybody may ask, and each report locks the sessions.
    private static let lifetime: UInt64 = 1_000_000_000
    private static let methods = "GET, HEAD, OPTIONS"

    private struct Reading: Sendable {
        var status: Int
        var end: UInt64
    }

    private let path: [UInt8]
    private let service: any LocalService
    private let reading = Mutex<Reading?>(nil)

    /// Makes the path. `service` is the admin listener's.
    package init(_ path: String, of service: any LocalService) {
        self.path = Array(path.utf8)
        self.service = service
    }

    /// Returns the answer to a request for this path; `nil` for others, and for those of another origin's page.
    func answer(to request: RequestHead, in bytes: Span<UInt8>, browsers: BrowserRule) -> LocalAnswer? {
        guard case .origin = request.target.form, isMeant(request.target.path, in: bytes) else { return nil }
        var metadata = FetchMetadata()
        for line in request.fields { metadata.take(line) }
        guard !metadata.isRefused(by: browsers, request, in: bytes) else { return nil }
        let allowed: [(name: String, value: String)] = [("Allow", Self.methods)]
        return switch request.method {
        case .get, .head: LocalAnswer(status: status, contentType: "", body: [])
        // HAProxy's `option httpchk` uses OPTIONS by default.
        case .options: LocalAnswer(status: status, contentType: "", body: [], fields: allowed)
        default: LocalAnswer(status: 405, contentType: "", body: [], fields: allowed)
        }
    }

    private func isMeant(_ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard range.count == path.count else { return false }
        for (index, position) in range.bounds.enumerated() where bytes[position] != path[index] { return false }
        return true
    }

    private var status: Int {
        let now = SystemClock.monotonicNanoseconds()
        if let known = reading.withLock({ $0 }), now < known.end { return known.status }
        let request = LocalRequest(method: "GET", path: "/readyz", query: "", isUnixSocket: false)
        let status = service.answer(request).status
        reading.withLock { $0 = Reading(status: status, end: now &+ Self.lifetime) }
        return status
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Curl

/// A test connection, made as for a transfer and closed after the TLS handshake.
package struct ConnectionProbe: Sendable {
    /// The reason why the connection failed.
    package struct Failure: Sendable {
        /// Description of the failure, without a full stop.
        package let words: String
        /// Advice for the operator; empty if the description contains it.
        package let remedy: String
        /// libcurl's own message, which may name hosts and files.
        package let cause: String
        /// True if the TLS handshake failed.
        package let isTLS: Bool
    }

    /// The failure; `nil` if the connection was established.
    package let failure: Failure?
    /// The certificates sent by the server, its own first.
    package let certificates: [ShownCertificate]
}

extension ConnectionProbe {
    /// Connects to `origin` as the transfers of `plan` do, and calls `finish` once.
    ///
    /// `finish` runs on the loop's thread. `checks`: the server's certificate is verified; otherwise an invalid chain
    /// can be examined.
    package static func run(
        _ origin: Origin, of plan: UpstreamPlan, on runtime: ClientRuntime, checks: Bool,
        finish: @escaping (ConnectionProbe) -> Void
    ) {
        let settings = origin == plan.base.origin ? plan.connections : plan.connections(to: origin, of: nil)
        do throws(CurlError) {
            let run = try ProbeRun(origin, settings, finish)
            try run.prepare(plan.timeouts.connect, checks: checks)
            try run.start(runtime.connections())
        } catch {
            finish(ConnectionProbe(failure: .init(TransferFailure(error)), certificates: []))
        }
    }
}

/// A connection under way. Retains itself until its end.
private final class ProbeRun: TransferDelegate {
    private let easy: EasyHandle
    private let origin: Origin
    private let settings: ConnectionSettings
    private let finish: (ConnectionProbe) -> Void
    private var driver: CurlDriver?
    private var own: ProbeRun?

    init(
        _ origin: Origin, _ settings: ConnectionSettings, _ finish: @escaping (ConnectionProbe) -> Void
    ) throws(CurlError) {
        easy = try EasyHandle()
        self.origin = origin
        self.settings = settings
        self.finish = finish
    }

    func prepare(_ limit: Duration, checks: Bool) throws(CurlError) {
        var settings = settings
        if !checks { settings.tls.pins = [] }
        try settings.apply(to: easy, for: origin)
        try easy.set(.url, origin.description + "/")
        try easy.set(.connectTimeout, limit)
        try easy.set(.certificateInfo, true)
        if !checks {
            try easy.set(.sslVerifyPeer, false)
            try easy.set(.sslVerifyHost, 0)
        }
        try easy.connectOnly()
    }

    func start(_ driver: CurlDriver) throws(CurlError) {
        self.driver = driver
        own = self
        do throws(CurlError) {
            try driver.start(easy, delegate: self)
        } catch {
            own = nil
            throw error
        }
    }

    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard own != nil else { return }
        let failure = error.map {
            ConnectionProbe.Failure(TransferFailure($0, of: handle, isProxied: settings.proxy != nil))
        }
        let certificates = handle.shownCertificates
        driver?.stop(easy)
        own = nil
        finish(ConnectionProbe(failure: failure, certificates: certificates))
    }

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { false }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { true }
}

extension ConnectionProbe.Failure {
    fileprivate init(_ failure: TransferFailure) {
        let meaning = FailureMeaning(failure)
        words = meaning.words
        isTLS = meaning.kind == .tls
        remedy = meaning.remedy
        cause = failure.cause
    }
}

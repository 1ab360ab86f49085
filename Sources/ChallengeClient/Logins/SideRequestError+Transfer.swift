// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

extension SideRequestError {
    /// The error for a transfer to `origin` that failed.
    init(_ failure: TransferFailure, origin: Origin) {
        let kind: Kind
        let words: String
        switch TransferFault(failure) {
        case .protocolError(let reason): (kind, words) = (.badAnswer, reason)
        case .timedOut: (kind, words) = (.timedOut, "did not answer in time")
        case .tls(let reason): (kind, words) = (.tls, reason)
        case .unreachable(let reason): (kind, words) = (.unreachable, reason)
        }
        let told = failure.remedy.isEmpty ? words : "\(words). \(failure.remedy)"
        self.init(kind, reason: "\(origin): \(words) (\(failure.cause))", told: told)
    }
}

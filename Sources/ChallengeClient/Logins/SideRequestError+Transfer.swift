// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

extension SideRequestError {
    /// The error for a transfer to `origin` that failed.
    init(_ failure: TransferFailure, origin: Origin) {
        let meaning = FailureMeaning(failure)
        let (kind, words): (Kind, String) =
            switch meaning.kind {
            case .protocolError: (.badAnswer, meaning.words)
            case .timedOut: (.timedOut, "did not answer in time")
            case .tls: (.tls, meaning.words)
            case .unreachable: (.unreachable, meaning.words)
            }
        let told = meaning.remedy.isEmpty ? words : "\(words). \(meaning.remedy)"
        self.init(kind, reason: "\(origin): \(words) (\(failure.cause))", told: told)
    }
}

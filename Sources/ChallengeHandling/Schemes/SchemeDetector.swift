// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds the challenges of a list of schemes (RFC 9110 §11.6.1). Those of a proxy on the way, 407, are none of ours.
public struct SchemeDetector: ChallengeDetector {
    private let plan: SchemePlan

    /// A detector for the logins of `plan`.
    public init(_ plan: SchemePlan) { self.plan = plan }

    /// The schemes, in order.
    public var kind: String { plan.schemes.map(\.name).joined(separator: ", ") }

    /// A 401 with a challenge of one of the schemes. Fields that do not follow the grammar are not answered: half of a list
    /// could be the weaker half.
    /// A 403 means what it means to one of the schemes.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if response.status == 403, hasSession {
            let asked = plan.schemes.lazy.map { $0.refusal(in: response, realm: plan.realm) }
            return asked.first { $0 != .pass } ?? .pass
        }
        guard response.status == 401, let offer = plan.offer(in: response.fields) else { return .pass }
        // A request outside of what was known of the realm went without the session, whatever is held.
        let wasOutside = plan.realm.flatMap { plan.spaces?.learn($0, at: response.url) } ?? false
        guard hasSession, !wasOutside else { return .challenged() }
        // Of several schemes it may have been another that was refused here.
        return offer == .refused && plan.schemes.count > 1 ? .challenged() : offer
    }
}

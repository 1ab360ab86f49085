// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import ChallengeHandling

/// The challenges that are configured for a path at an upstream, compared over all readings of that path.
///
/// A location pattern says where a credential goes. `/admin/%2e%2e/uploads/x` would have the one of `/admin/*` sent to whoever
/// serves `/uploads`.
package enum CredentialReadings {
    /// Returns whether the same challenges stand at `path` of that upstream however a server reads it. `path`: what follows the
    /// path of the upstream's `url`, without a query.
    package static func agree(on path: Span<UInt8>, at plan: UpstreamPlan) -> Bool {
        guard !plan.logins.isUniform, !PathReadings.isPlain(path) else { return true }
        var whole = plan.basePath
        for index in path.indices { whole.append(path[index]) }
        if whole.first != .slash { whole.insert(.slash, at: 0) }
        let own = challenges(at: whole, of: plan)
        return PathReadings.allSatisfy(whole) { challenges(at: $0, of: plan) == own }
    }

    private static func challenges(at path: [UInt8], of plan: UpstreamPlan) -> [String] {
        let url = WebURL(origin: plan.base.origin, path: String(decoding: path, as: UTF8.self))
        return plan.logins.standing(at: Location(url)).map(\.name)
    }
}

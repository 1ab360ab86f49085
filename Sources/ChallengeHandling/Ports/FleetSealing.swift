// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

/// The keys that the hosts of a fleet have in common: what they put into the session engine is sealed with them, and by them they
/// tell each other which value of a credential they mean without saying it.
package protocol FleetSealing: Sendable {
    /// `value` sealed under the current key, for `name` alone; `nil` should the library refuse.
    func sealed(_ value: Secret, as name: String) -> [UInt8]?
    /// What was sealed for `name` under any key that is known here; `nil` for anything else.
    func opened(_ bytes: [UInt8], as name: String) -> Secret?
    /// Keyed digests of `value`, in hexadecimal, each with its key: under the current key first, then under those that still open.
    func digests(of value: Secret) -> [String]
}

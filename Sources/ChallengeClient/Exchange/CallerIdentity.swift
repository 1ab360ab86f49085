// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Identity of a caller, which may decide about the credentials of its requests.
package enum CallerIdentity: Hashable, Sendable {
    /// The user with this uid, as the kernel reports.
    case user(UInt32)
    /// The caller whose token is in the credential of this name.
    case token(String)
}
